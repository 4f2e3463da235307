"""A fault of `-flto` alone: the hint's own commands find it (llvm-project#57110, main.c and box.c)."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .refusals import CLANG

CallCli = Callable[..., tuple[int, str, str]]
BOX_H = """#include <setjmp.h>
int *box_new(void);
void box_fill(jmp_buf back, int *b);
"""
BOX = """#include <stdlib.h>
#include "box.h"
int *box_new(void) {
  int *b = malloc(sizeof *b);
  *b = 111;
  return b;
}
void box_fill(jmp_buf back, int *b) {
  *b = 42;
  longjmp(back, 1);
}
"""
MAIN = """#include "box.h"
int main(void) {
  int *b = box_new();
  jmp_buf back;
  if (!setjmp(back))
    box_fill(back, b);
  else
    return *b;
  return 5;
}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "inc").mkdir()
    for name, text in {"inc/box.h": BOX_H, "box.c": BOX, "main.c": MAIN}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown_commands(call_cli: CallCli, *args: str) -> list[list[str]]:
    code, out, err = call_cli("bisect", *args)
    assert (code, out) == (2, "") and "error: -flto: " in err, err
    hint = err.partition("  hint: bisect the linked bitcode: ")[2]
    return [shlex.split(command) for command in hint.strip().split(" && ")]


@pytest.mark.toolchain("clang-14")
def test_the_commands_of_the_hint_find_the_pass(here: Path, call_cli: CallCli) -> None:
    if shutil.which("llvm-link-14") is None:
        pytest.skip("llvm-link-14 is not here")
    args = ("main.c", *CLANG, "--reference", "-O0", "--", "-O2", "-Iinc", "-flto", "-fuse-ld=lld", "box.c", "-lm")
    *builds, bisect = shown_commands(call_cli, *args)
    assert [argv[0] for argv in builds] == ["clang-14", "clang-14", "llvm-link-14"]
    for argv in builds:
        subprocess.run(argv, check=True)
    assert bisect == ["mccprobe", "bisect", "whole.bc", *CLANG, "--reference=-O0", "--", "-O2", "-lm"]
    asked = [sys.executable, "-m", "mccprobe", "--json", *bisect[1:]]
    ran = subprocess.run(asked, capture_output=True, text=True, check=False)
    document = json.loads(ran.stdout)
    assert (ran.returncode, document["status"]) == (0, "found"), ran.stderr
    assert (document["culprit"]["pass"], document["culprit"]["function"]) == ("EarlyCSEPass", "main")


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    ("args", "last"),
    [
        (("main.c", "--flag", "-enable-newgvn", "--", "-flto=thin", "-O1"), "main.bc {} --flag=-enable-newgvn -- -O1"),
        (("main.c", "--", "-O3", "-std=c99", "-flto", "-DX", "a.o"), "main.bc {} --reference=-O0 -- -O3 a.o"),
        (("box.cc", "--oracle", "./ok {exe}", "--", "-flto"), "box.bc {} '--oracle=./ok {{exe}}' -- -lstdc++"),
        (
            ("main.c", "--stdin", "in", "--run-args", "1 2", "--", "-flto"),
            "main.bc {} --reference=-O0 '--run-args=1 2' --stdin=in --",
        ),
    ],
)
def test_what_the_hint_keeps(args: tuple[str, ...], last: str, here: Path, call_cli: CallCli) -> None:
    (here / "box.cc").write_text(BOX)
    for name in ("in", "a.o"):
        (here / name).write_text("1")
    file, *more = args
    commands = shown_commands(call_cli, file, *CLANG, *more)
    assert commands[-1] == ["mccprobe", "bisect", *shlex.split(last.format("--compiler clang-14"))]
    assert len(commands) == 2 and commands[0][-4:] == ["-c", file, "-o", f"{Path(file).stem}.bc"]


@pytest.mark.toolchain("clang-14")
def test_lto_that_is_switched_off_again(here: Path, call_cli: CallCli) -> None:
    code, _, err = call_cli("bisect", "main.c", *CLANG, "--", "-flto", "-fno-lto")
    assert code == 2 and "nothing to compare with" in err
