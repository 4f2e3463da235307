"""What a hint advises can be done: an option that it names is one of the command that met the error."""

from __future__ import annotations

import ast
import errno
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from mccprobe.base.errors import Interrupted
from mccprobe.build.store import TEMPORARY, disk_errors
from mccprobe.cli import main, root
from mccprobe.cli.hints import command_of, foreign_options, hint_for

PACKAGE = Path(__file__).resolve().parents[2] / "mccprobe"


def commands(group: click.Group = root, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, (*names, name))
        else:
            yield (*names, name), found


COMMANDS = {" ".join(names): (names, command) for names, command in commands()}


def text_of(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) if isinstance(part, ast.Constant) else "x" for part in node.values)
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return ""


NAMES = {"hint", "usual_hint", "elsewhere", "ELSEWHERE", "TEMPORARY"}


def hints() -> dict[str, Path]:
    """Every text that the sources give as a hint, and where."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [getattr(name, "id", "") for name in node.targets] if isinstance(node, ast.Assign) else []
            names += [node.arg or ""] if isinstance(node, ast.keyword) else []
            if isinstance(node, ast.Assign | ast.keyword) and not NAMES.isdisjoint(names):
                found |= {text: path for part in ast.walk(node.value) if (text := text_of(part))}
    return found


HINTS = hints()


def test_every_option_in_a_hint_is_one_of_some_command() -> None:
    assert len(HINTS) > 150
    for hint, path in HINTS.items():
        for part in re.split("; |, or | or ", hint):
            assert any(not foreign_options(part, command) for _, command in COMMANDS.values()), (path, hint)


MET = {
    "full": OSError(errno.ENOSPC, "No space"), "read-only": OSError(errno.EROFS, "Read-only"),
    "denied": OSError(errno.EACCES, "Denied"), "ctrl-c": KeyboardInterrupt(),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_no_hint_names_an_option_that_the_command_has_not(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of what any command can meet: a disk that takes no more, a place that may not be written, Ctrl-C."""
    names, command = COMMANDS[name]
    assert command_of(root, ["--color", "never", *names, "x"]) is command
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "params", list(command.params))
    for parameter in command.params:
        monkeypatch.setattr(parameter, "required", False)
    own = {option for parameter in command.params for option in parameter.opts}

    def fails(error: BaseException) -> None:
        def callback(*_: Any, **__: Any) -> None:
            with disk_errors(Path("there")):
                raise error

        monkeypatch.setattr(command, "callback", callback)

    said = {}
    for kind, error in {**MET, "interrupt": Interrupted("interrupted")}.items():
        fails(error)
        assert main([*names, *(["--"] if name == "trace" else [])]) in (4, 130)
        said[kind] = capsys.readouterr().err.strip()
        assert not set(re.findall(r"(?<![^\s])--?[a-z][\w-]*", said[kind])) - own, said[kind]
    folders = [one for one in command.params if "-o" in one.opts and getattr(one, "metavar", "") == "DIR"]
    assert ("choose another place with -o DIR" in said["full"]) == bool(folders)
    assert "hint: free space" in said["full"] and "hint: make it writable" in said["read-only"]
    assert ("--resume" in said["ctrl-c"]) == ("--resume" in own) and said["ctrl-c"] == said["interrupt"]
    for hint in HINTS:
        left = hint_for(hint, command)
        assert not foreign_options(left, command), (hint, left)


ALTERNATIVES = {
    "install the MUSA SDK, or name it with --mcc PATH; without it: --toolchain sim": {
        "bisect": "install the MUSA SDK, or name it with --mcc PATH; without it: --toolchain sim",
        "disasm": "install the MUSA SDK, or name it with --mcc PATH",
        "journal list": "install the MUSA SDK",
    },
    "choose another --journal FILE": {"journal list": "choose another --journal FILE", "diff": ""},
    "choose another folder with -o DIR": {"trace": "choose another folder with -o DIR", "isa learn": ""},
    "go on with: mccprobe bisect --resume X": {"diff": "go on with: mccprobe bisect --resume X"},
    "leave out -c and -o": {"diff": "leave out -c and -o"},
    f"free space, or {TEMPORARY}": {"edit test": f"free space, or {TEMPORARY}"},
}


@pytest.mark.parametrize(("hint", "name"), [(hint, name) for hint, names in ALTERNATIVES.items() for name in names])
def test_what_is_left_of_a_hint(hint: str, name: str) -> None:
    assert hint_for(hint, COMMANDS[name][1]) == ALTERNATIVES[hint][name]
