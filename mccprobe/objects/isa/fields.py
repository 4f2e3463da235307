"""Which bits of a word are operands: value bit j equals word bit i in every sample of a key.

Two steps: each key with enough samples votes for places by (form, operand, ordinal), then by operand
kind alone. A key with few samples may borrow a place only if it reproduces the printed value in all
of its samples, no other place does, and some value is not zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mccprobe.objects.isa.columns import Columns, sum_of_bits
from mccprobe.objects.isa.encoding import Field
from mccprobe.objects.isa.operands import FLAGS, Sample

VALUE_BITS = 32
VOTING_SAMPLES = 4  # a key with fewer has accidental equalities
FULL_VOTE_SAMPLES = 6
MAX_CANDIDATES = 4  # word bits that equal one value bit; more says nothing
PLACE_BITS = 3  # neighbouring bits that make a place; flags have one


class Place(NamedTuple):
    """Bits of a word that hold a number: a register's, or one of its flags, or an immediate.

    low: where bit 0 of the number is, or would be.
    """

    mask: int
    low: int
    register: bool
    flag: bool


Role = tuple[int, tuple[str, ...], int, int]  # size, form, operand, ordinal


def _value_columns(samples: Sequence[Sample], operand: int, ordinal: int) -> list[int]:
    """Column j: bit s set where bit j of the value in sample s is set."""
    values = [sample.values[operand][ordinal] & 0xFFFFFFFF for sample in samples]
    return Columns(values, VALUE_BITS).ones


def operand_slots(sample: Sample) -> Iterator[tuple[int, int]]:
    """(operand, ordinal) of every number of a form."""
    for operand, numbers in enumerate(sample.values):
        for ordinal in range(len(numbers)):
            yield operand, ordinal


class FieldFinder:
    """Votes first (`add` for every key), then `finish`, then `operand_places` for every key."""

    def __init__(self) -> None:
        self._votes: dict[Role, Counter[tuple[int, int]]] = defaultdict(Counter)
        self._roles: dict[Role, dict[int, list[int]]] = {}
        self._places: dict[tuple[int, str, int], dict[int, tuple[int, int]]] = {}

    def add(self, samples: Sequence[Sample], columns: Columns) -> None:
        """Vote for the places of one key's operands."""
        if len(samples) < VOTING_SAMPLES:
            return
        where: dict[int, list[int]] = defaultdict(list)
        for position, column in enumerate(columns.ones):
            where[column].append(position)
        first = samples[0]
        weight = 1.0 if len(samples) >= FULL_VOTE_SAMPLES else 0.3
        for operand, ordinal in operand_slots(first):
            votes = self._votes[first.size, first.form, operand, ordinal]
            for bit, column in enumerate(_value_columns(samples, operand, ordinal)):
                if column in (0, columns.everything):
                    continue
                hits = where.get(column, [])
                if 0 < len(hits) <= MAX_CANDIDATES:
                    for position in hits:
                        votes[bit, position] += weight / len(hits)  # type: ignore[assignment]

    def finish(self) -> None:
        """Turn votes into places."""
        places: dict[tuple[int, str, int], dict[int, tuple[int, int]]] = defaultdict(dict)
        for role, votes in self._votes.items():
            ranked: dict[int, list[tuple[float, int]]] = defaultdict(list)
            for (bit, position), count in votes.items():
                if count >= 0.9:
                    ranked[bit].append((count, position))
            found = {bit: [position for _, position in sorted(rank, reverse=True)[:3]] for bit, rank in ranked.items()}
            self._roles[role] = found
            size, form, operand, ordinal = role
            runs: dict[int, set[int]] = defaultdict(set)
            for bit, positions in found.items():
                for position in positions:
                    runs[position - bit].add(bit)
            for low, bits in runs.items():
                if low >= 0 and (len(bits) >= PLACE_BITS or bits == {0}):
                    width, count = places[size, form[operand], ordinal].get(low, (0, 0))
                    places[size, form[operand], ordinal][low] = (max(width, max(bits) + 1), count + 1)
        self._places = dict(places)

    def fields(self) -> tuple[Field, ...]:
        """The places, for the table."""
        return tuple(
            Field(size, kind, ordinal, low, width, votes)
            for (size, kind, ordinal), places in sorted(self._places.items())
            for low, (width, votes) in sorted(places.items())
        )

    def operand_places(self, samples: Sequence[Sample], columns: Columns) -> list[Place]:
        """Where these samples prove numbers of their operands to lie."""
        found = []
        first = samples[0]
        for operand, ordinal in operand_slots(first):
            values = _value_columns(samples, operand, ordinal)
            role = self._roles.get((first.size, first.form, operand, ordinal))
            bits: dict[int, int] = {}  # value bit -> word bit
            if role and max(role) >= PLACE_BITS:
                bits = _by_role(role, values, columns)
            elif any(values):
                bits = self._by_place((first.size, first.form[operand], ordinal), values, columns)
            if bits:
                register = len(first.values[operand]) > 1 + len(FLAGS)
                low = min(position - bit for bit, position in bits.items())
                mask = sum_of_bits(1 << position for position in bits.values())
                found.append(Place(mask, max(low, 0), register and ordinal == 0, register and ordinal > 0))
        return found

    def _by_place(self, key: tuple[int, str, int], values: Sequence[int], columns: Columns) -> dict[int, int]:
        fitting = [
            (low, width)
            for low, (width, _) in self._places.get(key, {}).items()
            if low + width <= columns.width and _agrees(range(low, low + width), values, columns)
        ]
        if len(fitting) != 1:
            return {}
        low, width = fitting[0]
        return {bit: low + bit for bit in range(width)}


def _agrees(positions: Iterable[int], values: Sequence[int], columns: Columns) -> bool:
    return all(columns.ones[position] == value for position, value in zip(positions, values, strict=False))


def _by_role(role: dict[int, list[int]], values: Sequence[int], columns: Columns) -> dict[int, int]:
    bits = {}
    for bit, positions in role.items():
        for position in positions:
            if columns.ones[position] == values[bit]:
                bits[bit] = position
                break
    return bits
