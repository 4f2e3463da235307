"""Progress of a bisection in the user's terms."""

from __future__ import annotations

import math

from mccprobe.base.console import Console
from mccprobe.cli.pace import Pace, duration
from mccprobe.oracle.verdict import Verdict
from mccprobe.search.trial import Purpose, Trial

ENDS = (Purpose.GOOD_END, Purpose.BAD_END)


class TrialLines:
    """One line a trial: number, purpose, limit, verdict, and whether a program really ran.

    A terminal shows instead how many trials are left, about how long they take, and between which passes the
    culprit lies: `trial 7, about 4 left (~12 s), pass 212..259, last: BAD 3.1 s`.
    """

    def __init__(self, console: Console, *, simulated: bool = False, pace: Pace | None = None) -> None:
        self.console = console
        self.mark = "[sim] " if simulated else ""
        self.pace = pace or Pace()
        self.good: int | None = None  # highest limit that was right, and the lowest that was wrong
        self.bad: int | None = None

    def stage(self, text: str) -> None:
        self.pace.begin()
        self.console.progress(f"... {text}", live=f"... {text}  ({duration(self.pace.total_s)} so far)")

    def trial(self, trial: Trial) -> None:
        self.pace.step()
        ran = "" if trial.ran else " (known object)"
        verdict = trial.outcome.verdict.value
        what = f"{self.mark}trial {trial.ordinal}: {trial.purpose}, limit {trial.limit}"
        plain = f"{what}: {verdict}{ran} {trial.outcome.reason}".rstrip()
        self.console.progress(plain, live=self._live(trial))

    def _live(self, trial: Trial) -> str:
        if trial.verdict is Verdict.GOOD and trial.purpose in (*ENDS, Purpose.SEARCH):
            self.good = max(trial.limit, self.good if self.good is not None else trial.limit)
        elif trial.verdict is Verdict.BAD and trial.purpose in (*ENDS, Purpose.SEARCH):
            self.bad = min(trial.limit, self.bad if self.bad is not None else trial.limit)
        last = f"last: {trial.verdict.value}{self.pace.took()}{'' if trial.ran else ' (known object)'}"
        return f"{self.mark}trial {trial.ordinal}, {self._left(trial.purpose)}, {last}"

    def _left(self, purpose: Purpose) -> str:
        if purpose not in (*ENDS, Purpose.SEARCH):  # repeated until they suffice: nobody knows how many
            return f"{purpose}"
        if self.good is None or self.bad is None:
            return "both ends first"
        if self.good >= self.bad:  # the verdicts do not order the limits
            return f"between limits {self.bad} and {self.good}, {self.pace.left(None)}"
        steps = math.ceil(math.log2(self.bad - self.good)) if self.bad - self.good > 1 else 0
        where = f"pass {self.good + 1}..{self.bad}"
        return f"{self.pace.left(steps)}, {where}" if steps else f"{where}, now to be confirmed"
