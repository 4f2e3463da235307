"""How sure an edge is when the check may be flaky in one direction without having shown it.

Model: a good object never shows BAD; a bad object shows BAD with an unknown probability p, the same
for all bad objects. The edge N-1 GOOD, N BAD is wrong if the object of N-1 is in truth bad and was
lucky in each of its m runs.

1. With p uniform on (0, 1): n BAD runs out of n of bad objects make p a Beta(n+1, 1), and the mean of
   (1-p)^m under it, the probability that a bad object is GOOD m times in a row, is

       miss_ratio(n, m) = (n+1) B(n+1, m+1) = (n+1)! m! / (n+m+1)! = 1 / C(n+m+1, m).

   It is also the odds of "N-1 was lucky" against "N-1 is good" if both were equally likely before.

2. Those odds average over p and trust runs that the search itself chose. Without a prior on p, N or
   anything else: a wrong edge needs n BAD runs of bad objects (of the bad end and confirmations of N) and
   m GOOD confirmations of N-1, all of them made whatever the search saw. For every p that has at most
   the probability

       worst_case_miss(n, m) = max over p of p^n (1-p)^m = n^n m^m / (n+m)^(n+m),

   however many objects were looked at before, and whether or not the verdicts are monotone.

Law: an edge is stated with the smaller of 1 / (1 + (1)) and 1 - (2). So, given that the fault was seen
at all, at most 1 - confidence of the searches state a wrong edge, at any p. n leaves out the very first
BAD run: nothing is searched for without one, so it is no evidence.
What stays assumed: p is the same for the objects compared, and runs are independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mccprobe.search.ledger import TrialLedger
from mccprobe.search.model import FailureRate

INTERVAL = 0.95  # of the failure rate
MAX_CONFIRMATIONS = 200  # reruns of both sides together; more are never planned


def miss_ratio(bad_runs: int, good_runs: int) -> float:
    """(1): how likely a bad object is GOOD `good_runs` times, after `bad_runs` BAD runs and no other."""
    return 1.0 / math.comb(bad_runs + good_runs + 1, good_runs)


def worst_case_miss(bad_runs: int, good_runs: int) -> float:
    """(2): bound for any failure rate; 1.0 if either count is 0."""
    return math.exp(log_best(bad_runs, good_runs))


def log_best(n: int, m: int) -> float:
    """log of p^n (1-p)^m at the p that makes it most likely, n / (n+m)."""
    value = 0.0
    if n:
        value += n * math.log(n / (n + m))
    if m:
        value += m * math.log(m / (n + m))
    return value


def later_bad_runs(ledger: TrialLedger) -> int:
    """n: BAD runs of all objects without the very first."""
    return max(0, ledger.bad_runs() - 1)


@dataclass(frozen=True)
class EdgeEvidence:
    """What an edge stands on before it is confirmed.

    bad_runs: of all objects, after the first. good_side_runs: GOOD runs of the good side.
    sure_bad_runs: BAD runs of the bad end, after the first; the search did not choose to make them.
    """

    bad_runs: int
    good_side_runs: int
    sure_bad_runs: int

    def confidence(self, more_bad: int, more_good: int) -> float:
        """Confidence after that many confirmations of each side, all of which agree."""
        odds = miss_ratio(self.bad_runs + more_bad, self.good_side_runs + more_good)
        return min(1.0 / (1.0 + odds), 1.0 - worst_case_miss(self.sure_bad_runs + more_bad, more_good))

    def plan(self, wanted: float) -> tuple[int, int]:
        """Fewest confirmations (bad side, good side), at least one of each, that reach `wanted`.

        With two runs of the bad end and 0.99: three of each, 6 in all; with four runs of it: 4 in all.
        The best that MAX_CONFIRMATIONS allow if `wanted` is out of reach.
        """
        best = (0.0, 1, 1)
        for reruns in range(2, MAX_CONFIRMATIONS + 1):
            for bad in range(1, reruns):
                best = max(best, (self.confidence(bad, reruns - bad), bad, reruns - bad))
            if best[0] >= wanted:
                break
        return best[1], best[2]


def failure_rate(bad: int, runs: int) -> FailureRate:
    """Estimate `bad / runs` with the equal-tailed Bayesian 95 % interval under a uniform prior."""
    tail = (1.0 - INTERVAL) / 2.0
    low, high = (_beta_quantile(bad, runs, q) for q in (tail, 1.0 - tail))
    return FailureRate(bad / runs if runs else 0.0, low, high, bad, runs)


def _beta_cdf(x: float, bad: int, runs: int) -> float:
    """P(p <= x) after `bad` of `runs`: a Beta(bad+1, runs-bad+1), as a binomial sum over its shorter side."""
    n = runs + 1
    upper = n - bad <= bad + 1
    terms = range(bad + 1, n + 1) if upper else range(bad + 1)
    whole, log_x, log_rest = math.lgamma(n + 1), math.log(x), math.log1p(-x)
    part = math.fsum(
        math.exp(whole - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * log_x + (n - k) * log_rest) for k in terms
    )
    return part if upper else 1.0 - part


def _beta_quantile(bad: int, runs: int, q: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(50):  # 2^-50 is finer than any print
        middle = (low + high) / 2.0
        low, high = (middle, high) if _beta_cdf(middle, bad, runs) < q else (low, middle)
    return (low + high) / 2.0


def unseen_rate(runs: int) -> float:
    """The failure rate that `runs` GOOD runs in a row would miss one time in 20 (with INTERVAL 95 %)."""
    return float(1.0 - (1.0 - INTERVAL) ** (1.0 / runs))
