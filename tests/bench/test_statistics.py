"""Statistics against known distributions; what must never be claimed."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.tuning.bench.statistics import (
    find_two_clusters,
    median_interval,
    paired_ratio,
    quantile,
    summarize,
)

TIMES = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=60)


@given(TIMES)
def test_summary_is_ordered_and_within_the_samples(samples: list[float]) -> None:
    one = summarize(samples)
    assert one.best == min(samples) <= one.p25 <= one.median <= one.p75 <= one.worst == max(samples)
    assert one.count == len(samples)
    assert one.median == statistics.median(samples)


@given(TIMES, st.floats(0.01, 100))
def test_a_ratio_scales_with_the_unit(samples: list[float], factor: float) -> None:
    found = paired_ratio(samples, [sample * factor for sample in samples])
    assert math.isclose(found.estimate, factor, rel_tol=1e-9)
    if found.interval is not None:
        assert found.interval.low <= found.estimate <= found.interval.high


def test_quantiles_are_those_of_the_standard_library() -> None:
    samples = sorted(random.Random(3).gauss(10, 2) for _ in range(20))
    expected = statistics.quantiles(samples, n=4, method="inclusive")
    assert [quantile(samples, share) for share in (0.25, 0.5, 0.75)] == pytest.approx(expected)


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [math.inf]])
def test_no_summary_of_nothing(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="no samples"):
        summarize(bad)


def test_one_sample_has_no_spread() -> None:
    assert summarize([4.0]).cv is None
    assert summarize([4.0] * 20).cv == 0


# --- intervals ----------------------------------------------------------------------------------


def test_too_few_pairs_show_nothing() -> None:
    found = paired_ratio([1.0] * 5, [2.0] * 5)
    assert found.interval is None
    assert found.shown == "not shown"
    assert paired_ratio([1.0] * 6, [2.0] * 6).shown == "slower"
    assert paired_ratio([2.0] * 6, [1.0] * 6).shown == "faster"


def test_rank_of_the_median_interval_is_the_table_of_the_sign_test() -> None:
    # for n = 20 and 95 %: the 6th smallest and the 6th largest (Conover, Practical Nonparametric Statistics, table A3)
    found = median_interval([float(n) for n in range(1, 21)], confidence=0.95)
    assert found is not None
    assert (found.low, found.high) == (6.0, 15.0)


@pytest.mark.parametrize("draw", [lambda r: r.gauss(0, 1), lambda r: r.expovariate(1) - math.log(2)])
def test_intervals_hold_as_often_as_they_say(draw: Callable[[random.Random], float]) -> None:
    """Median 0: 95 % intervals miss it in about 5 of 100; 400 draws would show 10."""
    source = random.Random(11)
    missed = 0
    for _ in range(400):
        base = [math.exp(0.02 * source.gauss(0, 1)) for _ in range(20)]
        other = [value * math.exp(0.03 * draw(source)) for value in base]
        interval = paired_ratio(base, other).interval
        assert interval is not None
        missed += not interval.low <= 1.0 <= interval.high
    assert missed / 400 < 0.08


def test_pairs_see_through_a_drift_that_is_larger_than_the_effect() -> None:
    source = random.Random(2)
    drift = [1 + 0.5 * n / 20 for n in range(20)]
    base = [value * source.gauss(1, 0.002) for value in drift]
    other = [1.02 * value * source.gauss(1, 0.002) for value in drift]
    found = paired_ratio(base, other)
    assert found.shown == "slower"
    assert found.estimate == pytest.approx(1.02, abs=0.005)


def test_equal_sides_show_nothing() -> None:
    assert paired_ratio([3.0] * 20, [3.0] * 20).shown == "not shown"


def test_pairs_need_two_lists_of_times() -> None:
    with pytest.raises(ValueError, match="one length"):
        paired_ratio([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="above 0"):
        paired_ratio([1.0], [0.0])


# --- two clusters --------------------------------------------------------------------------------


def test_the_article_s_dvfs_steps_are_seen() -> None:
    """80 and 55 TFLOPS at 8192x8192x16384 are 27.5 and 40 ms; the clock goes to and fro every two or three calls."""
    source = random.Random(1)
    samples = [(27.5 if n // 2 % 2 else 40.0) * source.gauss(1, 0.01) for n in range(20)]
    found = find_two_clusters(samples)
    assert found is not None
    assert (found.fast_count, found.slow_count) == (10, 10)
    assert found.fast == pytest.approx(27.5, rel=0.02)
    assert found.slow == pytest.approx(40, rel=0.02)
    assert found.alternating
    assert found.labels == tuple(n // 2 % 2 == 0 for n in range(20))


def test_one_step_is_two_states_but_no_alternation() -> None:
    source = random.Random(1)
    found = find_two_clusters([(20.0 if n < 10 else 30.0) * source.gauss(1, 0.01) for n in range(20)])
    assert found is not None
    assert not found.alternating


@given(st.floats(1e-3, 1e6), st.integers(1, 200))
def test_constant_data_has_no_clusters(value: float, count: int) -> None:
    assert find_two_clusters([value] * count) is None


@given(st.floats(1, 1e3), st.integers(10, 100), st.integers(0, 99), st.floats(1.01, 1000))
def test_one_outlier_is_no_cluster(value: float, count: int, at: int, factor: float) -> None:
    samples = [value] * count
    samples[at % count] *= factor
    assert find_two_clusters(samples) is None


@given(st.lists(st.sampled_from([5.0, 6.0]), min_size=10, max_size=40))
def test_steps_of_the_clock_are_no_clusters(samples: list[float]) -> None:
    assert find_two_clusters(samples, resolution=1.0) is None


@pytest.mark.parametrize("count", [10, 20, 60])
@pytest.mark.parametrize(
    "draw",
    [
        lambda r: r.gauss(1, 0.1),
        lambda r: r.uniform(0.5, 1.5),
        lambda r: 1 + 0.2 * r.expovariate(1),
        lambda r: r.lognormvariate(0, 0.5),
        lambda r: 1 + 0.01 * abs(r.gauss(0, 1)) / max(0.05, r.random()),
    ],
    ids=["normal", "uniform", "exponential", "log-normal", "heavy-tailed"],
)
def test_one_distribution_is_not_two(draw: Callable[[random.Random], float], count: int) -> None:
    source = random.Random(23)
    claims = sum(find_two_clusters([draw(source) for _ in range(count)]) is not None for _ in range(200))
    assert claims <= 1  # 3 of 1000 at most, measured over 3000 draws


def test_a_drift_is_no_two_states() -> None:
    assert find_two_clusters([10 + 0.2 * n for n in range(30)]) is None
