"""`--json` on every command: found by walking the commands, so that a new one cannot be forgotten."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

from mccprobe import cli

ROOT = Path(__file__).resolve().parents[2]
Main = Callable[..., tuple[int, str, str]]


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from leaves(inner, (*path, name))


LEAVES = {" ".join(path): command for path, command in leaves(cli.root)}
# where a command's schema is not called after it
SCHEMAS = {
    "flags search": "flags-search", "wrapper status": "wrapper-status", "wrapper install": "wrapper",
    "wrapper remove": "wrapper", "wrapper show": "wrapper", "wrapper exec": "wrapper",
}  # fmt: skip
# a run that costs next to nothing; those of the others are in the tests of their packages
CHEAP = {
    "completion": ("zsh",), "help": ("words",), "flags list": (), "flags show": ("mtgpu-if-convert",),
    "journal list": (), "journal note": ("a note",), "journal show": ("last",), "journal dead-ends": (),
    "journal export": ("--csv", "rows.csv"), "plan": (), "notes": ("object.o",), "disasm": ("listing.s",),
    "lint": ("listing.s",), "diff": ("listing.s", "listing.s"),
}  # fmt: skip
# command -> the test file that runs it with --json and holds the result against its schema
ELSEWHERE = {
    "bench": "gate", "bisect": "cli", "bug-report": "why", "check": "gate", "cycle": "gate", "doctor": "doctor",
    "edit begin": "gate", "edit keep": "gate", "edit revert": "gate", "edit test": "gate",
    "flags harvest": "flags", "flags probe": "flags", "flags search": "flag_search", "isa decode": "isa_learn",
    "isa learn": "isa_learn", "isa show": "isa_learn", "journal compare": "history", "overlay": "overlay",
    "recheck": "why", "reduce": "why", "report": "cli", "toolchains": "terminal", "trace": "trace", "why": "why",
    "wrapper exec": "terminal", "wrapper install": "terminal", "wrapper remove": "terminal",
    "wrapper show": "terminal", "wrapper status": "wrapper",
}  # fmt: skip
LISTING = "\t.text\nk:\n\t\t[N-sD---]\t\tFOP.MOV R1, SH23\n\t\t[N-wD---]\t\tCTRL.END\n"


def validator(name: str) -> Draft202012Validator:
    path = ROOT / "reports" / f"{SCHEMAS.get(name, name.split()[0])}.schema.json"
    return Draft202012Validator(json.loads(path.read_text("utf-8")))


def validated(name: str, stdout: str) -> dict[str, Any]:
    """The one document of standard output, held against the command's schema."""
    document: dict[str, Any] = json.loads(stdout)
    assert [f"{one.json_path}: {one.message}" for one in validator(name).iter_errors(document)] == []
    assert (document["schema_version"], bool(document["tool_version"])) == (1, True)
    return document


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Main]:
    """`main("flags", "list")` is `mccprobe flags list` in a folder of its own: exit code, both streams."""
    (tmp_path / "listing.s").write_text(LISTING, encoding="utf-8")
    (tmp_path / "object.o").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(11) + b"\xfd" + bytes(45))
    (tmp_path / "mccprobe-out").mkdir()
    monkeypatch.chdir(tmp_path)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def call(*args: str) -> tuple[int, str, str]:
        code = cli.main(list(args))
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_the_option(name: str) -> None:
    options = [one for one in LEAVES[name].params if "--json" in one.opts]
    assert len(options) == 1, f"mccprobe {name} has no --json"
    assert isinstance(options[0], click.Option) and options[0].is_flag and options[0].help
    assert validator(name).schema["$id"].startswith("urn:mccprobe:schema:")


SHARED = ("-q", "--json", "--color", "never")


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for name in LEAVES for place in ("before", "between", "after") if place != "between" or " " in name],
)
def test_every_command_takes_the_shared_options(
    name: str, place: str, main: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the command, between a group and its command, and after it: the command sees the same."""
    command, words = LEAVES[name], name.split()
    seen: list[tuple[object, ...]] = []

    def callback(*_: object, **values: object) -> None:
        context = click.get_current_context()
        seen.append((context.obj.quiet, context.obj.color, values["as_json"]))

    monkeypatch.setattr(command, "callback", callback)
    needed: list[str] = []
    for one in command.params:
        if one.required:
            word = one.type.choices[0] if isinstance(one.type, click.Choice) else "some"
            needed += [*one.opts[: isinstance(one, click.Option)], *[word] * abs(one.nargs)]
    at = {"before": 0, "between": 1, "after": len(words)}[place]
    code, _, err = main(*words[:at], *SHARED, *words[at:], *needed)
    assert code == 0, err
    assert seen == [(True, "never", True)]
    assert main(*words, *needed)[0] == 0 and seen[1:] == [(False, "auto", False)]


@pytest.mark.parametrize("spelling", ["--case", "--cases"])
@pytest.mark.parametrize("name", ["bisect", "why", "check", "edit test", "overlay", "flags search"])
def test_one_spelling_of_the_case(name: str, spelling: str, main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    """`bisect --case` and `check --cases` differed in a letter: both take both, and show one."""
    seen: list[object] = []

    def callback(*_: object, **values: object) -> None:
        seen.append(values.get("cases", values.get("case")))

    monkeypatch.setattr(LEAVES[name], "callback", callback)
    needed = ["--header", "x.h"] if name == "overlay" else []
    assert main(*name.split(), "some", *needed, spelling, "full")[0] == 0
    assert seen == ["full"]
    assert [one.opts for one in LEAVES[name].params if one.name in ("case", "cases")] == [["--case"]]


@pytest.mark.parametrize("name", LEAVES)
def test_a_failure_is_a_document_as_well(name: str, main: Main) -> None:
    code, out, err = main(*name.split(), "--no-such-option", "--json")
    if name.split()[-1] == "exec":  # what it does not know is the command's
        code, out, err = main(*name.split(), "--json", "--set", "no-such-set", "true")
    document = validated(name, out)
    assert document["status"] == "error"
    assert (document["exit_code"], code) == (2, 2), err
    assert err.startswith("error: ")


@pytest.mark.parametrize("name", CHEAP)
def test_a_success_is_one_document(name: str, main: Main) -> None:
    if name in ("journal show", "journal export"):
        assert main("journal", "note", "something")[0] == 0
    code, out, err = main(*name.split(), *CHEAP[name], "--json")
    assert code in (0, 1), err
    assert validated(name, out).get("status") != "error"


def test_every_command_is_run_somewhere() -> None:
    assert set(CHEAP) | set(ELSEWHERE) == set(LEAVES)
    for name, folder in ELSEWHERE.items():
        text = "".join(path.read_text("utf-8") for path in sorted((ROOT / "tests" / folder).rglob("*.py")))
        schema = SCHEMAS.get(name, name.split()[0])
        assert '"--json"' in text and ".schema.json" in text, f"tests/{folder} runs nothing with --json"
        assert f"{schema}.schema.json" in text or f'"{schema}"' in text, f"{name}: no schema in tests/{folder}"
        word = name.split()[-1]
        run = f'"{word}"' in text or f"import {word.replace('-', '_')}" in text
        assert run, f"{name} is not run in tests/{folder}"


@pytest.mark.toolchain("clang-14")
def test_the_wrapper_from_install_to_removal(main: Main, tmp_path: Path) -> None:
    """wrapper install, show, exec and remove with --json (reports/wrapper.schema.json)."""
    from mccprobe.cli.common import cache_directory
    from mccprobe.targets.sim.build import sim_sdk

    mcc, prefix = str(sim_sdk(cache_directory()).mcc), str(tmp_path / "prefix")
    installed = validated("wrapper install", main("wrapper", "install", "--mcc", mcc, "--prefix", prefix, "--json")[1])
    assert (installed["status"], installed["simulated"], installed["replaced"]) == ("installed", True, None)
    shown = validated("wrapper show", main("wrapper", "show", "--prefix", prefix, "--json")[1])
    assert shown["text"] == Path(installed["path"]).read_text("utf-8")
    script = "echo told; exit 3"
    code, out, _ = main("wrapper", "exec", "--mcc", mcc, "--json", "sh", "-c", script)
    ran = validated("wrapper exec", out)
    assert (code, ran["exit_code"], ran["command"]) == (3, 3, ["sh", "-c", script])
    removed = validated("wrapper remove", main("wrapper", "remove", "--prefix", prefix, "--json")[1])
    assert (removed["set"], Path(installed["path"]).exists()) == (installed["set"], False)


@pytest.mark.toolchain("clang-14")
def test_toolchains_as_they_are_here(main: Main) -> None:
    """toolchains --json against toolchains.schema.json, with whatever this machine has."""
    names = {entry["name"] for entry in validated("toolchains", main("toolchains", "--json")[1])["toolchains"]}
    assert {"mcc", "sim", "amdgcn", "cuda", "clang"} <= names
