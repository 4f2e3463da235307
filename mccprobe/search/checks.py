"""After an edge was found: spot checks of both ranges, then confirmation of the edge itself.

A spot check that contradicts does not touch the edge, which is a true pair of neighbours; it says
that it may not be the only one. A confirmation that contradicts shows that the check is flaky.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.confidence import EdgeEvidence, later_bad_runs
from mccprobe.search.ledger import TrialLedger
from mccprobe.search.model import Settings
from mccprobe.search.ordered import Bracket
from mccprobe.search.trial import Purpose

EXTRA_CONFIRMATIONS = 2  # of each side, in place of confirmations that gave no verdict


def contradictions(ledger: TrialLedger, good_end: int, edge: Bracket) -> list[int]:
    """Limits on the wrong side: BAD between the good end and the edge, or GOOD above it."""
    return [
        limit
        for limit in ledger.built
        if (good_end < limit < edge.low and ledger.verdict_at(limit) is Verdict.BAD)
        or (limit > edge.high and ledger.verdict_at(limit) is Verdict.GOOD)
    ]


def spot_check(ledger: TrialLedger, good_end: int, edge: Bracket, settings: Settings) -> None:
    """Build and test at most `spot_checks` limits not built yet, seeded random, half on either side
    of the edge. An object that was tested before is not run again, but its verdict is checked."""
    chosen = _choose(ledger, good_end, edge, settings)
    ledger.prefetch(chosen)
    for limit in chosen:
        ledger.probe(limit, Purpose.SPOT_CHECK)


def _choose(ledger: TrialLedger, good_end: int, edge: Bracket, settings: Settings) -> list[int]:
    """Limits for the spot checks, lower and upper range in turn; one random limit of each of k equal
    parts of a range, so that they do not crowd and are likely to be different objects."""
    rng = random.Random(settings.seed)
    ranges = [(good_end + 1, edge.low), (edge.high + 1, ledger.total)]
    free = [max(0, stop - start - _asked(ledger, start, stop)) for start, stop in ranges]
    below = min(free[0], max((settings.spot_checks + 1) // 2, settings.spot_checks - free[1]))
    counts = (below, min(free[1], settings.spot_checks - below))
    picks = [_pick(ledger, start, stop, count, rng) for (start, stop), count in zip(ranges, counts, strict=True)]
    longest = max(len(pick) for pick in picks)
    return [pick[turn] for turn in range(longest) for pick in picks if turn < len(pick)]


def _asked(ledger: TrialLedger, start: int, stop: int) -> int:
    return sum(start <= limit < stop for limit in ledger.objects)


def _pick(ledger: TrialLedger, start: int, stop: int, count: int, rng: random.Random) -> list[int]:
    picked: list[int] = []
    for part in range(count):
        low, high = (start + (stop - start) * share // count for share in (part, part + 1))
        free = [limit for limit in range(low, high) if limit not in ledger.objects]
        if free:
            picked.append(rng.choice(free))
    return picked


@dataclass(frozen=True)
class Confirmation:
    """How the confirmation ended.

    contradicted: the limit whose rerun differs, if any: the check is flaky. complete: every planned run
    gave a verdict. confidence: of the edge; 0.0 if contradicted.
    """

    confidence: float
    complete: bool
    contradicted: int | None = None


def confirm(ledger: TrialLedger, edge: Bracket, settings: Settings) -> Confirmation:
    """Rerun both sides of the edge: `confirm_repeats` times each, or as the confidence asks for.

    Stops at the first run that contradicts. Runs without a verdict are made up for, at most
    EXTRA_CONFIRMATIONS times on each side.
    """
    evidence = EdgeEvidence(
        bad_runs=later_bad_runs(ledger),
        good_side_runs=ledger.tally(ledger.require_object(edge.low)).good,
        sure_bad_runs=ledger.tally(ledger.require_object(ledger.total)).bad - 1,
    )
    if settings.confirm_repeats is None:
        more_bad, more_good = evidence.plan(settings.confidence)
    else:
        more_bad = more_good = settings.confirm_repeats
    sides = (
        (edge.low, Purpose.CONFIRM_GOOD, Verdict.GOOD, more_good),
        (edge.high, Purpose.CONFIRM_BAD, Verdict.BAD, more_bad),
    )
    got: list[int] = []
    for limit, purpose, expected, times in sides:
        agreed = asked = 0
        while agreed < times and asked < times + EXTRA_CONFIRMATIONS:
            verdict = ledger.rerun(limit, purpose)
            asked += 1
            if verdict is expected:
                agreed += 1
            elif verdict is not Verdict.UNRESOLVED:
                return Confirmation(0.0, complete=False, contradicted=limit)
        got.append(agreed)
        if agreed < times:
            return Confirmation(0.0, complete=False)
    return Confirmation(evidence.confidence(more_bad=got[1], more_good=got[0]), complete=True)
