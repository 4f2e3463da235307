"""The pieces of the ordered search: prefetch hints, galloping, progress, walking around islands."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_fakes import RuleTarget, parse_condition, parse_rules

from mccprobe.search.ordered import lowest, speculate
from mccprobe.search.procedure import Settings, Status, bisect

relaxed = settings(deadline=None)  # a busy machine is no failure


def test_speculate_gives_the_next_probe_then_its_successors() -> None:
    assert speculate(0, 100, [], width=2) == [50, 25, 75]
    assert speculate(0, 100, [], width=6) == [50, 25, 75, 13, 38, 63, 88]
    assert speculate(0, 2, [], width=4) == [1]
    assert speculate(0, 1, [], width=4) == []
    assert speculate(0, 10, [4, 5, 6], width=1) == [7, 2, 9]


@relaxed
@given(st.integers(0, 300), st.integers(0, 300), st.sets(st.integers(0, 300)), st.integers(1, 20))
def test_speculate_names_distinct_open_limits(low: int, span: int, unresolved: set[int], width: int) -> None:
    hints = speculate(low, low + span, sorted(unresolved), width)
    assert len(set(hints)) == len(hints)
    assert all(low < limit < low + span and limit not in unresolved for limit in hints)
    assert len(hints) <= max(3, width + 1)


def test_every_probe_was_hinted_before_it_was_asked() -> None:
    target = RuleTarget(1000, parse_rules(["bad if n >= 700"]))
    result = bisect(target, Settings())
    assert result.status is Status.EDGE
    hinted = {limit for hint in target.hints for limit in hint}
    assert {trial.limit for trial in result.log} <= hinted
    assert all(limit in hinted for limit in target.built)
    assert all(count == 1 for count in target.built.values())  # the ledger asks each limit once


@relaxed
@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 800))
def test_lowest_finds_the_threshold(start: int, span: int, threshold: int) -> None:
    asked: list[int] = []

    def holds(limit: int) -> bool:
        asked.append(limit)
        return limit >= threshold

    found = lowest(start, start + span, holds)
    expected = max(threshold, start + 1)
    assert found == (expected if expected <= start + span else None)
    assert len(asked) <= (2 * math.ceil(math.log2(span)) + 1 if span > 1 else span)
    assert all(start < limit <= start + span for limit in asked)


def test_remaining_counts_down_to_the_end() -> None:
    seen: list[tuple[int, int, int]] = []
    rules = parse_rules(["bad if n >= 700"])
    bisect(RuleTarget(1000, rules), Settings(), remaining=lambda *now: seen.append(now))
    assert seen[0] == (0, 1000, 10)
    assert [left for _, _, left in seen] == sorted((left for _, _, left in seen), reverse=True)
    assert all(low < 700 <= high for low, high, _ in seen)


def test_a_wide_island_costs_a_logarithm() -> None:
    """10,000 limits that crash the compiler, away from the culprit: not one build each."""
    target = RuleTarget(40_000, parse_rules(["unbuildable(crash) if 15000 <= n < 25000", "bad if n >= 30000"]))
    result = bisect(target, Settings(spot_checks=0))
    assert (result.status, result.bad) == (Status.EDGE, 30000)
    assert len(target.built) <= 60


def test_a_wide_island_at_the_good_end_costs_a_logarithm() -> None:
    target = RuleTarget(40_000, parse_rules(["unbuildable(crash) if n < 15000", "bad if n >= 30000"]))
    result = bisect(target, Settings(spot_checks=0))
    assert (result.status, result.good_end, result.bad) == (Status.EDGE, 15000, 30000)
    assert len(target.built) <= 60


def test_exceptions_of_the_target_pass_through() -> None:
    class Broken(RuleTarget):
        def run(self, key: str) -> None:  # type: ignore[override]
            raise ConnectionError("board gone")

    with pytest.raises(ConnectionError):
        bisect(Broken(10, []), Settings())


@pytest.mark.parametrize("text", ["__import__('os')", "n", "n + 1 > 2", "x > 2", "n > '2'", "f(n) > 1"])
def test_conditions_hold_only_comparisons(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        parse_condition(text)
