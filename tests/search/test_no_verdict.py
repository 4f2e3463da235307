"""Runs that give no verdict: what the ends say of them, and what the flaky search does with such objects."""

from __future__ import annotations

import pytest
from search_fakes import RuleTarget, parse_rules

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.ends import OracleUnusable, check_ends
from mccprobe.search.flaky import UNRESOLVED_RUNS, FlakySearch
from mccprobe.search.ledger import TrialLedger
from mccprobe.search.model import Settings
from mccprobe.search.procedure import Status, bisect
from mccprobe.search.trial import Purpose

FLAKY = "the check is flaky: the bad end (limit 8) is BAD and GOOD"


def ledger_of(target: RuleTarget) -> TrialLedger:
    return TrialLedger(target, known={}, max_runs=None, on_trial=None)


@pytest.mark.parametrize(
    ("rules", "good", "notes"),
    [
        (["bad if n == 8"], 0, ()),
        (["script(BAD GOOD) if n == 8"], 0, (FLAKY,)),
        (["script(UNRESOLVED BAD BAD) if n == 8"], 0, ("the bad end (limit 8) gave no verdict in 1 of 3 runs",)),
        (
            ["script(UNRESOLVED BAD GOOD) if n == 8"],
            0,
            (FLAKY, "the bad end (limit 8) gave no verdict in 1 of 3 runs"),
        ),
        (
            ["unbuildable(no room) if n == 0", "script(UNRESOLVED GOOD BAD) if n == 8"],
            1,
            (
                "limit 0 gives no verdict (no room); the good end is limit 1, the lowest found that is GOOD",
                FLAKY,
                "the bad end (limit 8) gave no verdict in 1 of 3 runs",
            ),
        ),
        (
            ["unresolved(timeout) if n <= 1", "bad if n == 8"],
            2,
            ("limit 0 gives no verdict (timeout); the good end is limit 2, the lowest found that is GOOD",),
        ),
    ],
    ids=["none", "flaky", "silent once", "both", "all three", "good end moved"],
)
def test_every_note_of_the_ends_is_told_in_order(rules: list[str], good: int, notes: tuple[str, ...]) -> None:
    ends = check_ends(ledger_of(RuleTarget(8, parse_rules(rules))), Settings(endpoint_repeats=3))
    assert (ends.good, ends.bad, ends.flaky) == (good, 8, FLAKY in notes)
    assert ends.notes == notes


def test_a_bad_end_that_never_gives_a_verdict_is_no_answer() -> None:
    with pytest.raises(OracleUnusable, match=r"the bad end \(limit 8\) never gave a verdict: timeout"):
        check_ends(ledger_of(RuleTarget(8, parse_rules(["unresolved(timeout) if n == 8"]))), Settings())


# --- the flaky search -----------------------------------------------------------------------------


def flaky_search(*rules: str, changes: frozenset[int] | None = None) -> tuple[FlakySearch, RuleTarget]:
    """A flaky search in (0, 8] whose ends were run once each."""
    target = RuleTarget(8, parse_rules([*rules, "bad if n == 8"]), changes=changes)
    ledger = ledger_of(target)
    ledger.probe(8, Purpose.BAD_END)
    ledger.probe(0, Purpose.GOOD_END)
    return FlakySearch(ledger, 0, 8, 0.99), target


def dead(search: FlakySearch) -> set[int]:
    """The limits that the search counts as without a verdict."""
    return set(search._dead)


def test_an_object_without_a_verdict_is_given_up_after_three_runs() -> None:
    search, target = flaky_search("unresolved(timeout) if n == 5")
    for run in range(1, UNRESOLVED_RUNS + 1):
        assert dead(search) == set()
        search._ask(5)
        assert target.ran["obj5"] == run
    assert dead(search) == {5}


def test_with_the_object_all_its_limits_are_given_up() -> None:
    search, target = flaky_search("unresolved(timeout) if n == 4", changes=frozenset({4, 7, 8}))
    search._ask(5)
    search._ask(6)  # met before: no run
    assert target.ran["obj4"] == 1 and dead(search) == {6}
    search._ask(5)
    search._ask(5)
    assert target.ran["obj4"] == UNRESOLVED_RUNS and dead(search) == {5, 6}
    search._ask(4)
    assert target.ran["obj4"] == UNRESOLVED_RUNS and dead(search) == {4, 5, 6}


@pytest.mark.parametrize("script", ["GOOD UNRESOLVED", "UNRESOLVED GOOD UNRESOLVED", "UNRESOLVED UNRESOLVED GOOD"])
def test_one_good_run_keeps_an_object_in(script: str) -> None:
    search, target = flaky_search(f"script({script}) if n == 5")
    for _ in range(6):
        search._ask(5)
    assert target.ran["obj5"] == 6 and dead(search) == set()


def test_a_fresh_limit_of_a_known_object_says_what_that_object_said() -> None:
    search, target = flaky_search(changes=frozenset({3, 8}))
    search._ask(3)
    runs = target.ran.total()
    search._ask(5)  # GOOD as limit 3 is, and asked again it is run
    assert target.ran.total() == runs and dead(search) == set()
    assert search.ledger.log[-1].verdict is Verdict.GOOD and not search.ledger.log[-1].ran
    search._ask(5)
    assert target.ran.total() == runs + 1


def test_a_limit_that_gives_no_object_is_given_up_at_once() -> None:
    search, target = flaky_search("unbuildable(crash) if n == 5")
    search._ask(5)
    assert dead(search) == {5} and target.ran.total() == 2
    assert (search.ledger.log[-1].limit, search.ledger.log[-1].outcome.reason) == (5, "crash")


def test_limits_known_to_be_without_a_verdict_are_given_up_before_the_search() -> None:
    rules = parse_rules(["unbuildable(crash) if n == 2", "unresolved(timeout) if n == 3", "bad if n > 6"])
    target = RuleTarget(8, rules)
    ledger = ledger_of(target)
    for limit in (0, 2, 3, 4, 8):
        ledger.probe(limit, Purpose.SEARCH)
    assert dead(FlakySearch(ledger, 0, 8, 0.99)) == {2, 3}


def test_a_search_never_asks_again_what_it_gave_up() -> None:
    """An island of one object without a verdict costs three runs, whatever else the search asks."""
    rules = parse_rules(["unresolved(timeout) if 12 <= n < 20", "flaky(0.6) if n >= 25"])
    for seed in range(5):
        target = RuleTarget(40, rules, changes=frozenset({5, 12, 20, 25, 31}), seed=seed)
        result = bisect(target, Settings(endpoint_repeats=9))
        assert (result.status, result.good, result.bad) == (Status.EDGE, 24, 25)
        assert target.ran["obj12"] <= UNRESOLVED_RUNS
