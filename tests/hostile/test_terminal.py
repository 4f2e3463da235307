"""Escape sequences in what compilers, objects and people write: shown on a terminal, never obeyed.

ESC and C1 bytes steer (colours, titles, the clipboard by OSC 52, links by OSC 8), backspaces and carriage returns
overwrite what was said before them, bidirectional overrides change the order of what is read.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.console import Console, json_text, visible

from .objects import shapes
from .reader import ROOT
from .test_names import Ask, ask, strings_in

__all__ = ["ask"]  # the fixture
HOSTILE = (
    "\x1b[2J\x1b[31m", "\x1b]52;c;aGk=\x07", "\x1b]8;;http://x.example\x1b\\link", "\x9b31m", "\x9d0;title\x9c", "a\rb",
    "a\x08b", "\u202egpj.exe", "\u2066x\u2069", "\u200b", "\ufeff", "\U000e0041", "\x7f", "\x00",
)  # fmt: skip
TEXT = "".join(HOSTILE)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_what_steers_is_written_out(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable() and shown != text
    document = json_text({text: [text]})
    assert document.replace("\n", "").isprintable()
    assert json.loads(document) == {text: [text]} == json.loads(json_text({text: [text]}, ascii_only=True))


def test_what_people_write_stays() -> None:
    text = "Größe 漢字 → ≤ 🙂 \t x\n"
    assert visible(text) == text
    assert json.loads(json_text({"a": text})) == {"a": text} and "漢字" in json_text({"a": text})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("tty", [True, False])
def test_progress_and_messages(tty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal() if tty else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    console = Console()
    console.progress(TEXT)
    console.message(TEXT)
    console.always(TEXT)
    console.progress("end")
    console.always("")  # takes the live line away
    written = stream.getvalue().replace("\r\x1b[2K", "") if tty else stream.getvalue()
    assert written.replace("\n", "").isprintable(), written


LISTING = (ROOT / "tests/isa/data/demo-mp22.s").read_bytes()


def hostile_listing(text: str) -> bytes:
    """Its function, a label, an operand, a line that nobody understands: all of that name."""
    name = text.replace("\x00", "").encode()
    line = name.replace(b"\r", b"").replace(b"\n", b"")
    return LISTING.replace(b"_Z5demo1Pf", b"k" + line) + b"\n??? " + line + b"\n\t[N-sD---]\tMOV\tR1, " + line + b"\n"


@pytest.mark.parametrize("command", ["disasm", "lint", "report", "notes"])
def test_listings(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate(HOSTILE):
        file = Path(f"{number}.s")
        file.write_bytes(hostile_listing(text))
        ask(command, str(file))  # the fixture looks at both streams
        code, document = ask(command, "--json", str(file))
        assert json.loads(document) and code in (0, 1, 4)


def test_diffs_of_listings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.s").write_bytes(LISTING)
    for number, text in enumerate(HOSTILE):
        Path(f"{number}.s").write_bytes(hostile_listing(text))
        ask("diff", "a.s", f"{number}.s")
        ask("diff", "--json", f"{number}.s", "a.s")


def test_names_in_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    """Kernels, bundle entries, members of archives and owners of notes."""
    from tests.binary.writer import Function, archive, bundle, mtgpu_document, mtgpu_elf, mtgpu_kernel, note

    monkeypatch.chdir(tmp_path)
    for number, text in enumerate(one for one in HOSTILE if "\x00" not in one):
        document = mtgpu_document(mtgpu_kernel("k" + text), {".name": text, text: text})
        device = mtgpu_elf(document, text=bytes(24), functions=[Function("k" + text, 0, 12)])
        name = text.encode()
        files = {
            f"{number}.o": device,
            f"{number}.bundle": bundle([(b"host-x86_64" + name, b""), (b"musa-mtgpu-mt-musa--mp_22" + name, device)]),
            f"{number}.a": archive([("m" + text.replace("/", ""), device)]),
            f"{number}n.o": shapes()["notes"].replace(b"GNU\0", (name + b"\0\0\0\0")[:4]),
        }
        assert note("x", 1)
        for file, data in files.items():
            Path(file).write_bytes(data)
            for command in ("notes", "report", "lint"):
                ask(command, file)
                _, out = ask(command, "--json", file)
                json.loads(out)
    _, out = ask("notes", "--json", "0.o")
    assert any("k\x1b[2J" in one for one in strings_in(json.loads(out)))  # the very name, escaped once


def test_diagnostics_of_a_compiler(tmp_path: Path, run_cli: Callable[..., Any]) -> None:
    """A compile that fails tells what the compiler said, and the version that it prints is shown too."""
    compiler = tmp_path / "clang-14"
    said = TEXT.replace("\x00", "").replace("\\", "").replace("'", "")
    compiler.write_text(
        f"#!/bin/sh\ncase $1 in --version) printf '%s\\n' 'clang version 14.0.6 {said}'; exit 0;; esac\n"
        f"printf '%s\\n' 'a.c:1:1: error: {said}' >&2\nexit 1\n",
        encoding="utf-8",
    )
    compiler.chmod(0o755)
    source = tmp_path / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    for options in ((), ("--json",)):
        run = run_cli("bisect", source, "--compiler", compiler, "--flag", "-O2", *options, cwd=tmp_path)
        assert run.code in (3, 4), run
        shown = (run.stdout + run.stderr).replace("\n", "")
        assert shown.isprintable(), [one for one in shown if not one.isprintable()]
