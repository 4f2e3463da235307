"""The flag x pass x function table: eight cells for one flag, each with object, verdict and fails/runs.

flag      on: all flags of the set; off: the reference build; "without NAME": the set less one flag
pass      on: as compiled; off: with the option that switches this pass alone off, else the limit before it
function  "as compiled", or left unoptimised (optnone), which skips every optional pass on it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mccprobe.base.errors import MccprobeError, NoRoom
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.build.job import CompileJob
from mccprobe.build.unit import UNLIMITED
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.judged import Judging
from mccprobe.explain.optnone import optnone_job
from mccprobe.report.record import BisectReport, Culprit
from mccprobe.report.why_record import PassCell

AS_COMPILED = "as compiled"
_BUILDS = {"on": "the bad build", "off": "the reference build"}


@dataclass(frozen=True)
class _Cell:
    """job: None where the cell cannot be had; `how` then says why."""

    flag: str
    pass_state: str
    function: str
    judge: Judge
    job: CompileJob | None
    how: str


def flag_pass_table(
    workspace: Workspace, report: BisectReport, judging: Judging, *, tell: Callable[[str], None], deadline: Deadline
) -> tuple[PassCell, ...]:
    """All cells; one that cannot be had, or for which no time was left, says why. Needs a culprit."""
    assert report.culprit is not None
    tell("table: flag by pass by function")
    cells = [
        cell for flag, judge in _flag_rows(workspace) for cell in _cells(workspace, report, report.culprit, flag, judge)
    ]
    for cell in cells:
        if cell.job is not None and not deadline.passed:
            workspace.ledger.submit(cell.job)
    return tuple(_judged(cell, judging, deadline) for cell in cells)


def _flag_rows(workspace: Workspace) -> Iterator[tuple[str, Judge]]:
    """Each setting of the flags with its build."""
    request = workspace.request
    yield "on", workspace.judge
    if workspace.reference is not None:
        yield "off", workspace.reference.judge
    if len(request.flags) > 1:
        for index, name in enumerate(request.flag_names):
            try:
                judge = workspace.variant((*request.flags[:index], *request.flags[index + 1 :]), f"without-{index}")
            except NoRoom:
                raise
            except MccprobeError:
                continue  # the others may need it: nothing is known of such a build
            yield f"without {name}", judge


def _cells(workspace: Workspace, report: BisectReport, culprit: Culprit, flag: str, judge: Judge) -> Iterator[_Cell]:
    unit = judge.program.unit
    option = report.confirmation.option if report.confirmation else ""
    other_arguments = judge is not workspace.judge and not workspace.request.only_flags_differ
    for symbol in (None, culprit.symbol) if culprit.symbol else (None,):
        function = AS_COMPILED if symbol is None else f"optnone on {culprit.function or symbol}"
        for state in ("on", "off"):
            options: tuple[str, ...] = ()
            limit, how = UNLIMITED, _BUILDS.get(flag, f"the bad build {flag}")
            if state == "off" and option:
                options, how = (option,), option
            elif state == "off" and flag == "on":
                limit = culprit.execution - 1
                how = f"{unit.recorded.counter.spelled(limit)} (it and all later ones)"
            elif state == "off":
                how = "not run: numbers differ between builds, and no option switches it off"
                yield _Cell(flag, state, function, judge, None, how)
                continue
            if symbol is None:
                job = unit.job(limit, options=options, label=f"{unit.tag} table {how}")
            elif limit != UNLIMITED:
                how = "not run: with optnone the executions are numbered anew"
                yield _Cell(flag, state, function, judge, None, how)
                continue
            else:
                job = optnone_job(unit, symbol, options)
                how = "optnone" if not options else f"optnone, {option}"
            if other_arguments:
                how += " (the reference build has other arguments)"
            yield _Cell(flag, state, function, judge, job, how)


def _judged(cell: _Cell, judging: Judging, deadline: Deadline) -> PassCell:
    head = cell.flag, cell.pass_state, cell.function
    if cell.job is None:
        return PassCell(*head, None, None, 0, 0, cell.how)
    if deadline.passed:
        return PassCell(*head, None, None, 0, 0, f"not run: no time left ({cell.how})")
    judged = judging.compiled(judging.workspace.ledger.compile(cell.job), cell.judge)
    how = cell.how if judged.object is not None else f"{cell.how}: {judged.reason}"
    return PassCell(*head, judged.verdict.value, judged.object, judged.fails, judged.runs, how)
