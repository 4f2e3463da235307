"""Judges objects of one program: linked once, run as often as asked, every run in the journal once."""

from __future__ import annotations

import time
from collections import Counter

from mccprobe.build.journal import Journal
from mccprobe.build.program import LinkFailure, Program
from mccprobe.build.store import require_space
from mccprobe.oracle.checks import KernelOracle, Oracle, ReferenceOracle
from mccprobe.oracle.verdict import Outcome, Verdict

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
                        "t": "run",
                        "object": digest,
                        "oracle": name,
                        "ordinal": ordinal,
                        "verdict": outcome.verdict.value,
                        "reason": outcome.reason,
                        "max_err": outcome.max_err,
                        "seconds": round(time.monotonic() - started, 4),
                        "ran_s": round(self._ran_s, 4),
                        **({"timed_out": True} if outcome.timed_out else {}),
                    }
                )
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
