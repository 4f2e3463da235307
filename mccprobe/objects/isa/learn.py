"""Listings to an encoding table: which bits of a word say the mnemonic.

1. A key is (mnemonic, size, slot, form). `strict` = bits equal in all its distinct words.
2. A key whose strict mask accepts words of another class has several encodings under one name: it is
   split on the bit that leaves the fewest foreign words. A class is (mnemonic, size), and words of
   other sizes are foreign too: a literal dword behind the same opcode is another class.
3. Bits that differ between words of equal text, under three mnemonics or more, say nothing.
4. Operand fields (`fields`) free the bits of operands, `relaxed` = what remains. No bit is freed that
   alone keeps a word of another class out.
5. A second set of rows, form None, is over all forms of a mnemonic, strict only.

Method and its measured errors: the isa-learn study; nothing is known here of any instruction set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mccprobe.objects.isa.columns import Columns, bit_numbers, sum_of_bits
from mccprobe.objects.isa.encoding import EncodingTable, Field, Guard, Row, Source
from mccprobe.objects.isa.fields import FieldFinder
from mccprobe.objects.isa.guards import Stretch, make_guards
from mccprobe.objects.isa.operands import Sample
from mccprobe.objects.isa.pipes import UNKNOWN

MAX_SPLITS = 6  # levels; what is mixed beyond that is a nested alias
MAX_FOREIGN = 2000  # foreign words looked at when a split is chosen
INVISIBLE_MNEMONICS = 3  # a bit must be silent under so many
MIN_CONSTANT_BITS = 6  # of the first 32: a row with fewer accepts data as code

Class = tuple[str, int]  # mnemonic, size


@dataclass
class _Part:
    """Samples that share one encoding."""

    samples: list[Sample]
    columns: Columns
    mask: int
    value: int
    relaxed: int = 0
    number: int = 0


class _Space:
    """All distinct words of one size and slot; longer ones are cut to it."""

    def __init__(self, size: int, entries: dict[tuple[int, Class], None]) -> None:
        self.size = size
        self.columns = Columns([word for word, _ in entries], 8 * size)
        self._own: dict[Class, int] = defaultdict(int)
        marks: dict[Class, list[int]] = defaultdict(list)
        for index, (_, name) in enumerate(entries):
            marks[name].append(index)
        for name, indices in marks.items():
            digits = bytearray(len(entries))
            for index in indices:
                digits[-1 - index] = 1
            self._own[name] = int(digits.translate(_TO_DIGITS), 2)
        self.exact = 0
        for (_, width), bits in self._own.items():
            if width == size:
                self.exact |= bits

    def foreign(self, mask: int, value: int, name: Class) -> int:
        """Words of other classes that the mask accepts."""
        among = self.columns.everything & ~self._own.get(name, 0)
        return self.columns.match(mask, value, among)


_TO_DIGITS = bytes([48, 49, *range(2, 256)])


def _numbers(sample: Sample) -> list[int]:
    """How many numbers each operand has."""
    return [len(numbers) for numbers in sample.values]


class Learner:
    """Samples in, rows out. One use."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._keys: dict[tuple[str, int, int, tuple[str, ...]], dict[int, Sample]] = defaultdict(dict)
        self._names: dict[tuple[int, int, int], set[str]] = defaultdict(set)  # (size, slot, word)
        self.pipes: dict[str, str] = {}
        self._texts: dict[tuple[str, int, int], set[int]] = defaultdict(set)
        self.samples = 0
        for sample in samples:
            if sample.pipe == UNKNOWN:  # the disassembler did not know it either
                continue
            known = self._keys[sample.mnemonic, sample.size, sample.slot, sample.form]
            if known and _numbers(sample) != _numbers(next(iter(known.values()))):
                continue  # `R1` and a literal `R` are of one kind: the first that came is believed
            self.samples += 1
            self.pipes[sample.mnemonic] = sample.pipe
            known.setdefault(sample.word, sample)
            self._names[sample.size, sample.slot, sample.word].add(sample.mnemonic)
            if sample.whole and not sample.probe:
                self._texts[sample.text, sample.size, sample.slot].add(sample.word)
        self.longest = max((size for size, _, _ in self._names), default=0)
        self._spaces = self._make_spaces()
        self.invisible = self._find_invisible()
        self.fields: tuple[Field, ...] = ()
        self.guards: tuple[Guard, ...] = ()
        self.refused = 0

    def _make_spaces(self) -> dict[tuple[int, int], _Space]:
        places = {(size, slot) for size, slot, _ in self._names}
        entries: dict[tuple[int, int], dict[tuple[int, Class], None]] = {place: {} for place in places}
        for (size, slot, word), names in self._names.items():
            for place_size, place_slot in places:
                if place_slot == slot and place_size <= size:
                    cut = word & ((1 << 8 * place_size) - 1)
                    for name in names:
                        entries[place_size, place_slot][cut, (name, size)] = None
        return {place: _Space(place[0], entries[place]) for place in sorted(places)}

    def _find_invisible(self) -> dict[int, int]:
        """Size -> bits that differ while the text does not, seen under several mnemonics."""
        silent: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for (text, size, _), words in self._texts.items():
            if len(words) > 1:
                first, differ = next(iter(words)), 0
                for word in words:
                    differ |= word ^ first
                for position in bit_numbers(differ):
                    silent[size][position].add(text.split(maxsplit=1)[0])
        masks = {
            size: sum(1 << position for position, names in bits.items() if len(names) >= INVISIBLE_MNEMONICS)
            for size, bits in silent.items()
        }
        return {size: mask for size, mask in sorted(masks.items()) if mask}

    # --- rows ---------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """Per-form rows with relaxed masks, then rows over all forms."""
        parts = {key: self._split(list(words.values())) for key, words in sorted(self._keys.items())}
        finder = FieldFinder()
        for group in parts.values():
            for part in group:
                finder.add(part.samples, part.columns)
        finder.finish()
        self.fields = finder.fields()
        stretches: dict[Class, list[Stretch]] = defaultdict(list)
        rows = []
        for (mnemonic, size, slot, form), group in parts.items():
            for part in group:
                places = finder.operand_places(part.samples, part.columns)
                # in a short word an immediate may be a selector that announces a longer one
                proved = [place for place in places if place.register or place.flag or size == self.longest]
                self._relax(part, sum_of_bits(place.mask for place in proved))
                stretch = Stretch(part.columns.words, part.mask, part.relaxed, part.value, places)
                stretches[mnemonic, size].append(stretch)
                rows.append(_row(mnemonic, form, size, slot, part))
        merged: dict[tuple[str, int, int], dict[int, Sample]] = defaultdict(dict)
        for (mnemonic, size, slot, _), words in self._keys.items():
            merged[mnemonic, size, slot].update(words)
        for (mnemonic, size, slot), words in sorted(merged.items()):
            rows += [_row(mnemonic, None, size, slot, part) for part in self._split(list(words.values()))]
        self.guards, of_class = make_guards(stretches)
        rows = [replace(row, guards=self._guards_of(row, of_class)) for row in rows]
        kept = [row for row in rows if (row.relaxed & 0xFFFFFFFF).bit_count() >= MIN_CONSTANT_BITS]
        self.refused = len(rows) - len(kept)
        return kept

    def _guards_of(self, row: Row, of_class: dict[Class, tuple[int, ...]]) -> tuple[int, ...]:
        """Those of its class that look at a bit which the row leaves open."""
        numbers = of_class.get((row.mnemonic, row.size), ())
        return tuple(
            number
            for number in numbers
            if ~row.relaxed & ((1 << self.guards[number].width) - 1) << self.guards[number].low
        )

    def conflicts(self) -> list[tuple[int, int, tuple[str, ...]]]:
        """Words with two names: the listing contradicts itself, or the word does not tell all."""
        return [(size, word, tuple(sorted(names))) for (size, _, word), names in self._names.items() if len(names) > 1]

    def _part(self, samples: list[Sample]) -> _Part:
        columns = Columns([sample.word for sample in samples], 8 * samples[0].size)
        mask = columns.constant(columns.everything)
        return _Part(samples, columns, mask, samples[0].word & mask, mask)

    def _split(self, samples: list[Sample]) -> list[_Part]:
        whole = self._part(samples)
        first = samples[0]
        space = self._spaces[first.size, first.slot]
        hits = space.foreign(whole.mask, whole.value, (first.mnemonic, first.size))
        if not hits or len(samples) == 1:
            return [whole]
        foreign = list(dict.fromkeys(space.columns.pick(hits)))[:MAX_FOREIGN]
        parts: list[_Part] = []
        left = _split_part(whole, foreign, MAX_SPLITS, parts)
        if left >= len(foreign):
            return [whole]
        for number, part in enumerate(parts):
            part.number = number
        return parts

    def _relax(self, part: _Part, operand_bits: int) -> None:
        """Free operand bits and silent bits, as far as no word of another class then falls in."""
        first = part.samples[0]
        freeable = operand_bits | self.invisible.get(first.size, 0)
        freeable &= part.mask
        if not freeable:
            return
        core = part.mask & ~freeable
        near: set[int] = set()  # how the foreign words that could fall in differ, in freeable bits only
        for (size, slot), space in self._spaces.items():
            if slot != first.slot or size > first.size:
                continue
            full = (1 << 8 * size) - 1
            found = space.foreign(core & full, part.value & full, (first.mnemonic, first.size))
            if size < first.size:
                found &= space.exact
            near.update((word ^ part.value) & part.mask & full for word in space.columns.pick(found))
        relaxed = part.mask
        for position in bit_numbers(freeable):
            bit = 1 << position
            if bit in near:  # this bit alone keeps a word of another class out: opcode
                continue
            relaxed &= ~bit
            near = {word & ~bit for word in near}
        part.relaxed = relaxed


def _split_part(part: _Part, foreign: Sequence[int], depth: int, out: list[_Part]) -> int:
    """Append the parts to `out`; the number of foreign words that they still accept."""
    foreign = [word for word in foreign if not (word ^ part.value) & part.mask]
    if not foreign or depth == 0 or len(part.samples) < 2:
        out.append(part)
        return len(foreign)
    columns = part.columns
    best: tuple[float, int] | None = None
    for position in bit_numbers(~part.mask & ((1 << columns.width) - 1)):
        ones = columns.ones[position]
        zeros = columns.everything ^ ones
        cost = abs(ones.bit_count() / len(part.samples) - 0.5) * 0.01
        for half in (ones, zeros):
            mask = columns.constant(half)
            value = part.samples[(half & -half).bit_length() - 1].word & mask
            cost += sum(not (word ^ value) & mask for word in foreign)
        if best is None or cost < best[0]:
            best = (cost, position)
    if best is None:
        out.append(part)
        return len(foreign)
    left = 0
    for wanted in (1, 0):
        samples = [sample for sample in part.samples if sample.word >> best[1] & 1 == wanted]
        inner = Columns([sample.word for sample in samples], columns.width)
        mask = inner.constant(inner.everything)
        left += _split_part(_Part(samples, inner, mask, samples[0].word & mask, mask), foreign, depth - 1, out)
    return left


def _row(mnemonic: str, form: tuple[str, ...] | None, size: int, slot: int, part: _Part) -> Row:
    probed = sum(sample.probe for sample in part.samples)
    return Row(mnemonic, form, size, slot, part.number, len(part.samples), probed, part.value, part.mask, part.relaxed)


def learn(
    samples: Sequence[Sample],
    *,
    target: str,
    unit: int,
    word: int,
    slots: int = 1,
    tool: str = "",
    sources: tuple[Source, ...] = (),
    assumptions: tuple[str, ...] = (),
) -> EncodingTable:
    """The table of these samples. The same samples in the same order give the same table."""
    learner = Learner(samples)
    rows = tuple(learner.rows())
    return EncodingTable(
        target,
        unit,
        word,
        slots,
        tool,
        rows,
        dict(sorted(learner.pipes.items())),
        sources,
        learner.fields,
        learner.guards,
        learner.invisible,
        tuple(learner.conflicts()),
        refused_rows=learner.refused,
        assumptions=assumptions,
    )
