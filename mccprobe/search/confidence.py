"""How sure an edge is when the check may be flaky in one direction, in closed form.

Model: a good object never shows BAD; a bad object shows BAD with an unknown probability p, the same
for all bad objects, and p is uniform on (0, 1) before anything is seen. With n BAD runs and m GOOD
runs of objects that are in truth bad, the likelihood integrated over p is the Beta function
B(n+1, m+1) = n! m! / (n+m+1)!. n leaves out the very first BAD run: nothing is searched for without
one, so it is no evidence on p (counting it, p = 0.2 had three wrong edges in 100 where one is stated).

1. Two explanations of m GOOD runs of the good side, next to n BAD runs of bad objects: it is good
   (likelihood B(n+1, 1) = 1/(n+1)), or it is bad and was lucky m times (B(n+1, m+1)). Their ratio,
   also the probability that a bad object is GOOD m times in a row after n BAD runs out of n, is

       miss_ratio(n, m) = (n+1)! m! / (n+m+1)! = 1 / C(n+m+1, m).

2. The ratio belongs to one candidate. All of them together: the first bad limit F is uniform over the
   limits before anything is seen, and F does not lie where the object did not change. Candidates
   between two neighbouring built limits share their likelihood, so the posterior is a step function
   (`posterior`). Candidate "the good end is bad already" has the share ALREADY_BAD_SHARE.

3. The posterior averages over p. For a statement that holds at every single p, the others get the p
   that suits them best (`proven`):

       risk = sum over F' of mass(F') max_p p^n (1-p)^m(F') / (mass(F) B(n+1, m(F)+1)).

   Law: whatever p is, the probability to stop at a wrong F with risk <= a is at most a, at whatever
   moment the search stops. Proof: sum over F' and over the data at which the search stops at F != F'
   of mass(F') p^n (1-p)^m(F') <= a mass(F) B(n+1, m(F)+1), and what stands on the right is a times a
   probability of data.

4. Without a prior on F, and for verdicts that are not monotone: a wrong edge needs n BAD runs of a bad
   object (the bad end's and the confirmations') and m GOOD confirmations of another bad object. That has
   probability at most

       worst_case_miss(n, m) = max over p of p^n (1-p)^m = n^n m^m / (n+m)^(n+m),

   however many objects the search looked at before.

An edge is stated with the smaller of 1 - (3) and 1 - (4); where the verdicts are not monotone in the
limit, (1) with even odds takes the place of (3). What stays assumed: p is the same for the objects
compared. Reference: bisection.md 3.2, item 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.ledger import Ledger
from mccprobe.search.model import FailureRate

ALREADY_BAD_SHARE = 0.1  # prior of "bad already at the good end": rare, but real (ungated passes)
INTERVAL = 0.95  # of the failure rate
UNREACHABLE = 1 << 20  # GOOD runs that nobody would make
MAX_CONFIRMATIONS = 200  # reruns of both sides together; more are never planned


def miss_ratio(bad_runs: int, good_runs: int) -> float:
    """(n+1)! m! / (n+m+1)!: how likely a bad object is GOOD m times, after n BAD runs out of n."""
    return 1.0 / math.comb(bad_runs + good_runs + 1, good_runs)


def worst_case_miss(bad_runs: int, good_runs: int) -> float:
    """Largest p^n (1-p)^m over all p: bound for any failure rate, 1.0 if either count is 0."""
    return math.exp(_log_best(bad_runs, good_runs))


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


def later_bad_runs(ledger: Ledger) -> int:
    """n: BAD runs of all objects without the very first."""
    return max(0, ledger.bad_runs() - 1)


def gather(ledger: Ledger, low: int, high: int) -> Evidence:
    """Evidence from the ledger for a first bad limit in (low, high], `high` known to be bad.

    GOOD runs of an object count at its highest limit below `high`: a first bad limit at or below
    that one makes them lucky. An object that was BAD once is bad, and so, while the verdicts are
    monotone, is one that only occurs above `high`: their GOOD runs were lucky in any case. Limits
    without a verdict are candidates like those not built: of the next limit above that has one.
    """
    limits = [
        limit
        for limit in ledger.built
        if low <= limit <= high and ledger.verdict_at(limit) is not Verdict.UNRESOLVED
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
    """1 - risk (3) of the last segment, against all others; 0.0 if that is worse than nothing."""
    *others, last = segments
    own = math.log(last.mass) + _log_mixture(last.n, last.lucky)
    risk = math.fsum(math.exp(min(0.0, math.log(s.mass) + _log_best(s.n, s.lucky) - own)) for s in others)
    return max(0.0, 1.0 - risk)


def _log_mixture(n: int, m: int) -> float:
    """log B(n+1, m+1): n BAD and m GOOD runs of bad objects, averaged over p."""
    return math.lgamma(n + 1) + math.lgamma(m + 1) - math.lgamma(n + m + 2)


def _log_best(n: int, m: int) -> float:
    """log of the same at the p that makes it most likely, n / (n+m)."""
    value = 0.0
    if n:
        value += n * math.log(n / (n + m))
    if m:
        value += m * math.log(m / (n + m))
    return value


@dataclass(frozen=True)
class EdgeEvidence:
    """What an edge (good, bad] stands on before it is confirmed.

    monotone: None if the evidence shows that verdicts are not monotone; then only the runs of the
    two sides count: n = all_bad_runs, m = good_side_runs.
    sure_bad_runs: BAD runs of the bad end, made before the search chose anything.
    """

    good: int
    bad: int
    monotone: Evidence | None
    later_bad_runs: int
    good_side_runs: int
    sure_bad_runs: int

    def confidence(self, more_bad: int, more_good: int) -> float:
        """Confidence after that many confirmations of each side, all of which agree."""
        worst = worst_case_miss(self.sure_bad_runs + more_bad, more_good)
        return min(self._against_others(more_bad, more_good), 1.0 - worst)

    def _against_others(self, more_bad: int, more_good: int) -> float:
        if self.monotone is None:
            return 1.0 / (1.0 + miss_ratio(self.later_bad_runs + more_bad, self.good_side_runs + more_good))
        knots = tuple(
            Knot(k.limit, k.key, k.good_runs + (more_good if k.limit == self.good else 0))
            for k in self.monotone.knots
        )
        evidence = Evidence(
            knots, self.monotone.bad_runs + more_bad, self.monotone.false_good, self.monotone.prior_span
        )
        return proven(posterior(evidence))

    def plan(self, wanted: float) -> tuple[int, int]:
        """Fewest confirmations (bad side, good side), at least one of each, that reach `wanted`.

        With two runs of the bad end and 0.99 these are 6 at least: (2, 4) or (3, 3). Gives the best that
        MAX_CONFIRMATIONS allows if `wanted` is out of reach.
        """
        best = (0.0, 1, 1)
        for reruns in range(2, MAX_CONFIRMATIONS + 1):
            # the bound of (4) first: it is cheap and refuses most splits
            splits = [
                (bad, reruns - bad)
                for bad in range(1, reruns)
                if worst_case_miss(self.sure_bad_runs + bad, reruns - bad) <= 1.0 - wanted
            ]
            for bad, good in splits:
                best = max(best, (self.confidence(bad, good), bad, good))
            if best[0] >= wanted:
                break
        return best[1], best[2]


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
            return _log_best(n, rival.lucky + lucky + good) <= owed

        high = 1
        while not enough(high) and high < UNREACHABLE:
            high *= 2
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return k + lucky + high

    return min(map(runs, (1, 2, 4, 8))) < runs(0)


# --- the failure rate -------------------------------------------------------------------------


def failure_rate(bad: int, runs: int) -> FailureRate:
    """Estimate `bad / runs` with the equal-tailed Bayesian 95 % interval under a uniform prior."""
    tail = (1.0 - INTERVAL) / 2.0
    low, high = (_beta_quantile(bad, runs, q) for q in (tail, 1.0 - tail))
    return FailureRate(bad / runs if runs else 0.0, low, high, bad, runs)


def _beta_cdf(x: float, bad: int, runs: int) -> float:
    """P(p <= x) after `bad` of `runs`: a Beta(bad+1, runs-bad+1), as the sum of a binomial tail."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    n = runs + 1
    logs = (
        math.log(math.comb(n, k)) + k * math.log(x) + (n - k) * math.log1p(-x) for k in range(bad + 1, n + 1)
    )
    return math.fsum(math.exp(value) for value in logs)


def _beta_quantile(bad: int, runs: int, q: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(50):  # 2^-50 is finer than any print
        middle = (low + high) / 2.0
        low, high = (middle, high) if _beta_cdf(middle, bad, runs) < q else (low, middle)
    return (low + high) / 2.0


def unseen_rate(runs: int) -> float:
    """The failure rate that `runs` GOOD runs in a row would miss one time in 20 (with INTERVAL 95 %)."""
    return float(1.0 - (1.0 - INTERVAL) ** (1.0 / runs))
