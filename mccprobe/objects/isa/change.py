"""Two versions of one function: what stayed, moved, was renamed, changed, came and went.

    same     equal text at its place           control   equal text, other control field (MTGPU)
    moved    equal text at another place       renamed   other registers, consistently
    changed  same mnemonic, other operands     moved-renamed   both at once
    added, removed

A pure reorder is all `same` and `moved`; a pure change of registers all `same` and `renamed`. pc-relative
offsets are left out of the comparison, since they follow from the rest; so do branch targets where anything
else moved, came or went. What has no operands (nobody decoded it,
or a table did) is compared by its bytes.
Law: every instruction of A and of B is in exactly one entry, and `rebuild` gives B.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mccprobe.objects.isa.align import by_occurrence, in_order
from mccprobe.objects.isa.flow import address_index, target_index
from mccprobe.objects.isa.mtgpu.listing import comparison_key as mtgpu_key
from mccprobe.objects.isa.pipes import UNKNOWN, pipe_table
from mccprobe.objects.isa.records import Function, Instruction
from mccprobe.objects.isa.registers import registers_of, shape_of
from mccprobe.objects.isa.renames import consistent, unfollowed_renames

KINDS = ("same", "control", "renamed", "moved", "moved-renamed", "changed", "added", "removed")
_PC_RELATIVE = re.compile(r"-?(?:0x[0-9a-f]+|\d+)?\(%rip\)")
_SYMBOL = re.compile(r"<([^<>+]+)>\s*$")


@dataclass(frozen=True)
class Entry:
    """kind: one of KINDS. left, right: indices into A and B, None where there is none."""

    kind: str
    left: int | None
    right: int | None


@dataclass(frozen=True)
class FunctionChange:
    """entries: in the order of B, a removed one before what follows it in A.

    renames: `R1 -> R5`, A's register and B's, with how many operands.
    """

    left: Function
    right: Function
    entries: tuple[Entry, ...]
    renames: dict[str, int]

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(entry.kind for entry in self.entries)
        return {kind: found[kind] for kind in KINDS}

    @property
    def equal(self) -> bool:
        return all(entry.kind == "same" for entry in self.entries)

    def differing(self) -> list[Entry]:
        """Entries that are not `same`, in order."""
        return [entry for entry in self.entries if entry.kind != "same"]


def rebuild(change: FunctionChange) -> list[str]:
    """B's texts: of an unchanged or moved instruction A's text, of every other B's."""
    placed: dict[int, str] = {}
    for entry in change.entries:
        if entry.right is None:
            continue
        if entry.kind in ("same", "control", "moved") and entry.left is not None:
            placed[entry.right] = change.left.instructions[entry.left].text
        else:
            placed[entry.right] = change.right.instructions[entry.right].text
    return [placed[index] for index in range(len(placed))]


def comparison_key(one: Instruction, isa: str) -> str:
    """The text as it is compared: without branch targets and pc-relative offsets, by bytes without operands."""
    text = one.text
    if isa == "mtgpu" and one.confidence and one.data is not None:
        return mtgpu_key(one)
    if one.data is not None and (one.pipe == UNKNOWN or one.confidence):  # no name, or a table's without operands
        return f"{text} {one.data.hex()}"
    flow = pipe_table(isa).find(one.mnemonic).flow
    if flow in ("branch", "jump", "call") and one.target:
        callee = _SYMBOL.search(one.operands)
        text = f"{one.mnemonic} {callee[1] if callee and flow == 'call' else '<target>'}"
    elif isa == "x86" and "(%rip)" in text:
        text = _PC_RELATIVE.sub("<offset>(%rip)", text)
    return f"{one.flags} {text}" if one.flags else text


def compare(left: Function, right: Function, isa: str) -> FunctionChange:
    """Align two versions of a function. About n log n; long stretches without anything in common stay cheap."""
    one, two = left.instructions, right.instructions
    keys_one = [comparison_key(item, isa) for item in one]
    keys_two = [comparison_key(item, isa) for item in two]
    kinds: dict[tuple[int, int], str] = {}
    if keys_one == keys_two:
        kinds = {(index, index): "same" for index in range(len(one))}
    elif not _only_renamed(one, two, keys_one, keys_two, isa, kinds):
        _align(one, two, keys_one, keys_two, isa, kinds)
    _other_targets(left, right, isa, kinds)
    for (a, b), kind in kinds.items():
        if kind == "same" and one[a].control != two[b].control:
            kinds[a, b] = "control"
    return FunctionChange(left, right, _ordered(kinds, len(one), len(two)), _renames(one, two, kinds, isa))


def _other_targets(left: Function, right: Function, isa: str, kinds: dict[tuple[int, int], str]) -> None:
    """Marks branches that go to another place than before, where the two streams agree place by place."""
    one, two = left.instructions, right.instructions
    if not len(one) == len(two) == len(kinds) or any(a != b for a, b in kinds):
        return
    find = pipe_table(isa).find
    jumps = [index for index, item in enumerate(one) if item.target and find(item.mnemonic).flow in ("branch", "jump")]
    if not jumps:
        return
    places_one, places_two = address_index(one), address_index(two)
    for index in jumps:
        before = _goes_to(left, one[index], places_one)
        after = _goes_to(right, two[index], places_two)
        if before != after and before is not None and after is not None:
            kinds[index, index] = "changed"


def _goes_to(function: Function, one: Instruction, places: dict[int, int]) -> int | str | None:
    """Index of a branch's target, the symbol where it lies in another function; None if nobody tells."""
    place = target_index(function, one.target, places)
    if place is not None:
        return place
    symbol = _SYMBOL.search(one.operands)
    return symbol[1] if symbol else None


def _only_renamed(
    one: Sequence[Instruction],
    two: Sequence[Instruction],
    keys_one: Sequence[str],
    keys_two: Sequence[str],
    isa: str,
    kinds: dict[tuple[int, int], str],
) -> bool:
    """The whole function with other registers only; fills `kinds` if so."""
    if len(one) != len(two):
        return False
    if any(shape_of(a, isa)[0] != shape_of(b, isa)[0] for a, b in zip(keys_one, keys_two, strict=True)):
        return False
    if not all(consistent(list(zip(one, two, strict=True)), isa)):
        return False
    for index, (a, b) in enumerate(zip(keys_one, keys_two, strict=True)):
        kinds[index, index] = "same" if a == b else "renamed"
    return True


def _align(
    one: Sequence[Instruction],
    two: Sequence[Instruction],
    keys_one: Sequence[str],
    keys_two: Sequence[str],
    isa: str,
    kinds: dict[tuple[int, int], str],
) -> None:
    kept = in_order(keys_one, keys_two)
    kinds.update(dict.fromkeys(kept, "same"))
    rest_one, rest_two = _without(len(one), (a for a, _ in kept)), _without(len(two), (b for _, b in kept))
    moves = by_occurrence([keys_one[a] for a in rest_one], [keys_two[b] for b in rest_two])
    moved = [(rest_one[a], rest_two[b]) for a, b in moves]
    kinds.update(dict.fromkeys(moved, "moved"))
    taken_one, taken_two = {a for a, _ in moved}, {b for _, b in moved}
    rest_one = [a for a in rest_one if a not in taken_one]
    rest_two = [b for b in rest_two if b not in taken_two]
    alike: list[tuple[int, int]] = []
    edited: list[tuple[int, int]] = []
    for gap_one, gap_two in _gaps(kept, rest_one, rest_two):
        pairs = in_order(
            [shape_of(keys_one[a], isa)[0] for a in gap_one], [shape_of(keys_two[b], isa)[0] for b in gap_two]
        )
        alike += [(gap_one[a], gap_two[b]) for a, b in pairs]
        left_one = [gap_one[a] for a in _without(len(gap_one), (a for a, _ in pairs))]
        left_two = [gap_two[b] for b in _without(len(gap_two), (b for _, b in pairs))]
        edited += [
            (left_one[a], left_two[b])
            for a, b in in_order([one[a].mnemonic for a in left_one], [two[b].mnemonic for b in left_two])
        ]
    walk = sorted([*kept, *alike])
    wanted = set(alike)
    for pair, good in zip(walk, consistent([(one[a], two[b]) for a, b in walk], isa), strict=True):
        if pair in wanted:
            kinds[pair] = "renamed" if good else "changed"
    _moved_with_other_registers(one, two, keys_one, keys_two, isa, kinds)
    if "renamed" in kinds.values():  # a new name that a reader which stayed does not take is no renaming
        readers = {a: b for (a, b), kind in kinds.items() if kind in ("same", "renamed")}
        renamed = {a: b for (a, b), kind in kinds.items() if kind == "renamed"}
        wrong = unfollowed_renames(one, two, renamed, readers, isa)
        kinds.update({(a, renamed[a]): "changed" for a in wrong})
    free_one, free_two = _free(kinds, len(one), len(two))
    kinds.update({(a, b): "changed" for a, b in edited if a in free_one and b in free_two})


def _free(kinds: dict[tuple[int, int], str], count_one: int, count_two: int) -> tuple[set[int], set[int]]:
    """Indices of both sides that are in no pair."""
    return set(range(count_one)) - {a for a, _ in kinds}, set(range(count_two)) - {b for _, b in kinds}


def _moved_with_other_registers(
    one: Sequence[Instruction],
    two: Sequence[Instruction],
    keys_one: Sequence[str],
    keys_two: Sequence[str],
    isa: str,
    kinds: dict[tuple[int, int], str],
) -> None:
    """Pairs of one shape at other places, if a walk in B's order finds their registers consistent."""
    free_one, free_two = _free(kinds, len(one), len(two))
    rest_one, rest_two = sorted(free_one), sorted(free_two)
    found = by_occurrence(
        [shape_of(keys_one[a], isa)[0] for a in rest_one], [shape_of(keys_two[b], isa)[0] for b in rest_two]
    )
    wanted = {(rest_one[a], rest_two[b]) for a, b in found}
    if not wanted:
        return
    walk = sorted([*(pair for pair, kind in kinds.items() if kind != "changed"), *wanted], key=lambda pair: pair[1])
    for pair, good in zip(walk, consistent([(one[a], two[b]) for a, b in walk], isa), strict=True):
        if good and pair in wanted:
            kinds[pair] = "moved-renamed"


def _without(count: int, taken: Iterable[int]) -> list[int]:
    gone = set(taken)
    return [index for index in range(count) if index not in gone]


def _gaps(
    kept: Sequence[tuple[int, int]], rest_one: Sequence[int], rest_two: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    """What is left on both sides between two neighbouring kept pairs."""
    gaps = []
    queue_one, queue_two = deque(rest_one), deque(rest_two)
    for a, b in [*kept, (1 << 60, 1 << 60)]:
        inside_one, inside_two = [], []
        while queue_one and queue_one[0] < a:
            inside_one.append(queue_one.popleft())
        while queue_two and queue_two[0] < b:
            inside_two.append(queue_two.popleft())
        if inside_one and inside_two:
            gaps.append((inside_one, inside_two))
    return gaps


def _ordered(kinds: dict[tuple[int, int], str], count_one: int, count_two: int) -> tuple[Entry, ...]:
    """All entries in the order of B; what A alone has stands where it stood between its neighbours."""
    by_right = {b: (a, kind) for (a, b), kind in kinds.items()}
    gone = deque(sorted(set(range(count_one)) - {a for a, _ in kinds}))
    entries: list[Entry] = []
    for b in range(count_two):
        found = by_right.get(b)
        if found is None:
            entries.append(Entry("added", None, b))
            continue
        a, kind = found
        while not kind.startswith("moved") and gone and gone[0] < a:
            entries.append(Entry("removed", gone.popleft(), None))
        entries.append(Entry(kind, a, b))
    entries += [Entry("removed", a, None) for a in gone]
    return tuple(entries)


def _renames(
    one: Sequence[Instruction], two: Sequence[Instruction], kinds: dict[tuple[int, int], str], isa: str
) -> dict[str, int]:
    """`R1 -> R5` with how many operands, the most frequent first."""
    counts: dict[str, int] = defaultdict(int)
    for (a, b), kind in kinds.items():
        if "renamed" not in kind:
            continue
        for x, y in zip(registers_of(one[a].text, isa), registers_of(two[b].text, isa), strict=False):
            if x != y:
                counts[f"{_name(x.bank, x.first, isa)} -> {_name(y.bank, y.first, isa)}"] += 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _name(bank: str, first: int, isa: str) -> str:
    return f"%{bank}" if isa == "x86" else f"{bank}{first}"
