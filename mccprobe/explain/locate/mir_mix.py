"""Mixes of two MIR texts of one function: what differs, what hangs together, and the text of a mix.

Blocks align by number; inside a block an instruction is matched by its text, else by opcode and
results. What differs is a hunk: an edit, an instruction added or dropped, the order of a block, or a
whole block that cannot be taken apart. Hunks that touch one value hang together in a unit:
  - all that mention a virtual register which one side lacks, or whose definition was added, dropped
    or became another instruction;
  - an instruction dropped in one block and added with the same text in another;
  - physical registers: additions, drops and what else mentions their registers in that block.
The order of a block is one unit. It is then searched along the path of adjacent swaps from the good to
the bad order: each swap flips one pair on which the two disagree, once, so that every stop keeps each
order on which both agree, and no knowledge of dependences is needed.
"""

from __future__ import annotations

import bisect
import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mccprobe.explain.locate.mir_text import MirBlock, MirFile, print_mir

_VIRTUAL = re.compile(r"%\d+")
_PHYSICAL = re.compile(r"\$(?!noreg\b)\w+")
_OPCODE = re.compile(r"[A-Z][A-Za-z0-9_]*")


class HunkKind(StrEnum):
    """What a hunk changes."""

    EDIT = "edit"
    ADDED = "added"
    DROPPED = "dropped"
    ORDER = "order"
    WHOLE = "block"


@dataclass(frozen=True)
class Hunk:
    """One difference. good, bad: the instruction in each text, "" where it is absent.

    position: index in the block's entries (-1 for a whole block or its order).
    """

    kind: HunkKind
    block: int
    position: int
    good: str
    bad: str


@dataclass(frozen=True)
class _Entry:
    """A place in the mixed block: index in the good and in the bad block, None where it is absent."""

    good: int | None
    bad: int | None


@dataclass(frozen=True)
class _Aligned:
    """One block of both texts. moved: the order differs. opaque: order and content differ, nothing fits."""

    entries: tuple[_Entry, ...]
    moved: bool
    opaque: bool


def results_of(instruction: str) -> set[str]:
    """Virtual registers that it defines, as printed left of its " = "."""
    left, equals, _ = instruction.partition(" = ")
    return set(_VIRTUAL.findall(left)) if equals else set()


def _skeleton(instruction: str) -> tuple[str, frozenset[str]]:
    """Opcode and results: what an edited instruction still has in common."""
    left, equals, right = instruction.partition(" = ")
    body = right if equals else left
    opcode = _OPCODE.search(body.partition(" :: ")[0])
    results = frozenset(_VIRTUAL.findall(left) + _PHYSICAL.findall(left)) if equals else frozenset()
    return (opcode.group() if opcode else "", results)


def _longest_increasing(values: Sequence[int]) -> set[int]:
    """Indices of one longest increasing subsequence."""
    tails: list[int] = []
    tail_at: list[int] = []
    previous: list[int] = []
    for index, value in enumerate(values):
        place = bisect.bisect_left(tails, value)
        previous.append(tail_at[place - 1] if place else -1)
        tails[place : place + 1] = [value]
        tail_at[place : place + 1] = [index]
    kept = set()
    index = tail_at[-1] if tail_at else -1
    while index >= 0:
        kept.add(index)
        index = previous[index]
    return kept


def _align(good: Sequence[str], bad: Sequence[str]) -> _Aligned:
    """Match the instructions of one block."""
    counts, other = Counter(good), Counter(bad)
    places: dict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(bad):
        places[text].append(index)
    seen: Counter[str] = Counter()
    pairs: dict[int, int] = {}
    for index, text in enumerate(good):
        if counts[text] == other[text]:
            pairs[index] = places[text][seen[text]]
            seen[text] += 1
    matched = sorted(pairs)
    kept = {matched[one] for one in _longest_increasing([pairs[index] for index in matched])}
    entries: list[_Entry] = []
    start, bad_start = 0, 0
    taken = set(pairs.values())
    for index in [*sorted(kept), len(good)]:
        stop = pairs[index] if index < len(good) else len(bad)
        entries += _gap(
            good,
            bad,
            [g for g in range(start, index) if g not in pairs],
            [b for b in range(bad_start, stop) if b not in taken],
        )
        if index < len(good):
            entries.append(_Entry(index, stop))
            start, bad_start = index + 1, stop + 1
    moved = [index for index in matched if index not in kept]
    if not moved:
        return _Aligned(tuple(entries), moved=False, opaque=False)
    entries += [_Entry(index, pairs[index]) for index in moved]
    entries = _pair_moved_edits(good, bad, entries)
    if any(entry.good is None or entry.bad is None for entry in entries):
        return _Aligned((), moved=True, opaque=True)
    return _Aligned(tuple(sorted(entries, key=lambda entry: entry.good or 0)), moved=True, opaque=False)


def _gap(good: Sequence[str], bad: Sequence[str], ours: list[int], theirs: list[int]) -> list[_Entry]:
    """Entries of what stands unmatched between two matched instructions, in order."""
    if not ours or not theirs:
        return [_Entry(g, None) for g in ours] + [_Entry(None, b) for b in theirs]
    a, b = [_skeleton(good[g]) for g in ours], [_skeleton(bad[b]) for b in theirs]
    entries = []
    for tag, a1, a2, b1, b2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            entries += [_Entry(g, b) for g, b in zip(ours[a1:a2], theirs[b1:b2], strict=True)]
        else:
            entries += [_Entry(g, None) for g in ours[a1:a2]] + [_Entry(None, b) for b in theirs[b1:b2]]
    return entries


def _pair_moved_edits(good: Sequence[str], bad: Sequence[str], entries: list[_Entry]) -> list[_Entry]:
    """Pair what was both moved and edited, where opcode and results say which is which."""
    ours = [entry.good for entry in entries if entry.bad is None and entry.good is not None]
    theirs = [entry.bad for entry in entries if entry.good is None and entry.bad is not None]
    by_skeleton = defaultdict(list)
    for index in theirs:
        by_skeleton[_skeleton(bad[index])].append(index)
    paired: dict[int, int] = {}
    for index in ours:
        there = by_skeleton.get(_skeleton(good[index]), [])
        if len(there) == 1:
            paired[index] = there.pop()
    used = set(paired.values())
    kept = [
        entry
        for entry in entries
        if not (entry.bad is None and entry.good in paired) and not (entry.good is None and entry.bad in used)
    ]
    return kept + [_Entry(g, b) for g, b in paired.items()]


class SwapPath:
    """From the good to the bad order of one block by adjacent swaps, kept as numbers, not as texts.

    ranks: for each instruction in good order, its place in the bad order.
    """

    def __init__(self, ranks: Sequence[int]) -> None:
        self.ranks = tuple(ranks)
        self._until = [0]  # swaps made when the first n instructions are in bad order among themselves
        before: list[int] = []
        for rank in ranks:
            self._until.append(self._until[-1] + len(before) - bisect.bisect_left(before, rank))
            bisect.insort(before, rank)

    @property
    def length(self) -> int:
        return self._until[-1]

    def order(self, stop: int) -> list[int]:
        """Good indices in the order after `stop` swaps."""
        count = bisect.bisect_left(self._until, stop)  # the instruction on its way is number count - 1
        if count == 0:
            return list(range(len(self.ranks)))
        settled = sorted(range(count - 1), key=self.ranks.__getitem__)
        place = len(settled) - (stop - self._until[count - 1])
        return [*settled[:place], count - 1, *settled[place:], *range(count, len(self.ranks))]

    def swapped(self, stop: int) -> tuple[int, int]:
        """The pair (first, second in good order) that the swap from stop - 1 to `stop` flips."""
        before, after = self.order(stop - 1), self.order(stop)
        place = next(index for index, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)
        return before[place], before[place + 1]

    def good_with(self, first: int, second: int) -> list[int]:
        """The good order with this pair flipped, and what stands between put where bad allows it."""
        return _flipped(range(len(self.ranks)), self.ranks, first, second)

    def bad_without(self, first: int, second: int) -> list[int]:
        """The bad order with this pair as in good, and what stands between put where good allows it."""
        order = sorted(range(len(self.ranks)), key=self.ranks.__getitem__)
        return _flipped(order, range(len(self.ranks)), second, first)


def _flipped(order: Sequence[int], other: Sequence[int], first: int, second: int) -> list[int]:
    """`order` with `second` before `first`; other[i] is the place of i in the other order, where it is so.

    Of what stands between, that which the other order has behind `first` goes behind it, the rest goes
    before `second`: no pair on which both orders agree is flipped.
    """
    start, stop = order.index(first), order.index(second)
    between = order[start + 1 : stop]
    ahead = [one for one in between if other[one] < other[first]]
    behind = [one for one in between if other[one] >= other[first]]
    return [*order[:start], *ahead, second, first, *behind, *order[stop + 1 :]]


class Mixes:
    """All mixes of two texts. refusal: why there are none ("" where there are)."""

    def __init__(self, good: MirFile, bad: MirFile) -> None:
        self.good = good
        self.bad = bad
        self._bad_blocks = {block.number: block for block in bad.blocks}
        self._aligned: dict[int, _Aligned] = {}
        self.hunks: list[Hunk] = []
        self.units: list[tuple[Hunk, ...]] = []
        self.refusal = self._refusal()
        if self.refusal:
            return
        for block in good.blocks:
            self._add_block(block, self._bad_blocks[block.number])
        self.units = _linked(self.hunks, _one_sided(good, bad))
        if not self.units:
            self.refusal = "the instructions are the same before and after; only the function's header differs"

    def _refusal(self) -> str:
        if [block.number for block in self.good.blocks] != [block.number for block in self.bad.blocks]:
            return "the pass changed the blocks of the function"
        differing = [g.label for g, b in zip(self.good.blocks, self.bad.blocks, strict=True) if g.head != b.head]
        if differing:
            return f"the pass changed successors or live registers of blocks ({', '.join(differing[:4])})"
        ours, theirs = self.good.registers, self.bad.registers
        changed = [number for number in ours if number in theirs and ours[number] != theirs[number]]
        return f"the pass changed the class of registers (%{', %'.join(changed[:4])})" if changed else ""

    def _add_block(self, good: MirBlock, bad: MirBlock) -> None:
        if good.instructions == bad.instructions:
            return
        aligned = _align(good.instructions, bad.instructions)
        self._aligned[good.number] = aligned
        number = good.number
        if aligned.opaque:
            only = Counter(good.instructions) - Counter(bad.instructions)
            other = Counter(bad.instructions) - Counter(good.instructions)
            texts = "\n".join(only.elements()), "\n".join(other.elements())
            self.hunks.append(Hunk(HunkKind.WHOLE, number, -1, *texts))
            return
        if aligned.moved:
            self.hunks.append(Hunk(HunkKind.ORDER, number, -1, "", ""))
        for position, entry in enumerate(aligned.entries):
            ours = good.instructions[entry.good] if entry.good is not None else ""
            theirs = bad.instructions[entry.bad] if entry.bad is not None else ""
            if ours != theirs:
                kind = HunkKind.ADDED if not ours else HunkKind.EDIT if theirs else HunkKind.DROPPED
                self.hunks.append(Hunk(kind, number, position, ours, theirs))

    def label(self, number: int) -> str:
        """A block as the compiler prints it."""
        return next(block.label for block in self.good.blocks if block.number == number)

    def instruction(self, number: int, index: int) -> str:
        """An instruction of a block of the good text, by its place there."""
        return next(block for block in self.good.blocks if block.number == number).instructions[index].strip()

    def swap_path(self, number: int) -> SwapPath:
        """The path of a block whose order differs."""
        return SwapPath([entry.bad or 0 for entry in self._aligned[number].entries])

    def text(self, units: frozenset[int], orders: Mapping[int, Sequence[int]] | None = None) -> str:
        """The MIR with these units from bad. orders: block -> places in the good block, in this order."""
        on = {hunk for unit in units for hunk in self.units[unit]}
        by_block: dict[int, set[Hunk]] = defaultdict(set)
        for hunk in on:
            by_block[hunk.block].add(hunk)
        instructions = {
            block.number: self._block(block, by_block[block.number], (orders or {}).get(block.number))
            for block in self.good.blocks
            if block.number in self._aligned
        }
        return print_mir(self.good, instructions, self.bad.registers)

    def _block(self, good: MirBlock, on: set[Hunk], order: Sequence[int] | None) -> list[str]:
        aligned = self._aligned[good.number]
        bad = self._bad_blocks[good.number].instructions
        if aligned.opaque:
            return list(bad if on else good.instructions)
        taken = {hunk.position for hunk in on}
        entries = list(enumerate(aligned.entries))
        if order is not None:
            entries = [entries[index] for index in order]  # a moved block has an entry for each instruction
        elif any(hunk.kind is HunkKind.ORDER for hunk in on):
            entries.sort(key=lambda one: one[1].bad or 0)
        lines = []
        for position, entry in entries:
            from_bad = position in taken
            index = entry.bad if from_bad else entry.good
            if index is not None:
                lines.append(bad[index] if from_bad else good.instructions[index])
        return lines


def _one_sided(good: MirFile, bad: MirFile) -> set[str]:
    """Virtual registers that only one of the two mentions."""
    ours, theirs = (
        {register for block in file.blocks for one in block.instructions for register in _VIRTUAL.findall(one)}
        for file in (good, bad)
    )
    return ours ^ theirs


def _linked(hunks: Sequence[Hunk], registers: set[str]) -> list[tuple[Hunk, ...]]:
    """Hunks that hang together, as units in layout order."""
    parent = list(range(len(hunks)))

    def root(index: int) -> int:
        while parent[index] != index:
            index = parent[index]
        return index

    def join(owners: dict[object, int], key: object, index: int) -> None:
        if key in owners:
            one, other = sorted((root(owners[key]), root(index)))
            parent[other] = one
        else:
            owners[key] = index

    linking = set(registers)
    physical: dict[int, set[str]] = defaultdict(set)
    for hunk in hunks:
        if hunk.kind is HunkKind.ORDER:
            continue
        if hunk.kind is not HunkKind.EDIT or _skeleton(hunk.good) != _skeleton(hunk.bad):
            linking |= results_of(hunk.good) | results_of(hunk.bad)
            physical[hunk.block] |= set(_PHYSICAL.findall(hunk.good + hunk.bad))
    owners: dict[object, int] = {}
    for index, hunk in enumerate(hunks):
        if hunk.kind is HunkKind.ORDER:
            continue
        text = f"{hunk.good}\n{hunk.bad}"
        for register in set(_VIRTUAL.findall(text)) & linking:
            join(owners, register, index)
        for register in set(_PHYSICAL.findall(text)) & physical[hunk.block]:
            join(owners, (hunk.block, register), index)
        if hunk.kind in (HunkKind.ADDED, HunkKind.DROPPED):
            join(owners, ("moved", " ".join((hunk.good or hunk.bad).split())), index)
    grouped: dict[int, list[Hunk]] = defaultdict(list)
    for index, hunk in enumerate(hunks):
        grouped[root(index)].append(hunk)
    return [tuple(unit) for _, unit in sorted(grouped.items())]
