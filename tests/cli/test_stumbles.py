"""What people typed and stumbled over: each gets an answer that names the mistake and the next step."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.bisection.passes.missed_files import named_by_program, named_in_arguments
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.pasted import without_compiler
from mccprobe.build.link_errors import link_error

from .refusals import CLANG, PLAIN

CallCli = Callable[..., tuple[int, str, str]]
MAIN = "int main(void) { return 0; }\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Path) -> Path:
    """A folder of the test's own with `prog.c` in it, and in it."""
    assert source.parent == tmp_path
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(call_cli: CallCli, code: int, *args: str) -> tuple[str, str]:
    """One error line and one hint, no traceback, nothing on standard output. Returns both."""
    got, out, err = call_cli("-q", *args)
    lines = [line for line in err.splitlines() if line.startswith(("error: ", "  hint: "))]
    assert (got, out, len(lines), "Traceback" in err) == (code, "", 2, False), err
    return lines[0].removeprefix("error: "), lines[1].removeprefix("  hint: ")


# --- several files, pasted commands -----------------------------------------------------------------


@pytest.mark.parametrize("command", ["bisect", "why"])
def test_several_files_are_an_error(command: str, here: Path, call_cli: CallCli) -> None:
    """Only the first was bisected, and NO DIFFERENCE followed."""
    error, hint = refused(call_cli, 2, command, "prog.c", "b.c", "c.c", *PLAIN, "--", "-O2")
    assert error == f"{command} takes one FILE, and 3 are given: prog.c, b.c, c.c"
    assert hint.endswith(f": mccprobe {command} prog.c OPTIONS -- b.c c.c -O2")
    assert refused(call_cli, 2, command, "prog.c", "b.c", *PLAIN)[0].startswith(f"{command} takes one FILE")
    assert not (here / "mccprobe-out").exists()


def test_reduce_takes_one_run(here: Path, call_cli: CallCli) -> None:
    assert "unexpected extra argument (b.c)" in refused(call_cli, 2, "reduce", "prog.c", "b.c")[0]


@pytest.mark.toolchain("clang-14")
def test_a_pasted_compile_command_is_taken(here: Path, call_cli: CallCli) -> None:
    pasted = ("ccache", "clang-14", "-O1", "-c", "prog.c", "-o", "prog.o")
    code, out, err = call_cli("bisect", "prog.c", *PLAIN, "--json", "-o", "run", "--", *pasted)
    assert (code, json.loads(out)["status"]) == (1, "no-difference"), err
    assert err.splitlines()[:3] == [
        "compiler: clang-14, from the command after --",
        "left out of the arguments after --: -c, -o prog.o (mccprobe sets them itself)",
        "left out of the arguments after --: prog.c (it is FILE)",
    ]
    asked = json.loads((here / "run" / "run.json").read_text())["request"]
    assert (asked["args"], asked["inputs"], Path(asked["compiler"]).name) == (["-O1"], [], "clang-14")


@pytest.mark.parametrize(
    ("head", "compiler"),
    [
        (["clang-14"], "clang-14"),
        (["distcc", "/opt/x/clang++-19"], "/opt/x/clang++-19"),
        (["aarch64-linux-gnu-clang"], "aarch64-linux-gnu-clang"),
        (["gcc"], None),
        (["x86_64-linux-gnu-g++-12"], None),
        (["c++"], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_head_of_a_pasted_command(head: list[str], compiler: str | None) -> None:
    options, told = without_compiler(BisectOptions(args=(*head, "-O2", "x.o")))
    assert (options.args, options.compiler, len(told)) == (("-O2", "x.o"), compiler, 1)
    named = BisectOptions(args=(*head, "-O2"), compiler="mine")
    assert without_compiler(named)[0] == BisectOptions(args=("-O2",), compiler="mine")


@pytest.mark.parametrize("args", [(), ("-O2", "clang-14"), ("clang.o",), ("libcc.a",), ("cc.c",), ("-c",)])
def test_arguments_that_name_no_compiler(args: tuple[str, ...]) -> None:
    assert without_compiler(BisectOptions(args=args)) == (BisectOptions(args=args), ())


def test_a_pasted_command_without_file_asks_which(here: Path, call_cli: CallCli) -> None:
    error, hint = refused(call_cli, 2, "bisect", *PLAIN, "--", "clang-14", "-O2", "-c", "prog.c", "-o", "prog.o")
    assert error == "which file is to be bisected?" and hint.startswith("mccprobe bisect FILE")


# --- what was meant ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["bisect", "why"])
def test_neither_file_nor_flag_asks_for_one(command: str, here: Path, call_cli: CallCli) -> None:
    """The shipped GEMM was compiled, without a flag to ask about."""
    error, hint = refused(call_cli, 2, command)
    assert error == "no FILE and no --flag: nothing to bisect" and "prog.c --flag X" in hint


@pytest.mark.parametrize("command", ["bisect", "why", "check"])
def test_a_folder_that_is_no_kernel(command: str, here: Path, call_cli: CallCli) -> None:
    """It was told that kernel.toml cannot be read."""
    flag = PLAIN if command in ("bisect", "why") else ()
    error, _ = refused(call_cli, 4, command, ".", *flag)
    assert error.startswith(".: ") and "kernel.toml" in error and "cannot be read" not in error


def test_gcc_is_one_line(here: Path, call_cli: CallCli, tmp_path: Path) -> None:
    """Two thousand characters of gcc's -### were shown. The fake answers as gcc does: no line of jobs."""
    fake = tmp_path / "gcc"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "gcc (Debian) 12.2.0"\nseq 99 >&2\n')
    fake.chmod(0o755)
    code, _, err = call_cli("bisect", "prog.c", *PLAIN, "--compiler", str(fake))
    assert code == 3 and len(err.splitlines()) == 2, err
    assert "gcc is not clang (gcc (Debian) 12.2.0)" in err and "hint: name a clang: --compiler " in err


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("-enable-newgnv", "-enable-newgvn"),
        ("--enable-newgnv", "-enable-newgvn"),
        ("-fno-stict-aliasing", "-fno-strict-aliasing"),
        ("-unroll-cuont=4", "-unroll-count=4"),
    ],
)
def test_a_misspelt_flag(typed: str, meant: str, here: Path, call_cli: CallCli) -> None:
    assert refused(call_cli, 2, "bisect", "prog.c", *CLANG, "--flag", typed)[1] == f"did you mean {meant}?"


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("typed", ["-zzz-yyy", "-unroll-count=many"])
def test_a_flag_that_resembles_nothing_is_not_guessed(typed: str, here: Path, call_cli: CallCli) -> None:
    """LLVM suggests the nearest of all its options, however far it is: -polly for -zzz-yyy."""
    assert "did you mean" not in refused(call_cli, 2, "bisect", "prog.c", *CLANG, "--flag", typed)[1]


# --- links ------------------------------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("linker", [(), ("-fuse-ld=lld",)], ids=["ld", "lld"])
def test_links_that_fail_name_the_file(linker: tuple[str, ...], here: Path, call_cli: CallCli) -> None:
    (here / "empty.c").write_text("")
    (here / "other.c").write_text("int other;\n")
    subprocess.run(["clang-14", "-c", "prog.c", "-o", "mine.o"], check=True)
    if linker and subprocess.run(["clang-14", *linker, "mine.o", "-o", "mine"], check=False).returncode:
        pytest.skip("clang-14 finds no lld here")
    error, hint = refused(call_cli, 4, "bisect", "prog.c", *CLANG, *PLAIN, "--", "other.c", "mine.o", *linker)
    assert error.endswith(" is defined in prog.c and in mine.o") and hint.startswith("leave mine.o out if it was")
    error, hint = refused(call_cli, 4, "bisect", "empty.c", *CLANG, *PLAIN, "--", *linker)
    assert error.endswith("no main: empty.c defines no function main") and "-- main.c" in hint
    error, _ = refused(call_cli, 4, "bisect", "empty.c", *CLANG, *PLAIN, "--", "other.c", *linker)
    assert error.endswith("no main: empty.c and the files after -- define no function main")


LD = """/usr/bin/ld: {}: in function `twice':
a.c:(.text+0x0): multiple definition of `twice'; {}:a.c:(.text+0x0): first defined here
/usr/bin/ld: other.o:(.data+0x0): multiple definition of `table'; {}:(.data+0x0): first defined here
"""
LLD = """ld.lld: error: duplicate symbol: twice
>>> defined at a.c
>>>            {}:(twice)
>>> defined at a.c
>>>            {}:(.text+0x0)
"""


@pytest.mark.parametrize("text", [LD, LLD], ids=["ld", "lld"])
@pytest.mark.parametrize(
    ("first", "second", "what", "hint"),
    [
        ("lib.a(member.o)", "/run/objects/12", "a.c and in lib.a", "leave lib.a out if it was compiled from a.c"),
        ("x.o", "lib.a(x.o)", "x.o and in lib.a", "leave x.o or lib.a out"),
        ("x.o", "/usr/lib/crt1.o", "a.c and in x.o", "leave x.o out if it was"),
        ("/usr/lib/x.o", "/usr/lib/crt1.o", "", ""),
    ],
)
def test_who_defines_it_twice(text: str, first: str, second: str, what: str, hint: str) -> None:
    inputs = {name: name for name in ("x.o", "lib.a", "a.o")}
    found = link_error(text.format(first, second, second), "a.c", "/run/objects/12", inputs)
    assert found.what == (f"twice is defined in {what}" if what else "twice is defined twice")
    assert found.hint.startswith(hint) and bool(found.hint) == bool(hint)


def test_other_links_that_fail_keep_the_linkers_words() -> None:
    for text in ("", "ld: undefined reference to `main_loop'", "ld.lld: error: undefined symbol: mainline", MAIN):
        assert link_error(text, "a.c", "/run/objects/12", {}) == link_error("", "", "", {})


# --- the empty folder -------------------------------------------------------------------------------


def test_run_arguments_that_are_files_here(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("1")
    (tmp_path / "in").mkdir()
    told = named_in_arguments(["-n", "5", "data.txt", "--from=in/", "gone.txt", "/etc/passwd", ".", ""], tmp_path)
    assert told == (
        "--run-args names data.txt, in/, which exist here, but the program runs in an empty folder; run it here: "
        "--run-in ."
    )
    assert named_in_arguments(["-n", "5", "gone.txt", str(tmp_path / "data.txt")], tmp_path) == ""


def test_files_that_a_program_names_and_does_not_find(tmp_path: Path) -> None:
    """Names in the program and in its messages; not what it wrote itself, nor the files of its build."""
    here, ran_in = tmp_path / "here", tmp_path / "run"
    for folder in (here / "sub", ran_in):
        folder.mkdir(parents=True)
    for name in ("data.txt", "sub/deep.bin", "grid.txt", "prog.c", "prog.h", "other.c", "table", "log"):
        (here / name).write_text("1")
    (ran_in / "grid.txt").write_text("2")
    program = tmp_path / "program"
    names = ["data.txt", "./sub/deep.bin", "grid.txt", "prog.c", "prog.h", "other.c", "table", "gone.txt", "/dev/null"]
    program.write_bytes(b"\x7fELF\0" + b"\0".join(map(str.encode, names)) + b"\0")
    told = named_by_program(program, "", ran_in, here, ["prog.c"])
    assert told == (
        "the program names data.txt, ./sub/deep.bin, which exist here but not in the empty folder that it runs in; if "
        "it reads them, run it here: --run-in ."
    )
    program.write_bytes(b"\x7fELF")
    assert named_by_program(program, "", ran_in, here) == ""
    told = named_by_program(program, "fopen: cannot open 'log': No such file", ran_in, here)
    assert told.startswith("the program names log, which exists here but not in the empty folder")


@pytest.mark.toolchain("clang-14")
def test_a_run_says_which_file_was_missed(here: Path, call_cli: CallCli) -> None:
    (here / "data.txt").write_text("1")
    (here / "prog.c").write_text(
        '#include <stdio.h>\nint main(int c, char **v) { (void)c; (void)v; return fopen("data.txt", "r") ? 0 : 3; }\n'
    )
    note = "the program names data.txt, which exists here but not in the empty folder"
    asked = ("bisect", "prog.c", *CLANG, "--reference=-O0", "--json")  # recorded by itself
    code, out, err = call_cli(*asked, "--run-args", "data.txt", "--", "-O1")
    assert code == 1 and any(text.startswith(note) for text in json.loads(out)["notes"]), err
    assert any("itself ends with exit 3" in text for text in json.loads(out)["notes"])
    assert "--run-args names data.txt, which exists here, but the program runs in an empty folder" in err
    code, out, err = call_cli(*asked, "--run-args", "data.txt", "--run-in", ".", "--", "-O1")
    assert code == 1, err  # the run's own files, which lie there, are no result of the program
    assert not [text for text in json.loads(out)["notes"] if "--run-in" in text] and "--run-in" not in err
