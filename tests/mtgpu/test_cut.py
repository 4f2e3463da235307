"""Code is cut at bit 31, and what does not fit is said to be unknown, with its place."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.objects.isa.mtgpu.cut import LAST, as_integer, cut, fits_instruction


def code(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def test_an_instruction_ends_at_its_first_dword_with_bit_31() -> None:
    found = cut(code(1 | LAST, 2, 3 | LAST, 4, 5, 6, 7 | LAST))
    assert found.fits and [piece.dwords for piece in found.pieces] == [(1 | LAST,), (2, 3 | LAST), (4, 5, 6, 7 | LAST)]
    assert [piece.offset for piece in found.pieces] == [0, 4, 12]
    assert found.sizes() == {1: 1, 2: 1, 4: 1}


@pytest.mark.parametrize(
    ("data", "offset", "why"),
    [
        (code(LAST, 1, 2, 3, 4, LAST, LAST), 4, "5 dwords"),
        (code(LAST, LAST, 7), 8, "no dword with bit 31 ends it"),
        (code(LAST) + b"ab", 4, "2 bytes are less than a dword"),
        (bytes(36), 0, "no dword with bit 31 ends it"),
    ],
)
def test_code_that_does_not_fit_is_unknown_with_its_offset(data: bytes, offset: int, why: str) -> None:
    found = cut(data)
    (misfit,) = found.misfits
    assert (misfit.offset, misfit.dwords) == (offset, ()) and why in misfit.misfit
    assert not found.fits


def test_the_cut_goes_on_behind_code_that_does_not_fit() -> None:
    found = cut(code(1, 2, 3, 4, LAST, 9 | LAST))
    assert [bool(piece.misfit) for piece in found.pieces] == [True, False]
    assert found.pieces[1].dwords == (9 | LAST,)


@given(st.binary(max_size=120))
def test_the_pieces_are_the_code(data: bytes) -> None:
    pieces = cut(data).pieces
    assert b"".join(piece.data for piece in pieces) == data
    assert all(bool(piece.misfit) != bool(piece.dwords) for piece in pieces)
    assert all(fits_instruction(piece.data) for piece in pieces if piece.dwords)


def test_bits_31_hold_no_operand() -> None:
    assert as_integer((LAST | 1, LAST | 2)) == 1 | 2 << 32
