"""Flaky checks: the stated confidence holds at every failure rate, and nobody is accused for nothing.

The simulation with more searches and longer programs is benchmarks/flaky_confidence.py.
"""

from __future__ import annotations

import random

import pytest
from search_fakes import FlakyTarget, RuleTarget, parse_rules

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.procedure import Purpose, Settings, Status, bisect

TOTAL = 16
SEARCHES = 300


def simulate(rate: float, searches: int, seed: str) -> list[tuple[bool, float]]:
    """Edges of `searches` random programs: right or wrong, and the confidence stated."""
    rng = random.Random(f"{seed} {rate}")
    edges = []
    for _ in range(searches):
        changes = sorted(rng.sample(range(1, TOTAL + 1), rng.randint(3, TOTAL)))
        first_bad = rng.choice(changes)
        target = FlakyTarget(TOTAL, first_bad, rate, rng, changes)
        result = bisect(target, Settings(endpoint_repeats=4))
        if result.status is Status.EDGE:
            assert result.good is not None
            assert result.bad == result.good + 1
            edges.append((result.bad == first_bad, result.confidence))
        else:
            # too rare to show at the bad end, or within the run limit: no edge is named
            assert result.status in {Status.NO_DIFFERENCE, Status.BUDGET}
            assert (result.good, result.bad, result.edges) == (None, None, ())
    return edges


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_stated_confidence_holds(rate: float) -> None:
    edges = simulate(rate, SEARCHES, "confidence")
    assert all(confidence >= 0.99 for _, confidence in edges)
    wrong = sum(not right for right, _ in edges)
    # 7 or more of 300 happen one time in 30 where each is wrong with probability 0.01; the seed is fixed
    assert len(edges) >= SEARCHES / 4
    assert wrong <= 6


@pytest.mark.parametrize("repeats", [1, 2, 20])
def test_no_accusation_where_there_is_no_bug(repeats: int) -> None:
    target = RuleTarget(TOTAL, [])
    result = bisect(target, Settings(endpoint_repeats=repeats))
    assert (result.status, result.runs) == (Status.NO_DIFFERENCE, repeats)
    assert "fewer than" in result.notes[0]


@pytest.mark.parametrize("rate", [0.3, 0.6, 0.9])
def test_wrong_at_zero_with_a_flaky_check_accuses_no_pass(rate: float) -> None:
    """Every limit is bad, each object differs: the search must not end at the first execution."""
    rng = random.Random(f"zero {rate}")
    accused = 0
    for _ in range(SEARCHES):
        target = FlakyTarget(TOTAL, 0, rate, rng, range(1, TOTAL + 1))
        accused += bisect(target, Settings()).status is Status.EDGE
    assert accused <= 6


def test_failure_rate_is_told() -> None:
    rng = random.Random(3)
    inside = 0
    for _ in range(60):
        target = FlakyTarget(TOTAL, 9, 0.4, rng, range(1, TOTAL + 1))
        rate = bisect(target, Settings(endpoint_repeats=20)).failure_rate
        assert rate is not None
        assert rate.low < rate.estimate < rate.high
        assert 0 < rate.bad < rate.runs
        inside += rate.low <= 0.4 <= rate.high
    assert inside >= 51  # of 60 intervals of 95 %


def test_good_end_runs_as_often_as_the_bad_end() -> None:
    result = bisect(RuleTarget(60, parse_rules(["flaky(0.5) if n >= 40"]), seed=5), Settings())
    assert result.status is Status.EDGE
    ends = [trial.limit for trial in result.log if trial.ran and trial.limit in (0, 60)]
    assert ends.count(0) >= ends.count(60) > 2


def test_budget_is_never_exceeded_and_never_a_finding() -> None:
    rules = parse_rules(["flaky(0.4) if n >= 11"])
    for budget in range(1, 60):
        target = RuleTarget(TOTAL, rules, seed=4)
        result = bisect(target, Settings(endpoint_repeats=6, max_runs=budget))
        assert target.ran.total() == result.runs <= budget
        if result.status is Status.BUDGET:
            assert (result.good, result.bad, result.edges, result.confidence) == (None, None, (), 0.0)
        else:
            assert (result.status, result.bad) == (Status.EDGE, 11)


def test_flaky_search_walks_around_unresolved_limits() -> None:
    rules = parse_rules(
        ["unbuildable(crash) if 10 <= n < 14", "unresolved(timeout) if n == 14", "flaky(0.7) if n >= 12"]
    )
    found = set()
    for seed in range(20):
        result = bisect(RuleTarget(40, rules, seed=seed), Settings(endpoint_repeats=6))
        if result.status is Status.EDGE:
            found.add((result.good, result.bad, result.edges[0].unresolved))
    assert found == {(9, 15, (10, 11, 12, 13, 14))}


def test_flaky_search_with_nothing_between_the_ends_is_undecided() -> None:
    rules = parse_rules(["unresolved(timeout) if 1 <= n < 8", "flaky(0.5) if n >= 8"])
    result = bisect(RuleTarget(8, rules, seed=1), Settings(endpoint_repeats=9))
    assert (result.status, result.good, result.bad) == (Status.UNDECIDED, 0, 8)


def test_good_end_that_fails_later_ends_the_search() -> None:
    rules = parse_rules(["script(GOOD GOOD GOOD BAD) if n == 0", "script(BAD GOOD) if n >= 1"])
    result = bisect(RuleTarget(TOTAL, rules), Settings())
    assert result.status is Status.ORACLE_UNUSABLE
    assert "the good end (limit 0) is BAD in 1 of 4 runs" in result.notes[-1]


def test_an_object_that_did_not_change_is_not_run_again_for_a_new_limit() -> None:
    """Only repeats of the flaky search itself; equal neighbours cost builds, not runs."""
    rules = parse_rules(["flaky(0.9) if n >= 300"])
    target = RuleTarget(500, rules, changes=frozenset({100, 200, 300, 400}), seed=5)
    result = bisect(target, Settings(endpoint_repeats=6))
    assert (result.status, result.bad) == (Status.EDGE, 300)
    assert result.objects_tested <= 5
    assert any(
        trial.purpose is Purpose.FLAKY_SEARCH and not trial.ran and trial.verdict is not Verdict.UNRESOLVED
        for trial in result.log
    )
