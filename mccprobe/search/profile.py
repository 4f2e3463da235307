"""Verdict profile: every limit compiled, every distinct object tested once, every edge named."""

from __future__ import annotations

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.ledger import TrialLedger
from mccprobe.search.model import Settings
from mccprobe.search.ordered import Bracket, narrow
from mccprobe.search.trial import Purpose


def profile(ledger: TrialLedger, good_end: int, settings: Settings) -> list[Bracket]:
    """Every edge, ascending, GOOD to BAD and BAD to GOOD in turn; both ends are among the limits asked.

    With stride 1 these are exactly the edges of a linear scan, at one run for each distinct object.
    With stride s each edge between tested limits is narrowed by binary search; pairs of edges that lie
    between two tested limits stay unseen.
    """
    limits = sorted({*range(0, ledger.total, settings.profile_stride), good_end, ledger.total})
    ledger.prefetch(limits)
    edges: list[Bracket] = []
    before: tuple[int, Verdict] | None = None  # the last limit with a verdict
    for limit in limits:
        verdict = ledger.probe(limit, Purpose.PROFILE)
        if verdict is Verdict.UNRESOLVED:
            continue
        if before is not None and before[1] is not verdict:
            low, low_verdict = before
            edges.append(narrow(ledger, low, limit, Purpose.PROFILE, low_verdict=low_verdict, width=settings.width))
        before = (limit, verdict)
    return edges
