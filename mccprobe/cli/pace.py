"""How much is left and about how long, from what this very run took; what is not known is said to be not known."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

STEPS_TO_TELL = 2  # one step may be a cold start
FAR = 8  # times the largest step so far: nothing is told of a time so far away
STEPS_THAT_COUNT = 12  # the latest: a search's trials change as it closes in


class Pace:
    """Times the steps of one run on the monotonic clock, each from the end of the one before.

    started: False where something else comes first (a build): then the first step has no time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, started: bool = True) -> None:
        self._clock = clock
        self._began = clock()
        self._last = self._began if started else None
        self._steps: deque[float] = deque(maxlen=STEPS_THAT_COUNT)
        self._largest = (0.0, 0.0)  # work and seconds of the step with the most work
        self.last_s: float | None = None

    @property
    def total_s(self) -> float:
        """Since it was made."""
        return self._clock() - self._began

    def begin(self) -> None:
        """What was done since the last step is no step (a stage of another kind)."""
        self._last = self._clock()

    def step(self, work: float = 0.0) -> None:
        """A step ended. work: how much it was, in any unit that the steps share; 0 where they are alike."""
        now = self._clock()
        self.last_s = None if self._last is None else max(0.0, now - self._last)
        self._last = now
        if self.last_s is not None:
            self._steps.append(self.last_s)
            if work >= self._largest[0]:
                self._largest = (work, self.last_s)

    def took(self) -> str:
        """How long the last step took, "" where that is not known; with a blank in front."""
        return "" if self.last_s is None else f" {self.last_s:.1f} s"

    def left(self, steps: int | None, *, about: str = "about ", works: Sequence[float] = ()) -> str:
        """`about 4 left (~12 s)`; without a time before two steps ended, without a number where None is known.

        about: what stands before the number ("" for an exact one, "at most "). works: of each step that is left.
        """
        if steps is None:
            return "how many are left is not known"
        if steps <= 0:
            return "none left"
        told = f"{about}{steps} left"
        if len(self._steps) < STEPS_TO_TELL:
            return f"{told} (time not known yet)"
        work, seconds = self._largest
        if not work or not works:
            return f"{told} (~{duration(steps * sum(self._steps) / len(self._steps))})"
        if max(works) > FAR * work:
            return f"{told} (time not known: larger ones follow)"
        # a fixed part, as the quickest step had it, and one in proportion to the work
        fixed = min(self._steps)
        rate = (seconds - fixed) / work
        return f"{told} (~{duration(sum(fixed + rate * one for one in works))})"


def duration(seconds: float) -> str:
    """For people, with no more precision than an estimate has: `0.4 s`, `12 s`, `3 min`, `1 h 20 min`."""
    if seconds < 1:
        return f"{max(seconds, 0.1):.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(round(minutes / 10) * 10, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
