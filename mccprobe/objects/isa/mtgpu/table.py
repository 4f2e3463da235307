"""The open table of one encoding: rules from bits to classes, fields of registers, the branch distance.

A rule says: an instruction of so many dwords whose bits under `mask` are `value` is of this class. Rules are
tried in order. Bit numbers count through the dwords, 32 each; the bits 31 hold no operand and are cleared.

Bits that no instruction of a rule had in the objects that the table was measured on are `unseen`: an
instruction with such a bit may be something else, so its class is at most `likely` and its registers are
not read. Where several bits explain one weight of a field equally well, all are listed, and a register is
read only where they agree.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from typing import Any

CERTAIN, LIKELY = "certain", "likely"
LEVELS = (CERTAIN, LIKELY)
FAMILIES = {"mp_21": "mp_2x", "mp_22": "mp_2x", "mp_31": "mp_31"}
READ, WRITTEN = "read", "written"
ALL_BITS = (1 << 128) - 1  # of four dwords


@dataclass(frozen=True)
class Evidence:
    """What a rule rests on. instructions, functions: with it; kernels: of which sources.

    holds, fails: checks of it and of its operands; checks: which, in words.
    """

    instructions: int
    functions: int
    holds: int
    fails: int
    checks: tuple[str, ...]
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class Field:
    """One operand. bits: by weight 1, 2, 4 ..; each a tuple of bit numbers that must agree, () for an unknown weight.

    role: read or written. bank: bit numbers whose values pick one of `banks` (`SH+16`: 16 is added). extra: higher
    weights of the banks in `wide`; in the others a set one makes the operand unknown. offset: added to the value.
    span: registers from it on.
    """

    name: str
    role: str
    bits: tuple[tuple[int, ...], ...]
    bank: tuple[int, ...]
    banks: Mapping[str, str]
    extra: tuple[int, ...]
    wide: tuple[str, ...]
    offset: int
    span: int
    confidence: str
    holds: int
    fails: int


@dataclass(frozen=True)
class Rule:
    """One kind of instruction. flow: "", branch, jump or end. seen_one, seen_zero: bits seen as 1, as 0.

    widths: of a memory access, (bit that is set, bytes); exactly one must be set.
    """

    id: str
    name: str
    pipe: str
    flow: str
    dwords: tuple[int, ...]
    mask: int
    value: int
    confidence: str
    evidence: Evidence
    seen_one: int
    seen_zero: int
    fields: tuple[Field, ...]
    widths: tuple[tuple[int, int], ...] = ()

    @functools.cached_property
    def explained(self) -> int:
        """Bits that the rule's operands are read from."""
        places = (bit for field in self.fields for bit in (*chain(*field.bits), *field.bank, *field.extra))
        return functools.reduce(lambda mask, bit: mask | 1 << bit, places, 0)

    def novel(self, number: int) -> int:
        """Bits of an instruction that no instruction of this rule had, and that no operand is read from."""
        unseen = (number & ~self.seen_one) | (~number & ~self.seen_zero & ALL_BITS)
        return unseen & ~self.explained


@dataclass(frozen=True)
class Distance:
    """The branch distance in dwords, from the branch's own first dword. sign: bits that are all 1 if it is negative."""

    bits: tuple[int, ...]
    sign: tuple[int, ...]
    holds: int
    fails: int


@dataclass(frozen=True)
class OpenTable:
    """Everything of one encoding.

    defaults: (low four bits of the first dword, number of a dword, its value where an instruction leaves it out).
    """

    family: str
    targets: tuple[str, ...]
    rules: tuple[Rule, ...]
    distance: Distance
    defaults: tuple[tuple[int, int, int], ...]
    sources: tuple[str, ...]


def family_of(target: str) -> str:
    """mp_2x for mp_21 and mp_22, mp_31 for mp_31, "" for what no table is of."""
    return FAMILIES.get(target, "")


@functools.cache
def open_table(family: str) -> OpenTable:
    """The table of one family, as shipped."""
    text = resources.files("mccprobe.objects.isa.mtgpu").joinpath(f"data/{family}.json").read_text(encoding="utf-8")
    return parse_table(json.loads(text))


def parse_table(document: Mapping[str, Any]) -> OpenTable:
    """From the document that `tools/mtgpu` writes."""
    distance = document["distance"]
    return OpenTable(
        family=document["family"],
        targets=tuple(document["targets"]),
        rules=tuple(_rule(one) for one in document["rules"]),
        distance=Distance(tuple(distance["bits"]), tuple(distance["sign"]), distance["holds"], distance["fails"]),
        defaults=tuple((int(one["nibble"], 16), one["dword"], int(one["value"], 16)) for one in document["defaults"]),
        sources=tuple(document["sources"]),
    )


def _rule(one: Mapping[str, Any]) -> Rule:
    evidence = one["evidence"]
    return Rule(
        id=one["id"],
        name=one["class"],
        pipe=one["pipe"],
        flow=one["flow"],
        dwords=tuple(one["dwords"]),
        mask=int(one["mask"], 16),
        value=int(one["value"], 16),
        confidence=one["confidence"],
        evidence=Evidence(
            evidence["instructions"],
            evidence["functions"],
            evidence["holds"],
            evidence["fails"],
            tuple(evidence["checks"]),
            tuple(evidence["kernels"]),
        ),
        seen_one=int(one["seen_one"], 16),
        seen_zero=int(one["seen_zero"], 16),
        fields=tuple(_field(item) for item in one["fields"]),
        widths=tuple((bit, size) for bit, size in one["widths"]),
    )


def _field(one: Mapping[str, Any]) -> Field:
    return Field(
        name=one["name"],
        role=one["role"],
        bits=tuple(tuple(weight) for weight in one["bits"]),
        bank=tuple(one["bank"]),
        banks=dict(one["banks"]),
        extra=tuple(one["extra"]),
        wide=tuple(one["wide"]),
        offset=one["offset"],
        span=one["span"],
        confidence=one["confidence"],
        holds=one["holds"],
        fails=one["fails"],
    )
