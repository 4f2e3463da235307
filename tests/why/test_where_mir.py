"""The first bad instruction on real compilers: named where it is, and nothing named where it is not."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mccprobe.base.errors import BadDataFile
from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.workspace import Workspace, open_workspace
from mccprobe.build.executor import LocalExecutor
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.store import RunDirectory
from mccprobe.build.unit import UNLIMITED
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.locate import find as where_module
from mccprobe.explain.locate.find import SIMULATED, where_in_pass
from mccprobe.explain.locate.judge import ObjectJudge
from mccprobe.explain.locate.mir import _Answer, _search, _Staged, open_stages, where_in_machine_pass
from mccprobe.explain.locate.mir_stage import StageFailed
from mccprobe.explain.locate.mir_text import parse_mir, print_mir
from mccprobe.explain.locate.verifier import Complaint, _Reader
from mccprobe.report.record import BisectReport, Culprit, Status
from mccprobe.report.why_record import Confirmed, StepState, Where
from mccprobe.targets.passes.mixes import mix_evidence
from mccprobe.targets.passes.table import load_pass_table

CASES = Path(__file__).parents[1] / "cases"
SCHEDULER = "Machine Instruction Scheduler"
KERNEL = "_Z13gemm_wmma_256PK6__halfS1_PS_ii"
CLANG = {"toolchain": "clang", "compiler": "clang-14"}


@dataclass
class Opened:
    """A workspace, and the step on it."""

    workspace: Workspace
    folder: Path

    def where(self, title: str, symbol: str, *, execution: int = UNLIMITED, deadline: Deadline | None = None) -> Where:
        return where_in_pass(
            self.workspace,
            self.report(title, symbol, execution),
            tell=lambda text: None,
            deadline=deadline or Deadline(),
            folder=self.folder / "where",
        )

    def report(self, title: str, symbol: str, execution: int = UNLIMITED) -> BisectReport:
        """What a bisection would hand over. UNLIMITED stands for an execution behind the mid-end."""
        number = execution if execution != UNLIMITED else 10**6
        info = load_pass_table().find(title)
        argument = info.argument if info else None
        return BisectReport(
            Status.FOUND,
            "clang",
            "",
            "",
            False,
            "",
            (),
            culprit=Culprit(title, argument, symbol, symbol, "log", number, number),
        )


Open = Callable[..., Opened]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """`opened(flags=..., args=...)`: the options of a bisection, compiled and judged as far as steps need it."""
    made: list[tuple[LocalExecutor, Journal]] = []

    def open_with(root: Path | None = None, **options: Any) -> Opened:
        request = make_plan(BisectOptions(**options), Path(os.environ["MCCPROBE_CACHE"])).request
        folder = root or tmp_path / f"run-{len(made)}"
        directory = RunDirectory(folder)
        journal, executor = Journal(directory.journal), LocalExecutor(2)
        made.append((executor, journal))
        return Opened(open_workspace(request, Ledger(directory, journal, executor), journal), folder)

    yield open_with
    for executor, journal in made:
        executor.shutdown(cancel=True)
        journal.close()


def _case(name: str, **options: Any) -> dict[str, Any]:
    return {"file": str(next(CASES.glob(f"{name}-*/test.*"))), **CLANG, **options}


def _logged(path: Path, symbol: str) -> list[tuple[str, str]]:
    """(before, after) of each instruction that the plugin corrupted, spelt as MIR files spell it."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]

    def plain(text: str) -> str:
        return re.sub(r"(%\d+):\w+(\(tied-def \d\))?(?=,)|:gr\w+(?=,)", lambda found: found.group(1) or "", text)

    return sorted({(plain(one["before"]), plain(one["after"])) for one in lines if one["function"] == symbol})


def _without_module_name(text: str) -> str:
    return re.sub(r"; ModuleID = .*", "", text)


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("faults", ["", "all"])
def test_the_instruction_is_the_one_that_was_corrupted(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: str
) -> None:
    log = tmp_path / "faults"
    monkeypatch.setenv("MCCSIM_FAULT_LOG", str(log))
    monkeypatch.setenv("MCCSIM_FAULTS", faults)
    where = opened(flags=("internal-regs-ra",)).where(SCHEDULER, KERNEL)
    corrupted = _logged(log, KERNEL)
    instruction = where.instruction
    assert instruction is not None, where
    assert (instruction.before, instruction.after) in corrupted
    assert instruction.block.startswith("bb.")
    assert instruction.confirmed is (Confirmed.ALL_TOGETHER if faults else Confirmed.BOTH_SIDES)
    changed = [line[1:].strip() for line in Path(where.files["diff.txt"]).read_text().splitlines() if line[0] in "-+"]
    edits = list(zip(changed[2::2], changed[3::2], strict=True))  # behind the two lines that name the sides
    assert len(edits) == instruction.sufficient == (16 if faults else 1)
    assert set(edits) <= set(corrupted)
    assert SIMULATED in where.notes
    assert where.reproducer_verified and where.state is StepState.DONE
    assert f"-{instruction.before}" in where.diff.replace("-    ", "-")
    built, *_ = where.reproducer  # the line alone makes the bad text out of the text before the pass
    bad = Path(where.files["bad.mir"])
    kept = _without_module_name(bad.read_text())
    bad.unlink()
    assert run(RunSpec(built, timeout_s=60)).ok and _without_module_name(bad.read_text()) == kept


@pytest.mark.toolchain("clang-14")
def test_an_operand_that_stack_colouring_rewrote_and_a_second_look_for_free(opened: Open, tmp_path: Path) -> None:
    options = _case("12", reference="-O0", args=("-O2",))
    first = opened(**options)
    where = first.where("Merge disjoint stack slots", "main")
    assert where.instruction is not None, where
    assert "%stack.1.i1" in where.instruction.before and "%stack.0.i" in where.instruction.after
    assert where.instruction.confirmed is Confirmed.BOTH_SIDES
    first.workspace.journal.close()
    again = opened(root=first.folder, **options)
    repeated = again.where("Merge disjoint stack slots", "main")
    assert repeated == where
    assert again.workspace.ledger.compiles == 0 and again.workspace.judge.runs == 0


@pytest.mark.toolchain("clang-14")
def test_invalid_machine_code_is_named_by_the_verifier(opened: Open) -> None:
    work = opened(**_case("22", flags=("-pre-RA-sched=linearize",), args=("-O2",)))
    where = work.where("Remove dead machine instructions", "main", execution=374)
    instruction = where.instruction
    assert instruction is not None and instruction.confirmed is Confirmed.VERIFIER
    assert "CMOV64rr" in instruction.after and instruction.function == "main"
    assert "after Instruction Selection" in where.verifier
    assert any("only brings it to light" in note for note in where.notes)


@pytest.mark.toolchain("clang-14")
def test_shrink_wrapping_is_refused_with_its_diff(opened: Open) -> None:
    where = opened(**_case("23", reference="-O0", args=("-O1",))).where(
        "Shrink Wrapping analysis", "route", execution=345
    )
    assert where.instruction is None
    assert "not reproduced in stages" in where.reason and "changed no instruction" in where.reason
    assert "+  savePoint:       '%bb.1'" in where.diff
    assert not where.reproducer_verified


@pytest.mark.toolchain("clang-14")
def test_selection_has_no_before(opened: Open) -> None:
    work = opened(**_case("09", flags=("-enable-newgvn",), args=("-O3",)))
    where = work.where("X86 DAG->DAG Instruction Selection", "main", execution=508)
    assert where.instruction is None and "instruction selection" in where.reason


CORRECT = ("early-machinelicm", "branch-folder", "twoaddressinstruction", "machine-scheduler")


@pytest.mark.toolchain("clang-14")
def test_a_correct_pass_is_never_accused(opened: Open) -> None:
    """Through the gate nothing passes; and behind it, only passes whose mixes were never wrong are searched."""
    work = opened(**_case("07", flags=("-enable-newgvn=false",), args=("-O3",)))
    for argument in CORRECT:
        report = work.report(SCHEDULER, "main")
        assert report.culprit is not None
        where = where_in_machine_pass(
            work.workspace,
            report,
            report.culprit,
            argument,
            kind="machine",
            tell=lambda text: None,
            deadline=Deadline(),
            folder=work.folder,
        )
        assert where.instruction is None and not where.reproducer
        assert "not reproduced in stages" in where.reason, (argument, where.reason)
    evidence = mix_evidence()
    assert not any(evidence[argument].searched for argument in CORRECT[:3])


def test_no_pass_is_searched_against_its_evidence(tmp_path: Path) -> None:
    assert all(one.right > 0 and one.wrong == 0 for one in mix_evidence().values() if one.searched)
    broken = tmp_path / "mixes.toml"
    entry = 'argument = "x"\nsearched = true\nright = 9\nwrong = 1\nunbuilt = 0\nevidence = ""\n'
    broken.write_text(f"schema_version = 1\n[[pass]]\n{entry}")
    with pytest.raises(BadDataFile, match="against it"):
        mix_evidence(broken)


ALIASING = """
#include <stdio.h>
__attribute__((noinline)) int work(int *a, int *b, int *c) {
  c[0] = a[1] * 3;
  c[1] = a[2] * 5;
  b[0] = a[0] + 7;
  c[2] = a[3] * 9;
  return a[4];
}
int main(void) {
  int a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, c[8];
  printf("%d\\n", work(a, a + 4, c));
}
"""


@pytest.mark.toolchain("clang-14")
def test_a_load_moved_over_the_store_that_it_aliases_is_named_as_that_pair(opened: Open, tmp_path: Path) -> None:
    source = tmp_path / "alias.c"
    source.write_text(ALIASING)
    work = opened(file=str(source), **CLANG, flags=("-enable-newgvn=false",), args=("-O2",))
    stages = open_stages(work.workspace)
    pre = stages.before("machine-scheduler")
    good = stages.through("machine-scheduler", pre, stages.options, "good")
    right = parse_mir(good.read_text(), "work")
    assert right is not None and len(right.blocks) == 1
    order = list(right.blocks[0].instructions)
    load = next(one for one in order if "MOV32rm" in one and ", 16, $noreg" in one)
    order.remove(load)
    order.insert(next(index for index, one in enumerate(order) if "MOV32mr" in one), load)  # over every store
    bad = stages.keep(print_mir(right, {0: order}, {}))
    wrong = parse_mir(bad.read_text(), "work")
    assert wrong is not None
    report = work.report(SCHEDULER, "work")
    judge = ObjectJudge(work.workspace, report, Deadline())
    staged = _Staged("machine-scheduler", "planted", (), pre, good, bad, (right, wrong), ([], []))
    answer = _Answer()
    assert report.culprit is not None
    _search(stages, staged, judge, "machine-scheduler", "machine", answer, report.culprit, lambda text: None)
    stages.forget_mixes()
    assert answer.instruction is not None, answer
    first, second = answer.instruction.before.splitlines()
    assert "MOV32mr" in first and "%ir.arg1" in first  # the store to b[0]; the others do not alias
    assert second == load.strip()
    assert answer.instruction.after.splitlines() == [second, first]
    assert answer.instruction.confirmed is Confirmed.BOTH_SIDES


@pytest.mark.toolchain("clang-14")
def test_a_spent_budget_leaves_what_is_known(opened: Open) -> None:
    work = opened(**_case("12", reference="-O0", args=("-O2",)))
    where = work.where("Merge disjoint stack slots", "main", deadline=Deadline(0))
    assert (where.state, where.instruction) == (StepState.BUDGET, None)


def test_without_an_llc_of_its_own_mcc_is_told_what_is_missing(tmp_path: Path) -> None:
    compiler = tmp_path / "mcc"
    compiler.write_text("#!/bin/sh\necho 'clang version 14.0.6'\n")
    compiler.chmod(0o755)
    source = SimpleNamespace(jobs=[SimpleNamespace(argv=(str(compiler), "-cc1"))], active=0)
    workspace = SimpleNamespace(
        unit=SimpleNamespace(recorded=source),
        request=SimpleNamespace(toolchain=SimpleNamespace(name="mcc"), oracle=None),
        judge=None,
    )
    report = Opened(cast(Workspace, workspace), tmp_path).report(SCHEDULER, "f")
    assert report.culprit is not None
    where = where_in_machine_pass(
        cast(Workspace, workspace),
        report,
        report.culprit,
        "machine-scheduler",
        kind="machine",
        tell=lambda text: None,
        deadline=Deadline(),
        folder=tmp_path,
    )
    assert where.instruction is None
    assert "no llc beside" in where.reason and "musaasm" in where.reason


def test_the_verifier_is_read_as_a_stream() -> None:
    text = (
        b"# After Instruction Selection\n# Machine code for function f: IsSSA\n"
        + b"  %0:gr32 = X\n" * 50_000
        + b"# End machine code for function f.\n\n*** Bad machine code: Using an undefined physical register ***\n"
        b"- function:    f\n- basic block: %bb.3 if.then (0x5581)\n- instruction: 64B\t%1:gr64 = CMOV64rr %2\n"
        b"- operand 3:   implicit $eflags\n\n*** Bad machine code: Another ***\n- function:    g\n"
    )
    reader = _Reader()
    for start in range(0, len(text), 4099):
        assert reader.feed(text[start : start + 4099]) == b""
    complaint = reader.complaint()
    assert complaint is not None
    assert complaint.describe() == (
        "Using an undefined physical register, after Instruction Selection, function f: %1:gr64 = CMOV64rr %2"
    )
    assert complaint.block == "bb.3"
    assert _Reader().complaint() is None


@pytest.mark.toolchain("clang-14")
def test_an_ir_pass_of_the_code_generator_is_shown_as_ir(opened: Open) -> None:
    work = opened(**_case("26", flags=("-enable-newgvn=false",), args=("-O3",)))
    where = work.where("Loop Strength Reduction", "main")
    assert where.instruction is None and "not reproduced in stages" in where.reason  # it is correct here
    assert "= phi i64 [" in where.diff and ":gr64" not in where.diff


@pytest.mark.toolchain("clang-14")
def test_a_pass_that_runs_twice_is_cut_at_the_right_run(opened: Open) -> None:
    stages = open_stages(opened(**_case("22", flags=("-pre-RA-sched=linearize",), args=("-O2",))).workspace)
    title = "Remove dead machine instructions"
    argument = "dead-mi-elimination"
    assert stages.cut_point(Culprit(title, argument, "main", "main", "log", 374, 444), argument) == f"{argument},0"
    with pytest.raises(StageFailed, match="which one"):  # another pass is counted there
        stages.cut_point(Culprit(title, argument, "main", "main", "log", 375, 444), argument)
    with pytest.raises(StageFailed, match="has no pass"):
        stages.cut_point(Culprit("x", "no-such-pass", "main", "main", "log", 375, 444), "no-such-pass")


@pytest.mark.parametrize(
    ("reference_complains", "flags_only", "after", "doubt"),
    [
        (False, True, "Instruction Selection", ""),
        (False, False, SCHEDULER, ""),
        (False, False, "Instruction Selection", "may have nothing to do"),
        (True, True, SCHEDULER, "right build as well"),
    ],
)
def test_the_verifier_is_believed_only_beside_a_clean_right_build(
    monkeypatch: pytest.MonkeyPatch, reference_complains: bool, flags_only: bool, after: str, doubt: str
) -> None:
    complaint = Complaint("Bad", after, "f", "bb.0", "%0 = X")
    monkeypatch.setattr(where_module, "first_complaint", lambda *_: complaint if reference_complains else None)
    workspace = SimpleNamespace(
        reference=SimpleNamespace(unit=None), request=SimpleNamespace(only_flags_differ=flags_only)
    )
    culprit = Culprit(SCHEDULER, "machine-scheduler", "f", "f", "log", 1, 1)
    told = where_module._doubt(cast(Workspace, workspace), culprit, complaint)
    assert (doubt in told) if doubt else told == ""
