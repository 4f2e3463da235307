"""From a point to a trial: build, gate, measure. Each distinct object once; in the journal before it is used."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from mccprobe.base.errors import BudgetSpent, InputError
from mccprobe.build.executor import Executor
from mccprobe.build.journal import Journal
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.tuning.check.build import BuildFailure
from mccprobe.tuning.flag_search.shares import Meter, Share, exact_share
from mccprobe.tuning.flag_search.space import Point, Space
from mccprobe.tuning.flag_search.subjects import Made, Subject
from mccprobe.tuning.flag_search.trials import (
    COMPILED,
    NOT_BUILT,
    NOT_MEASURED,
    RIGHT,
    UNDECIDED,
    WRONG,
    Trial,
    read_trials,
    share_line,
)


@dataclass(frozen=True)
class SearchLimits:
    """max_trials: points in all. deadline: monotonic seconds, None for none."""

    max_trials: int = 200
    deadline: float | None = None

    def require(self, trials: int) -> None:
        """Raise BudgetSpent when nothing more may be tried."""
        if trials >= self.max_trials:
            raise BudgetSpent(f"{trials} trials: --max-trials is used up", hint="go on with --resume and more")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            raise BudgetSpent("--budget is used up", hint="go on with --resume")


@dataclass
class Counters:
    """What this call did: a resumed run has fewer than trials."""

    builds: int = 0
    judged: int = 0
    measured: int = 0
    replayed: int = 0


@dataclass
class _Known:
    """One distinct object: who judged it first, and how."""

    ordinal: int
    outcome: Outcome
    value: float | None
    samples: tuple[float, ...]
    reason: str


class Evaluator:
    """All that is known of the points of one space. `many` may run in several threads, `compare` in one."""

    def __init__(
        self,
        space: Space,
        subject: Subject,
        meter: Meter,
        journal: Journal,
        executor: Executor,
        builds: Path,
        limits: SearchLimits,
        tell: Callable[[Trial], None] = lambda trial: None,
    ) -> None:
        self.space, self.subject, self.meter = space, subject, meter
        self.journal, self.executor, self.folder, self.limits, self.tell = journal, executor, builds, limits, tell
        self.counters = Counters()
        self.trials, self.shares = read_trials(journal.path, space)
        self.counters.replayed = len(self.trials)
        self._made: dict[Point, Made] = {}
        self._objects: dict[str, Future[_Known]] = {}
        self._lock = threading.Lock()
        self._next = 1 + max((trial.ordinal for trial in self.trials.values()), default=-1)
        for trial in self.trials.values():
            if trial.object and (trial.same_as is None or trial.object not in self._objects):
                first = trial.ordinal if trial.same_as is None else trial.same_as  # its own line may be lost
                known: Future[_Known] = Future()
                outcome = Outcome(trial.verdict, trial.reason, trial.max_err)
                known.set_result(_Known(first, outcome, trial.value, trial.samples, ""))
                self._objects[trial.object] = known

    # -- points ----------------------------------------------------------------------------------

    def one(self, point: Point) -> Trial:
        return self.many([point])[0]

    def many(self, points: Iterable[Point]) -> list[Trial]:
        """Their trials in order; those that are not known yet are tried. Raises BudgetSpent before a new one."""
        wanted = list(points)
        running: dict[Point, Future[Trial]] = {}
        spent: BudgetSpent | None = None
        for point in wanted:
            if point in self.trials or point in running:
                continue
            try:
                self.limits.require(len(self.trials) + len(running))
            except BudgetSpent as error:
                spent = error
                break
            ordinal, self._next = self._next, self._next + 1
            if self.meter.exact:
                running[point] = self.executor.submit(self._try, point, ordinal)
            else:  # what is timed has the machine for itself
                running[point] = Future()
                running[point].set_result(self._try(point, ordinal))
        for point, future in running.items():
            self.trials[point] = future.result()
        if spent is not None:
            raise spent
        return [self.trials[point] for point in wanted]

    def _try(self, point: Point, ordinal: int) -> Trial:
        started = time.monotonic()
        trial = replace(self._tried(point, ordinal), seconds=time.monotonic() - started)
        self.journal.append(trial.line(self.space))
        self.tell(trial)
        return trial

    def _tried(self, point: Point, ordinal: int) -> Trial:
        conflict = self.space.conflict(point)
        if conflict:
            return Trial(ordinal, point, NOT_BUILT, Verdict.UNRESOLVED, conflict)
        made = self._build(point)
        with self._lock:
            self.counters.builds += 1
        if isinstance(made, BuildFailure):
            detail = next((line for line in made.detail.splitlines() if "error" in line), made.detail[:200])
            return Trial(ordinal, point, NOT_BUILT, Verdict.UNRESOLVED, f"{made.reason}: {detail}".rstrip(": "))
        with self._lock:
            future = self._objects.get(made.object)
            mine = future is None
            if future is None:
                future = self._objects[made.object] = Future()
        try:
            if mine:
                self._judge(made, ordinal, future)
            known = future.result()
        finally:
            self._put_away(point, made)
        state = _state(known)
        return Trial(
            ordinal,
            point,
            state,
            known.outcome.verdict,
            known.reason or known.outcome.reason,
            made.object,
            known.value,
            known.samples,
            known.outcome.max_err,
            None if mine else known.ordinal,
        )

    def _build(self, point: Point) -> Made | BuildFailure:
        return self.subject.build(self.space.flags(point), self.space.defines(point), self.folder, self.executor)

    def _judge(self, made: Made, ordinal: int, future: Future[_Known]) -> None:
        try:
            outcome = self.subject.judge(made, self.executor)
            with self._lock:
                self.counters.judged += 1
            value: float | None = None
            samples: tuple[float, ...] = ()
            reason = ""
            if outcome.verdict is Verdict.GOOD or self.subject.compile_only:
                measured = self.meter.measure(made, self.executor)
                value, samples, reason = measured.value, measured.samples, measured.reason
                with self._lock:
                    self.counters.measured += 1
            future.set_result(_Known(ordinal, outcome, value, samples, reason))
        except BaseException as error:
            future.set_exception(error)
            raise

    def _put_away(self, point: Point, made: Made) -> None:
        """Programs stay only where they are read again, in turn with others."""
        if self.meter.exact:
            made.remove()
        else:
            self._made[point] = made

    def made(self, point: Point) -> Made:
        """The build of a point, made again if it is not there any more. Raises InputError."""
        if point not in self._made:
            built = self._build(point)
            if isinstance(built, BuildFailure):
                raise InputError(f"{' '.join(self.space.texts(point))}: built once, and not again: {built.reason}")
            self._made[point] = built
        return self._made[point]

    # -- one against another -----------------------------------------------------------------------

    def compare(self, point: Point, against: Point, *, again: bool = False) -> Share:
        """Of two that count: by their values, or measured in turn; in the journal either way.

        again: measured anew, once. What was chosen from many by its measurement was partly lucky in it: of 30 flags
        without effect one is shown to help in nearly every second search, and only a new measurement tells.
        """
        pair = point, against, again
        if pair not in self.shares:
            first, second = self.trials[point], self.trials[against]
            if self.meter.exact or first.object == second.object:
                share = exact_share(first.value, second.value) if self.meter.exact else Share(1.0, None, exact=True)
            else:
                share = self.meter.compare(self.made(point), self.made(against), self.executor)
            self.journal.append(share_line(self.space, point, against, share, again=again))
            self.shares[pair] = share
        return self.shares[pair]

    def better(self, point: Point, against: Point) -> bool:
        """Both count, and the first is shown to be smaller."""
        return self.trials[point].counts and self.trials[against].counts and self.compare(point, against).better

    def close(self) -> None:
        for made in self._made.values():
            made.remove()
        self._made.clear()


def _state(known: _Known) -> str:
    if known.outcome.verdict is Verdict.BAD:
        return WRONG
    compiled = known.outcome.verdict is Verdict.UNRESOLVED and known.outcome.reason == COMPILED
    if known.outcome.verdict is Verdict.UNRESOLVED and not compiled:
        return UNDECIDED
    if known.value is None:
        return NOT_MEASURED
    return COMPILED if compiled else RIGHT
