"""Records of learned encodings: rows of masks, the table that holds them, the answers it gives.

A row says "a word whose bits under `mask` equal `value` is this mnemonic". Every row comes from a
disassembler's text; there is no way to write an opcode by hand here, and a word that no row accepts
has no name. Words are little-endian integers of their bytes in memory order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

FORMAT = "mccprobe-isa-table"
FORMAT_VERSION = 1
CERTAIN_SAMPLES = 8  # distinct words behind a row that may answer "certain" (isa-learn study: 1 wrong of 11,565)


class Confidence(IntEnum):
    """How much an answer is worth; a claim "this object contains X" needs CERTAIN."""

    NONE = 0
    POSSIBLE = 1
    LIKELY = 2
    CERTAIN = 3


@dataclass(frozen=True)
class Row:
    """One learned encoding.

    form: kinds of the operands, None for a row over all forms of the mnemonic. size: bytes. slot:
    place in the word, -1 where that plays no part. samples: distinct words behind it. strict: bits
    equal in all of them; relaxed: those that remain when operand bits proved elsewhere are freed.
    part: a mnemonic with several encodings has several rows of one form. probed: how many of the
    samples come from flip probing and not from a listing.
    """

    mnemonic: str
    form: tuple[str, ...] | None
    size: int
    slot: int
    part: int
    samples: int
    probed: int
    value: int
    strict: int
    relaxed: int
    guards: tuple[int, ...] = ()  # numbers of the guards that this row is subject to

    @property
    def confidence(self) -> Confidence:
        """The best that an answer by this row can have."""
        return Confidence.CERTAIN if self.samples >= CERTAIN_SAMPLES else Confidence.LIKELY


@dataclass(frozen=True)
class Field:
    """Where values of an operand kind were seen: value bit j is word bit low + j."""

    size: int
    kind: str
    ordinal: int  # which number of the operand: 0 the first
    low: int
    width: int
    votes: int


@dataclass(frozen=True)
class Guard:
    """Values of a field that no short word was seen with: they may announce a longer instruction.

    Bits low to low + width - 1 of a word of `size` bytes; in an instruction set of several sizes a
    row of the short size does not answer for the refused values.
    """

    size: int
    low: int
    width: int
    refused: tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """A listing that was learned from."""

    name: str
    sha256: str
    format: str
    instructions: int


@dataclass(frozen=True)
class HeldOut:
    """The table's own test: learned from some of the listings, asked about words new in the others."""

    words: int  # distinct words that do not occur in what was learned from
    answered: int
    wrong: int
    certain: int
    certain_wrong: int
    pipe_wrong: int
    unseen: int  # words of mnemonics that were never seen
    unseen_named: int  # of those, how many got a name; each is one of `wrong`


@dataclass(frozen=True)
class EncodingTable:
    """All that was learned of one instruction set.

    unit: bytes by which instructions step (4 for gfx9, 16 for SASS). word: bytes of a whole word,
    slots: instructions in it; with slots > 1 `slot_of` tells the place of an address. tool: version
    text of the disassembler, "" if not told.
    """

    target: str
    unit: int
    word: int
    slots: int
    tool: str
    rows: tuple[Row, ...]
    pipes: Mapping[str, str]
    sources: tuple[Source, ...]
    fields: tuple[Field, ...] = ()
    guards: tuple[Guard, ...] = ()
    invisible: Mapping[int, int] = field(default_factory=dict)  # size -> bits that never show in the text
    conflicts: tuple[tuple[int, int, tuple[str, ...]], ...] = ()  # (size, word, its mnemonics)
    probes: Mapping[str, int] = field(default_factory=dict)
    held_out: HeldOut | None = None
    refused_rows: int = 0
    assumptions: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(sorted({row.size for row in self.rows}))

    def slot_of(self, address: int) -> int:
        """The slot that an address stands in, -1 where words have no slots. Assumes words aligned to their size."""
        return address % self.word // self.unit if self.slots > 1 else -1

    def summary(self) -> dict[str, Any]:
        """Counts for a report."""
        names = {row.mnemonic for row in self.rows}
        forms = [row for row in self.rows if row.form is not None]
        return {
            "target": self.target,
            "unit_bytes": self.unit,
            "word_bytes": self.word,
            "slots": self.slots,
            "mnemonics": len(names),
            "rows": len(self.rows),
            "forms": len(forms),
            "certain_rows": sum(row.confidence is Confidence.CERTAIN for row in forms),
            "refused_rows": self.refused_rows,
            "conflicts": len(self.conflicts),
            "assumptions": list(self.assumptions),
        }


@dataclass(frozen=True)
class Answer:
    """What a table says of one word: no mnemonic means unknown, or ambiguous where `rivals` has names.

    pipe: also told for an ambiguous word if all rivals agree. size: bytes, 0 if unknown.
    """

    mnemonic: str
    pipe: str
    size: int
    confidence: Confidence
    row: int = -1
    rivals: tuple[str, ...] = ()


UNKNOWN = Answer("", "", 0, Confidence.NONE)
