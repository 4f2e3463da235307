"""An edge with limits in front of it that cannot be judged is a range of executions: no single pass is named.

Where all those limits are programs that do not end, while right programs end a hundred times faster than the time
limit, "does not end" is very likely the fault itself. Then the same search is made with such programs as BAD.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mccprobe.bisection.axis import search_axis
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.pass_axis import PassAxis
from mccprobe.oracle.verdict import Outcome, Unbuildable, Verdict
from mccprobe.search.model import SearchResult, Settings, Status
from mccprobe.search.trial import Trial

FASTER = 100.0  # a program that ends takes so many times less than the time limit
_LEAST_S = 2.0  # a loaded machine starts a program late


def is_range(result: SearchResult) -> bool:
    """True for neighbours with limits between them that gave no verdict."""
    known = result.status in (Status.EDGE, Status.UNDECIDED) and result.good is not None and result.bad is not None
    return known and result.good is not None and result.bad is not None and result.bad > result.good + 1


def all_hang(result: SearchResult, judge: Judge) -> bool:
    """True when every limit of the range that was asked ran into the time limit, which is generous."""
    assert result.good is not None and result.bad is not None
    inside = [trial for trial in result.log if result.good < trial.limit < result.bad]
    slowest = judge.longest_good_s
    generous = slowest is not None and judge.oracle.timeout_s >= FASTER * slowest
    return generous and bool(inside) and all(trial.outcome.timed_out for trial in inside)


def with_hangs_as_bad(
    axis: PassAxis, result: SearchResult, settings: Settings, on_trial: Callable[[Trial], None]
) -> SearchResult:
    """The search once more. What is known is not run again, and a program gets FASTER times what a right one needs."""
    known: dict[str, Verdict] = {}
    for trial in result.log:
        verdict = Verdict.BAD if trial.outcome.timed_out else trial.outcome.verdict
        if trial.key is not None and verdict is not Verdict.UNRESOLVED and known.get(trial.key) is not Verdict.BAD:
            known[trial.key] = verdict
    return search_axis(HangsAreBad(axis), replace(settings, profile=False), known=known, on_trial=on_trial)


class HangsAreBad:
    """The axis with a program that does not end as a BAD one."""

    def __init__(self, axis: PassAxis) -> None:
        self.axis = axis

    @property
    def kind(self) -> str:
        return self.axis.kind

    @property
    def total(self) -> int:
        return self.axis.total

    def prefetch(self, limits: Sequence[int]) -> None:
        self.axis.prefetch(limits)

    def object_at(self, limit: int) -> str | Unbuildable:
        return self.axis.object_at(limit)

    def run(self, key: str) -> Outcome:
        judge = self.axis.judge
        outcome = judge.run_for(key, max(_LEAST_S, FASTER * (judge.longest_good_s or 0.0)))
        return Outcome(Verdict.BAD, outcome.reason, timed_out=True) if outcome.timed_out else outcome
