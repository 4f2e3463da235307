"""The search in mixes: what it finds, what it refuses to confirm, and what it costs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.mixes import MixStatus, Parts, find_border, find_in_mixes


def _verdict(bad: bool) -> Verdict:
    return Verdict.BAD if bad else Verdict.GOOD


def _any_of(*guilty: int) -> Callable[[Parts], Verdict]:
    return lambda parts: _verdict(any(part in parts for part in guilty))


@given(st.integers(1, 200), st.data())
def test_one_guilty_part_is_confirmed_from_both_sides_in_few_tests(count: int, data: st.DataObject) -> None:
    guilty = data.draw(st.integers(0, count - 1))
    result = find_in_mixes(count, _any_of(guilty))
    assert (result.status, result.sets) == (MixStatus.BOTH_SIDES, (frozenset({guilty}),))
    assert result.tests <= 2 * count.bit_length() + 4


@given(st.integers(2, 60), st.data())
@settings(max_examples=60)
def test_parts_that_are_only_wrong_together_are_one_set(count: int, data: st.DataObject) -> None:
    together = data.draw(st.sets(st.integers(0, count - 1), min_size=2, max_size=min(4, count)))
    result = find_in_mixes(count, lambda parts: _verdict(together <= parts))
    assert (result.status, result.sets) == (MixStatus.BOTH_SIDES, (frozenset(together),))


@given(st.integers(3, 80), st.data())
@settings(max_examples=60)
def test_every_part_that_is_enough_alone_is_found(count: int, data: st.DataObject) -> None:
    guilty = data.draw(st.sets(st.integers(0, count - 1), min_size=3))
    result = find_in_mixes(count, _any_of(*guilty))
    assert result.status is MixStatus.ALL_TOGETHER
    assert {part for found in result.sets for part in found} == guilty
    assert all(len(found) == 1 for found in result.sets)


def test_256_of_321_cost_little_more_than_one_test_each() -> None:
    guilty = [part for part in range(321) if part % 5]
    result = find_in_mixes(321, _any_of(*guilty))
    assert len(guilty) == 256
    assert (result.status, len(result.sets)) == (MixStatus.ALL_TOGETHER, 256)
    assert result.tests < 400  # plain halving took 575


def test_few_of_many_cost_a_logarithm_each() -> None:
    result = find_in_mixes(1024, _any_of(3, 500, 900))
    assert (result.status, len(result.sets)) == (MixStatus.ALL_TOGETHER, 3)
    assert result.tests < 100


def test_half_of_a_transformation_is_not_named_in_place_of_the_fault() -> None:
    # part 1 alone breaks what parts 1 and 2 do together; the fault is part 9
    def test(parts: Parts) -> Verdict:
        return _verdict(9 in parts or (1 in parts) != (2 in parts))

    result = find_in_mixes(12, test)
    assert (result.status, result.sets) == (MixStatus.BOTH_SIDES, (frozenset({9}),))


def test_nothing_is_named_of_a_right_change() -> None:
    calls: list[Parts] = []

    def test(parts: Parts) -> Verdict:
        calls.append(parts)
        return _verdict(0 < len(parts) < 6)

    result = find_in_mixes(6, test)
    assert (result.status, result.sets) == (MixStatus.NOT_CONFIRMED, ())
    assert len(calls) == 2


def test_what_stays_wrong_without_all_that_was_found_is_not_confirmed() -> None:
    # three are enough alone; 7 and 8 are wrong together, which no single part shows
    def test(parts: Parts) -> Verdict:
        return _verdict(bool(parts & {0, 3, 5}) or {7, 8} <= parts)

    result = find_in_mixes(10, test)
    assert result.status is MixStatus.NOT_CONFIRMED and result.sets == ()
    assert "together" in result.reason or "still BAD" in result.reason


def test_unresolved_is_neither() -> None:
    def test(parts: Parts) -> Verdict:
        if 4 in parts and len(parts) == 1:
            return Verdict.UNRESOLVED  # not to be built without part 5
        return _verdict(4 in parts)

    result = find_in_mixes(8, test)
    assert result.unresolved >= 1
    assert all(test(found) is Verdict.BAD for found in result.sets)
    assert result.status is MixStatus.BOTH_SIDES and 4 in result.sets[0]


def test_the_limit_on_tests_ends_the_search() -> None:
    result = find_in_mixes(321, _any_of(*range(300)), max_tests=50)
    assert result.status is MixStatus.BUDGET and result.tests == 50
    assert "50 mixes" in result.reason


def test_what_comes_next_is_announced() -> None:
    told: list[Parts] = []
    find_in_mixes(40, _any_of(*range(40)), ahead=told.extend)
    assert frozenset({7}) in told


@given(st.integers(1, 10**6), st.data())
def test_a_border_on_a_path(length: int, data: st.DataObject) -> None:
    first_bad = data.draw(st.integers(1, length))
    border = find_border(length, lambda stop: _verdict(stop >= first_bad))
    assert (border.good, border.bad) == (first_bad - 1, first_bad)
    assert border.tests <= length.bit_length() + 1


@pytest.mark.parametrize(("hole", "found"), [(range(40, 44), 70), (range(3, 99), None)])
def test_a_border_around_stops_without_a_verdict(hole: range, found: int | None) -> None:
    def test(stop: int) -> Verdict:
        return Verdict.UNRESOLVED if stop in hole else _verdict(stop >= 70)

    assert find_border(100, test).bad == found
