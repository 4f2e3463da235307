"""Files with names that a shell, a terminal or a document would take for something else: they are names all the same.

Each command is asked for text and for JSON. Text holds nothing that steers a terminal, and each name stays on its
line; JSON is UTF-8 and holds the very name, bytes that are no UTF-8 as Python's os.fsdecode spells them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.cli import main

from .objects import shapes
from .reader import ROOT

NAMES = (
    b"a b", b"-x", b"--json", b"new\nline", b"tab\there", b"it's \"quoted\"", b"$(touch pwned)", b"`touch pwned`",
    b"a;touch pwned;&|<>", b"no-utf8-\xff\xfe\x80", b"esc-\x1b[2J\x1b]52;c;aGk=\x07", b"c1-\xc2\x9b31m",
    b"bidi-\xe2\x80\xaegpj", b"line-\xe2\x80\xa8sep", b"back\x08space\rreturn", b"%s%n{0}{x}", b"*?[a-z]~#",
    b"<script>alert(1)<script>", b"back\\slash", "\u00e4\u6f22\u5b57".encode(), b" lead and trail ", b"x" * 230,
    b"[red]markup[red]", b"a=b", b"@response",
)  # fmt: skip
STEERING = {chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0x61C, *range(0x200B, 0x2010),
                                   *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF)}  # fmt: skip


@pytest.fixture(params=NAMES, ids=ascii)
def name(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return os.fsdecode(request.param)


Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def ask(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> Ask:
    """A command in this process: exit code and standard output; both streams hold nothing that steers."""

    def asked(*argv: str) -> tuple[int, str]:
        code = main(list(argv))
        out, err = capfdbinary.readouterr()
        text, told = out.decode("utf-8"), err.decode("utf-8")
        assert not STEERING & set(text + told), (argv, text, told)
        assert "Traceback" not in told and "a bug in mccprobe" not in told, told
        assert not (tmp_path / "pwned").exists()
        return code, text

    return asked


def place(name: str, suffix: str, data: bytes) -> str:
    """A file of this name in the working directory, as a user names it there."""
    Path(f"./{name}{suffix}").write_bytes(data)
    return f"./{name}{suffix}" if name.startswith("-") else f"{name}{suffix}"


def as_json(answer: tuple[int, str]) -> Any:
    code, text = answer
    assert code in (0, 1), text
    return json.loads(text)


def strings_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*(strings_in(item) for pair in value.items() for item in pair), set())
    if isinstance(value, list):
        return set().union(*(strings_in(item) for item in value), set())
    return {value} if isinstance(value, str) else set()


def holds(document: Any, name: str) -> bool:
    return any(name in text for text in strings_in(document))


ASSEMBLY = (ROOT / "tests/isa/data/demo-mp22.s").read_bytes()


@pytest.mark.parametrize("command", ["notes", "report", "disasm", "lint"])
def test_one_object(name: str, command: str, ask: Ask) -> None:
    for suffix, data in ((".s", ASSEMBLY), (".o", shapes()["bundle"])):
        if suffix == ".o" and command != "notes":
            continue
        file = place(name, suffix, data)
        code, text = ask(command, file)
        assert code in (0, 1) and text
        document = as_json(ask(command, "--json", file))
        assert holds(document, os.fsdecode(Path(file))), (file, document)


def test_diff(name: str, ask: Ask) -> None:
    one, two = place(name, ".s", ASSEMBLY), place(name, "2.s", ASSEMBLY.replace(b"R1", b"R2", 1))
    assert ask("diff", one, two)[0] == 1
    document = as_json(ask("diff", "--json", one, two))
    assert holds(document, os.fsdecode(Path(one))) and holds(document, os.fsdecode(Path(two)))


def test_a_file_that_is_not_there(name: str, ask: Ask) -> None:
    file = f"./{name}.o"
    for command in ("notes", "report", "disasm", "lint"):
        code, text = ask(command, "--json", file)
        assert code in (2, 4), (command, text)
        assert json.loads(text)["status"] == "error"


def test_tables(name: str, ask: Ask) -> None:
    listing = place(name, ".txt", (ROOT / "tests/isa_learn/data/sass/axpy_f32.txt").read_bytes())
    table = f"./{name}.json"
    assert ask("isa", "learn", "--from", listing, "-o", table)[0] == 0
    assert ask("isa", "show", table)[0] == 0
    as_json(ask("isa", "show", table, "--json"))


def test_journal(name: str, ask: Ask) -> None:
    book = f"./{name}.jsonl"
    assert ask("journal", "note", f"--why={name}", f"--kernel={name}", "--journal", book, "--", name)[0] == 0
    for command in (("list",), ("show", "last")):
        assert ask("journal", *command, "--journal", book)[1]
        assert holds(as_json(ask("journal", *command, "--json", "--journal", book)), name)


def test_run_directories(name: str, ask: Ask) -> None:
    folder = Path(f"./{name}")
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    for command in ("bisect", "why"):
        code, text = ask(command, "--json", "--resume", f"./{name}")
        assert code == 4 and json.loads(text)["code"] == "journal-unreadable", text


def test_wrapper(name: str, ask: Ask) -> None:
    """The compiler and the prefix have such names, and what the wrapper starts is that compiler."""
    compiler = Path(f"./{name}-cc")
    version = 'case $1 in --version) echo "clang version 14.0.6"; echo "mcc version 4.0.1"; exit ;; esac\n'
    compiler.write_text(f'#!/bin/sh\n{version}echo "called $#"\n')
    compiler.chmod(0o755)
    prefix = Path(f"./{name}-prefix").absolute()
    options = ("--mcc", str(compiler.absolute()), "--prefix", str(prefix), "--set", "gemm-s4000")
    assert ask("wrapper", "install", *options)[0] == 0
    done = subprocess.run([prefix / "bin/mcc", "-c", f"./{name}.mu"], capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith(b"called "), done
    assert not Path("pwned").exists()
    assert ask("wrapper", "remove", "--prefix", str(prefix))[0] == 0
    shutil.rmtree(prefix, ignore_errors=True)
