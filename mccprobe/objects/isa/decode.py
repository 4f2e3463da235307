"""Words to names by a learned table, without the disassembler. What no row accepts stays unknown.

All rows are tried at once: for every byte position and byte value there is one integer whose bit r
says "row r accepts this byte here". ANDing one integer for each byte of the word leaves the rows that
accept it; what a set of rows means is decided once and remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mccprobe.objects.isa.encoding import UNKNOWN, Answer, Confidence, EncodingTable, Row
from mccprobe.objects.isa.guards import cubes

MEMO_LIMIT = 1 << 18  # words remembered before the memory of them is given back


@dataclass(frozen=True)
class _Entry:
    """One mask of one row: its relaxed one, or its strict one if that is narrower. With row -1: of a guard."""

    row: int
    strict: bool
    mask: int
    value: int
    guard: int = -1


class Classifier:
    """A table made ready for questions."""

    def __init__(self, table: EncodingTable) -> None:
        self.table = table
        self.window = max(table.sizes, default=table.unit)
        self._entries = list(_entries(table))
        self._rows = sum(1 << number for number, entry in enumerate(self._entries) if entry.row >= 0)
        self._accept = [self._acceptance(position) for position in range(self.window)]
        self._starts: dict[tuple[int, int], int] = {}
        self._verdicts: dict[int, Answer] = {0: UNKNOWN}
        self._memo: dict[tuple[int, int, int], Answer] = {}
        self._fixed = len(table.sizes) == 1

    def _acceptance(self, position: int) -> list[int]:
        """For each byte value, the set of entries that accept it at this position."""
        patterns: dict[tuple[int, int], int] = {}
        for number, entry in enumerate(self._entries):
            mask = entry.mask >> 8 * position & 0xFF
            key = (mask, entry.value >> 8 * position & mask)
            patterns[key] = patterns.get(key, 0) | 1 << number
        accepted = [0] * 256
        for (mask, value), entries in patterns.items():
            free = 0xFF & ~mask
            some = free
            while True:  # every byte value that agrees under the mask
                accepted[value | some] |= entries
                if not some:
                    break
                some = (some - 1) & free
        return accepted

    def start(self, available: int, slot: int) -> int:
        """Entries in question where `available` bytes are left, in this slot."""
        key = (min(available, self.window), slot)
        if key not in self._starts:
            rows = self.table.rows
            self._starts[key] = sum(
                1 << number
                for number, entry in enumerate(self._entries)
                if entry.row < 0 or (rows[entry.row].size <= key[0] and rows[entry.row].slot in (-1, slot))
            )
        return self._starts[key]

    def accept(self, position: int) -> list[int]:
        """For the vectorised decoder: the sets of entries by byte value."""
        return self._accept[position]

    def answer(self, word: int, available: int | None = None, slot: int = -1) -> Answer:
        """The answer for the word that starts with these bytes (little-endian, up to `window` of them)."""
        available = self.window if available is None else min(available, self.window)
        key = (word, available, slot)
        found = self._memo.get(key)
        if found is None:
            alive = self.start(available, slot)
            for position, accepted in enumerate(self._accept):
                alive &= accepted[word >> 8 * position & 0xFF]
                if not alive:
                    break
            found = self.verdict(alive)
            if len(self._memo) >= MEMO_LIMIT:
                self._memo.clear()
            self._memo[key] = found
        return found

    def verdict(self, alive: int) -> Answer:
        """What a set of accepting entries means."""
        found = self._verdicts.get(alive)
        if found is None:
            if not alive & self._rows:  # guards alone
                return UNKNOWN
            found = self._verdicts[alive] = self._decide(alive)
        return found

    def _decide(self, alive: int) -> Answer:
        matches: dict[int, bool] = {}  # row -> matched by its strict mask
        refused: set[int] = set()
        while alive:
            low = alive & -alive
            entry = self._entries[low.bit_length() - 1]
            alive ^= low
            if entry.row < 0:
                refused.add(entry.guard)
            else:
                matches[entry.row] = matches.get(entry.row, False) or entry.strict
        rows = self.table.rows
        held_back = {number for number in matches if not refused.isdisjoint(rows[number].guards)}
        for number in held_back:
            del matches[number]
        by_form = self._winners({number: strict for number, strict in matches.items() if rows[number].form is not None})
        over_all = self._winners({number: strict for number, strict in matches.items() if rows[number].form is None})
        doubt = {rows[number].size: rows[number].mnemonic for number in held_back}
        if doubt and any(rows[number].size in doubt for number in matches):
            return self._ambiguous({rows[number].mnemonic for number in (*matches, *held_back)})
        named = {rows[number].mnemonic for number in by_form}
        general = {rows[number].mnemonic for number in over_all}
        if not named:
            return self._answer(over_all, general, agreed=False)
        strict = any(by_form.values())
        if len(named) == 1 and general and named != general and not strict:
            return self._ambiguous(named | general)
        return self._answer(by_form, named, agreed=named == general)

    def _winners(self, matches: dict[int, bool]) -> dict[int, bool]:
        """Without rows that a narrower one lies inside of; then strict matches before relaxed ones."""
        rows = self.table.rows
        kept = {
            number: strict
            for number, strict in matches.items()
            if not any(
                _inside(rows[other], rows[number])
                and (rows[other].mnemonic, rows[other].size) != (rows[number].mnemonic, rows[number].size)
                for other in matches
            )
        }
        if len({(rows[number].mnemonic, rows[number].size) for number in kept}) > 1:
            strict_only = {number: True for number, strict in kept.items() if strict}
            return strict_only or kept
        return kept

    def _answer(self, rows: dict[int, bool], names: set[str], *, agreed: bool) -> Answer:
        if not rows:
            return UNKNOWN
        sizes = {self.table.rows[number].size for number in rows}
        if len(names) > 1 or len(sizes) > 1:
            return self._ambiguous(names)
        strict = any(rows.values())
        number = max((n for n, s in rows.items() if s == strict), key=lambda n: self.table.rows[n].samples)
        row = self.table.rows[number]
        many = row.confidence is Confidence.CERTAIN
        if strict or agreed:
            confidence = Confidence.CERTAIN if many else Confidence.LIKELY
        else:
            confidence = Confidence.LIKELY if many else Confidence.POSSIBLE
        return Answer(row.mnemonic, self.table.pipes.get(row.mnemonic, ""), row.size, confidence, number)

    def _ambiguous(self, names: set[str]) -> Answer:
        pipes = {self.table.pipes.get(name, "") for name in names}
        pipe = pipes.pop() if len(pipes) == 1 else ""
        size = self.table.unit if self._fixed else 0
        return Answer("", pipe, size, Confidence.NONE, rivals=tuple(sorted(names)))


def _entries(table: EncodingTable) -> Iterator[_Entry]:
    for number, guard in enumerate(table.guards):
        for value, free in cubes(guard.refused, guard.width):
            fixed = ((1 << guard.width) - 1) & ~free
            yield _Entry(-1, False, fixed << guard.low, value << guard.low, number)
    for number, row in enumerate(table.rows):
        if row.relaxed != row.strict:
            yield _Entry(number, False, row.relaxed, row.value & row.relaxed)
        yield _Entry(number, True, row.strict, row.value)


def _inside(narrow: Row, wide: Row) -> bool:
    """True if whatever `narrow` accepts, `wide` accepts too, and not the other way round."""
    return (
        narrow.relaxed != wide.relaxed
        and narrow.relaxed & wide.relaxed == wide.relaxed
        and not (narrow.value ^ wide.value) & wide.relaxed
    )
