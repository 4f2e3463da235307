"""Where in the pass: from a culprit execution to a diff, a one-step reproducer and, where sound, an instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.build.unit import UNLIMITED
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.locate.ir import where_in_ir_pass
from mccprobe.explain.locate.mir import where_in_machine_pass
from mccprobe.explain.locate.verifier import Complaint, first_complaint
from mccprobe.report.record import BisectReport, Culprit
from mccprobe.report.why_record import BadInstruction, Confirmed, StepState, Where
from mccprobe.targets.passes.table import guess_kind, load_pass_table

SELECTION = (
    "instruction selection makes machine code out of IR: there is nothing before it to compare with, and the selector "
    "that takes its place at the limit before gives other code throughout"
)

SIMULATED = "SIMULATED FAULT: the stand-in's plugin corrupted this code, not mcc"


def where_in_pass(
    workspace: Workspace,
    report: BisectReport,
    *,
    tell: Callable[[str], None],
    deadline: Deadline,
    folder: Path,
) -> Where:
    """Look into the culprit of a bisection. What was written lies in `folder`.

    A step that cannot be made is told in the record; only faults of the run directory are raised.
    """
    culprit = report.culprit
    if culprit is None:
        return Where(StepState.NOT_RUN, reason="no pass was named")
    if not workspace.unit.recorded.counter.has_ir:
        return Where(StepState.NOT_RUN, reason=f"{report.toolchain} shows no intermediate code")
    if deadline.passed:
        return Where(StepState.BUDGET, reason="the time budget is spent")
    folder.mkdir(parents=True, exist_ok=True)
    where = _look(workspace, report, culprit, tell=tell, deadline=deadline, folder=folder)
    if workspace.request.toolchain.simulated:
        where = replace(where, notes=(*where.notes, SIMULATED))
    return where


def _look(
    workspace: Workspace,
    report: BisectReport,
    culprit: Culprit,
    *,
    tell: Callable[[str], None],
    deadline: Deadline,
    folder: Path,
) -> Where:
    info = load_pass_table(report.toolchain).find(culprit.title)
    kind = info.kind if info else guess_kind(culprit.title)
    if kind == "ir" and not _in_code_generator(workspace, culprit):
        return where_in_ir_pass(workspace, report, culprit, tell=tell, deadline=deadline, folder=folder)
    tell("one compile with the machine verifier")
    complaint = first_complaint(workspace.unit, culprit.execution)
    builds = 1
    doubt = ""
    if complaint is not None:
        builds += 1
        doubt = _doubt(workspace, culprit, complaint)
        if not doubt:
            return replace(_verified(culprit, complaint), builds=builds)
    verifier = complaint.describe() if complaint else ""
    if kind == "isel":
        return Where(StepState.DONE, "mir", reason=SELECTION, verifier=verifier, builds=builds)
    if not culprit.argument:
        text = f"{culprit.title} has no known argument, so the code generator cannot be stopped at it"
        return Where(StepState.DONE, "mir", reason=text, verifier=verifier, builds=builds)
    if not culprit.symbol:
        text = "the compiler's log names no function for this execution"
        return Where(StepState.DONE, "mir", reason=text, verifier=verifier, builds=builds)
    where = where_in_machine_pass(
        workspace, report, culprit, culprit.argument, kind=kind, tell=tell, deadline=deadline, folder=folder
    )
    notes = (*where.notes, doubt) if doubt else where.notes
    return replace(where, verifier=verifier, builds=where.builds + builds, notes=notes)


def _in_code_generator(workspace: Workspace, culprit: Culprit) -> bool:
    """True for an execution behind the last one of the mid-end, where IR passes run again."""
    unit = workspace.unit
    log = unit.ledger.compile(
        replace(unit.job(UNLIMITED, emit="-emit-llvm-bc"), suffix=".bc", label=f"{unit.tag} optimised bitcode")
    ).log
    return 0 < log.total < culprit.execution


def _doubt(workspace: Workspace, culprit: Culprit, complaint: Complaint) -> str:
    """Why the verifier's complaint does not say what is wrong, "" if it does."""
    reference = workspace.reference
    if reference is None:
        return "the machine verifier complains, but there is no right build to compare with"
    if first_complaint(reference.unit, UNLIMITED) is not None:
        return "the machine verifier complains about the right build as well, so it tells nothing here"
    if complaint.after != culprit.title and not workspace.request.only_flags_differ:
        # another optimisation level runs other passes: it may lack the complaint for want of the pass alone
        return (
            f"the machine verifier complains after {complaint.after or 'an earlier step'}, before the pass that makes "
            "the difference; the right build is of another kind, so this may have nothing to do with the fault"
        )
    return ""


def _verified(culprit: Culprit, complaint: Complaint) -> Where:
    """The verifier's answer."""
    notes = [f"the right build passes the machine verifier; the bad one: {complaint.describe()}"]
    if complaint.after and complaint.after != culprit.title:
        notes.append(
            f"the machine code is invalid after {complaint.after} already: {culprit.title} only brings it to light"
        )
    instruction = None
    reason = "the machine verifier names no instruction"
    if complaint.instruction:
        reason = ""
        instruction = BadInstruction(
            before="",
            after=complaint.instruction,
            function=complaint.function,
            block=complaint.block,
            confirmed=Confirmed.VERIFIER,
        )
    return Where(StepState.DONE, "mir", instruction, reason, verifier=complaint.describe(), notes=tuple(notes))
