"""Minimal failing sets: against brute force, with verdicts missing, with predicates that are not monotone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.base.errors import BudgetSpent
from mccprobe.oracle.verdict import Verdict
from mccprobe.search.subsets import SubsetResult, minimal_sets

GOOD, BAD, UNRESOLVED = Verdict.GOOD, Verdict.BAD, Verdict.UNRESOLVED
Test = Callable[[frozenset[int]], Verdict]


def needs(*sets: set[int]) -> Test:
    """BAD as soon as one of these sets is there whole."""
    return lambda subset: BAD if any(wanted <= subset for wanted in sets) else GOOD


def found(result: SubsetResult[int]) -> set[frozenset[int]]:
    return {frozenset(each.items) for each in result.sets}


def subsets_of(items: range) -> list[frozenset[int]]:
    return [frozenset(pick) for size in range(len(items) + 1) for pick in itertools.combinations(items, size)]


def is_minimal(subset: frozenset[int], test: Test) -> bool:
    return test(subset) is BAD and all(test(subset - {item}) is not BAD for item in subset)


@pytest.mark.parametrize(
    "sets",
    [
        [{3}],
        [{2, 17}],
        [{0, 9, 19}],
        [{4}, {11}],
        [{4}, {11}, {12}],
        [{1, 2}, {18, 19}],
        [{1, 2}, {1, 19}],
        [{7}, {1, 2, 3}],
        [set(range(20))],
    ],
    ids=str,
)
def test_singles_pairs_triples_and_several(sets: list[set[int]]) -> None:
    result = minimal_sets(range(20), needs(*sets))
    assert found(result) == {frozenset(each) for each in sets}
    assert result.complete and result.monotone and not result.notes
    for each in result.sets:
        assert dict(each.needed) == dict.fromkeys(each.items, GOOD)
        assert not each.untested
    # by removal: what was taken away leaves nothing BAD, and no less does
    cures = [frozenset(removed) for removed, verdict in result.removals if verdict is GOOD]
    assert cures and all(not (each - cure) or not each <= set(range(20)) - cure for each in sets for cure in cures)


FAMILY = st.lists(st.sets(st.integers(0, 7), min_size=1, max_size=4), max_size=5)


@given(FAMILY, st.integers(0, 99))
def test_of_a_monotone_predicate_all_minimal_sets_are_found(family: list[set[int]], seed: int) -> None:
    test = needs(*family)
    result = minimal_sets(range(8), test, seed=seed)
    assert found(result) == {subset for subset in subsets_of(range(8)) if is_minimal(subset, test)}
    assert result.complete and result.monotone


@given(st.data(), st.integers(0, 99))
def test_of_any_predicate_what_is_reported_is_bad_and_minimal(data: st.DataObject, seed: int) -> None:
    """Verdicts drawn for each of the 64 subsets: no order in them at all."""
    every = subsets_of(range(6))
    verdicts = data.draw(st.lists(st.sampled_from(Verdict), min_size=len(every), max_size=len(every)))
    table = dict(zip(every, verdicts, strict=True))
    asked: list[frozenset[int]] = []

    def test(subset: frozenset[int]) -> Verdict:
        asked.append(subset)
        return table[subset]

    result = minimal_sets(range(6), test, seed=seed)
    assert len(asked) == len(set(asked)) == result.tests
    for each in result.sets:
        items = frozenset(each.items)
        assert items and is_minimal(items, table.__getitem__)
        assert dict(each.needed) == {item: table[items - {item}] for item in each.items}
        if UNRESOLVED in dict(each.needed).values():
            assert not result.complete
        if any(items < subset for subset in asked if table[subset] is GOOD):
            assert not result.monotone
    if result.none is GOOD and result.everything is BAD:
        assert result.sets
    if result.none is BAD or result.everything is not BAD:
        assert not result.sets
    if UNRESOLVED in (result.none, result.everything):
        assert not result.complete


@given(st.sets(st.integers(0, 9), min_size=1, max_size=3), st.floats(0.05, 0.6), st.integers(0, 99))
def test_missing_verdicts_never_accuse(culprits: set[int], share: float, seed: int) -> None:
    """Some subsets give no verdict: the members are still culprits, and the result says what it does not know."""
    rng = random.Random(seed)
    true = needs(culprits)
    missing = {subset for subset in subsets_of(range(10)) if 0 < len(subset) < 10 and rng.random() < share}
    result = minimal_sets(range(10), lambda subset: UNRESOLVED if subset in missing else true(subset), seed=seed)
    assert len(result.sets) >= 1
    for each in result.sets:
        assert culprits <= set(each.items)
        assert {item for item, verdict in each.needed if verdict is GOOD} <= culprits
        assert set(each.items) == culprits or not result.complete


def test_a_hidden_set_is_told() -> None:
    """0 alone is BAD, 1 hides it, 2 and 3 together bring it out again: what is found depends on the order."""

    def test(subset: frozenset[int]) -> Verdict:
        return BAD if 0 in subset and (1 not in subset or {2, 3} <= subset) else GOOD

    told = 0
    for seed in range(10):
        result = minimal_sets(range(4), test, seed=seed)
        assert result.sets and all(is_minimal(frozenset(each.items), test) for each in result.sets)
        told += any("hide it" in note for note in result.notes)
        assert result.monotone is not any("hide it" in note for note in result.notes)
    assert told


def test_nothing_to_find() -> None:
    assert not minimal_sets(range(5), lambda subset: GOOD).sets
    base = minimal_sets(range(5), lambda subset: BAD)
    assert not base.sets and base.none is BAD and "none of them" in base.notes[0]
    assert not minimal_sets([], lambda subset: GOOD).sets


def test_items_are_given_once() -> None:
    with pytest.raises(ValueError, match="given twice"):
        minimal_sets([1, 1], needs({1}))


@pytest.mark.parametrize("budget", range(30))
def test_a_budget_leaves_what_was_proved(budget: int) -> None:
    test = needs({3, 11}, {5})
    result = minimal_sets(range(16), test, budget=budget)
    assert result.tests <= budget
    if not result.complete:
        assert f"the budget of {budget} builds is used up" in result.notes[0]
    else:
        assert found(result) == {frozenset((3, 11)), frozenset((5,))}
    for each in result.sets:
        assert test(frozenset(each.items)) is BAD
        assert set(each.untested) == set(each.items) - dict(each.needed).keys()


def test_a_test_may_end_the_search() -> None:
    calls = 0

    def test(subset: frozenset[int]) -> Verdict:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise BudgetSpent("the time is used up")
        return needs({3})(subset)

    result = minimal_sets(range(16), test)
    assert not result.complete and result.tests == 3 and result.notes == ("stopped: the time is used up",)


# Tests that Go's bisect needs at n = 1,000 (simulated, both ends included): single, pair, triple, 2 and 3 independent
BOUNDS = [([1], 20), ([2], 34), ([3], 47), ([1, 1], 36), ([1, 1, 1], 53)]


@pytest.mark.parametrize(("sizes", "bound"), BOUNDS, ids=lambda value: str(value))
def test_no_more_tests_than_gos_bisect(sizes: list[int], bound: int) -> None:
    for seed in range(10):
        chosen = random.Random(f"culprits {seed}").sample(range(1000), sum(sizes))
        sets = [{chosen.pop() for _ in range(size)} for size in sizes]
        result = minimal_sets(range(1000), needs(*sets), seed=seed)
        assert found(result) == {frozenset(each) for each in sets}
        assert result.tests <= bound


def test_the_order_of_tests_is_that_of_the_seed() -> None:
    """Same seed, same tests, so that a run can be replayed; another seed searches in another order."""

    def asked(seed: int) -> list[frozenset[int]]:
        log: list[frozenset[int]] = []

        def test(subset: frozenset[int]) -> Verdict:
            log.append(subset)
            return BAD if {3, 17} <= subset else GOOD

        minimal_sets(range(24), test, seed=seed)
        return log

    assert asked(5) == asked(5)
    assert len({tuple(asked(seed)) for seed in range(4)}) > 1
