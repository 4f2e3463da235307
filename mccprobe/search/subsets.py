"""Minimal failing sets of unordered items (flags, hunks, moves): which of them together make it BAD.

After Go's bisect (golang.org/x/tools/cmd/bisect): find one minimal set while the rest that it needs is kept on,
confirm it alone, take it away, go on until nothing BAD is left. Two things differ:

1. One set is found by prefixes: the shortest BAD prefix of the items ends in a member; that one is kept on, and
   the items before it are searched again. A set of k of n items costs k (log2 n + 1) tests, where halves cost
   about 1.5 k log2 n.
2. A set is not taken away as a whole but one member at a time (the tree of hitting sets, Reiter 1987). So sets
   that share a member are found too: of a monotone predicate all minimal sets. Each leaf of the tree is the test
   "everything but these", by which the sets are confirmed by removal.

UNRESOLVED is never taken for BAD nor for GOOD: a search goes on around it, and the result says that it is not
complete. Nothing is assumed of a predicate that is not monotone: each reported set was BAD by itself, and what is
said of its members was tested.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from mccprobe.base.errors import BudgetSpent
from mccprobe.oracle.verdict import Verdict

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True)
class MinimalSet(Generic[Item]):
    """Items, in the given order, that are BAD together.

    needed: for each, the verdict of the others alone. GOOD: it is needed; UNRESOLVED: not known (BAD never: the
    item is then left out). untested: members whose removal the budget did not allow to try.
    """

    items: tuple[Item, ...]
    needed: tuple[tuple[Item, Verdict], ...]
    untested: tuple[Item, ...] = ()


@dataclass(frozen=True)
class SubsetResult(Generic[Item]):
    """What a search found.

    none, everything: verdicts of no item and of all of them (None: not tested).
    removals: smallest removals from all items that were tried, with their verdicts (GOOD: nothing BAD is left).
    complete: no test was UNRESOLVED where it mattered and the budget sufficed; of a monotone predicate `sets`
    are then all minimal sets. monotone: False when a BAD set had a GOOD superset. tests: distinct sets tested.
    """

    sets: tuple[MinimalSet[Item], ...]
    none: Verdict | None
    everything: Verdict | None
    removals: tuple[tuple[tuple[Item, ...], Verdict], ...]
    complete: bool
    monotone: bool
    tests: int
    notes: tuple[str, ...]


def minimal_sets(
    items: Sequence[Item], test: Callable[[frozenset[Item]], Verdict], *, seed: int = 0, budget: int | None = None
) -> SubsetResult[Item]:
    """Find the minimal BAD sets among `items` (each given once).

    test: asked once for each set; it may raise BudgetSpent to end the search. seed: of the order in which the items
    are searched. budget: most tests. Never raises for either budget: the result is then not complete.
    """
    search = _Search(items, test, seed, budget)
    try:
        search.run()
    except BudgetSpent as error:
        search.incomplete(f"stopped: {error.message}")
    return search.result()


class _Search(Generic[Item]):
    """State of one search."""

    def __init__(
        self, items: Sequence[Item], test: Callable[[frozenset[Item]], Verdict], seed: int, budget: int | None
    ) -> None:
        self._given = tuple(items)
        if len(set(self._given)) != len(self._given):
            raise ValueError("an item is given twice")
        self._places = {item: place for place, item in enumerate(self._given)}
        self._shuffled = list(self._given)
        random.Random(seed).shuffle(self._shuffled)
        self._test = test
        self._budget = budget
        self._known: dict[frozenset[Item], Verdict] = {}
        self._found: dict[frozenset[Item], dict[Item, Verdict]] = {}
        self._removals: list[tuple[frozenset[Item], Verdict]] = []
        self._notes: list[str] = []
        self._complete = True

    def incomplete(self, why: str) -> None:
        """Note that the result is not all there is."""
        self._complete = False
        if why not in self._notes:
            self._notes.append(why)

    def run(self) -> None:
        none = self._verdict(frozenset())
        everything = self._verdict(frozenset(self._given))
        for verdict, which in ((none, "none"), (everything, "all")):
            if verdict is Verdict.UNRESOLVED:
                self.incomplete(f"with {which} of them there is no verdict")
        if none is Verdict.BAD:
            self._notes.append("BAD already with none of them: no set of them is to blame")
            return
        if everything is Verdict.BAD:
            self._enumerate()

    def _enumerate(self) -> None:
        """Walk the tree of removals, smallest first."""
        queue = deque([frozenset[Item]()])
        seen = set(queue)
        cures: list[frozenset[Item]] = []
        while queue:
            removed = queue.popleft()
            if any(cure <= removed for cure in cures):
                continue  # less than this left nothing BAD already
            known = next((found for found in self._found if not found & removed), None)
            if known is None:
                rest = [item for item in self._shuffled if item not in removed]
                verdict = self._verdict(frozenset(rest))
                if removed:
                    self._removals.append((removed, verdict))
                if verdict is not Verdict.BAD:
                    cures.append(removed)
                    if verdict is Verdict.UNRESOLVED:
                        self.incomplete(
                            f"without {self._words(removed)} there is no verdict: a further set may be left"
                        )
                    continue
                known = self._one_set(rest)
            for item in self._ordered(known):
                child = removed | {item}
                if child not in seen:
                    seen.add(child)
                    queue.append(child)

    def _one_set(self, universe: list[Item]) -> frozenset[Item]:
        """One minimal set in a universe that is BAD as a whole."""
        kept: frozenset[Item] = frozenset()
        candidates = universe
        while self._verdict(kept) is not Verdict.BAD:
            # candidates and kept are BAD together, kept alone is not: the end of the shortest BAD prefix is needed
            low, high = 0, len(candidates)
            while high - low > 1:
                middle = (low + high) // 2
                if self._verdict(kept.union(candidates[:middle])) is Verdict.BAD:
                    high = middle
                else:
                    low = middle
            kept, candidates = kept | {candidates[high - 1]}, candidates[: high - 1]
        return self._minimised(kept)

    def _minimised(self, found: frozenset[Item]) -> frozenset[Item]:
        """Try every member's removal from a BAD set; leave out those without which the others are still BAD."""
        needed = self._found.setdefault(found, {})  # there at once: the budget may end the rest
        for item in self._ordered(found):
            verdict = self._verdict(found - {item})
            if verdict is Verdict.BAD:
                del self._found[found]
                return self._minimised(found - {item})
            needed[item] = verdict
            if verdict is Verdict.UNRESOLVED:
                self.incomplete(f"{self._words(found)}: without {item} there is no verdict, it may be needless")
        return found

    def _verdict(self, subset: frozenset[Item]) -> Verdict:
        verdict = self._known.get(subset)
        if verdict is None:
            if self._budget is not None and len(self._known) >= self._budget:
                raise BudgetSpent(f"the budget of {self._budget} builds is used up")
            verdict = self._known[subset] = self._test(subset)
        return verdict

    def _ordered(self, subset: frozenset[Item]) -> list[Item]:
        return sorted(subset, key=self._places.__getitem__)

    def _words(self, subset: frozenset[Item]) -> str:
        return ", ".join(map(str, self._ordered(subset)))

    def result(self) -> SubsetResult[Item]:
        sets = []
        for found, needed in self._found.items():
            ordered = self._ordered(found)
            untested = tuple(item for item in ordered if item not in needed)
            sets.append(MinimalSet(tuple(ordered), tuple(needed.items()), untested))
        goods = [subset for subset, verdict in self._known.items() if verdict is Verdict.GOOD]
        hidden = [found for found in self._found if any(found < good for good in goods)]
        notes = list(self._notes)
        for found in hidden:
            notes.append(f"{self._words(found)}: BAD alone, but GOOD together with some of the others, which hide it")
        return SubsetResult(
            sets=tuple(
                sorted(sets, key=lambda found: (len(found.items), [self._places[item] for item in found.items]))
            ),
            none=self._known.get(frozenset()),
            everything=self._known.get(frozenset(self._given)),
            removals=tuple((tuple(self._ordered(removed)), verdict) for removed, verdict in self._removals),
            complete=self._complete,
            monotone=not hidden,
            tests=len(self._known),
            notes=tuple(notes),
        )
