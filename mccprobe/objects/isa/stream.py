"""Bytes of a function to a stream of answers: step by the size that the table tells, and say where it could not.

With one instruction size every word stands alone. With several, an unknown word leaves the decode out
of step: what follows may be read at a wrong boundary. It is in step again at the start of a function
and after ANCHOR_RUN certain answers in a row; everything between is `out-of-step`, counted, never
believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mccprobe.objects.isa.bulk import BulkClassifier
from mccprobe.objects.isa.decode import Classifier
from mccprobe.objects.isa.encoding import Answer, Confidence, EncodingTable

ANCHOR_RUN = 4
FAST_BYTES = 1 << 16  # of code; for less the import of numpy takes longer than it saves
GROUP_BYTES = 1 << 22  # of code classified at a time: 20 bytes of memory for each of it

KNOWN, AMBIGUOUS, UNKNOWN_WORD, OUT_OF_STEP = "known", "ambiguous", "unknown", "out-of-step"
_LOST = Answer("", "", 0, Confidence.NONE, row=-2)  # of a step that is not believed


class Decoded(NamedTuple):
    """One step of the stream. mnemonic: "" unless `state` is `known`; pipe: "" where not told."""

    address: int
    data: bytes
    mnemonic: str
    pipe: str
    confidence: Confidence
    state: str
    rivals: tuple[str, ...] = ()


class StreamCounts(NamedTuple):
    """Steps by state, by confidence and by pipe."""

    total: int
    states: dict[str, int]
    confidence: dict[str, int]
    pipes: dict[str, int]


@dataclass(frozen=True)
class Stream:
    """The steps of one function, kept small: their places and the answers, which many of them share."""

    address: int
    code: bytes
    positions: Sequence[int]
    answers: Sequence[Answer]

    def __iter__(self) -> Iterator[Decoded]:
        """The sizes of the steps add up to `len(code)`."""
        ends = [*self.positions[1:], len(self.code)][: len(self.positions)]
        for start, end, answer in zip(self.positions, ends, self.answers, strict=True):
            data = self.code[start:end]
            if answer.mnemonic:
                known = (answer.mnemonic, answer.pipe, answer.confidence, KNOWN)
                yield Decoded(self.address + start, data, *known)
            else:
                yield Decoded(
                    self.address + start, data, "", answer.pipe, Confidence.NONE, _state(answer), answer.rivals
                )

    def count(self) -> StreamCounts:
        """For a report: what share was classified, ambiguous, unknown, out of step."""
        states: Counter[str] = Counter()
        confidence: Counter[str] = Counter()
        pipes: Counter[str] = Counter()
        of_number = {id(answer): answer for answer in self.answers}  # hashing an answer takes as long as finding it
        for number, times in Counter(map(id, self.answers)).items():
            answer = of_number[number]
            states[_state(answer)] += times
            if answer.mnemonic:
                confidence[answer.confidence.name.lower()] += times
            pipes[answer.pipe or "unknown"] += times
        return StreamCounts(
            states.total(),
            {name: states[name] for name in (KNOWN, AMBIGUOUS, UNKNOWN_WORD, OUT_OF_STEP)},
            {level.name.lower(): confidence[level.name.lower()] for level in reversed(Confidence) if level},
            dict(sorted(pipes.items(), key=lambda item: (-item[1], item[0]))),
        )


def _state(answer: Answer) -> str:
    if answer.mnemonic:
        return KNOWN
    if answer is _LOST:
        return OUT_OF_STEP
    return AMBIGUOUS if answer.rivals else UNKNOWN_WORD


class Decoder:
    """A table made ready for functions: all their words at once where there is numpy, else one by one."""

    def __init__(self, table: EncodingTable, *, fast: bool | None = None) -> None:
        """fast: None to use numpy for much code where it is installed. `decode` raises ToolchainError without it."""
        self.table = table
        self.classifier = Classifier(table)
        self._fast = fast
        self._bulk: dict[int, BulkClassifier] = {}

    def decode(self, functions: Sequence[tuple[int, bytes]]) -> Iterator[Stream]:
        """The stream of each (address, code)."""
        fast = self._fast
        if fast is None:
            fast = sum(len(code) for _, code in functions) >= FAST_BYTES and BulkClassifier.available()
        if any(size % self.table.unit for size in self.table.sizes):
            fast = False
        for group in _groups(functions):
            units = self._all_units(group) if fast else None
            for number, (address, code) in enumerate(group):
                positions, answers = self._walk(address, code, units, number)
                if len(self.table.sizes) > 1:
                    _disbelieve(answers)
                yield Stream(address, code, positions, answers)

    def _all_units(self, group: Sequence[tuple[int, bytes]]) -> _Units:
        table, window = self.table, self.classifier.window
        text = bytearray()
        places: list[int] = []
        for address, code in group:
            offset = address % table.word if table.slots > 1 else 0
            text += bytes(-len(text) % table.word + offset)
            places.append(len(text) // table.unit if offset % table.unit == 0 else -1)
            text += code
        text += bytes(-len(text) % table.word + window)  # the last window is whole, and of no use
        answers = [_LOST] * (len(text) // table.unit)
        for slot in range(table.slots) if table.slots > 1 else (-1,):
            if slot not in self._bulk:
                self._bulk[slot] = BulkClassifier(self.classifier, slot)
            bulk = self._bulk[slot]
            at = max(slot, 0)
            for numbers in bulk.classify(bytes(text[at * table.unit :]), table.slots * table.unit):
                found = [bulk.answers[number] for number in numbers.tolist()]
                answers[at : at + table.slots * len(found) : table.slots] = found
                at += table.slots * len(found)
        return _Units(places, answers)

    def _walk(self, address: int, code: bytes, units: _Units | None, number: int) -> tuple[list[int], list[Answer]]:
        """Places and answers from the first byte to the last."""
        table, window = self.table, self.classifier.window
        unit = table.unit
        positions: list[int] = []
        answers: list[Answer] = []
        position = 0
        if units is not None and units.places[number] >= 0 and len(code) >= window:
            place, known = units.places[number], units.answers
            at, last = place, place + (len(code) - window) // unit
            steps = {size: max(size // unit, 1) for size in (0, *table.sizes)}
            while at <= last:
                answer = known[at]
                positions.append(position)
                answers.append(answer)
                at += steps[answer.size]
                position = (at - place) * unit
        while position < len(code):  # without numpy, and at the end: there fewer rows come into question
            word = int.from_bytes(code[position : position + window], "little")
            answer = self.classifier.answer(word, len(code) - position, table.slot_of(address + position))
            positions.append(position)
            answers.append(answer)
            position += answer.size or unit
        return positions, answers


class _Units(NamedTuple):
    """The answers at every unit of a group of functions, and where each of these begins; -1 where it does not fit."""

    places: list[int]
    answers: list[Answer]


def _groups(functions: Sequence[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    group: list[tuple[int, bytes]] = []
    size = 0
    for function in functions:
        group.append(function)
        size += len(function[1])
        if size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _disbelieve(answers: list[Answer]) -> None:
    """Mark what follows an unknown size as out of step, up to ANCHOR_RUN certain answers in a row."""
    unknown = [number for number, answer in enumerate(answers) if not answer.size]
    anchor = 0
    for number in unknown:
        if number < anchor:
            continue
        run, anchor = 0, number + 1
        while anchor < len(answers) and run < ANCHOR_RUN:
            run = run + 1 if answers[anchor].confidence is Confidence.CERTAIN else 0
            anchor += 1
        lost = anchor - (run if run == ANCHOR_RUN else 0)
        answers[number + 1 : lost] = [_LOST] * (lost - number - 1)
