"""The 2 x 2 table: flag on/off by pass on/off, with the object and the verdict of each cell."""

from __future__ import annotations

from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.confirm import Judgement, neutralised_job
from mccprobe.bisection.passes.pass_axis import PassAxis
from mccprobe.bisection.passes.reference import Reference
from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.build.ledger import Ledger
from mccprobe.build.unit import Unit
from mccprobe.oracle.verdict import Outcome
from mccprobe.report.record import TableCell
from mccprobe.search.procedure import SearchResult


def _cell(flag: str, state: str, digest: str | None, outcome: Outcome | None, how: str) -> TableCell:
    if outcome is None:
        return TableCell(flag, state, None, digest, how)
    return TableCell(flag, state, outcome.verdict.value, digest, how, outcome.reason, outcome.max_err)


def truth_table(
    request: BisectRequest,
    ledger: Ledger,
    unit: Unit,
    axis: PassAxis,
    judge: Judge,
    reference: Reference | None,
    result: SearchResult,
    judgement: Judgement | None,
) -> tuple[TableCell, ...]:
    """All four cells; one that cannot be had says why. Without a culprit there is no "pass off"."""
    bad_end = axis.object_at(axis.total)
    cells = []
    if isinstance(bad_end, str):
        cells.append(_cell("on", "on", bad_end, judge.first.get(bad_end), "the bad build"))
    if judgement is not None:
        if judgement.neutraliser:
            cells.append(_cell("on", "off", judgement.neutralised_object, judgement.neutralised, judgement.neutraliser))
        elif result.good is not None:
            key = axis.object_at(result.good)
            digest = key if isinstance(key, str) else None
            outcome = judge.first.get(digest) if digest else None
            how = f"{unit.recorded.counter.spelled(result.good)} (it and all later ones)"
            cells.append(_cell("on", "off", digest, outcome, how))
    if reference is None:
        return tuple(cells)
    outcome = reference.judge.first.get(reference.object) or reference.judge.run(reference.object)
    how = "the reference build" if request.only_flags_differ else "the reference build (other arguments)"
    cells.append(_cell("off", "on", reference.object, outcome, how))
    if judgement is not None:
        cells.append(_without_both(ledger, reference, judgement))
    return tuple(cells)


def _without_both(ledger: Ledger, reference: Reference, judgement: Judgement) -> TableCell:
    if not judgement.neutraliser:
        return _cell("off", "off", None, None, "not run: numbers differ between builds, and no option switches it off")
    option = judgement.neutraliser
    outcome = ledger.compile(neutralised_job(reference.unit, option))
    if outcome.object is None:
        return _cell("off", "off", None, None, f"{option}: {outcome.reason}")
    return _cell("off", "off", outcome.object, reference.judge.run(outcome.object), option)
