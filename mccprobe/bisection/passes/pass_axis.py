"""The axis of pass executions: state N is the object of one unit compiled with its first N executions."""

from __future__ import annotations

from collections.abc import Sequence

from mccprobe.bisection.judge import Judge
from mccprobe.build.codegen_only import CodegenOnly
from mccprobe.build.executor import Urgency
from mccprobe.build.job import CompileJob, CompileOutcome
from mccprobe.build.unit import UNLIMITED, Unit
from mccprobe.oracle.verdict import Outcome, Unbuildable
from mccprobe.report.record import PASS_EXECUTIONS


class PassAxis:
    """The limits 0..total of one unit as the search's target.

    short: compiles limits of the code generator from optimised bitcode, once that is proved equal.
    """

    kind = PASS_EXECUTIONS

    def __init__(self, unit: Unit, judge: Judge, total: int, short: CodegenOnly | None) -> None:
        self.unit = unit
        self.judge = judge
        self.total = total
        self.short = short
        self._jobs: dict[int, tuple[CompileJob, int]] = {}  # each limit's compile, and the executions it must show
        self._seen: dict[int, str | Unbuildable] = {}
        self._ahead: set[str] = set()  # ids of compiles asked for ahead of need

    def _job(self, limit: int) -> tuple[CompileJob, int]:
        if limit not in self._jobs:
            if limit >= self.total:
                self._jobs[limit] = self.unit.job(UNLIMITED), self.total
            elif self.short is not None and self.short.serves(limit):
                self._jobs[limit] = self.short.job(limit), limit - self.short.mid_end
            else:
                self._jobs[limit] = self.unit.job(limit), limit
        return self._jobs[limit]

    def prefetch(self, limits: Sequence[int]) -> None:
        jobs = [self._job(limit)[0] for limit in limits if limit not in self._seen]
        wanted = {job.id for job in jobs}
        self.unit.ledger.cancel(self._ahead - wanted)
        self._ahead = wanted
        for job in jobs[:1]:
            self.unit.ledger.submit(job)
        for job in jobs[1:]:
            self.unit.ledger.submit(job, urgency=Urgency.AHEAD)

    def object_at(self, limit: int) -> str | Unbuildable:
        if limit not in self._seen:
            job, expected = self._job(limit)
            self._seen[limit] = self._accept(limit, expected, self.unit.ledger.compile(job))
        return self._seen[limit]

    def _accept(self, limit: int, expected: int, outcome: CompileOutcome) -> str | Unbuildable:
        if outcome.object is None:
            return Unbuildable(outcome.reason)
        source = self.unit.recorded
        source.toolchain.check_fresh(outcome.log.ran, expected, f"{source.source} at limit {limit}")
        return outcome.object

    def run(self, key: str) -> Outcome:
        return self.judge.run(key)

    def in_code_generator(self, limit: int) -> bool:
        """True when this execution is known to lie behind the last one of the mid-end."""
        return self.short is not None and limit > self.short.mid_end > 0

    def holds_in_full(self, limits: Sequence[int | None]) -> bool:
        """Compile these limits in full; True if the objects are those that the search judged.

        False also switches the short way off and forgets what it gave.
        """
        if self.short is None or not self.short.usable:
            return True
        jobs = {limit: self.unit.job(limit) for limit in limits if limit is not None and limit < self.total}
        for job in jobs.values():
            self.unit.ledger.submit(job)
        for limit, job in jobs.items():
            outcome = self.unit.ledger.compile(job)
            found = Unbuildable(outcome.reason) if outcome.object is None else outcome.object
            if found != self.object_at(limit):
                self.short = None
                self._jobs.clear()
                self._seen.clear()
                return False
        return True
