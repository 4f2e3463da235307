"""`--stdin FILE`: the file reaches every run of the program, from the search to a report on another machine."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from jsonschema import Draft202012Validator

from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.build.journal import Journal
from mccprobe.build.store import RunDirectory
from mccprobe.explain.reduce.interesting import Task, measure, screened
from mccprobe.explain.screen.runs import ScreenRuns
from mccprobe.oracle.checks import Expected, ReferenceOracle
from mccprobe.oracle.verdict import Verdict

ROOT = Path(__file__).parents[2]
CallCli = Callable[..., tuple[int, str, str]]
# clang-14 -enable-loopinterchange swaps a loop nest that it must not; without a number there is no fault
PROGRAM = """#include <stdio.h>
enum { WIDE = 16, HIGH = 16 };
static int level[HIGH][WIDE], flow[HIGH][WIDE], seen[HIGH][WIDE];
static void settle(void) {
  for (int x = 1; x < WIDE; x++)
    for (int y = 1; y < HIGH; y++) {
      level[1][x - 1] += flow[y][x];
      seen[y][x] = level[1][x];
    }
}
int main(void) {
  int start;
  unsigned hash = 5381;
  if (scanf("%d", &start) != 1) return puts("no number"), 2;
  for (int y = 0; y < HIGH; y++)
    for (int x = 0; x < WIDE; x++) {
      level[y][x] = start + (x ^ y);
      flow[y][x] = (y * 7 + x * 5) % 13;
    }
  settle();
  for (int y = 0; y < HIGH; y++)
    for (int x = 0; x < WIDE; x++) hash = hash * 33 + (unsigned)seen[y][x];
  printf("%u\\n", hash);
  return 0;
}
"""
FLAG = "-enable-loopinterchange"
ASKED = ("--compiler", "clang-14", "--flag", FLAG)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "prog.c").write_text(PROGRAM)
    (tmp_path / "number.txt").write_text("7\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.toolchain("clang-14")
def test_from_the_search_to_the_report(here: Path, call_cli: CallCli) -> None:
    """Standard input was empty, so both builds printed the same: NO DIFFERENCE."""
    code, out, err = call_cli(
        "-q", "--json", "bisect", "prog.c", *ASKED, "--stdin", "number.txt", "-o", "run", "--", "-O2"
    )
    document = json.loads(out)
    assert (code, document["culprit"]["pass"]) == (0, "LoopInterchangePass"), err
    schema = json.loads((ROOT / "reports" / "bisect.schema.json").read_text())
    assert [error.message for error in Draft202012Validator(schema).iter_errors(document)] == []
    assert document["oracle"]["stdin"] == str(here / "number.txt")
    assert json.loads(Path("run/run.json").read_text())["options"]["stdin"] == "number.txt"
    for side in ("good", "bad"):  # what a reader pastes
        for argv in document["reproduce"][side]:
            ran = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert (ran.returncode, "no number" in ran.stdout) == (0, False), ran

    assert call_cli("-q", "bug-report", "run", "-o", "report")[0] == 0
    assert Path("report/source/number.txt").read_text() == "7\n"
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    ran = subprocess.run(
        ["sh", "../report/repro.sh"], cwd=elsewhere, input="not a number", capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0 and "BUG PRESENT" in ran.stdout, ran
    Path("number.txt").write_text("8\n")
    code, out, err = call_cli("-q", "--json", "recheck", "report", "--compiler", "clang-14")
    assert (code, json.loads(out)["results"][0]["answer"]) == (0, "still there"), err
    code, _, err = call_cli("-q", "bisect", "--resume", "run")
    assert code == 4 and "stdin_sha256 changed" in err


@pytest.mark.toolchain("clang-14")
def test_a_smaller_source_is_asked_with_the_same_input(here: Path, tmp_path: Path) -> None:
    options = BisectOptions(file="prog.c", flags=(FLAG,), args=("-O2",), compiler="clang-14", stdin="number.txt")
    request = make_plan(options, tmp_path / "cache").request
    task = Task(request, "LoopInterchangePass", "main", reference_status=0, bad_status=0)
    folder = tmp_path / "work"
    folder.mkdir()
    oracle = measure(task, Path("prog.c"), folder)
    assert isinstance(oracle, ReferenceOracle) and b"no number" not in oracle.expected.stdout
    screened(task, Path("prog.c"), folder, oracle, ["-fsanitize=undefined"])


def test_a_sanitizer_sees_the_same_input(here: Path, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    program = run.object_path("12")
    program.write_text('#!/bin/sh\nread -r n\n[ "$n" = 7 ] && echo started >"${UBSAN_OPTIONS##*log_path=}.1"\n')
    program.chmod(0o755)
    given = here / "number.txt"
    oracle = ReferenceOracle(Expected(b"", 0), stdin=given)
    journal = Journal(run.journal)
    workspace = SimpleNamespace(
        oracle=oracle,
        request=SimpleNamespace(oracle=SimpleNamespace(stdin=given)),
        journal=journal,
        ledger=SimpleNamespace(run=run),
    )
    screen = ScreenRuns(cast(Workspace, workspace))
    assert screen.reported("12", "UBSan", "UBSAN_OPTIONS=x=1", 60.0, env={}).verdict is Verdict.GOOD
    journal.close()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--stdin", "gone.txt"), "gone.txt: No such file or directory"),
        (("--stdin", "."), ".: not a regular file"),
        (("--stdin", "pipe"), "pipe: not a regular file"),
        (("--stdin", "/dev/zero"), "/dev/zero: not a regular file"),
        (("--stdin", "number.txt", "--oracle", "./ok"), "--stdin goes with a program that is compared"),
    ],
)
@pytest.mark.toolchain("clang-14")
def test_what_is_no_input(args: tuple[str, ...], told: str, here: Path, call_cli: CallCli) -> None:
    os.mkfifo("pipe")
    code, out, err = call_cli("bisect", "prog.c", *ASKED, *args)
    assert (code in (2, 4), out) == (True, ""), err
    assert told in err and "  hint: " in err and "Traceback" not in err


def test_a_recipes_input_lies_next_to_it(here: Path) -> None:
    from mccprobe.bisection.passes.options import read_recipe

    Path("folder").mkdir()
    Path("folder/mine.toml").write_text('schema_version = 1\nfile = "../prog.c"\nstdin = "in.txt"\n')
    options = read_recipe(Path("folder/mine.toml"))
    assert (options.file, options.stdin) == ("prog.c", "folder/in.txt")
