"""IR culprits on real compilers: a short diff, and one opt line that was run and turns right into wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.workspace import open_workspace
from mccprobe.build.executor import LocalExecutor
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.store import RunDirectory
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.locate.find import where_in_pass
from mccprobe.report.record import BisectReport, Culprit, Status
from mccprobe.report.why_record import StepState, Where
from mccprobe.targets.passes.table import load_pass_table

CASES = Path(__file__).parents[1] / "cases"
Look = Callable[..., Where]


@pytest.fixture
def look(tmp_path: Path) -> Iterator[Look]:
    """`look("07", title, symbol, execution, flags=..., args=...)` is the step on that case."""
    directory = RunDirectory(tmp_path / "run")
    journal, executor = Journal(directory.journal), LocalExecutor(2)

    def do(case: str, title: str, symbol: str, number: int, **options: Any) -> Where:
        file = str(next(CASES.glob(f"{case}-*/test.c")))
        options = {"toolchain": "clang", "compiler": "clang-14", **options}
        request = make_plan(BisectOptions(file=file, **options), Path(os.environ["MCCPROBE_CACHE"])).request
        workspace = open_workspace(request, Ledger(directory, journal, executor), journal)
        info = load_pass_table().find(title)
        assert info is not None
        culprit = Culprit(title, info.argument, symbol, symbol, "log", number, number)
        report = BisectReport(Status.FOUND, "clang", "", "", False, file, (), culprit=culprit)
        return where_in_pass(workspace, report, tell=lambda text: None, deadline=Deadline(), folder=tmp_path / "where")

    yield do
    executor.shutdown(cancel=True)
    journal.close()


def _run_again(where: Where, folder: Path) -> list[str]:
    """Run the reproducer's lines; what the two programs print or how they end."""
    for name in ("opt.ll", "before.o", "opt.o"):
        (folder / name).unlink(missing_ok=True)
    for argv in where.reproducer:
        assert run(RunSpec(argv, timeout_s=60)).ok, argv
    told = []
    for name in ("before", "opt"):
        program = folder / name
        assert run(RunSpec(["clang-14", str(folder / f"{name}.o"), "-o", str(program), "-lm"], timeout_s=60)).ok
        result = run(RunSpec([str(program)], timeout_s=20))
        told.append(f"{result.stdout_text.strip()}|rc={result.returncode}")
    return told


@pytest.mark.toolchain("clang-14")
def test_a_loop_pass_is_wrapped_and_run_alone(look: Look, tmp_path: Path) -> None:
    where = look("07", "LoopInterchangePass", "relax", 69, flags=("-enable-loopinterchange",), args=("-O3",))
    assert (where.state, where.kind, where.instruction) == (StepState.DONE, "ir", None)
    assert "function and diff" in where.reason
    assert "-passes=function(loop(loop-interchange))" in where.reproducer[0]
    assert where.reproducer_verified
    assert _run_again(where, tmp_path / "where") == ["3562083109|rc=0", "542379200|rc=0"]
    assert "+  br label %for.body4.split9" in where.diff.splitlines()
    assert not [line for line in where.diff.splitlines() if "!tbaa" in line or "preds" in line]


@pytest.mark.toolchain("clang-14")
def test_a_diff_shows_the_one_line_that_matters(look: Look, tmp_path: Path) -> None:
    flags = ("-enable-constraint-elimination",)
    where = look("02", "ConstraintEliminationPass", "main", 23, flags=flags, args=("-O2",))
    changed = [line for line in where.diff.splitlines()[2:] if line[0] in "-+"]
    assert changed == [
        "-  br i1 %cmp7, label %if.then9, label %if.end10",
        "+  br i1 true, label %if.then9, label %if.end10",
    ]
    assert _run_again(where, tmp_path / "where") == ["mask=4294966991|rc=0", "|rc=-6"]


@pytest.mark.toolchain("clang-14")
def test_an_enabler_is_told_as_one(look: Look) -> None:
    where = look("11", "PostOrderFunctionAttrsPass", "churn", 35, flags=("-enable-ipra",), args=("-O2",))
    assert where.instruction is None
    assert "norecurse" in where.diff
    assert any("a later step may be the guilty one" in note for note in where.notes)


@pytest.mark.toolchain("clang-16")
def test_names_are_given_up_where_they_hide_the_fault(look: Look) -> None:
    options = {"compiler": "clang-16", "reference": "-O1", "args": ("-O2",)}
    where = look("16", "InstCombinePass", "main", 174, **options)
    assert where.reproducer_verified and where.diff
    assert any(argument.startswith("-passes=function(instcombine") for argument in where.reproducer[0])


@pytest.mark.toolchain("clang-14")
def test_where_no_code_generator_tells_the_sides_apart_no_line_is_given(look: Look) -> None:
    where = look("07", "SROAPass", "relax", 30, flags=("-enable-loopinterchange",), args=("-O3",))
    assert not where.reproducer and not where.reproducer_verified
    assert any("no single-pass reproducer" in note or "cannot be printed" in note for note in where.notes)
