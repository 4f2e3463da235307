"""Simulated flaky searches: the stated confidence holds, and nobody is accused where there is no fault.

Beside tests/search/test_search_flaky.py, whose fakes these are: other programs, other noise, and many more of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from faults_counts import SEARCHES
from search_fakes import FlakyTarget

from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.search.procedure import Settings, Status, bisect

RATES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
TALLY = Callable[..., None]


def allowed(edges: int, share: float = 0.01) -> int:
    """Wrong ones among `edges` that one in some ten thousand tests exceeds if each is wrong with this probability."""
    return int(edges * share + 4 * (edges * share) ** 0.5 + 2)


class NoisyTarget(FlakyTarget):
    """Every run, of good and bad objects alike, gives no verdict with probability `noise`."""

    def __init__(
        self, noise: float, total: int, first_bad: int, rate: float, rng: random.Random, changes: Sequence[int]
    ) -> None:
        super().__init__(total, first_bad, rate, rng, changes)
        self.noise = noise

    def run(self, key: str) -> Outcome:
        if self._rng.random() < self.noise:
            return Outcome(Verdict.UNRESOLVED, "timeout after 60.0 s")
        return super().run(key)


def program(rng: random.Random) -> tuple[int, list[int]]:
    """Length of a program and the limits at which its object changes."""
    total = rng.choice((8, 40, 200, 1000))
    share = rng.choice((0.05, 0.3, 1.0))
    return total, sorted(rng.sample(range(1, total + 1), max(2, int(total * share))))


@pytest.mark.parametrize("noise", [0.0, pytest.param(0.1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("rate", RATES)
def test_the_stated_confidence_holds(rate: float, noise: float, tally: TALLY) -> None:
    rng = random.Random(f"soak {rate} {noise}")
    edges = wrong = 0
    for _ in range(SEARCHES):
        total, changes = program(rng)
        first_bad = rng.choice(changes)
        target = NoisyTarget(noise, total, first_bad, rate, rng, changes)
        result = bisect(target, Settings(endpoint_repeats=rng.choice((2, 4)), seed=rng.randrange(1 << 30)))
        if result.status is Status.EDGE:
            assert result.confidence >= 0.99 and result.good is not None and result.bad is not None
            edges += 1
            wrong += not result.good < first_bad <= result.bad
        else:
            assert (result.good, result.bad, result.edges) == (None, None, ()) or result.status is Status.UNDECIDED
    assert wrong <= allowed(edges), f"{wrong} of {edges}"
    tally(f"flaky {rate}" + (", timeouts 0.1" if noise else ""), searches=SEARCHES, named=edges, wrong=wrong)


@pytest.mark.parametrize("rate", RATES)
def test_noise_that_no_pass_makes_accuses_no_pass(rate: float, tally: TALLY) -> None:
    """The check fails at this rate whatever is compiled."""
    rng = random.Random(f"noise {rate}")
    accused = 0
    for _ in range(SEARCHES):
        total, changes = program(rng)
        target = FlakyTarget(total, 0, rate, rng, changes)
        accused += bisect(target, Settings(seed=rng.randrange(1 << 30))).status is Status.EDGE
    assert accused <= allowed(SEARCHES), f"{accused} of {SEARCHES}"
    tally(f"noise {rate} at both ends", searches=SEARCHES, accused=accused)


def test_where_there_is_no_fault_nobody_is_accused(tally: TALLY) -> None:
    rng = random.Random("no fault")
    for _ in range(SEARCHES):
        total, changes = program(rng)
        target = NoisyTarget(rng.choice((0.0, 0.1, 0.5)), total, total + 1, 0.5, rng, changes)
        result = bisect(target, Settings(endpoint_repeats=rng.choice((2, 4, 20)), seed=rng.randrange(1 << 30)))
        assert result.status is not Status.EDGE and result.edges == ()
    tally("no fault, timeouts", searches=SEARCHES, accused=0)
