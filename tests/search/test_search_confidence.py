"""The numbers behind a stated confidence, against integration and simulation."""

from __future__ import annotations

import math
import random

import pytest

from mccprobe.base.errors import UsageError
from mccprobe.search.confidence import (
    EdgeEvidence,
    failure_rate,
    miss_ratio,
    unseen_rate,
    worst_case_miss,
)
from mccprobe.search.posterior import Evidence, Knot, posterior, proven
from mccprobe.search.procedure import Settings

GRID = [(i + 0.5) / 4000 for i in range(4000)]


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (1, 1), (2, 3), (5, 2), (9, 9)])
def test_miss_ratio_is_the_mean_of_lucky_runs(n: int, m: int) -> None:
    factorials = math.factorial(n + 1) * math.factorial(m) / math.factorial(n + m + 1)
    mean = sum(p**n * (1 - p) ** m for p in GRID) / sum(p**n for p in GRID)
    assert miss_ratio(n, m) == pytest.approx(factorials)
    assert miss_ratio(n, m) == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 3), (3, 3), (7, 2)])
def test_worst_case_is_the_maximum_over_all_rates(n: int, m: int) -> None:
    assert worst_case_miss(n, m) == pytest.approx(max(p**n * (1 - p) ** m for p in GRID), rel=1e-5)
    assert worst_case_miss(n, 0) == worst_case_miss(0, m) == 1.0


def test_plan_is_the_shortest_that_reaches_the_confidence() -> None:
    evidence = EdgeEvidence(bad_runs=4, good_side_runs=1, sure_bad_runs=1)
    assert evidence.plan(0.99) == (3, 3)
    assert evidence.confidence(3, 3) >= 0.99
    assert all(evidence.confidence(bad, 5 - bad) < 0.99 for bad in range(6))
    assert evidence.confidence(0, 3) < evidence.confidence(1, 3)
    assert sum(EdgeEvidence(4, 1, sure_bad_runs=3).plan(0.99)) == 4
    assert evidence.plan(0.5) == (1, 1)


def test_a_secretly_flaky_check_passes_the_plan_rarely_at_any_rate() -> None:
    """What the plan promises: P(all BAD of a bad object, all GOOD of another bad one) <= 1 - confidence."""
    for wanted in (0.9, 0.99, 0.999):
        bad, good = EdgeEvidence(bad_runs=3, good_side_runs=1, sure_bad_runs=1).plan(wanted)
        assert max(p ** (1 + bad) * (1 - p) ** good for p in GRID) <= 1 - wanted


def test_failure_rate_interval() -> None:
    rate = failure_rate(5, 20)
    assert rate.estimate == 0.25
    cumulated = [0.0]
    for p in GRID:
        cumulated.append(cumulated[-1] + p**5 * (1 - p) ** 15)
    quantile = [sum(value < q * cumulated[-1] for value in cumulated) / len(GRID) for q in (0.025, 0.975)]
    assert [rate.low, rate.high] == pytest.approx(quantile, abs=1e-3)
    assert failure_rate(0, 0).low == pytest.approx(0.025)
    assert failure_rate(10, 10).high < 1.0
    assert failure_rate(3, 2000).high < 0.01
    assert (1 - unseen_rate(2)) ** 2 == pytest.approx(0.05)


def knots(*cells: tuple[int, str, int]) -> tuple[Knot, ...]:
    return tuple(Knot(*cell) for cell in cells)


def test_posterior_is_the_sum_over_candidates_and_rates() -> None:
    """Against brute force over every first bad limit and a grid of p."""
    evidence = Evidence(knots((0, "a", 4), (10, "b", 3), (12, "b", 1), (20, "c", 2), (30, "d", 0)), 3, 2, 30)
    goods = {0: 4, 10: 3, 12: 1, 20: 2}
    weight: dict[int, float] = {}
    for first in range(31):
        if first in (11, 12):
            continue  # the object did not change
        m = 2 + sum(count for limit, count in goods.items() if limit >= first)
        prior = 30 / 9 if first == 0 else 1.0
        weight[first] = prior * sum(p**3 * (1 - p) ** m for p in GRID)
    whole = sum(weight.values())
    segments = posterior(evidence)
    assert [(s.low, s.high) for s in segments] == [(0, 0), (0, 10), (12, 20), (20, 30)]
    assert math.fsum(s.probability for s in segments) == pytest.approx(1.0)
    for segment in segments:
        inside = [first for first in weight if segment.low < first <= segment.high or first == segment.high == 0]
        assert segment.probability == pytest.approx(sum(weight[f] for f in inside) / whole, rel=1e-3)


def test_proven_is_never_more_than_the_posterior() -> None:
    rng = random.Random(1)
    for _ in range(300):
        cells = [(limit, str(limit), rng.randrange(9)) for limit in sorted(rng.sample(range(50), 6))]
        segments = posterior(Evidence(knots(*cells, (50, "end", 0)), rng.randrange(12), rng.randrange(5), 50))
        assert proven(segments) <= segments[-1].probability + 1e-12


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"endpoint_repeats": 0}, "endpoint repeats is 0, it must be at least 1"),
        ({"confirm_repeats": -1}, "confirm repeats is -1, it must be at least 0"),
        ({"spot_checks": -1}, "spot checks is -1, it must be at least 0"),
        ({"profile_stride": 0}, "profile stride is 0, it must be at least 1"),
        ({"max_runs": 0}, "max runs is 0, it must be at least 1"),
        ({"width": 0}, "width is 0, it must be at least 1"),
        ({"confidence": 1.0}, "confidence is 1, it must lie between 0 and 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}$"):
        Settings(**wrong)  # type: ignore[arg-type]
