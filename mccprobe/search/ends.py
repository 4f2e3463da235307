"""Both ends first: is there a difference to search for, and can the check tell it?

Same verdict at both ends is a fact to report, not a search. The good end is run as often as the bad
one: a check that sometimes fails a good program would send every search astray.
"""

from __future__ import annotations

from dataclasses import dataclass

from mccprobe.oracle.verdict import Unbuildable, Verdict
from mccprobe.search.confidence import unseen_rate
from mccprobe.search.ledger import Stop, TrialLedger
from mccprobe.search.model import Settings
from mccprobe.search.ordered import lowest, narrow, speculate
from mccprobe.search.trial import Purpose


class NoDifference(Stop):
    """Raised when the bad end is GOOD every time."""


class WrongAtZero(Stop):
    """Raised when limit 0 is BAD every time."""


class OracleUnusable(Stop):
    """Raised when the verdicts of an end cannot be relied on."""


class Undecided(Stop):
    """Raised when limits without a verdict leave a range; low is None where no limit is GOOD."""

    def __init__(self, reason: str, low: int | None, high: int) -> None:
        super().__init__(reason)
        self.low = low
        self.high = high


@dataclass(frozen=True)
class Ends:
    """The range to search: `good` is GOOD and the lowest such limit found, `bad` was BAD at least once.

    flaky: the bad end was GOOD as well. notes: what a reader must know of the ends.
    """

    good: int
    bad: int
    flaky: bool
    notes: tuple[str, ...]


def check_ends(ledger: TrialLedger, settings: Settings) -> Ends:
    """Run both ends `endpoint_repeats` times each; less for an object that is known or seen to be mixed.

    Raises NoDifference, WrongAtZero, OracleUnusable or Undecided where there is nothing to search.
    If limit 0 has no verdict, finds the lowest limit that is GOOD: at most 2 ceil(log2 P) + 1 builds
    for limits that give no object, and as many runs for objects that give no verdict.
    """
    total = ledger.total
    ledger.prefetch([total, 0, *speculate(0, total, (), settings.width)])
    key = ledger.object_at(total)
    if isinstance(key, Unbuildable):
        ledger.probe(total, Purpose.BAD_END)
        raise OracleUnusable(f"the bad end (limit {total}) gives no object: {key.reason}")
    verdict = _repeat(ledger, total, Purpose.BAD_END, settings.endpoint_repeats)
    if verdict is Verdict.UNRESOLVED:
        reason = ledger.log[-1].outcome.reason or "no reason given"
        raise OracleUnusable(f"the bad end (limit {total}) never gave a verdict: {reason}")
    tally = ledger.tally(key)
    if verdict is Verdict.GOOD:
        raise NoDifference(
            f"the bad end (limit {total}) is GOOD in {tally.good} of {tally.good} runs; "
            f"a fault seen in fewer than {unseen_rate(tally.good):.0%} of the runs can hide from so few"
        )
    good, notes = _find_good_end(ledger, settings)
    if ledger.require_object(good) == key:
        raise _same_object(total, flaky=tally.mixed)
    if tally.mixed:
        notes += (f"the check is flaky: the bad end (limit {total}) is BAD and GOOD",)
    if tally.unresolved:
        notes += (f"the bad end (limit {total}) gave no verdict in {tally.unresolved} of {tally.runs} runs",)
    return Ends(good, total, tally.mixed, notes)


def _repeat(ledger: TrialLedger, limit: int, purpose: Purpose, times: int) -> Verdict:
    """Run an end until it was run `times` times in all, or is known to be mixed. A known verdict is one
    run; a verdict outweighs runs without one."""
    tally = ledger.tally(ledger.require_object(limit))
    if tally.runs >= times or tally.mixed:
        return ledger.probe(limit, purpose)
    while tally.runs < times and not tally.mixed:
        ledger.rerun(limit, purpose)
    return tally.verdict or Verdict.UNRESOLVED


def _same_object(total: int, *, flaky: bool) -> Stop:
    """Both ends are one object, and it was BAD."""
    where = f"limits 0 and {total} give the same object" if total else "no pass can be switched off"
    if flaky:
        return OracleUnusable(
            f"{where}, and it is BAD and GOOD: wrong without any of the passes and a flaky check, or a "
            "check that fails good programs"
        )
    return WrongAtZero(f"{where}, and it is BAD")


def good_end_fails(limit: int, bad: int, runs: int) -> OracleUnusable:
    """The finding that ends every search: the side that must never fail does."""
    return OracleUnusable(
        f"the good end (limit {limit}) is BAD in {bad} of {runs} runs: wrong already there with a flaky "
        "check, or a check that fails good programs"
    )


def _find_good_end(ledger: TrialLedger, settings: Settings) -> tuple[int, tuple[str, ...]]:
    """Limit 0, or the lowest limit found that is GOOD in its stead, run `endpoint_repeats` times."""
    limit = first = _lowest_built(ledger)
    if limit == 0 and ledger.require_object(0) == ledger.require_object(ledger.total):
        return 0, ()  # the caller knows what that means
    verdict = _repeat(ledger, limit, Purpose.GOOD_END, settings.endpoint_repeats)
    if verdict is Verdict.UNRESOLVED:
        limit = _lowest_with_verdict(ledger, limit)
        verdict = ledger.tally(ledger.require_object(limit)).verdict or Verdict.UNRESOLVED
    if verdict is Verdict.BAD and limit > 0 and not ledger.tally(ledger.require_object(limit)).mixed:
        # the gallop may have jumped over a limit that is GOOD; only then is every limit below asked
        bracket = narrow(ledger, -1, limit, Purpose.GOOD_END, low_verdict=Verdict.GOOD, width=settings.width)
        if bracket.low < 0:
            reason = f"no limit is GOOD: {bracket.high} is BAD, none below gives a verdict"
            raise Undecided(reason, None, bracket.high)
        limit = bracket.low
    if limit != first:
        _repeat(ledger, limit, Purpose.GOOD_END, settings.endpoint_repeats)
    tally = ledger.tally(ledger.require_object(limit))
    if tally.mixed:
        raise good_end_fails(limit, tally.bad, tally.runs)
    if tally.bad:
        raise WrongAtZero(f"limit {limit} is BAD in {tally.bad} of {tally.runs} runs")
    if limit == 0:
        return limit, ()
    why = next(trial.outcome.reason for trial in ledger.log if trial.limit == 0) or "no reason given"
    told = f"limit 0 gives no verdict ({why}); the good end is limit {limit}, the lowest found that is GOOD"
    return limit, (told,)


def _lowest_built(ledger: TrialLedger) -> int:
    """The lowest limit found that gives an object; the bad end does. Runs nothing."""

    def builds(limit: int) -> bool:
        if not isinstance(ledger.object_at(limit), Unbuildable):
            return True
        ledger.probe(limit, Purpose.GOOD_END)  # logs why not
        return False

    if builds(0):
        return 0
    return lowest(0, ledger.total, builds) or ledger.total


def _lowest_with_verdict(ledger: TrialLedger, start: int) -> int:
    """The lowest limit found above `start` that is GOOD or BAD; the bad end is BAD."""

    def has_verdict(limit: int) -> bool:
        return ledger.probe(limit, Purpose.GOOD_END) is not Verdict.UNRESOLVED

    return lowest(start, ledger.total, has_verdict) or ledger.total
