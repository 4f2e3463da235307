"""Which parts of a change make the result wrong: a search in mixes of a good and a bad state.

Parts are numbers 0..count-1. A mix takes the parts of a set from the bad state, all others from the
good one. Nothing is named without a confirmation: `both sides` (good with the set is BAD, bad
without it is GOOD) or `all together` (several parts, each enough alone, and bad without all of them
is GOOD). The halving is that of Go's bisect tool (golang.org/x/tools/cmd/bisect); what enumerates
many parts is generalised binary splitting (Hwang 1972): groups as large as half of them may be clean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mccprobe.oracle.verdict import Verdict

Parts = frozenset[int]
MAX_TESTS = 700  # bounds the enumeration: 256 of 321 parts took 575 by plain halving (measured, clang 14)
AHEAD = 4  # single parts announced before they are asked
_CLEAN_SHARE = 0.69  # ln 2: a group of 0.69 / density parts is clean half of the time
_PROBED = 5  # so far around a stop that cannot be judged others are tried


class MixStatus(StrEnum):
    """How a search in mixes ended. Only the first two name anything."""

    BOTH_SIDES = "both sides"
    ALL_TOGETHER = "all together"
    NOT_CONFIRMED = "not confirmed"
    BUDGET = "budget"


@dataclass(frozen=True)
class MixResult:
    """sets: what was found; for BOTH_SIDES one set, for ALL_TOGETHER sets of one part each.

    tests: mixes judged; unresolved: those among them that could not be built or judged.
    """

    status: MixStatus
    sets: tuple[Parts, ...]
    tests: int
    unresolved: int
    reason: str = ""


class _Spent(Exception):
    """The tests allowed for this step are used up."""


class _Tester:
    """Memo, count and limit around the test."""

    def __init__(self, test: Callable[[Parts], Verdict], ahead: Callable[[Sequence[Parts]], None] | None) -> None:
        self._test = test
        self._ahead = ahead
        self._seen: dict[Parts, Verdict] = {}
        self.limit = MAX_TESTS

    @property
    def tests(self) -> int:
        return len(self._seen)

    @property
    def unresolved(self) -> int:
        return sum(verdict is Verdict.UNRESOLVED for verdict in self._seen.values())

    def verdict(self, parts: Parts) -> Verdict:
        if parts not in self._seen:
            if self.tests >= self.limit:
                raise _Spent
            self._seen[parts] = self._test(parts)
        return self._seen[parts]

    def bad(self, parts: Parts) -> bool:
        return self.verdict(parts) is Verdict.BAD

    def good(self, parts: Parts) -> bool:
        return self.verdict(parts) is Verdict.GOOD

    def announce(self, mixes: Sequence[Parts]) -> None:
        if self._ahead is not None:
            self._ahead([parts for parts in mixes if parts not in self._seen])


def find_in_mixes(
    count: int,
    test: Callable[[Parts], Verdict],
    *,
    ahead: Callable[[Sequence[Parts]], None] | None = None,
    max_tests: int = MAX_TESTS,
) -> MixResult:
    """Find what is guilty; the empty mix must be GOOD and the full one BAD.

    test may raise to end the search; ahead is told which mixes are asked next (a hint).
    """
    everything = frozenset(range(count))
    tester = _Tester(test, ahead)
    tester.limit = max_tests

    def result(status: MixStatus, sets: Sequence[Parts], reason: str = "") -> MixResult:
        return MixResult(status, tuple(sets), tester.tests, tester.unresolved, reason)

    if not tester.good(frozenset()) or not tester.bad(everything):
        return result(MixStatus.NOT_CONFIRMED, (), "the empty mix is not GOOD or the full mix is not BAD")
    found: list[Parts] = []
    try:
        first = _minimal(tester.bad, frozenset(), sorted(everything))
        found = [first]
        if tester.good(everything - first):
            return result(MixStatus.BOTH_SIDES, found)
        other = _from_the_bad_side(tester, everything, first)
        if other is not None:
            return result(MixStatus.BOTH_SIDES, [other])
        return _enumerate(tester, everything, found, result)
    except _Spent:
        text = f"the search was ended after {tester.tests} mixes, with {len(found)} sets found that are each enough"
        return result(MixStatus.BUDGET, found, text)


def _minimal(wanted: Callable[[Parts], bool], base: Parts, parts: Sequence[int]) -> Parts:
    """A minimal set S of parts with wanted(base | S); wanted(base | parts) holds, wanted(base) does not."""
    if len(parts) == 1:
        return frozenset(parts)
    half = len(parts) // 2
    left, right = parts[:half], parts[half:]
    for side in (left, right):
        if wanted(base | frozenset(side)):
            return _minimal(wanted, base, side)
    # only together
    one = _minimal(wanted, base | frozenset(right), left)
    return one | _minimal(wanted, base | one, right)


def _from_the_bad_side(tester: _Tester, everything: Parts, first: Parts) -> Parts | None:
    """The smallest set without which the bad state is GOOD, if it is also wrong alone.

    Half of a transformation can be wrong without being the fault; the fault itself is what the bad
    state cannot be right with. None where several parts are each enough: they are enumerated.
    """
    rest = sorted(everything - first)
    half = len(rest) // 2
    if all(tester.bad(frozenset(side)) for side in (rest[:half], rest[half:]) if side):
        return None
    allowed = tester.limit
    tester.limit = min(allowed, tester.tests + 4 * len(everything).bit_length() + 8)  # a single one needs 2 log2 n
    try:
        found = _minimal(lambda parts: tester.good(everything - parts), frozenset(), sorted(everything))
        # several that are each enough are no single finding
        enough = len(found) > 1 and any(tester.bad(found - {part}) for part in found)
        return found if tester.bad(found) and not enough else None
    except _Spent:
        return None
    finally:
        tester.limit = allowed


def _enumerate(
    tester: _Tester,
    everything: Parts,
    found: list[Parts],
    result: Callable[[MixStatus, Sequence[Parts], str], MixResult],
) -> MixResult:
    """Every part that is enough alone, and whether the bad state without all of them is GOOD."""
    first = found[0]
    if len(first) > 1:
        text = f"{len(first)} parts are only wrong together, and without them the bad state is still wrong"
        return result(MixStatus.NOT_CONFIRMED, (), text)
    left = sorted(everything - first)
    classified = len(everything) - len(left)
    while left:
        density = (len(found) + 1) / (classified + 2)
        size = max(1, min(len(left), int(_CLEAN_SHARE / density)))
        if size == 1:
            tester.announce([frozenset({part}) for part in left[:AHEAD]])
        group = left[:size]
        if tester.bad(frozenset(group)):
            while len(group) > 1:
                half = group[: len(group) // 2]
                if tester.bad(frozenset(half)):
                    group = half
                    continue
                rest = group[len(half) :]
                if not tester.bad(frozenset(rest)):
                    # wrong only together: no part of this group is enough alone, as far as it goes
                    return result(MixStatus.NOT_CONFIRMED, (), f"{len(group)} further parts are only wrong together")
                left = left[len(half) :]
                classified += len(half)
                group = rest
            found.append(frozenset(group))
        left = left[len(group) :]
        classified += len(group)
    guilty: Parts = frozenset().union(*found)
    verdict = tester.verdict(everything - guilty)
    if verdict is Verdict.GOOD:
        return result(MixStatus.ALL_TOGETHER, found, "")
    text = f"{len(found)} parts are each enough, but without all of them the result is still {verdict}"
    return result(MixStatus.NOT_CONFIRMED, (), text)


@dataclass(frozen=True)
class Border:
    """Two neighbouring stops of a path, GOOD and BAD; bad is None where no such pair was found."""

    good: int
    bad: int | None
    tests: int


def find_border(length: int, test: Callable[[int], Verdict]) -> Border:
    """On a path with stops 0 (GOOD) to `length` (BAD), a stop that is GOOD with the next one BAD."""
    low, high, tests = 0, length, 0
    while high - low > 1:
        middle = (low + high) // 2
        nearby = (middle + step for away in range(_PROBED) for step in {away, -away} if low < middle + step < high)
        for stop in nearby:
            tests += 1
            verdict = test(stop)
            if verdict is not Verdict.UNRESOLVED:
                break
        else:
            return Border(low, None, tests)
        if verdict is Verdict.BAD:
            high = stop
        else:
            low = stop
    return Border(low, high, tests)
