"""Instruction words of our own making: from the rules of the open table, with the operands that a test wants.

No word is taken from an object. A word has the bits that its rule asks for, those that every instruction of the
rule had, and the operands; so it carries the same facts as the objects that the table was measured on.
"""

from __future__ import annotations

from mccprobe.objects.isa.mtgpu.decode import Decoder
from mccprobe.objects.isa.mtgpu.table import ALL_BITS, OpenTable, Rule, open_table

LAST = 1 << 31


def rule_of(table: OpenTable, name: str) -> Rule:
    return next(rule for rule in table.rules if rule.id == name)


def number_of(table: OpenTable, name: str, **operands: tuple[str, int]) -> int:
    """The instruction as one number. operands: name -> (bank, index)."""
    rule = rule_of(table, name)
    number = rule.value | (rule.seen_one & ~rule.seen_zero & ALL_BITS & ~rule.explained)
    for field in rule.fields:
        bank, index = operands.get(field.name, next(iter(field.banks.values())).partition("+")[0] and (None, None))
        if bank is None:
            bank, index = next(iter(field.banks.values())).partition("+")[0], 0
        code, more = next(
            (code, int(label.partition("+")[2] or 0))
            for code, label in field.banks.items()
            if label.partition("+")[0] == bank
        )
        for bit, digit in zip(field.bank, code, strict=True):
            number = number & ~(1 << bit) | int(digit) << bit
        rest = index - field.offset - more
        assert rest >= 0 or index == 0, f"{bank}{index} cannot be written in {name}"
        rest = max(rest, 0)
        for weight, bits in enumerate((*field.bits, *((bit,) for bit in field.extra))):
            for bit in bits:
                number = number & ~(1 << bit) | (rest >> weight & 1) << bit
    return number


def encode(number: int, dwords: int) -> bytes:
    """The first dwords of it, bit 31 in the last one."""
    words = [number >> 32 * place & (LAST - 1) for place in range(dwords)]
    words[-1] |= LAST
    return b"".join(word.to_bytes(4, "little") for word in words)


def word(family: str, name: str, dwords: int | None = None, **operands: tuple[str, int]) -> bytes:
    """One instruction; dwords: by default the most that the rule has."""
    table = open_table(family)
    return encode(number_of(table, name, **operands), dwords or max(rule_of(table, name).dwords))


def branch(family: str, name: str, distance: int) -> bytes:
    """A branch by so many dwords from its own start."""
    table = open_table(family)
    number = number_of(table, name)
    for weight, bit in enumerate(table.distance.bits):
        number = number & ~(1 << bit) | (distance >> weight & 1) << bit
    for bit in table.distance.sign:
        number = number & ~(1 << bit) | (distance < 0) << bit
    return encode(number, 2)


def decoder(family: str) -> Decoder:
    return Decoder(open_table(family))
