"""A measured value, and how one build stands against another: what searches reason with, whatever was measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mccprobe.build.executor import Executor
from mccprobe.tuning.bench.statistics import Interval, paired_ratio, turned
from mccprobe.tuning.flag_search.subjects import Made

PAIRS = 12  # of interleaved readings; 6 are the least for a 95 % interval


@dataclass(frozen=True)
class Measured:
    """value: None if it could not be measured, and reason says why. samples: what it is the median of."""

    value: float | None
    samples: tuple[float, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Share:
    """One build against another: ratio below 1 is better. interval: None if exact (or too few pairs)."""

    ratio: float | None
    interval: Interval | None
    exact: bool
    reason: str = ""

    @property
    def better(self) -> bool:
        """Shown to be smaller: by an exact count, or by an interval below 1."""
        if self.ratio is None:
            return False
        return self.ratio < 1 if self.exact else self.interval is not None and self.interval.high < 1


class Meter(Protocol):
    """unit: of a value. label: how it is measured, with what it must not be taken for. exact: without noise.

    here: why it is measured on this machine, whatever cluster compiles; "" where that makes no difference.
    """

    objective: str
    unit: str
    label: str
    exact: bool
    here: str

    def measure(self, made: Made, executor: Executor) -> Measured:
        """On a cluster only what needs a device is measured elsewhere, and all of it on one worker."""

    def compare(self, made: Made, base: Made, executor: Executor) -> Share:
        """Measured in turn, on one machine, where there is noise."""


def exact_share(value: float | None, base: float | None) -> Share:
    """Of two counts without noise."""
    if value is None or base is None:
        return Share(None, None, exact=True, reason="not measured")
    if base == 0:
        ratio = 1.0 if value == 0 else None
        return Share(ratio, None, exact=True, reason="" if ratio else "the count to compare with is 0")
    return Share(value / base, None, exact=True)


def median_of(taken: Sequence[Measured]) -> Measured:
    """Of all readings; the first that could not be taken, if there is one."""
    samples = tuple(one.value for one in taken if one.value is not None)
    if len(samples) < len(taken):
        return next(one for one in taken if one.value is None)
    return Measured(statistics.median(samples), samples)


def paired(base: Callable[[int], Measured], other: Callable[[int], Measured]) -> Share:
    """Interleaved readings, which first by lot; the interval assumes nothing of the noise."""
    before: list[float] = []
    after: list[float] = []
    for ordinal, other_first in enumerate(turned(PAIRS)):
        order = [(base, before), (other, after)]
        for read, taken in reversed(order) if other_first else order:
            one = read(ordinal)
            if one.value is None:
                return Share(None, None, exact=False, reason=one.reason)
            taken.append(one.value)
    ratio = paired_ratio(before, after)
    return Share(ratio.estimate, ratio.interval, exact=False)
