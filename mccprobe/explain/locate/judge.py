"""Verdicts of objects made in stages, each object judged once; a flaky fault is run until GOOD means it."""

from __future__ import annotations

import math

from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.deadline import Deadline
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.record import BisectReport

MISSED = 0.01  # accepted chance that a flaky BAD object passes all of its runs
MOST_RUNS = 40  # a fault rarer than about one run in ten is not followed into the pass


class BudgetEnded(Exception):
    """The time budget is spent; what is known so far stays."""


class ObjectJudge:
    """Runs the workspace's oracle. runs: what makes one GOOD, more than one where the fault is flaky."""

    def __init__(self, workspace: Workspace, report: BisectReport, deadline: Deadline) -> None:
        self._judge = workspace.judge
        self._deadline = deadline
        self._seen: dict[str, list[Verdict]] = {}
        low = report.failure_rate[0] if report.failure_rate else 1.0
        self.runs = 1 if low >= 1 else min(MOST_RUNS, math.ceil(math.log(MISSED) / math.log(1 - max(low, 0.01))))

    def require_time(self) -> None:
        """Raises BudgetEnded once nothing new may be started."""
        if self._deadline.passed:
            raise BudgetEnded

    def verdict(self, digest: str | None, runs: int = 1) -> Verdict:
        """Of an object (None: not built). UNRESOLVED when runs disagree and the fault is not flaky.

        A flaky fault is BAD once any run is BAD, and GOOD when all of `self.runs` are.
        """
        if digest is None:
            return Verdict.UNRESOLVED
        self.require_time()
        seen = self._seen.setdefault(digest, [])
        while len(seen) < max(runs, self.runs):
            seen.append(self._judge.run_briefly(digest).verdict)
            if seen[-1] is Verdict.UNRESOLVED or (self.runs > 1 and seen[-1] is Verdict.BAD):
                break
        if Verdict.UNRESOLVED in seen:
            return Verdict.UNRESOLVED
        if self.runs > 1:
            return Verdict.BAD if Verdict.BAD in seen else Verdict.GOOD
        return seen[0] if len(set(seen)) == 1 else Verdict.UNRESOLVED
