"""Every path that a command takes, with what can lie at a path: an error in one line, never exit 70, never a wait.

Commands and their parameters come from click's command tree. Each command line runs in a child without the rights by
which root reads everything. A compiler is in PATH only where a command looks at paths after it asked the compiler;
the source does not compile, so that nothing is searched.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest

from mccprobe.cli import main, root

HANG_S = 120  # ends a child that waits for ever; measures nothing
# values that name no file, by metavar; whatever is not here is taken for a path
NOT_PATHS = frozenset({
    "NAME", "NAME=VALUE", "ARCH", "TEXT", "ARGS", "CMD", "MxNxK", "RxC", "TIME", "DATE", "PASS", "FLAG", "OLD NEW",
    "ID", "NAME|MxNxK", "N|auto", "[FLAG]...", "[TOPIC | COMMAND ...]", "FLAG|SET", "tcp://HOST:PORT",
})  # fmt: skip
NOT_PATH_ARGUMENTS = frozenset({"mnemonic", "args", "command"})
# what else a command needs so that it comes to the path
GIVEN: dict[str, list[str]] = {
    "bisect": ["--compiler", "clang-14", "--flag", "-enable-newgvn"],
    "why": ["--compiler", "clang-14", "--flag", "-enable-newgvn"],
    "flags search": ["--compiler", "clang-14", "--space", "space.toml"],
    "recheck": ["--compiler", "clang-14"],
    "flags probe": ["-enable-newgvn"],
    "overlay": ["--header", "mma.h", "--replace", "a", "b"],
}
BEHIND = {"trace": ["--", "true"], "wrapper exec": ["--", "true"]}
ARGUMENTS = {"kernel": "gemm", "file": "prog.c", "run": "run", "files": "prog.c", "a": "prog.c", "b": "prog.c",
             "table": "prog.c", "text": "text", "entry_id": "last", "first": "last", "second": "last", "name": "x",
             "reports": "run"}  # fmt: skip
REQUIRED = {"from": "prog.c", "output": "out.json"}
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2  # capabilities: rights over every file (linux/capability.h)
_PR_CAPBSET_DROP, _VERSION_3 = 24, 0x20080522


def commands(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))
        else:
            yield " ".join((*names, name)), command


def takes_path(parameter: click.Parameter) -> bool:
    if getattr(parameter, "is_flag", False) or parameter.metavar in NOT_PATHS or parameter.name in NOT_PATH_ARGUMENTS:
        return False
    return isinstance(parameter.type, click.Path | type(click.STRING) | type(click.UNPROCESSED))


COMMANDS = {name: command for name, command in commands(root) if any(map(takes_path, command.params))}
KINDS = ("unreadable", "unsearchable", "closed folder", "loop", "fifo", "device", "too long")
EXPECTED = frozenset(range(6))  # what there are exit codes for, without a bug or a signal


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Path]]:
    """One path of each kind, in a working directory with a source that does not compile."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "prog.c").write_text("#error not compiled\n")
    (work / "space.toml").write_text('schema_version = 1\n[[flag]]\nflag = "-funroll-loops"\n')
    (work / "run").mkdir()
    locked, unreadable, closed = work / "locked", work / "unreadable.c", work / "closed"
    for folder in (locked, closed):
        folder.mkdir()
        for name in ("kernel.toml", "run.json", "prog.c"):
            (folder / name).write_text("{}")
    unreadable.write_text("int x;\n")
    (work / "dangling.c").symlink_to("gone/away.c")
    (work / "loop.c").symlink_to("loop.c")
    os.mkfifo(work / "fifo.c")
    unreadable.chmod(0)
    locked.chmod(0)
    closed.chmod(0o600)  # its names can be listed, its files cannot be looked at
    yield {
        "unreadable": unreadable,
        "unsearchable": locked / "prog.c",
        "closed folder": closed,
        "dangling": work / "dangling.c",
        "loop": work / "loop.c",
        "fifo": work / "fifo.c",
        "device": Path("/dev/zero"),
        "too long": work / ("x" * 300),
    }
    for path in (unreadable, locked, closed):
        path.chmod(0o700)


def line_of(name: str, command: click.Command, tried: click.Parameter, value: Path) -> list[str]:
    words, arguments = [*name.split(), *GIVEN.get(name, [])], []
    for parameter in command.params:
        known = {**ARGUMENTS, **REQUIRED}.get(str(parameter.name))
        if parameter is tried and parameter.param_type_name == "option":
            words += [parameter.opts[-1], str(value)]
        elif parameter is tried:
            arguments.append(str(value))
        elif parameter.param_type_name == "argument" and known and (parameter.required or parameter.name == "file"):
            arguments.append(known)
        elif parameter.required and known:
            words += [parameter.opts[-1], known]
    return [*words, *arguments, *BEHIND.get(name, [])]


def without_rights_over_files() -> None:
    """Take from root, here and from programs that are started, the rights that pass over the mode of files."""
    library = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice, for 64 capabilities
    library.capget(header, sets)
    for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
        library.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
        for index in range(3):
            sets[index] &= ~(1 << capability)
    library.capset(header, sets)


def run_child(argv: list[str], log: int, probe: Path) -> NoReturn:
    """Never returns: the child must not go on as a second pytest."""
    code = 99
    try:
        os.setsid()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(HANG_S)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        without_rights_over_files()
        code = 98 if os.access(probe, os.R_OK) else main(argv)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def ended(argv: list[str], log: Path, probe: Path) -> tuple[int, str]:
    """Exit code (negative: a signal) and output of one command line without rights."""
    handle = os.open(log, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    child = os.fork()
    if child == 0:
        run_child(argv, handle, probe)
    os.close(handle)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), log.read_text(errors="replace")


def tried_before(name: str, parameter: click.Parameter) -> bool:
    """True for an option that an earlier command has too: the same code looks at it."""
    for other, command in COMMANDS.items():
        if other == name:
            return False
        if any(one.opts == parameter.opts and one.param_type_name == "option" for one in command.params):
            return parameter.param_type_name == "option"
    raise AssertionError(name)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.toolchain("clang-14")
def test_every_path(
    name: str,
    places: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call_cli: Callable[..., tuple[int, str, str]],
) -> None:
    if name not in ("bisect", "why", "flags search"):
        monkeypatch.setenv("PATH", str(tmp_path))  # nothing is probed
    monkeypatch.setenv("MCCPROBE_CACHE", str(tmp_path / "cache"))
    command, faults = COMMANDS[name], []
    for parameter in filter(takes_path, command.params):
        kinds = ("unsearchable", "fifo") if tried_before(name, parameter) else KINDS
        # in this process, so that no child imports it all again
        code, _, output = call_cli(*line_of(name, command, parameter, places["dangling"]))
        if code not in EXPECTED:
            faults.append(f"dangling: exit {code}\n{output[:400]}")
        for kind in kinds:
            argv = line_of(name, command, parameter, places[kind])
            code, output = ended(argv, tmp_path / "log", places["unreadable"])
            if code == 98:
                pytest.skip("clang-14 runs, but capset cannot take root's rights over files here")
            if code not in EXPECTED or "Traceback" in output:
                how = "did not end" if code == -signal.SIGALRM else f"exit {code}"
                faults.append(f"{kind}: {how}: mccprobe {' '.join(argv)}\n{output[:400]}")
    assert not faults, "\n".join(faults)


def test_the_error_names_path_and_remedy(places: dict[str, Path], tmp_path: Path) -> None:
    argv: list[Any] = ["bisect", str(places["unsearchable"]), "--compiler", "clang-14", "--flag", "-enable-newgvn"]
    code, output = ended(argv, tmp_path / "log", places["unreadable"])
    if code == 98:
        pytest.skip("capset cannot take root's rights over files here")
    assert code == 4 and f"error: {places['unsearchable']}: Permission denied\n" in output, output
    assert "hint: check the permissions of the path and of each folder above it" in output, output
