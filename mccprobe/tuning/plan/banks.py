"""Bank conflicts of shared memory, exact: the addresses of all lanes are laid over 16 banks of 4 bytes.

A request takes as many cycles as the fullest bank has different words; lanes that want the same word share it.
No request can be faster than all its words spread evenly. Which lane of a WMMA load reads what is not public:
`fragment_load` gives what no order can beat, `row_reads` one plausible order.
Source of banks and width: article, section 13.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mccprobe.base.errors import UsageError
from mccprobe.tuning.plan.machine import BANK_BYTES, BANKS, HALF_BYTES
from mccprobe.tuning.plan.tile import Tile

LANES = 32  # that read together in the article's epilogue, section 13
WIDTHS = (4, 8, 16)  # bytes a lane of one access
MAX_STRIDE = 1 << 20  # elements: more than any shared memory holds


@dataclass(frozen=True)
class Conflict:
    """One request. words: different ones. cycles: of the fullest bank. ideal: of an even spread."""

    what: str
    lanes: int
    width_bytes: int
    words: int
    cycles: int
    ideal: int

    @property
    def slowdown(self) -> float:
        return self.cycles / self.ideal

    def to_dict(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "lanes": self.lanes,
            "width_bytes": self.width_bytes,
            "words": self.words,
            "cycles": self.cycles,
            "ideal": self.ideal,
            "slowdown": round(self.slowdown, 4),
        }


def request(
    what: str, addresses: Iterable[int], width_bytes: int, *, banks: int = BANKS, bank_bytes: int = BANK_BYTES
) -> Conflict:
    """One request: a byte address for each lane. Raises UsageError for an empty one."""
    given = list(addresses)
    words = {word for at in given for word in range(at // bank_bytes, (at + width_bytes - 1) // bank_bytes + 1)}
    if not words:
        raise UsageError("a request without an address")
    in_bank = [0] * banks
    for word in words:
        in_bank[word % banks] += 1
    return Conflict(what, len(given), width_bytes, len(words), max(in_bank), math.ceil(len(words) / banks))


def strided(
    stride: int, element_bytes: int, *, width_bytes: int = BANK_BYTES, lanes: int = LANES, banks: int = BANKS
) -> Conflict:
    """Lane k reads `width_bytes` at element k * stride. ways, as the article counts them, are `cycles` at 4 bytes.

    Raises UsageError for a stride below 0 or beyond MAX_STRIDE.
    """
    if not 0 <= stride <= MAX_STRIDE:
        raise UsageError(f"stride {stride}: expected 0 to {MAX_STRIDE} elements")
    what = f"stride {stride} x {element_bytes} bytes"
    return request(what, (lane * stride * element_bytes for lane in range(lanes)), width_bytes, banks=banks)


def fragment_load(tile: Tile, operand: str) -> Conflict:
    """All words of one operand fragment at once: a lower bound for every order of lanes.

    operand: "A" ([K][M + pad], lines of fragment M) or "B" ([N][K + pad], lines of fragment K).
    """
    lines, length, line = _operand(tile, operand)
    addresses = [row * line * HALF_BYTES + 4 * word for row in range(lines) for word in range(length * HALF_BYTES // 4)]
    return request(f"fragment of {operand}, all at once", addresses, 4)


def row_reads(tile: Tile, operand: str) -> list[Conflict]:
    """Each lane reads the start of its own line: for every width that the line's alignment allows."""
    lines, length, line = _operand(tile, operand)
    found = []
    for width in WIDTHS:
        if line * HALF_BYTES % width == 0 and width <= length * HALF_BYTES:
            what = f"fragment of {operand}, a line for each lane"
            found.append(request(what, (row * line * HALF_BYTES for row in range(lines)), width))
    return found


def _operand(tile: Tile, operand: str) -> tuple[int, int, int]:
    """(lines, halfs of a line in the fragment, halfs from line to line)."""
    rows, columns, depth = tile.fragment
    return (depth, rows, tile.line_a) if operand == "A" else (columns, depth, tile.line_b)


def alignment_note(tile: Tile) -> str:
    """What a padding does to wide accesses, "" if nothing."""
    odd = [
        f"{name} ({line * HALF_BYTES} bytes)"
        for name, line in (("A", tile.line_a), ("B", tile.line_b))
        if line * HALF_BYTES % 16
    ]
    return f"lines of {' and '.join(odd)} are no multiple of 16 bytes: float4 accesses are not aligned" if odd else ""
