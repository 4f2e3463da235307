"""The real thing behind the search: limits are compiled, objects are linked and run, all journalled."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

from mccprobe.compilation.job import CompileOutcome
from mccprobe.compilation.journal import Journal
from mccprobe.compilation.program import LinkFailure, Program
from mccprobe.compilation.unit import UNLIMITED, Unit
from mccprobe.oracle.checks import Oracle
from mccprobe.oracle.verdict import Outcome, Unbuildable, Verdict


class Judge:
    """Runs the oracle on objects of one program; the k-th run of an object is in the journal once."""

    def __init__(self, program: Program, oracle: Oracle, journal: Journal) -> None:
        self.program = program
        self.oracle = oracle
        self.journal = journal
        self.runs = 0
        self.replayed = 0
        self.verdicts: Counter[str] = Counter()
        self.first: dict[str, Outcome] = {}
        self._ordinals: Counter[str] = Counter()

    def run(self, digest: str) -> Outcome:
        """One oracle run, taken from the journal when this run number was recorded before."""
        ordinal = self._ordinals[digest]
        self._ordinals[digest] += 1
        name = f"{self.oracle.id}/{self.program.unit.variant}"
        entry = self.journal.runs.get((digest, name, ordinal))
        if entry is not None:
            self.replayed += 1
            outcome = Outcome(Verdict(entry["verdict"]), entry["reason"], entry["max_err"])
        else:
            started = time.monotonic()
            outcome = self._judge(digest)
            self.runs += 1
            self.journal.append(
                {
                    "t": "run", "object": digest, "oracle": name, "ordinal": ordinal,
                    "verdict": outcome.verdict.value, "reason": outcome.reason, "max_err": outcome.max_err,
                    "seconds": round(time.monotonic() - started, 4),
                }
            )  # fmt: skip
        self.verdicts[outcome.verdict.value] += 1
        self.first.setdefault(digest, outcome)
        return outcome

    def _judge(self, digest: str) -> Outcome:
        program = self.program.link(digest)
        if isinstance(program, LinkFailure):
            return Outcome(Verdict.UNRESOLVED, program.reason)
        with self.program.run.scratch("run") as scratch:
            return self.oracle.judge(program, scratch)


class PassAxis:
    """The limits 0..total of one unit as the search's target."""

    def __init__(self, unit: Unit, judge: Judge, total: int, *, on_compile: Callable[[], None] = lambda: None) -> None:
        self.unit = unit
        self.judge = judge
        self.total = total
        self._on_compile = on_compile
        self._seen: dict[int, str | Unbuildable] = {}
        self._ahead: set[str] = set()  # ids of compiles asked for ahead of need
        self.diagnostics: dict[int, str] = {}

    def _limit(self, limit: int) -> int:
        return UNLIMITED if limit >= self.total else limit

    def prefetch(self, limits: Sequence[int]) -> None:
        jobs = [self.unit.job(self._limit(limit)) for limit in limits if limit not in self._seen]
        wanted = {job.id for job in jobs}
        self.unit.ledger.cancel(self._ahead - wanted)
        self._ahead = wanted
        for job in jobs:
            self.unit.ledger.submit(job)

    def object_at(self, limit: int) -> str | Unbuildable:
        if limit not in self._seen:
            outcome = self.unit.ledger.compile(self.unit.job(self._limit(limit)))
            self._seen[limit] = self._accept(limit, outcome)
            self._on_compile()
        return self._seen[limit]

    def _accept(self, limit: int, outcome: CompileOutcome) -> str | Unbuildable:
        if outcome.object is None:
            self.diagnostics[limit] = outcome.diagnostics
            return Unbuildable(outcome.reason)
        self.unit.recorded.toolchain.check_fresh(outcome.log.ran, min(limit, self.total), f"{self.unit.source} at limit {limit}")
        return outcome.object

    def run(self, key: str) -> Outcome:
        return self.judge.run(key)
