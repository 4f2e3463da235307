"""Several runs of one object taken together: a verdict with fails/runs, each distinct program judged once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mccprobe.base.console import number_of
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.build.job import CompileOutcome
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.report.record import BisectReport

MOST_RUNS = 100  # of one object; a fault rarer than that gives no GOOD here, only UNRESOLVED


@dataclass(frozen=True)
class Judged:
    """fails: BAD runs among `runs`. object: None where the compile gave none. reason: of the first telling run."""

    object: str | None
    verdict: Verdict
    fails: int = 0
    runs: int = 0
    max_err: float | None = None
    reason: str = ""


def runs_needed(report: BisectReport | None, *, least: int, confidence: float) -> int:
    """GOOD runs before an object counts as right: `least`, or what the measured failure rate asks for.

    A bad object that fails with probability p is GOOD m times in a row with (1-p)^m; p is the low end of the
    measured interval. More than MOST_RUNS are never made.
    """
    if report is None or report.failure_rate is None:
        return least
    low = report.failure_rate[0]
    if low <= 0.0:
        return MOST_RUNS + 1
    if low >= 1.0:
        return least
    return max(least, math.ceil(math.log(1.0 - confidence) / math.log(1.0 - low)))


class Judging:
    """Verdicts on objects of one workspace. needed: GOOD runs that make GOOD (see `runs_needed`)."""

    def __init__(self, workspace: Workspace, *, needed: int) -> None:
        self.workspace = workspace
        self.needed = needed
        self._known: dict[tuple[str, str], Judged] = {}

    def of(self, digest: str, judge: Judge | None = None) -> Judged:
        """The verdict on an object, linked as `judge` does it (the bad build's link unless given)."""
        chosen = judge or self.workspace.judge
        key = chosen.program.unit.variant, digest
        if chosen.program.linker is self.workspace.linker:
            key = "", digest  # the same program whatever the variant is called
        if key not in self._known:
            self._known[key] = self._judge(digest, chosen)
        return self._known[key]

    def compiled(self, outcome: CompileOutcome, judge: Judge | None = None) -> Judged:
        """The verdict on what a compile gave; without an object it is UNRESOLVED with the compiler's reason."""
        if outcome.object is None:
            return Judged(None, Verdict.UNRESOLVED, reason=outcome.reason)
        return self.of(outcome.object, judge)

    def _judge(self, digest: str, judge: Judge) -> Judged:
        least = self.workspace.request.settings.endpoint_repeats
        seen: list[Outcome] = []
        while len(seen) < min(self.needed, MOST_RUNS):
            seen.append(judge.run(digest))
            settled = seen[-1].verdict is not Verdict.GOOD
            if settled and len(seen) >= least:
                break
            if seen[-1].verdict is Verdict.UNRESOLVED:
                break  # a time limit is not waited for again and again
        fails = sum(outcome.verdict is Verdict.BAD for outcome in seen)
        telling = next((outcome for outcome in seen if outcome.verdict is not Verdict.GOOD), seen[0])
        if fails:
            telling = next(outcome for outcome in seen if outcome.verdict is Verdict.BAD)
        verdict, reason = telling.verdict, telling.reason
        if verdict is Verdict.GOOD and self.needed > MOST_RUNS:
            verdict = Verdict.UNRESOLVED
            reason = f"GOOD {number_of(len(seen), 'time')}, but the fault is too rare to be sure"
        errors = [outcome.max_err for outcome in seen if outcome.max_err is not None]
        return Judged(digest, verdict, fails, len(seen), max(errors, default=None), reason)
