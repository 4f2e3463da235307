"""Statistics of repeated measurements. Pure: numbers in, records out, no clock, no global random numbers.

Samples are times (any unit, smaller is better) in the order in which they were taken. Everything that is
claimed has a stated error: an interval has its confidence, two clusters are claimed only far beyond what
one skewed distribution gives, and too few samples give None instead of a number.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_FOR_CLUSTERS = 10
LEAST_SHARE = 0.2  # of the samples in the smaller cluster: a few outliers are no state of the machine
LEAST_IN_CLUSTER = 4
LEAST_SEPARATION = 0.03  # relative distance of the centres: the article's daily drift is within 3 % (section 23.1)
# The empty gap between the clusters in units of the larger spread inside one must reach GAP_SAMPLES / count, within
# these bounds. Best splits of normal, uniform, exponential, log-normal and heavy-tailed samples reach it in less than
# 3 of 1000 draws (tests/bench/test_statistics.py); the article's two clocks, 55 and 80 TFLOPS, give about 20.
GAP_SAMPLES = 100
LEAST_GAP, LARGEST_GAP = 2.0, 8.0
RESOLUTION_STEPS = 4  # clusters closer than this many steps of the clock are the clock's


@dataclass(frozen=True)
class Summary:
    """What 20 repeats come to. best: the smallest. cv: standard deviation over mean; None for one sample."""

    count: int
    median: float
    p25: float
    p75: float
    best: float
    worst: float
    mean: float
    cv: float | None

    def to_dict(self) -> dict[str, float | int | None]:
        return dict(vars(self))


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Ratio:
    """Time of the other over time of the base, from interleaved pairs. interval: None with too few pairs.

    shown: "faster" or "slower" of the other if the interval lies on one side of 1, else "not shown".
    """

    estimate: float
    interval: Interval | None
    pairs: int

    @property
    def shown(self) -> str:
        if self.interval is None or self.interval.low <= 1.0 <= self.interval.high:
            return "not shown"
        return "faster" if self.interval.high < 1.0 else "slower"


@dataclass(frozen=True)
class Clusters:
    """Two states that a machine was in: each centre (median), how many samples, and how often it changed."""

    fast: float
    slow: float
    fast_count: int
    slow_count: int
    changes: int
    labels: tuple[bool, ...]  # in the order of the samples, True for slow

    @property
    def alternating(self) -> bool:
        """It went to and fro, rather than once from one state to the other."""
        return self.changes >= 3


def summarize(samples: Sequence[float]) -> Summary:
    """Raises ValueError for no samples, or one that is not finite."""
    if not samples or not all(math.isfinite(sample) for sample in samples):
        raise ValueError("no samples, or one that is not finite")
    ordered = sorted(samples)
    mean = statistics.fmean(ordered)
    cv = statistics.stdev(ordered) / mean if len(ordered) > 1 and mean else None
    return Summary(
        len(ordered),
        statistics.median(ordered),
        quantile(ordered, 0.25),
        quantile(ordered, 0.75),
        ordered[0],
        ordered[-1],
        mean,
        cv,
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Between the neighbours, linearly (Hyndman and Fan's type 7, numpy's default). ordered: ascending."""
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def turned(rounds: int) -> list[bool]:
    """Of which rounds the second side is read first: of each four of one even and one odd round, by lot.

    Strict turns (A B, B A ...) meet a clock that changes every two readings, as the article's does, in step: one side
    then always has the fast state, and two equal builds differ by all of it. The same lot each time.
    """
    source = random.Random(rounds)
    drawn = {block + at + 2 * source.randrange(2) for block in range(0, rounds, 4) for at in (0, 1)}
    return [at in drawn for at in range(rounds)]


def paired_ratio(base: Sequence[float], other: Sequence[float], *, confidence: float = 0.95) -> Ratio:
    """Median of the ratios of pairs with an exact interval from order statistics.

    The interval assumes nothing of the distribution but that pairs are independent: its ends are the k-th
    smallest and largest ratio, k from the binomial distribution, so it holds with at least `confidence`.
    Raises ValueError for lists of different length, none, or a time that is not above 0.
    """
    if len(base) != len(other) or not base:
        raise ValueError("pairs need two lists of one length")
    if not all(math.isfinite(value) and value > 0 for value in (*base, *other)):
        raise ValueError("a time that is not above 0")
    ratios = sorted(after / before for before, after in zip(base, other, strict=True))
    return Ratio(statistics.median(ratios), median_interval(ratios, confidence=confidence), len(ratios))


def median_interval(samples: Sequence[float], *, confidence: float = 0.95) -> Interval | None:
    """Interval of the median from order statistics; None if that many samples cannot give it."""
    ordered, count = sorted(samples), len(samples)
    tail, rank = 0.0, 0
    for below in range(count // 2):
        tail += math.comb(count, below) * 0.5**count
        if 2 * tail > 1 - confidence:
            break
        rank = below + 1
    if rank == 0:
        return None
    return Interval(ordered[rank - 1], ordered[count - rank], confidence)


def find_two_clusters(samples: Sequence[float], *, resolution: float = 0.0) -> Clusters | None:
    """Two states of the machine, if the samples show them; None otherwise.

    resolution: step of the clock, in the samples' unit. Constant data, one outlier, a drift and one skewed
    distribution are no clusters: both must be well filled, tight, and apart.
    """
    count = len(samples)
    if count < LEAST_FOR_CLUSTERS:
        return None
    ordered = sorted(samples)
    least = max(LEAST_IN_CLUSTER, math.ceil(LEAST_SHARE * count))
    split = _best_split(ordered, least)
    fast, slow = ordered[:split], ordered[split:]
    centre, other = statistics.median(fast), statistics.median(slow)
    distance = other - centre
    if centre <= 0 or distance < LEAST_SEPARATION * centre or distance <= RESOLUTION_STEPS * resolution:
        return None
    needed = min(LARGEST_GAP, max(LEAST_GAP, GAP_SAMPLES / count))
    if slow[0] - fast[-1] < needed * max(statistics.pstdev(fast), statistics.pstdev(slow)):
        return None
    border = (fast[-1] + slow[0]) / 2
    labels = tuple(sample > border for sample in samples)
    changes = sum(before != after for before, after in itertools.pairwise(labels))
    return Clusters(centre, other, len(fast), len(slow), changes, labels)


def _best_split(ordered: Sequence[float], least: int) -> int:
    """Where the squared distances from the means of both parts are smallest; each part has `least` or more."""
    count, mean = len(ordered), statistics.fmean(ordered)
    sums = list(itertools.accumulate((value - mean for value in ordered), initial=0.0))

    def between(at: int) -> float:  # the squares within both parts are least where those between them are largest
        return sums[at] ** 2 / at + (sums[-1] - sums[at]) ** 2 / (count - at)

    return max(range(least, count - least + 1), key=between)
