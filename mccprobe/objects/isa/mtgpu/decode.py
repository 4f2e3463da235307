"""Instructions to classes, registers and branch targets by the open table. What no rule takes stays unknown.

`Decoder.decode` gives one `Decoded` a piece of the cut, in order. Its confidence is the rule's, and no more
than `likely` where the instruction has a bit that no instruction of the rule had when the table was measured;
its registers are then unknown. A branch has a target only where all bits of the distance are known and it is the
start of an instruction.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mccprobe.objects.isa.mtgpu.cut import Piece, as_integer, cut
from mccprobe.objects.isa.mtgpu.table import LIKELY, Distance, Field, OpenTable, Rule, family_of, open_table

REGISTER_BYTES = 4


class Operand(NamedTuple):
    """A register or `span` of them in a row, or a word of a bank. first: None where its bits are not all known."""

    name: str
    role: str
    bank: str
    first: int | None
    span: int
    confidence: str

    @property
    def text(self) -> str:
        if self.first is None:
            return "?"
        if self.span == 1:
            return f"{self.bank}{self.first}"
        return f"{self.bank}[{self.first}:{self.first + self.span - 1}]"


class Meaning(NamedTuple):
    """What the dwords of one instruction mean wherever it is.

    distance: in dwords from its own start. width: bytes of a memory access, None where not known.
    """

    rule: Rule | None
    confidence: str
    operands: tuple[Operand, ...]
    distance: int | None
    width: int | None = None


UNKNOWN = Meaning(None, "", (), None)


@dataclass(frozen=True)
class Decoded:
    """One piece of a function with its meaning. target: offset in the function that it branches to."""

    piece: Piece
    meaning: Meaning
    target: int | None

    @property
    def name(self) -> str:
        """Its class, "" if unknown."""
        return self.meaning.rule.name if self.meaning.rule is not None else ""


class Decoder:
    """One table made ready for many functions; equal instructions are looked up once."""

    def __init__(self, table: OpenTable) -> None:
        self.table = table
        self._rules: dict[tuple[int, int], list[Rule]] = {}
        self._defaults: dict[int, list[tuple[int, int]]] = {}
        for nibble, place, value in table.defaults:
            self._defaults.setdefault(nibble, []).append((place, value))
        self._places = sum(1 << bit for bit in (*table.distance.bits, *table.distance.sign))  # of a branch
        self._known: dict[tuple[int, ...], Meaning] = {}

    def number(self, dwords: Sequence[int]) -> int:
        """The instruction as one number, with what a short form leaves out."""
        found = as_integer(dwords)
        for place, value in self._defaults.get(dwords[0] & 0xF, ()):
            if len(dwords) <= place:
                found |= value << 32 * place
        return found

    def rule_of(self, dwords: Sequence[int], number: int) -> Rule | None:
        """The first rule that takes it."""
        key = (dwords[0] & 0xF, len(dwords))
        if key not in self._rules:
            nibble, count = key
            self._rules[key] = [
                rule
                for rule in self.table.rules
                if count in rule.dwords and (rule.mask & 0xF) & (rule.value ^ nibble) == 0
            ]
        return next((rule for rule in self._rules[key] if number & rule.mask == rule.value), None)

    def meaning(self, dwords: tuple[int, ...]) -> Meaning:
        found = self._known.get(dwords)
        if found is None:
            found = self._known[dwords] = self._look_up(dwords)
        return found

    def _look_up(self, dwords: tuple[int, ...]) -> Meaning:
        number = self.number(dwords)
        rule = self.rule_of(dwords, number)
        if rule is None:
            return UNKNOWN
        goes = rule.flow in ("branch", "jump")
        distance = read_distance(self.table.distance, number) if goes else None
        if rule.novel(number) & ~(self._places if goes else 0):
            return Meaning(rule, LIKELY, tuple(_unknown(field) for field in rule.fields), distance)
        width = _width(rule, number)
        operands = tuple(_read(field, number) for field in rule.fields)
        if width is not None and width > REGISTER_BYTES:
            operands = tuple(_widened(operand, width) for operand in operands)
        return Meaning(rule, rule.confidence, operands, distance, width)

    def decode(self, code: bytes) -> list[Decoded]:
        """One function."""
        pieces = cut(code).pieces
        starts = {piece.offset for piece in pieces if piece.dwords}
        found = []
        for piece in pieces:
            meaning = self.meaning(piece.dwords) if piece.dwords else UNKNOWN
            target = None
            if meaning.distance is not None:
                place = piece.offset + 4 * meaning.distance
                target = place if place in starts else None  # a distance that lands elsewhere is not believed
            found.append(Decoded(piece, meaning, target))
        return found


@functools.cache
def decoder_of(target: str) -> Decoder | None:
    """The decoder of an architecture, None where no open table is of it."""
    family = family_of(target)
    return Decoder(open_table(family)) if family else None


def read_distance(known: Distance, number: int) -> int | None:
    """The signed distance in dwords; None where bits beyond the known field are set in part."""
    signs = sum(number >> bit & 1 for bit in known.sign)
    if signs not in (0, len(known.sign)):
        return None
    value = sum((number >> bit & 1) << weight for weight, bit in enumerate(known.bits))
    return value - (1 << len(known.bits)) if signs else value


def _width(rule: Rule, number: int) -> int | None:
    found = [size for bit, size in rule.widths if number >> bit & 1]
    return found[0] if len(found) == 1 else None


def _widened(operand: Operand, width: int) -> Operand:
    """The value of a memory access takes as many registers as its width has; its address does not."""
    return operand._replace(span=width // REGISTER_BYTES) if operand.name in ("dst", "data") else operand


def _unknown(field: Field) -> Operand:
    return Operand(field.name, field.role, "", None, field.span, "")


def _read(field: Field, number: int) -> Operand:
    """The operand, without a number where its bank or one of its weights is not known."""
    code = "".join(str(number >> bit & 1) for bit in field.bank)
    bank = field.banks.get(code, "")
    if not bank:
        return _unknown(field)
    bank, _, more = bank.partition("+")
    value = field.offset + int(more or 0)
    for weight, bits in enumerate(field.bits):
        seen = {number >> bit & 1 for bit in bits}
        if len(seen) > 1:
            return _unknown(field)
        value += sum(seen) << weight
    beyond = sum((number >> bit & 1) << weight for weight, bit in enumerate(field.extra, len(field.bits)))
    if value < 0 or (beyond and bank not in field.wide):
        return _unknown(field)
    return Operand(field.name, field.role, bank, value + beyond, field.span, field.confidence)
