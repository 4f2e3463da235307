"""Code to instructions: 1 to 4 dwords each, bit 31 marks the last dword.

Seen in every function of the public objects (docs: the page on MTGPU code); nothing else is assumed here. Code
that does not fit is not cut: it is `Cut.misfits`, with offset and reason, up to the next dword that ends one.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

DWORD_BYTES = 4
MOST_DWORDS = 4
LAST = 1 << 31
_BELOW_LAST = LAST - 1


@dataclass(frozen=True)
class Piece:
    """A stretch of code. dwords: of an instruction, with bit 31 as stored; () if it fits no instruction."""

    offset: int
    data: bytes
    dwords: tuple[int, ...]
    misfit: str = ""


@dataclass(frozen=True)
class Cut:
    """All of a function in pieces, in order; their sizes add up to the function's."""

    pieces: tuple[Piece, ...]

    @property
    def misfits(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.misfit]

    @property
    def fits(self) -> bool:
        return not self.misfits

    def sizes(self) -> dict[int, int]:
        """Dwords of an instruction -> how many instructions have so many."""
        return dict(sorted(Counter(len(piece.dwords) for piece in self.pieces if piece.dwords).items()))


def cut(code: bytes) -> Cut:
    """Cut one function."""
    words = dwords_of(code)
    pieces: list[Piece] = []
    start = 0
    for place, word in enumerate(words):
        if word & LAST:
            pieces.append(_piece(code, words, start, place + 1))
            start = place + 1
    at = start * DWORD_BYTES
    if at < len(code):
        ragged = len(code) % DWORD_BYTES and start == len(words)
        why = f"{len(code) - at} bytes are less than a dword" if ragged else "no dword with bit 31 ends it"
        pieces.append(Piece(at, code[at:], (), why))
    return Cut(tuple(pieces))


def _piece(code: bytes, words: Sequence[int], start: int, end: int) -> Piece:
    data = code[start * DWORD_BYTES : end * DWORD_BYTES]
    if end - start > MOST_DWORDS:
        why = f"{end - start} dwords up to the next bit 31, and an instruction has at most {MOST_DWORDS}"
        return Piece(start * DWORD_BYTES, data, (), why)
    return Piece(start * DWORD_BYTES, data, tuple(words[start:end]))


def as_integer(dwords: Sequence[int]) -> int:
    """The dwords as one number without their bits 31: bit b of dword n is bit 32 n + b."""
    value = 0
    for place, word in enumerate(dwords):
        value |= (word & _BELOW_LAST) << 32 * place
    return value


def dwords_of(data: bytes) -> tuple[int, ...]:
    """Whole dwords of these bytes."""
    return struct.unpack_from(f"<{len(data) // DWORD_BYTES}I", data)


def fits_instruction(data: bytes) -> bool:
    """True if these bytes are one instruction by this rule."""
    if not data or len(data) % DWORD_BYTES or len(data) > MOST_DWORDS * DWORD_BYTES:
        return False
    words = dwords_of(data)
    return bool(words[-1] & LAST) and not any(word & LAST for word in words[:-1])
