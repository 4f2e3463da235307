"""Binary search over limits with three verdicts, and the prefetch tree that goes with it.

Unresolved limits are walked around: from the middle outwards in doubling steps, as git bisect does
with skipped commits, so that an island of U limits costs about 2 log2(U) builds, unless the answer
lies in it: then each of its limits is asked, because the answer names them.

Bound: `narrow` between limits P apart takes at most ceil(log2 P) + U oracle runs, U = limits found
unresolved. A probe of the middle halves the candidates; one beside it (towards a preferred limit) is made
only where both parts still fit the bound; any other follows a limit newly found unresolved.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.ledger import TrialLedger
from mccprobe.search.trial import Purpose

Remaining = Callable[[int, int, int], None]  # low, high, probes left at most (without unresolved limits)


@dataclass(frozen=True)
class Bracket:
    """Two limits with different verdicts; `unresolved` are all limits between them."""

    low: int
    high: int
    unresolved: tuple[int, ...]


class _Candidates:
    """Limits strictly between two limits, without those found unresolved; found by rank."""

    def __init__(self, low: int, high: int, unresolved: Sequence[int], prefer: int | None = None) -> None:
        self.low = low
        self.high = high
        self.prefer = prefer
        self._skipped = unresolved[bisect_right(unresolved, low) : bisect_left(unresolved, high)]

    def __len__(self) -> int:
        return max(0, self.high - self.low - 1 - len(self._skipped))

    def at(self, rank: int) -> int:
        """The candidate with that many candidates below it."""
        limit = self.low + 1 + rank
        for skipped in self._skipped:
            if skipped > limit:
                break
            limit += 1
        return limit

    def _first_rank(self) -> int:
        """The middle; or nearer to the preferred limit, as far as the parts stay within the bound."""
        count = len(self)
        if self.prefer is None or not self.low < self.prefer < self.high:
            return count // 2
        most = (1 << (count.bit_length() - 1)) - 1  # candidates that one step less can still search
        rank = self.prefer - self.low - 1 - bisect_left(self._skipped, self.prefer)
        return min(max(rank, count - 1 - most), most, count - 1)

    def middle(self) -> int:
        return self.at(self._first_rank())

    def outwards(self) -> Iterator[int]:
        """The first choice, then 1, 2, 4, 8... candidates above and below it."""
        count = len(self)
        middle = self._first_rank()
        yield self.at(middle)
        step = 1
        while step <= max(middle, count - 1 - middle):
            if middle + step < count:
                yield self.at(middle + step)
            if middle - step >= 0:
                yield self.at(middle - step)
            step *= 2


def speculate(low: int, high: int, unresolved: Sequence[int], width: int, prefer: int | None = None) -> list[int]:
    """Limits worth compiling now: the next probe, then its two possible successors, and so on by
    level until every one of `width` compile slots has work beyond the next probe."""
    wanted: list[int] = []
    ranges = deque([(low, high)])
    while ranges and len(wanted) < max(3, width + 1):
        below, above = ranges.popleft()
        candidates = _Candidates(below, above, unresolved, prefer)
        if not len(candidates):
            continue
        middle = candidates.middle()
        wanted.append(middle)
        ranges.extend([(below, middle), (middle, above)])
    return wanted


def narrow(
    ledger: TrialLedger,
    low: int,
    high: int,
    purpose: Purpose,
    *,
    low_verdict: Verdict,
    width: int,
    remaining: Remaining | None = None,
    prefer: int | None = None,
) -> Bracket:
    """Shrink (low, high) until no limit between them has a verdict.

    prefer: a limit to be asked early, as far as the bound allows.

    Invariant: `low` has `low_verdict`, `high` the opposite one. So the result is a true pair of
    neighbours in any table, monotone or not; in a monotone one it is the only pair.
    """
    unresolved = sorted(
        limit for limit in ledger.objects if low < limit < high and ledger.verdict_at(limit) is Verdict.UNRESOLVED
    )
    while candidates := _Candidates(low, high, unresolved, prefer):
        if remaining is not None:
            remaining(low, high, len(candidates).bit_length())
        ledger.prefetch(speculate(low, high, unresolved, width, prefer))
        for limit in candidates.outwards():
            verdict = ledger.probe(limit, purpose)
            if verdict is Verdict.UNRESOLVED:
                insort(unresolved, limit)
                continue
            if verdict is low_verdict:
                low = limit
            else:
                high = limit
            break
    return Bracket(low, high, tuple(range(low + 1, high)))


def lowest(start: int, stop: int, holds: Callable[[int], bool]) -> int | None:
    """The lowest limit in start < limit <= stop for which `holds`, if it holds from there on.

    Gallops up from `start` (1, 2, 4, 8... above it), then halves: 2 ceil(log2(stop - start)) + 1
    questions at most. Where `holds` is not monotone the answer holds, but may not be the lowest.
    None if it holds at none of the limits asked, `stop` among them.
    """
    fails, step = start, 1
    while fails < stop:
        limit = min(start + step, stop)
        if holds(limit):
            while limit - fails > 1:
                middle = (fails + limit) // 2
                if holds(middle):
                    limit = middle
                else:
                    fails = middle
            return limit
        fails, step = limit, step * 2
    return None
