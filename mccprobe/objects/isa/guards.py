"""Instruction sets of several sizes: which values of a field a short instruction may have.

The size is no function of the opcode: on gfx9 the same opcode takes one more dword when an operand
selector has a special value. A short row with a freed selector would then name the long instruction
wrongly. So each stretch of operand bits has a set of values: those seen in short words, and those of a
proved register field (`v7` to `v9` prove the field of all `v`; an immediate may be biased, and proves
nothing that was not seen). Any other value is refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from mccprobe.objects.isa.columns import bit_numbers, sum_of_bits
from mccprobe.objects.isa.encoding import Guard
from mccprobe.objects.isa.fields import Place

MAX_WIDTH = 10  # bits; wider stretches are immediates
QUORUM = 0.015  # of the classes that have a field there
FEW_CLASSES = 4  # fewer say nothing about what is usual

Class = tuple[str, int]
Segment = tuple[int, int, int]  # size, low, width


@dataclass(frozen=True)
class Stretch:
    """One part of a key: words, constant bits, those left when operands are freed, proved operand numbers."""

    words: Sequence[int]
    mask: int
    relaxed: int
    value: int
    places: Sequence[Place]


def make_guards(parts: Mapping[Class, Sequence[Stretch]]) -> tuple[tuple[Guard, ...], dict[Class, tuple[int, ...]]]:
    """Guards, and which of them each class is subject to. None for the longest size."""
    longest = max((size for _, size in parts), default=0)
    has: dict[Segment, Counter[int]] = defaultdict(Counter)  # value -> classes that have it
    own: dict[tuple[Class, Segment], set[int]] = {}
    subject: dict[Class, list[Segment]] = {}
    short = {name: stretches for name, stretches in parts.items() if name[1] != longest}
    starts = Counter(
        low for name in short for low in {(name[1], place.low) for part in short[name] for place in part.places}
    )
    usual = {start for start, classes in starts.items() if classes >= _quorum(len(short))}
    for name, stretches in short.items():
        lows = {low for size, low in usual if size == name[1]}
        subject[name] = [(name[1], low, width) for low, width in _segments(stretches, lows)]
        for segment in subject[name]:
            _, low, width = segment
            if width > MAX_WIDTH:
                continue
            full = (1 << width) - 1
            values = {word >> low & full for part in stretches for word in part.words}
            for part in stretches:
                if any(place.register and place.low == low for place in part.places):
                    fixed = part.relaxed >> low & full
                    values.update(_agreeing(fixed, part.value >> low & fixed, width))
            has[segment].update(values)
            own[name, segment] = values
    support = Counter(segment for segments in subject.values() for segment in segments)
    allowed = {
        segment: {value for value, classes in counts.items() if classes >= _quorum(support[segment])}
        for segment, counts in has.items()
    }
    numbers: dict[Guard, int] = {}
    of_class: dict[Class, tuple[int, ...]] = {}
    for name, segments in subject.items():
        used = []
        for mine in segments:
            guarded = _usual(mine, support)
            if guarded is not None:
                size, low, width = guarded
                open_values = allowed[guarded] | own.get((name, guarded), set())
                refused = tuple(sorted(set(range(1 << width)) - open_values))
                if refused:
                    used.append(numbers.setdefault(Guard(size, low, width, refused), len(numbers)))
        of_class[name] = tuple(used)
    return tuple(numbers), of_class


def _quorum(classes: int) -> int:
    """How many classes must have a value: one that ignores the field (a no-operation) has them all."""
    return max(2, round(classes * QUORUM)) if classes >= FEW_CLASSES else 1


def _usual(own: Segment, support: Counter[Segment]) -> Segment | None:
    """The segment; if few classes have it, the one that most have there: few samples show a field too narrow."""
    if own[2] <= MAX_WIDTH and support[own] >= FEW_CLASSES:
        return own
    others = [
        other
        for other in support
        if other[:2] == own[:2] and other[2] <= MAX_WIDTH and (other[2] >= own[2] or own[2] > MAX_WIDTH)
    ]
    return max(others, key=lambda other: (support[other], other), default=None)


def _segments(parts: Sequence[Stretch], usual: Set[int]) -> Iterator[tuple[int, int]]:
    """(low, width) of the operand fields of a class: from one proved start to the next or to a constant bit."""
    full = parts[0].mask
    varying = 0
    for part in parts:
        varying |= ~part.relaxed | (part.value ^ parts[0].value)
    size_mask = sum_of_bits(word for part in parts for word in part.words) | full
    varying &= (1 << size_mask.bit_length()) - 1
    places = [place for part in parts for place in part.places]
    starts = {place.low for place in places} & usual
    long_fields = {place.low for place in places if place.mask.bit_count() > MAX_WIDTH}
    low = previous = end = -1
    for position in [*bit_numbers(varying), -1]:
        if low >= 0 and (position in starts or position != previous + 1):
            if low not in long_fields:
                yield low, previous - low + 1
            low, end = -1, previous
        if low < 0:  # the lowest bits of a field may be constant: register pairs are even
            low = max((start for start in starts if end < start <= position), default=position)
        previous = position


def _agreeing(fixed: int, value: int, width: int) -> Iterator[int]:
    """All values of `width` bits that equal `value` under `fixed`."""
    free = ((1 << width) - 1) & ~fixed
    some = free
    while True:
        yield value | some
        if not some:
            return
        some = (some - 1) & free


def cubes(values: Iterable[int], width: int) -> list[tuple[int, int]]:
    """The set as a few (value, free bits), each covering value | any of the free bits."""
    left = set(values)
    found = []
    while left:
        base, free = min(left), 0
        for position in range(width):
            wider = free | 1 << position
            if base & 1 << position == 0 and all(
                value in left for value in _agreeing(((1 << width) - 1) & ~wider, base, width)
            ):
                free = wider
        left.difference_update(_agreeing(((1 << width) - 1) & ~free, base, width))
        found.append((base, free))
    return found
