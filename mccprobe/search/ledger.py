"""Ledger: every question goes to the target through here, is counted, logged and remembered.

Law: `probe` runs each object at most once; only `rerun` repeats one, and a caller that repeats
states how often. The number of runs never exceeds the budget: `rerun` raises BudgetReached instead.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mccprobe.oracle.verdict import Outcome, Unbuildable, Verdict
from mccprobe.search.model import Target
from mccprobe.search.trial import Purpose, Trial


class BudgetReached(Exception):
    """Raised when one more oracle run would exceed the budget; never leaves mccprobe.search."""


class Stop(Exception):
    """Raised where the search ends without an edge; `reason` becomes a note. Never leaves mccprobe.search."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Tally:
    """Runs of one object, by verdict. A known verdict counts as one run that somebody else made."""

    good: int = 0
    bad: int = 0
    unresolved: int = 0

    @property
    def verdict(self) -> Verdict | None:
        """BAD if it ever was: a good object never fails. None if it was never run."""
        if self.bad:
            return Verdict.BAD
        if self.good:
            return Verdict.GOOD
        return Verdict.UNRESOLVED if self.unresolved else None

    @property
    def runs(self) -> int:
        return self.good + self.bad + self.unresolved

    @property
    def mixed(self) -> bool:
        """True if it was both GOOD and BAD: the check is flaky."""
        return self.good > 0 and self.bad > 0

    def add(self, verdict: Verdict) -> None:
        if verdict is Verdict.GOOD:
            self.good += 1
        elif verdict is Verdict.BAD:
            self.bad += 1
        else:
            self.unresolved += 1


class TrialLedger:
    """All that is known of one target, and the log of how it became known."""

    def __init__(
        self,
        target: Target,
        *,
        known: Mapping[str, Verdict],
        max_runs: int | None,
        on_trial: Callable[[Trial], None] | None,
    ) -> None:
        self.target = target
        self.max_runs = max_runs
        self.runs = 0
        self.log: list[Trial] = []
        self.tallies: dict[str, Tally] = {}
        self.built: list[int] = []  # limits that gave an object, ascending
        self.objects: dict[int, str | Unbuildable] = {}
        self.max_err_bad: float | None = None
        self._on_trial = on_trial
        self._outcomes: dict[str, Outcome] = {}  # first outcome of each object, shown where it is reused
        self._tested: set[str] = set()
        self._limits: dict[str, list[int]] = {}
        for key, verdict in known.items():
            self.tally(key).add(verdict)
            self._outcomes[key] = Outcome(verdict, "known before the search")

    # --- what is known ---------------------------------------------------------------------------

    @property
    def total(self) -> int:
        return self.target.total

    @property
    def objects_tested(self) -> int:
        """Distinct objects that were run."""
        return len(self._tested)

    def tally(self, key: str) -> Tally:
        return self.tallies.setdefault(key, Tally())

    def verdict_at(self, limit: int) -> Verdict | None:
        """Verdict of a limit as far as known: UNRESOLVED if it gives no object, None if never asked."""
        key = self.objects.get(limit)
        if key is None or isinstance(key, Unbuildable):
            return None if key is None else Verdict.UNRESOLVED
        return self.tally(key).verdict

    def limits_of(self, key: str) -> Sequence[int]:
        """The limits, among those asked so far, that give this object; ascending."""
        return self._limits.get(key, ())

    def bad_runs(self) -> int:
        """BAD runs of all objects."""
        return sum(tally.bad for tally in self.tallies.values())

    # --- questions -------------------------------------------------------------------------------

    def object_at(self, limit: int) -> str | Unbuildable:
        """Key of the object at `limit`; builds it if it was not built yet."""
        if limit not in self.objects:
            found = self.objects[limit] = self.target.object_at(limit)
            if not isinstance(found, Unbuildable):
                insort(self.built, limit)
                insort(self._limits.setdefault(found, []), limit)
        return self.objects[limit]

    def require_object(self, limit: int) -> str:
        """Key of a limit that is known to give an object."""
        key = self.object_at(limit)
        if isinstance(key, Unbuildable):
            raise LookupError(f"limit {limit} gives no object: {key.reason}")
        return key

    def prefetch(self, limits: Iterable[int]) -> None:
        """Pass a hint on, without the limits that were asked already or do not exist."""
        limits = dict.fromkeys(limits)
        wanted = [limit for limit in limits if 0 <= limit <= self.total and limit not in self.objects]
        if wanted:
            self.target.prefetch(wanted)

    def probe(self, limit: int, purpose: Purpose) -> Verdict:
        """Verdict of a limit; runs its object only if that object has no verdict yet."""
        key = self.object_at(limit)
        if isinstance(key, Unbuildable):
            outcome = Outcome(Verdict.UNRESOLVED, key.reason)
            self._record(purpose, limit, None, outcome, ran=False)
            return Verdict.UNRESOLVED
        verdict = self.tally(key).verdict
        if verdict is None:
            return self.rerun(limit, purpose)
        outcome = self._outcomes[key]
        if outcome.verdict is not verdict:
            outcome = Outcome(verdict, "from its other runs")
        self._record(purpose, limit, key, outcome, ran=False)
        return verdict

    def rerun(self, limit: int, purpose: Purpose) -> Verdict:
        """One fresh oracle run of the object at `limit`."""
        key = self.require_object(limit)
        if self.max_runs is not None and self.runs >= self.max_runs:
            raise BudgetReached
        outcome = self.target.run(key)
        self.runs += 1
        self._tested.add(key)
        self.tally(key).add(outcome.verdict)
        self._outcomes.setdefault(key, outcome)
        if outcome.verdict is Verdict.BAD and outcome.max_err is not None:
            worst = self.max_err_bad
            # a NaN is the worst error there is, and stays
            if worst is None or math.isnan(outcome.max_err) or outcome.max_err > worst:
                self.max_err_bad = outcome.max_err
        self._record(purpose, limit, key, outcome, ran=True)
        return outcome.verdict

    def _record(self, purpose: Purpose, limit: int, key: str | None, outcome: Outcome, *, ran: bool) -> None:
        trial = Trial(len(self.log) + 1, purpose, limit, key, outcome, ran)
        self.log.append(trial)
        if self._on_trial is not None:
            self._on_trial(trial)
