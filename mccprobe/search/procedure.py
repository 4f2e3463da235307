"""The search from both ends to a confirmed edge; the only module of the package that others need.

    check_ends -> narrow (or profile) -> spot_check -> confirm -> SearchResult(EDGE)
        |                                                 |
        +-- the bad end is BAD and GOOD ------------------+-- a confirmation contradicts
                                 FlakySearch -> SearchResult(EDGE)

Laws. An edge is a pair of limits that were GOOD and BAD with no verdict between them, in any table,
monotone or not. The same answers give the same questions: nothing depends on time or on a global
random state. No object runs twice except the repeats that are stated here.

Bound of the default search, in oracle runs, for a check that is not flaky:

    ceil(log2 P) + 2 endpoint_repeats + spot_checks + confirmations + U

U: limits found unresolved (with limit 0 unresolved, 2 ceil(log2 P) + 1 more). Confirmations: as
planned by EdgeEvidence.plan, 6 at 0.99 with two runs of each end; or 2 confirm_repeats. With
--profile: distinct objects + 2 endpoint_repeats + confirmations. Equal objects make all of them less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.checks import confirm, contradictions, spot_check
from mccprobe.search.ends import (
    Ends,
    NoDifference,
    OracleUnusable,
    Undecided,
    WrongAtZero,
    check_ends,
    good_end_fails,
)
from mccprobe.search.flaky import FlakySearch
from mccprobe.search.ledger import BudgetReached, Stop, TrialLedger
from mccprobe.search.model import (
    Edge,
    FailureRate,
    SearchResult,
    Settings,
    Status,
    Target,
)
from mccprobe.search.ordered import Bracket, Remaining, narrow
from mccprobe.search.profile import profile
from mccprobe.search.trial import Purpose, Trial

__all__ = [
    "Edge",
    "FailureRate",
    "Purpose",
    "SearchResult",
    "Settings",
    "Status",
    "Target",
    "Trial",
    "bisect",
]

_NOTHING_KNOWN: Mapping[str, Verdict] = {}
_LISTED = 8  # limits spelt out in a note; the rest is counted


def bisect(
    target: Target,
    settings: Settings,
    *,
    known: Mapping[str, Verdict] = _NOTHING_KNOWN,
    on_trial: Callable[[Trial], None] | None = None,
    remaining: Remaining | None = None,
    prefer: Callable[[], int | None] | None = None,
) -> SearchResult:
    """Find the pass execution that makes the program wrong.

    known: verdicts of objects that were tested before; each counts as one run of that object.
    on_trial: called with each trial as soon as it is known. remaining: called before each step of the
    binary search with its range and the probes left at most. prefer: called once, when both ends are known: a
    limit to ask early, such as the last one of the mid-end (above it compiles are cheaper).
    Exceptions of the target pass through; everything else that can go wrong is a status.
    """
    ledger = TrialLedger(target, known=known, max_runs=settings.max_runs, on_trial=on_trial)
    return _Search(ledger, settings, remaining, prefer).result()


class _Search:
    """One search, as far as it got: what is here when it stops is told in the result."""

    def __init__(
        self,
        ledger: TrialLedger,
        settings: Settings,
        remaining: Remaining | None,
        prefer: Callable[[], int | None] | None,
    ) -> None:
        self.ledger = ledger
        self.prefer = prefer
        self.settings = settings
        self.remaining = remaining
        self.ends: Ends | None = None
        self.brackets: list[Bracket] = []
        self.flaky: FlakySearch | None = None
        self.notes: list[str] = []

    def result(self) -> SearchResult:
        """Run the search; every way to stop becomes a status."""
        try:
            return self._run()
        except BudgetReached:
            self._note_budget()
            return self._answer(Status.BUDGET)
        except Undecided as stop:
            self.notes.append(stop.reason)
            return self._answer(Status.UNDECIDED, good=stop.low, bad=stop.high)
        except Stop as stop:
            self.notes.append(stop.reason)
            return self._answer(_STATUS_OF[type(stop)])

    def _run(self) -> SearchResult:
        ends = self.ends = check_ends(self.ledger, self.settings)
        self.notes += ends.notes
        if ends.flaky:
            return self._search_flaky(ends)
        if self.settings.profile:
            self.brackets = profile(self.ledger, ends.good, self.settings)
            # the profile may have brought a lower good end to light
            ends = self.ends = replace(ends, good=self._lowest_good())
        else:
            self.brackets = [self._narrow(ends)]
        edge = next(b for b in self.brackets if self.ledger.verdict_at(b.high) is Verdict.BAD)
        _refuse_whole_range(ends, edge)
        if not self.settings.profile:
            spot_check(self.ledger, ends.good, edge, self.settings)
        return self._confirm(ends, edge)

    def _narrow(self, ends: Ends) -> Bracket:
        low, high = self._range(ends)
        return narrow(
            self.ledger,
            low,
            high,
            Purpose.SEARCH,
            low_verdict=Verdict.GOOD,
            width=self.settings.width,
            remaining=self.remaining,
            prefer=self.prefer() if self.prefer is not None else None,
        )

    def _lowest_good(self) -> int:
        return next(limit for limit in self.ledger.built if self.ledger.verdict_at(limit) is Verdict.GOOD)

    def _confirm(self, ends: Ends, edge: Bracket) -> SearchResult:
        confirmation = confirm(self.ledger, edge, self.settings)
        if confirmation.contradicted is not None:
            limit = confirmation.contradicted
            self.notes.append(f"the check is flaky: a rerun of limit {limit} contradicts the first run")
            return self._search_flaky(ends)
        if not confirmation.complete:
            raise Undecided(
                f"the edge {edge.low}/{edge.high} could not be confirmed: its runs gave no verdict",
                edge.low,
                edge.high,
            )
        if confirmation.confidence < self.settings.confidence:
            self.notes.append(
                f"confidence {confirmation.confidence:.4f} after the confirmations that were allowed; "
                f"{self.settings.confidence:g} was wanted"
            )
        self._note_contradictions(ends, edge)
        self._note_unresolved()
        edges = tuple(self._edge(bracket) for bracket in self.brackets)
        return self._answer(Status.EDGE, good=edge.low, bad=edge.high, edges=edges, confidence=confirmation.confidence)

    def _search_flaky(self, ends: Ends) -> SearchResult:
        """Search again with a check that may miss the fault; a profile is not possible then."""
        good = self.ledger.tally(self.ledger.require_object(ends.good))
        if good.bad:
            raise good_end_fails(ends.good, good.bad, good.runs)
        if self.settings.profile:
            self.notes.append("no profile: with a flaky check one run of each object proves little")
        self.brackets = []
        self.flaky = FlakySearch(self.ledger, ends.good, ends.bad, self.settings.confidence)
        found = self.flaky.run()
        bracket = Bracket(found.good, found.bad, found.unresolved)
        _refuse_whole_range(ends, bracket)
        self.brackets = [bracket]
        self._note_unresolved()
        return self._answer(
            Status.EDGE,
            good=found.good,
            bad=found.bad,
            edges=(self._edge(self.brackets[0]),),
            confidence=found.confidence,
            failure_rate=self.flaky.rate(found.bad),
        )

    # --- the answer ------------------------------------------------------------------------------

    def _edge(self, bracket: Bracket) -> Edge:
        upwards = self.ledger.verdict_at(bracket.high) is Verdict.BAD
        before, after = (Verdict.GOOD, Verdict.BAD) if upwards else (Verdict.BAD, Verdict.GOOD)
        return Edge(bracket.high, before, after, bracket.unresolved)

    def _monotone(self) -> bool | None:
        """Known only if every limit was asked and every object that exists has been run."""
        ledger = self.ledger
        if self.flaky is not None or len(ledger.objects) <= ledger.total:
            return None
        verdicts = [ledger.verdict_at(limit) for limit in range(ledger.total + 1)]
        if None in verdicts:
            return None
        told = [verdict for verdict in verdicts if verdict is not Verdict.UNRESOLVED]
        return (Verdict.BAD, Verdict.GOOD) not in pairwise(told)

    def _note_contradictions(self, ends: Ends, edge: Bracket) -> None:
        found = contradictions(self.ledger, ends.good, edge)
        if not found or self.settings.profile:
            return
        listed = ", ".join(f"limit {limit} {self.ledger.verdict_at(limit)}" for limit in found)
        self.notes.append(
            f"verdicts are not monotone: {listed}, next to the edge at {edge.high}; that edge stands, but "
            "there are others: --profile names them all"
        )

    def _note_unresolved(self) -> None:
        for bracket in self.brackets:
            if bracket.unresolved:
                shown = ", ".join(map(str, bracket.unresolved[:_LISTED]))
                more = len(bracket.unresolved) - _LISTED
                shown += f" and {more} more" if more > 0 else ""
                self.notes.append(f"the edge lies between {bracket.low} and {bracket.high}: no verdict at {shown}")

    def _note_budget(self) -> None:
        """What is known when the budget ends; named a candidate, never a finding."""
        self.notes.append(f"stopped after {self.ledger.runs} oracle runs, the budget")
        if self.flaky is not None:
            top = self.flaky.candidate()
            rate = self.flaky.rate(self.flaky.lowest_bad())
            where = (
                f"limit {top.low} is bad already"
                if top.low == top.high
                else f"the first bad limit is in {top.low + 1}..{top.high}"
            )
            self.notes.append(
                f"best candidate, not a finding: {where}, probability {top.probability:.3f}; the check shows "
                f"the fault in {rate.bad} of {rate.runs} runs ({rate.low:.0%} to {rate.high:.0%})"
            )
        elif self.ends is not None:
            low, high = self._range(self.ends)
            self.notes.append(f"best candidate, not a finding: limit {low} is GOOD, limit {high} is BAD")

    def _range(self, ends: Ends) -> tuple[int, int]:
        """The edge if it was found, else the range that the trials so far leave, lowest BAD first."""
        if self.brackets:
            return self.brackets[0].low, self.brackets[0].high
        verdicts = [(limit, self.ledger.verdict_at(limit)) for limit in self.ledger.built]
        high = min(limit for limit, verdict in verdicts if verdict is Verdict.BAD and limit > ends.good)
        return max(limit for limit, verdict in verdicts if verdict is Verdict.GOOD and limit < high), high

    def _answer(
        self,
        status: Status,
        *,
        good: int | None = None,
        bad: int | None = None,
        edges: tuple[Edge, ...] = (),
        confidence: float = 0.0,
        failure_rate: FailureRate | None = None,
    ) -> SearchResult:
        ledger = self.ledger
        return SearchResult(
            status=status,
            good=good,
            bad=bad,
            edges=edges,
            monotone=self._monotone() if status is Status.EDGE else None,
            confidence=confidence,
            failure_rate=failure_rate,
            good_end=self.ends.good if self.ends is not None else None,
            runs=ledger.runs,
            objects_tested=ledger.objects_tested,
            limits_built=len(ledger.built),
            notes=tuple(self.notes),
            log=tuple(ledger.log),
            max_err_bad=ledger.max_err_bad,
        )


def _refuse_whole_range(ends: Ends, edge: Bracket) -> None:
    """Limits without a verdict all the way between the ends leave nothing that was found."""
    if (edge.low, edge.high) == (ends.good, ends.bad) and edge.unresolved:
        raise Undecided(f"no limit between {edge.low} and {edge.high} gives a verdict", edge.low, edge.high)


_STATUS_OF: Mapping[type[Stop], Status] = {
    NoDifference: Status.NO_DIFFERENCE,
    WrongAtZero: Status.WRONG_AT_ZERO,
    OracleUnusable: Status.ORACLE_UNUSABLE,
}
