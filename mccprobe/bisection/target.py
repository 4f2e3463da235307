"""The real thing behind the search: limits are compiled, objects are linked and run, all journalled."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from mccprobe.build.codegen_only import CodegenOnly
from mccprobe.build.executor import Urgency
from mccprobe.build.job import CompileJob, CompileOutcome
from mccprobe.build.journal import Journal
from mccprobe.build.program import LinkFailure, Program
from mccprobe.build.store import require_space
from mccprobe.build.unit import UNLIMITED, Unit
from mccprobe.oracle.checks import KernelOracle, Oracle, ReferenceOracle
from mccprobe.oracle.verdict import Outcome, Unbuildable, Verdict

BRIEF_FACTOR = 10.0
BRIEF_LEAST_S = 2.0  # a loaded machine starts a program late


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
        self._longest_s = 0.0  # of a run that gave a verdict
        self.longest_good_s: float | None = None
        self._ran_s = 0.0  # seconds of the last run, without its link
        self._ordinals: Counter[str] = Counter()

    def run(self, digest: str) -> Outcome:
        """One oracle run, taken from the journal when this run number was recorded before."""
        ordinal = self._ordinals[digest]
        self._ordinals[digest] += 1
        name = f"{self.oracle.id}/{self.program.unit.variant}"
        with self.journal.asking((digest, name, ordinal)) as entry:
            if entry is not None:
                self.replayed += 1
                timed_out = bool(entry.get("timed_out"))
                outcome = Outcome(Verdict(entry["verdict"]), entry["reason"], entry["max_err"], timed_out)
                self._note_time(outcome, float(entry.get("ran_s", 0.0)))
            else:
                started = time.monotonic()
                outcome = self._judge(digest)
                self._note_time(outcome, self._ran_s)
                self.runs += 1
                self.journal.append(
                    {
                        "t": "run", "object": digest, "oracle": name, "ordinal": ordinal,
                        "verdict": outcome.verdict.value, "reason": outcome.reason, "max_err": outcome.max_err,
                        "seconds": round(time.monotonic() - started, 4),
                        "ran_s": round(self._ran_s, 4),
                        **({"timed_out": True} if outcome.timed_out else {}),
                    }
                )  # fmt: skip
        self.verdicts[outcome.verdict.value] += 1
        self.first.setdefault(digest, outcome)
        return outcome

    def run_briefly(self, digest: str) -> Outcome:
        """One run with a time limit made from those that ended: for programs that may well hang."""
        return self.run_for(digest, max(BRIEF_LEAST_S, BRIEF_FACTOR * self._longest_s))

    def run_for(self, digest: str, most_s: float) -> Outcome:
        """One run with a time limit of at most so many seconds."""
        allowed = self.oracle.timeout_s
        self.oracle.timeout_s = min(allowed, most_s)
        try:
            return self.run(digest)
        finally:
            self.oracle.timeout_s = allowed

    def _note_time(self, outcome: Outcome, seconds: float) -> None:
        if outcome.verdict is not Verdict.UNRESOLVED and not outcome.timed_out:
            self._longest_s = max(self._longest_s, seconds)
        if outcome.verdict is Verdict.GOOD:
            self.longest_good_s = max(self.longest_good_s or 0.0, seconds)

    def _judge(self, digest: str) -> Outcome:
        program = self.program.replace(digest)
        self._ran_s = 0.0
        if isinstance(program, LinkFailure):
            return Outcome(Verdict.UNRESOLVED, program.reason)
        with self.program.run.scratch("run") as scratch:
            judged: Outcome
            started = time.monotonic()
            if not travels(self.oracle):
                judged = self.oracle.judge(program, scratch)
            else:
                judged = self.program.unit.ledger.executor.run_program(self.oracle.judge, program, scratch)
            self._ran_s = time.monotonic() - started
            if judged.verdict is not Verdict.GOOD:
                require_space(scratch)
            return judged


def travels(oracle: Oracle) -> bool:
    """True for an oracle that needs the program and no other file of this machine."""
    return isinstance(oracle, KernelOracle) or (
        isinstance(oracle, ReferenceOracle) and oracle.run_in is None and oracle.stdin is None
    )


class PassAxis:
    """The limits 0..total of one unit as the search's target.

    short: compiles limits of the code generator from optimised bitcode, once that is proved equal.
    """

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
