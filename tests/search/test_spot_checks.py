"""Spot checks: which limits beside the edge are asked, at the ends of both ranges and where some were asked before."""

from __future__ import annotations

import pytest
from search_fakes import RuleTarget, parse_rules

from mccprobe.search.checks import contradictions, spot_check
from mccprobe.search.ledger import TrialLedger
from mccprobe.search.model import Settings
from mccprobe.search.ordered import Bracket
from mccprobe.search.trial import Purpose

TOTAL, LOW, HIGH = 40, 9, 10  # below the edge 1 to 8 are open, above it 11 to 39


def asked_ledger(*extra: int, rules: str = "bad if n >= 10") -> TrialLedger:
    """A search that stands at its edge: both ends, both sides of the edge and `extra` were asked."""
    ledger = TrialLedger(RuleTarget(TOTAL, parse_rules([rules])), known={}, max_runs=None, on_trial=None)
    for limit in (0, TOTAL, LOW, HIGH, *extra):
        ledger.probe(limit, Purpose.SEARCH)
    return ledger


def checked(ledger: TrialLedger, spot_checks: int, *, good_end: int = 0) -> list[int]:
    spot_check(ledger, good_end, Bracket(LOW, HIGH, ()), Settings(spot_checks=spot_checks))
    return [trial.limit for trial in ledger.log if trial.purpose is Purpose.SPOT_CHECK]


BELOW, ABOVE = range(1, LOW), range(HIGH + 1, TOTAL)


def test_with_checks_enough_every_open_limit_is_asked_once() -> None:
    """Neither the edge nor an end counts as asked within a range: that would leave the last limit out."""
    assert sorted(checked(asked_ledger(), 100)) == [*BELOW, *ABOVE]


@pytest.mark.parametrize("good_end", [0, 3, LOW - 2, LOW - 1, LOW])
def test_nothing_at_or_below_the_good_end_is_asked(good_end: int) -> None:
    assert sorted(checked(asked_ledger(), 100, good_end=good_end)) == [*range(good_end + 1, LOW), *ABOVE]


def test_both_ranges_get_half_and_what_one_cannot_use_goes_to_the_other() -> None:
    chosen = checked(asked_ledger(), 8)
    assert [limit < LOW for limit in chosen] == [True, False] * 4, "in turn, the lower range first"
    assert sum(limit < LOW for limit in checked(asked_ledger(), 7)) == 4
    few_below = checked(asked_ledger(*range(1, 8)), 8)  # 8 alone is open there
    assert [limit for limit in few_below if limit < LOW] == [8] and len(few_below) == 8
    few_above = checked(asked_ledger(*range(11, 39)), 6)
    assert [limit for limit in few_above if limit > HIGH] == [39] and len(few_above) == 6


def test_checks_do_not_crowd() -> None:
    """One of each equal part of a range: of 29 limits above, four checks lie in four quarters."""
    above = sorted(limit for limit in checked(asked_ledger(), 8) if limit > HIGH)
    assert [(limit - 11) * 4 // 29 for limit in above] == [0, 1, 2, 3]
    assert [(limit - 1) * 4 // 8 for limit in sorted(checked(asked_ledger(), 8)) if limit < LOW] == [0, 1, 2, 3]


def test_what_was_asked_is_not_asked_again() -> None:
    ledger = asked_ledger(4, 20)
    assert not {4, 20, 0, LOW, HIGH, TOTAL} & set(checked(ledger, 100))
    assert checked(asked_ledger(*BELOW, *ABOVE), 8) == []
    assert checked(asked_ledger(), 0) == []


def test_the_seed_chooses_and_is_the_only_chance() -> None:
    def of_seed(seed: int) -> list[int]:
        ledger = asked_ledger()
        spot_check(ledger, 0, Bracket(LOW, HIGH, ()), Settings(spot_checks=6, seed=seed))
        return [trial.limit for trial in ledger.log if trial.purpose is Purpose.SPOT_CHECK]

    assert of_seed(3) == of_seed(3)
    assert len({tuple(of_seed(seed)) for seed in range(8)}) > 1


def test_what_contradicts_lies_strictly_beyond_the_edge() -> None:
    """0 is the good end; wrong below the edge is BAD, wrong above it GOOD, and no verdict is neither."""
    ledger = asked_ledger(*range(1, TOTAL), rules="bad if n == 0 or 3 <= n <= 4 or n == 9 or 12 <= n < 30 or n > 31")
    edge = Bracket(LOW, HIGH, ())
    assert contradictions(ledger, 0, edge) == [3, 4, 11, 30, 31]
    assert contradictions(ledger, 3, edge) == [4, 11, 30, 31]
    silent = asked_ledger(3, 30, rules="unresolved(timeout) if n == 3 or n == 30")
    assert 3 not in contradictions(silent, 0, edge) and 30 not in contradictions(silent, 0, edge)
