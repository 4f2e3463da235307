"""Where the first bad limit is, given all runs of a flaky check: the posterior, and what it proves.

Model as in confidence.py. n counts the BAD runs after the very first one: nothing is searched for
without one, so it is no evidence on p. For a first bad limit F let m(F) be the GOOD runs of objects
at or above F, lucky ones if F is true.

Prior: F is uniform over the limits of the range, and does not lie where two neighbouring built limits
have the same object. Candidate "bad already at the good end" has the share ALREADY_BAD_SHARE. All
candidates between two neighbouring built limits share their likelihood, integrated over a uniform p
the Beta function B(n+1, m+1), so the posterior is a step function and exact: no grid.

Law (`proven`): the posterior averages over p. For a statement that holds at every single p, all
candidates but the last get the p that suits them best:

    risk = sum over F' of mass(F') max_p p^n (1-p)^m(F') / (mass(F) B(n+1, m(F)+1)).

Whatever p is, the probability to stop at a wrong F with risk <= a is at most a, at whatever moment
the search stops. Proof: at such a stop, sum over F' of mass(F') p^n (1-p)^m(F') <= a mass(F)
B(n+1, m(F)+1). Summed over all data that end in such a stop, the left side is the probability of being
wrong, the right side a times a probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.confidence import later_bad_runs, log_best
from mccprobe.search.ledger import TrialLedger

ALREADY_BAD_SHARE = 0.1  # prior of "bad already at the good end": rare, but real (ungated passes)
UNREACHABLE = 1 << 20  # GOOD runs that nobody would make


@dataclass(frozen=True)
class Knot:
    """A limit with an object, in a range of candidates, and the GOOD runs that count there."""

    limit: int
    key: str
    good_runs: int


@dataclass(frozen=True)
class Evidence:
    """What bears on where the first bad limit is.

    knots: limits with an object from the good end to the lowest limit known to be bad, ascending.
    bad_runs: n, BAD runs of all objects after the very first. false_good: GOOD runs of objects known
    to be bad. prior_span: number of candidates before anything was seen.
    """

    knots: tuple[Knot, ...]
    bad_runs: int
    false_good: int
    prior_span: int


@dataclass(frozen=True)
class Segment:
    """Candidates low < F <= high that all fit the evidence equally well.

    The first segment of a posterior has low == high == the good end: bad from there on already.
    n, lucky: BAD runs and GOOD runs of bad objects if F lies here. mass: prior, in candidates.
    """

    low: int
    high: int
    n: int
    lucky: int
    mass: float
    probability: float

    @property
    def rate(self) -> float:
        """Expected p if F lies here."""
        return (self.n + 1) / (self.n + self.lucky + 2)


def gather(ledger: TrialLedger, low: int, high: int) -> Evidence:
    """Evidence from the ledger for a first bad limit in (low, high], `high` known to be bad.

    GOOD runs of an object count at its highest limit below `high`: a first bad limit at or below
    that one makes them lucky. An object that was BAD once is bad, and so, while the verdicts are
    monotone, is one that only occurs above `high`: their GOOD runs were lucky in any case. Limits
    without a verdict are candidates like those not built: of the next limit above that has one.
    """
    limits = [
        limit for limit in ledger.built if low <= limit <= high and ledger.verdict_at(limit) is not Verdict.UNRESOLVED
    ]
    counted: set[str] = set()
    knots: list[Knot] = []
    for limit in reversed(limits):
        key = ledger.require_object(limit)
        good = 0
        if limit < high and key not in counted:
            counted.add(key)
            tally = ledger.tally(key)
            good = 0 if tally.bad else tally.good
        knots.append(Knot(limit, key, good))
    false_good = sum(
        tally.good
        for key, tally in ledger.tallies.items()
        if tally.bad or (key not in counted and any(limit > high for limit in ledger.limits_of(key)))
    )
    return Evidence(tuple(reversed(knots)), later_bad_runs(ledger), false_good, ledger.total - low)


def posterior(evidence: Evidence) -> list[Segment]:
    """Where the first bad limit is, given all runs. Probabilities add up to 1; ascending by limit.

    Segments in which the object did not change have no mass and are left out.
    """
    n = evidence.bad_runs
    knots = evidence.knots
    share = ALREADY_BAD_SHARE / (1.0 - ALREADY_BAD_SHARE)
    parts: list[tuple[int, int, int, float]] = []  # low, high, lucky, mass
    m = evidence.false_good
    for index in range(len(knots) - 1, -1, -1):
        knot = knots[index]
        m += knot.good_runs
        if index == 0:
            parts.append((knot.limit, knot.limit, m, share * evidence.prior_span))
        elif knot.key != knots[index - 1].key:
            low = knots[index - 1].limit
            parts.append((low, knot.limit, m, float(knot.limit - low)))
    parts.reverse()
    logs = [math.log(mass) + _log_mixture(n, lucky) for _, _, lucky, mass in parts]
    top = max(logs)
    weights = [math.exp(value - top) for value in logs]
    whole = sum(weights)
    return [
        Segment(low, high, n, lucky, mass, weight / whole)
        for (low, high, lucky, mass), weight in zip(parts, weights, strict=True)
    ]


def proven(segments: Sequence[Segment]) -> float:
    """1 - risk of the last segment, against all others; 0.0 if that is worse than nothing."""
    *others, last = segments
    own = math.log(last.mass) + _log_mixture(last.n, last.lucky)
    risk = math.fsum(math.exp(min(0.0, math.log(s.mass) + log_best(s.n, s.lucky) - own)) for s in others)
    return max(0.0, 1.0 - risk)


def _log_mixture(n: int, m: int) -> float:
    """log B(n+1, m+1): n BAD and m GOOD runs of bad objects, averaged over p."""
    return math.lgamma(n + 1) + math.lgamma(m + 1) - math.lgamma(n + m + 2)


def worth_learning_rate(top: Segment, rival: Segment, wanted: float) -> bool:
    """True if running the bad side of `top` gets it to `wanted` sooner than running its good side alone.

    GOOD runs of the good side help ever less where n is small: with p hardly known, luck explains any
    number of them. k BAD runs of the bad side cost about k / rate runs. Compared are the runs in all
    for k = 0, 1, 2, 4, 8, if `top` is true and `rival` is the only other explanation.
    """
    gain = math.log(top.mass) - math.log(rival.mass) + math.log1p(-wanted)

    def runs(k: int) -> int:
        n, lucky = top.n + k, round(k * (1.0 - top.rate) / top.rate)
        owed = gain + _log_mixture(n, top.lucky + lucky)

        def enough(good: int) -> bool:
            return log_best(n, rival.lucky + lucky + good) <= owed

        high = 1
        while not enough(high) and high < UNREACHABLE:
            high *= 2
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return k + lucky + high

    return min(map(runs, (1, 2, 4, 8))) < runs(0)
