"""What is said to be left: from measured steps alone, and not at all where it is not known."""

from __future__ import annotations

import pytest

from mccprobe.base.console import Console
from mccprobe.cli.pace import Pace, duration
from mccprobe.cli.trial_lines import TrialLines
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.search.trial import Purpose, Trial


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_told_of_the_time_before_two_steps() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.left(5) == "about 5 left (time not known yet)"
    clock.now += 3
    pace.step()
    assert pace.left(5) == "about 5 left (time not known yet)"
    clock.now += 1
    pace.step()
    assert pace.left(5) == "about 5 left (~10 s)"
    assert pace.left(5, about="at most ") == "at most 5 left (~10 s)"
    assert (pace.left(None), pace.left(0)) == ("how many are left is not known", "none left")


def test_what_is_no_step_does_not_count() -> None:
    clock = Clock()
    pace = Pace(clock, started=False)
    clock.now += 100  # a build
    pace.step()
    assert pace.took() == ""
    for _ in range(2):
        clock.now += 2
        pace.step()
    clock.now += 500  # another stage
    pace.begin()
    clock.now += 2
    pace.step()
    assert (pace.left(3), pace.took(), pace.total_s) == ("about 3 left (~6 s)", " 2.0 s", 606.0)


def test_a_clock_that_stands_still_is_no_negative_time() -> None:
    clock = Clock()
    pace = Pace(clock)
    clock.now -= 5
    pace.step()
    pace.step()
    assert pace.left(4) == "about 4 left (~0.1 s)"


def test_larger_steps_take_longer_and_much_larger_ones_are_not_guessed() -> None:
    clock = Clock()
    pace = Pace(clock)
    for work, seconds in ((1.0, 1.0), (10.0, 1.9)):
        clock.now += seconds
        pace.step(work)
    # fixed 1.0, and 0.09 for each unit of work
    assert pace.left(2, works=[20.0, 1.0]) == "about 2 left (~4 s)"
    assert pace.left(1, works=[1000.0]) == "about 1 left (time not known: larger ones follow)"


def test_the_latest_steps_count() -> None:
    clock = Clock()
    pace = Pace(clock)
    for seconds in (*[60.0] * 5, *[1.0] * 12):
        clock.now += seconds
        pace.step()
    assert pace.left(7) == "about 7 left (~7 s)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.1 s"),
        (0.44, "0.4 s"),
        (12.4, "12 s"),
        (99, "99 s"),
        (100, "2 min"),
        (3000, "50 min"),
        (4800, "80 min"),
        (7200, "2 h"),
        (8400, "2 h 20 min"),
    ],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# --- a bisection ------------------------------------------------------------------------------------


class Told(Console):
    def __init__(self) -> None:
        super().__init__()
        self.plain: list[str] = []
        self.live: list[str] = []

    def progress(self, text: str, *, live: str | None = None) -> None:
        self.plain.append(text)
        self.live.append(text if live is None else live)


def tell(*trials: tuple[Purpose, int, Verdict]) -> Told:
    console, clock = Told(), Clock()
    lines = TrialLines(console, pace=Pace(clock))
    for ordinal, (purpose, limit, verdict) in enumerate(trials, 1):
        clock.now += 3
        lines.trial(Trial(ordinal, purpose, limit, "key", Outcome(verdict, "why"), True))
    return console


GOOD, BAD, UNRESOLVED = Verdict.GOOD, Verdict.BAD, Verdict.UNRESOLVED
START = ((Purpose.BAD_END, 431, BAD), (Purpose.GOOD_END, 0, GOOD))


def test_a_search_says_what_is_left_where_and_how_long() -> None:
    told = tell(*START, (Purpose.SEARCH, 211, GOOD), (Purpose.SEARCH, 259, BAD))
    assert told.live[0] == "trial 1, both ends first, last: BAD 3.0 s"
    assert told.live[1] == "trial 2, about 9 left (~27 s), pass 1..431, last: GOOD 3.0 s"
    assert told.live[3] == "trial 4, about 6 left (~18 s), pass 212..259, last: BAD 3.0 s"
    assert told.plain[3] == "trial 4: search, limit 259: BAD why", "elsewhere the whole line, as ever"


def test_what_is_repeated_until_it_suffices_has_no_number() -> None:
    told = tell(*START, (Purpose.SEARCH, 1, BAD), (Purpose.CONFIRM_BAD, 1, BAD), (Purpose.FLAKY_SEARCH, 40, GOOD))
    assert told.live[2] == "trial 3, pass 1..1, now to be confirmed, last: BAD 3.0 s"
    assert told.live[3] == "trial 4, confirm bad side, last: BAD 3.0 s"
    assert "left" not in told.live[4]


def test_verdicts_that_do_not_order_the_limits_give_no_number() -> None:
    told = tell(*START, (Purpose.SEARCH, 100, BAD), (Purpose.SEARCH, 200, GOOD))
    assert told.live[3] == "trial 4, between limits 100 and 200, how many are left is not known, last: GOOD 3.0 s"


def test_an_unresolved_trial_moves_no_end() -> None:
    told = tell(*START, (Purpose.SEARCH, 215, UNRESOLVED))
    assert told.live[2] == "trial 3, about 9 left (~27 s), pass 1..431, last: UNRESOLVED 3.0 s"
