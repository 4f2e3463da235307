"""Search with a check that shows the fault only in some runs: one-sided Bayesian search.

A BAD run is certain, so it cuts the range; a GOOD run only moves probability towards later limits.
Each step asks the limit with the greatest expected information on the first bad limit (for small p
that lies later than the median), in closed form over both unknowns, the first bad limit and p
(see posterior.py for the prior and confidence.py for the model). The search ends when one pair of
neighbouring limits holds the wanted probability.

Law: with the model right, an edge is wrong with probability at most 1 - confidence, whatever p is
(posterior.py); benchmarks/flaky_confidence.py measures it for each p. A BAD run of the good end
ends the search: that side must never fail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mccprobe.oracle.verdict import Unbuildable, Verdict
from mccprobe.search.confidence import failure_rate
from mccprobe.search.ends import Undecided, good_end_fails
from mccprobe.search.ledger import TrialLedger
from mccprobe.search.model import FailureRate
from mccprobe.search.posterior import Segment, gather, posterior, proven, worth_learning_rate
from mccprobe.search.trial import Purpose

ESTIMATE_RUNS = 20  # of the bad end, unless ESTIMATE_BADS come first (bisection.md 3.2, item 6)
ESTIMATE_BADS = 5
RUN_LIMIT = 2000  # oracle runs of one flaky search where the user set no limit: enough down to p = 0.02
LIKELY = 0.5  # posterior from which a search for the edge becomes a proof of it
UNRESOLVED_RUNS = 3  # of an object that gave nothing else; then it counts as one without a verdict
LEAST_INFORMATION = 1e-12  # nats; below that a probe says nothing


@dataclass(frozen=True)
class FlakyEdge:
    """Neighbouring limits that hold the wanted probability."""

    good: int
    bad: int
    unresolved: tuple[int, ...]
    confidence: float


class FlakySearch:
    """State of one search in (good end, bad end]; everything that was run before counts as evidence."""

    def __init__(self, ledger: TrialLedger, good_end: int, bad_end: int, confidence: float) -> None:
        self.ledger = ledger
        self.good_end = good_end
        self.bad_end = bad_end
        self.confidence = confidence
        self._dead = {  # limits without a verdict
            limit for limit in ledger.objects if ledger.verdict_at(limit) is Verdict.UNRESOLVED
        }
        if ledger.max_runs is None:
            ledger.max_runs = ledger.runs + RUN_LIMIT

    def run(self) -> FlakyEdge:
        """Estimate p, repeat the good end as often, then search.

        Raises BudgetReached, OracleUnusable (the good end fails), Undecided (no probe can tell more).
        """
        self._estimate_rate()
        while True:
            segments = self.segments()
            edge = self._edge(segments)
            if edge is not None and edge.confidence >= self.confidence:
                return edge
            limit = self._next_probe(segments)
            if limit is None:
                raise Undecided("the limits that are left give no verdict", self.good_end, self.lowest_bad())
            self._ask(limit)

    # --- what is known ---------------------------------------------------------------------------

    def lowest_bad(self) -> int:
        """The lowest limit, above the good end, whose object was BAD at least once."""
        return min(
            limit
            for limit in self.ledger.built
            if limit > self.good_end and self.ledger.verdict_at(limit) is Verdict.BAD
        )

    def segments(self) -> list[Segment]:
        """The posterior; limits without a verdict are candidates of the limit above them."""
        return posterior(gather(self.ledger, self.good_end, self.lowest_bad()))

    def candidate(self) -> Segment:
        """The most probable segment so far; of equals the highest."""
        return max(self.segments(), key=lambda segment: (segment.probability, segment.high))

    def rate(self, bad: int) -> FailureRate:
        """Failure rate from all runs of objects that are bad if the first bad limit is `bad`."""
        bads = goods = 0
        for key, tally in self.ledger.tallies.items():
            if tally.bad or any(limit >= bad for limit in self.ledger.limits_of(key)):
                bads += tally.bad
                goods += tally.good
        return failure_rate(bads, bads + goods)

    def _edge(self, segments: Sequence[Segment]) -> FlakyEdge | None:
        """The top segment as an edge, if its ends are neighbours and its low side was GOOD at least once."""
        top = segments[-1]
        between = range(top.low + 1, top.high)
        if top.low == top.high or top.high != self.lowest_bad() or any(u not in self._dead for u in between):
            return None
        if not self.ledger.tally(self.ledger.require_object(top.low)).good:
            return None
        return FlakyEdge(top.low, top.high, tuple(between), proven(segments))

    # --- questions -------------------------------------------------------------------------------

    def _estimate_rate(self) -> None:
        good, bad = (self.ledger.require_object(end) for end in (self.good_end, self.bad_end))
        while self._known_bad_runs() < ESTIMATE_RUNS and self.ledger.bad_runs() < ESTIMATE_BADS:
            self.ledger.rerun(self.bad_end, Purpose.ESTIMATE_RATE)
        # by luck a wrong good end is GOOD as often as a wrong bad end is
        while self.ledger.tally(good).runs < self.ledger.tally(bad).runs:
            self._rerun(self.good_end, Purpose.GOOD_END)

    def _known_bad_runs(self) -> int:
        return sum(tally.runs for tally in self.ledger.tallies.values() if tally.bad)

    def _rerun(self, limit: int, purpose: Purpose) -> Verdict:
        verdict = self.ledger.rerun(limit, purpose)
        key = self.ledger.require_object(self.good_end)
        tally = self.ledger.tally(key)
        if tally.bad:
            raise good_end_fails(self.good_end, tally.bad, tally.runs)
        return verdict

    def _ask(self, limit: int) -> None:
        """Build the limit; run its object unless that is known to be a neighbour's."""
        fresh = limit not in self.ledger.objects
        self.ledger.prefetch([limit, limit - 1, limit + 1])
        key = self.ledger.object_at(limit)
        if isinstance(key, Unbuildable):
            self.ledger.probe(limit, Purpose.FLAKY_SEARCH)
            self._dead.add(limit)
            return
        tally = self.ledger.tally(key)
        if fresh and tally.runs:
            # an object met before says where the change is not, without a run
            self.ledger.probe(limit, Purpose.FLAKY_SEARCH)
            if tally.verdict is Verdict.UNRESOLVED:
                self._dead.add(limit)
            return
        verdict = self._rerun(limit, Purpose.FLAKY_SEARCH)
        if verdict is Verdict.UNRESOLVED and tally.unresolved >= UNRESOLVED_RUNS and not tally.good:
            self._dead.update(self.ledger.limits_of(key))

    def _next_probe(self, segments: Sequence[Segment]) -> int | None:
        """The most telling probe; once the edge is likely, what proves it soonest: a run of its good
        side, which speaks against every other candidate, or of its bad side, where p is known too
        badly for the good side to prove anything soon."""
        top = segments[-1]
        if len(segments) < 2 or top.probability < LIKELY or self._edge(segments) is None:
            return self._best_probe(segments)
        rival = max(segments[:-1], key=lambda segment: segment.probability)
        return top.high if worth_learning_rate(top, rival, self.confidence) else top.low

    def _best_probe(self, segments: Sequence[Segment]) -> int | None:
        """The limit whose next run is expected to tell most about the first bad limit.

        For a probe at t, with A(t) the probability of BAD and h the binary entropy, the information
        is h(A) - sum over F <= t of P(F) h(rate of F). Within a segment both terms grow linearly with
        the share x of it below t, so the maximum has A = 1 / (1 + exp(h(rate) / rate)).
        """
        best: tuple[float, int] | None = None
        shown = noise = 0.0  # sums over the segments below
        for segment in segments:
            rate, entropy = segment.rate, _entropy(segment.rate)
            bad_already = segment is segments[-1] and segment.low < segment.high  # its top limit
            options = [] if bad_already else [(1.0, segment.high)]
            wanted = 1.0 / (1.0 + math.exp(min(entropy / rate, 700.0)))
            share = (wanted - shown) / (segment.probability * rate) if segment.probability else 0.0
            inner = self._inside(segment, share)
            if inner is not None:
                options.append(((inner - segment.low) / (segment.high - segment.low), inner))
            for part, limit in options:
                mass = part * segment.probability
                told = _entropy(shown + mass * rate) - noise - mass * entropy
                if best is None or told > best[0]:
                    best = (told, limit)
            shown += segment.probability * rate
            noise += segment.probability * entropy
        return best[1] if best is not None and best[0] > LEAST_INFORMATION else None

    def _inside(self, segment: Segment, share: float) -> int | None:
        """The limit nearest to that share of the segment, strictly inside it and not without verdict."""
        size = segment.high - segment.low
        if size < 2:
            return None
        aim = segment.low + min(max(round(share * size), 1), size - 1)
        for distance in range(size):
            for limit in (aim + distance, aim - distance):
                if segment.low < limit < segment.high and limit not in self._dead:
                    return limit
        return None


def _entropy(p: float) -> float:
    """Binary entropy in nats; 0 at both ends."""
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -p * math.log(p) - (1.0 - p) * math.log1p(-p)
