"""The time budget of one `why`: asked by every step before each further trial."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from mccprobe.base.errors import BudgetSpent
from mccprobe.bisection.passes.run import Progress
from mccprobe.search.trial import Trial


class Deadline:
    """A point in time, `seconds` from now; None: never. A resumed run gets its whole budget again."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds left, 0 when it has passed, infinity without a budget."""
        return math.inf if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def passed(self) -> bool:
        """True once nothing new may be started."""
        return self.left_s <= 0.0

    def require(self) -> None:
        """Raise BudgetSpent once it has passed."""
        if self.passed:
            raise BudgetSpent("the time budget is used up", hint="raise --budget; --resume goes on from here")

    def bounding(self, progress: Progress) -> Progress:
        """The same progress, which ends a bisection between two trials once the time is used up."""

        def trial(done: Trial) -> None:
            progress.trial(done)
            self.require()

        return replace(progress, trial=trial)
