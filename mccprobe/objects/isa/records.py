"""What a listing holds: instructions in functions, with labels. Parsers make these, everything else reads them.

Instructions are named tuples: a listing of 10 MB has a quarter of a million of them, and a frozen
dataclass costs five times as much to make.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

OTHER = "other"  # the pipe of a mnemonic that no table knows


class Instruction(NamedTuple):
    """One instruction of a listing.

    address: where it stands, None where the listing gives none (mcc -S). data: its bytes in memory
    order, None where the listing gives none. mnemonic: as written, with its suffixes
    (`MMA.323216`). operands: the text after it. text: mnemonic and operands as one line, without
    address, bytes, control field or comment. pipe: see `pipes`. target: the label, or the address
    as `0x...` in lower case, that it branches to; "" if none or not told. control: the control field
    of MTGPU (`N-sD---`), "" elsewhere. flags: what stands between (`EX`, a predicate), "" if nothing.
    line: number in the listing, from 1. confidence: of a name by a learned table, "" where a
    disassembler says it.
    """

    address: int | None
    data: bytes | None
    mnemonic: str
    operands: str
    text: str
    pipe: str
    target: str = ""
    control: str = ""
    flags: str = ""
    line: int = 0
    confidence: str = ""


@dataclass(frozen=True)
class Function:
    """One function (or kernel) of a listing.

    labels: name to the index of the instruction that it stands before (len(instructions) if at the
    end). address: of its start, None if the listing gives none.
    """

    name: str
    instructions: tuple[Instruction, ...]
    labels: dict[str, int] = field(default_factory=dict)
    address: int | None = None


@dataclass(frozen=True)
class UnknownLine:
    """A line that no rule of the grammar accepts; kept and counted, never guessed at."""

    number: int
    text: str


@dataclass(frozen=True)
class Listing:
    """A parsed listing.

    format: `mcc-s`, `objdump-amdgpu`, `objdump-x86`, `objdump-mtgpu`, `nvdisasm`,
    `table-mtgpu`. target: what the
    listing says of its target (`mp_22`, `gfx908`), "" if nothing. lines: how many it had.
    symbols: named data symbols with their size in bytes (`.comm`, `.lcomm`).
    """

    format: str
    functions: tuple[Function, ...]
    unknown: tuple[UnknownLine, ...] = ()
    target: str = ""
    lines: int = 0
    symbols: dict[str, int] = field(default_factory=dict)

    @property
    def instruction_count(self) -> int:
        return sum(len(function.instructions) for function in self.functions)
