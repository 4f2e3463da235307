"""A learned table, or a listing, against the open table: do both say the same of the same code?

Compared is what both name: the pipe of an instruction, and where it ends. Neither side is believed over the
other; a disagreement is reported with its place, and it means that one of the two is wrong for this code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mccprobe.base.errors import InputError
from mccprobe.objects.binary.read import code_symbols, read_images
from mccprobe.objects.isa.encoding import EncodingTable
from mccprobe.objects.isa.mtgpu.decode import Decoder, decoder_of
from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import OTHER, Listing
from mccprobe.objects.isa.stream import Decoder as LearnedDecoder

EXAMPLES = 20
_NAMED = frozenset("INT BIT FOP AP CTRL COND MMA DMA.LD DMA.ST LSU.LD LSU.ST".split())
_SAME = {
    "DMA.LD": {"DMA.LD", "LSU.LD"},
    "LSU.LD": {"DMA.LD", "LSU.LD"},
    "DMA.ST": {"DMA.ST", "LSU.ST"},
    "LSU.ST": {"DMA.ST", "LSU.ST"},
}


@dataclass(frozen=True)
class Difference:
    """One instruction that the two sides read differently. other: the listing's or the learned table's reading."""

    function: str
    address: int
    data: bytes
    other: str
    open: str


@dataclass
class Agreement:
    """agree, disagree: instructions of which both name the pipe. ends: where the two sides end it differently.

    unnamed: instructions that one side alone names, or neither.
    """

    against: str
    agree: int = 0
    disagree: int = 0
    ends: int = 0
    unnamed: int = 0
    examples: list[Difference] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "against": self.against,
            "agree": self.agree,
            "disagree": self.disagree,
            "ends": self.ends,
            "unnamed": self.unnamed,
            "examples": [
                {
                    "function": one.function,
                    "address": one.address,
                    "bytes": one.data.hex(),
                    "other": one.other,
                    "open": one.open,
                }
                for one in self.examples
            ],
        }


def _agrees(ours: str, theirs: str) -> bool:
    """Whether two pipes may be the same; of ours that no public text names, any that is not one of the named."""
    if ours in _NAMED:
        return theirs in _SAME.get(ours, {ours})
    return theirs not in _NAMED


def _compare(
    found: Agreement,
    decoder: Decoder,
    function: str,
    start: int,
    code: bytes,
    theirs: Iterable[tuple[int, int, str, str]],
) -> None:
    """theirs: (address, size, mnemonic, pipe), pipe "" where it is not named."""
    steps = {address: (size, mnemonic, pipe) for address, size, mnemonic, pipe in theirs}
    for one in decoder.decode(code):
        address, rule = start + one.piece.offset, one.meaning.rule
        size, mnemonic, pipe = steps.get(address, (0, "", ""))
        ours = rule.name if rule is not None else "<unknown>"
        if not pipe or rule is None:
            found.unnamed += 1
            continue
        if size != len(one.piece.data):
            found.ends += 1
        elif _agrees(rule.pipe, pipe):
            found.agree += 1
            continue
        else:
            found.disagree += 1
        if len(found.examples) < EXAMPLES:
            found.examples.append(Difference(function, address, one.piece.data, mnemonic, ours))


def with_listings(listings: Sequence[Listing], target: str) -> Agreement | None:
    """An MTGPU listing with bytes against the open table of its target; None without such a table."""
    decoder = decoder_of(target)
    if decoder is None:
        return None
    found = Agreement("listing")
    for listing in listings:
        if not listing.format.endswith("-mtgpu"):
            return None
        for function in listing.functions:
            told = [one for one in function.instructions if one.data and one.address is not None]
            steps = [
                (one.address or 0, len(one.data or b""), one.mnemonic, "" if one.pipe in (UNKNOWN, OTHER) else one.pipe)
                for one in told
            ]
            if steps:
                start = steps[0][0]
                code = bytearray(max(address + size for address, size, _, _ in steps) - start)
                for one in told:
                    place = (one.address or 0) - start
                    code[place : place + len(one.data or b"")] = one.data or b""
                _compare(found, decoder, function.name, start, bytes(code), steps)
    return found


def with_object(table: EncodingTable, path: Path) -> Agreement:
    """What a learned table says of an object against what the open table says. Raises InputError, BadElf."""
    decoder = decoder_of(table.target)
    if decoder is None:
        raise InputError(f"{path}: no open table for {table.target or 'a table without a target'} to compare with")
    images = [one for one in read_images(path) if one.kind == "mtgpu-elf" and one.target in ("", table.target)]
    if not images:
        raise InputError(f"{path}: no MTGPU object for {table.target}", hint="mccprobe notes lists its images")
    found = Agreement(path.name)
    learned = LearnedDecoder(table)
    for image in images:
        symbols = code_symbols(image)
        streams = learned.decode([(symbol.address, symbol.data) for symbol in symbols])
        for symbol, stream in zip(symbols, streams, strict=True):
            steps = [(one.address, len(one.data), one.mnemonic, one.pipe if one.mnemonic else "") for one in stream]
            _compare(found, decoder, symbol.name, symbol.address, symbol.data, steps)
    return found


def lines_of(found: Agreement) -> list[str]:
    """For people."""
    lines = [
        f"  open table, {found.against}: {found.agree} agree, {found.disagree} name another pipe, "
        f"{found.ends} end elsewhere, {found.unnamed} named by one side at most"
    ]
    lines += [
        f"    {one.function} 0x{one.address:x}  {one.data.hex(' ', 4)}: {one.other}, open table: {one.open}"
        for one in found.examples
    ]
    return lines
