"""12-byte words: what counts as confirmed, assumed, unknown; three counts and two rates."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.objects.binary.records import CodeSymbol
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.mtgpu.listing import open_listing
from mccprobe.objects.isa.records import Function, Instruction
from mccprobe.objects.isa.summary import summarise
from mccprobe.objects.isa.words import geometry, image_of, iter_words

DATA = Path(__file__).parent / "data"


def _at(*places: tuple[int, int]) -> Function:
    """Instructions at (address, size)."""
    return Function(
        "f", tuple(Instruction(address, b"\x01" * size, "FOP.MOV", "", "FOP.MOV", "FOP") for address, size in places)
    )


@pytest.mark.parametrize(
    ("places", "state"),
    [
        ([(0, 12), (12, 12), (24, 12), (36, 12)], "confirmed"),
        ([(0, 12), (0, 12), (12, 12), (24, 12), (24, 12), (36, 12)], "confirmed"),
        ([(0, 12), (12, 12), (24, 12)], "assumed"),
        ([(0, 4), (4, 4), (8, 4), (12, 4), (16, 8)], "assumed"),
        ([(0, 8), (8, 8), (16, 8)], "assumed"),
        ([(0, 8), (8, 8)], "unknown"),
        ([(0, 6), (6, 6)], "unknown"),
        ([(0, 12), (4, 12), (8, 4)], "unknown"),
        ([(24, 12), (12, 12), (0, 12)], "unknown"),
        ([], "unknown"),
    ],
)
def test_geometry(places: list[tuple[int, int]], state: str) -> None:
    found = geometry(_at(*places), "mtgpu")
    assert (found.state, bool(found.reason)) == (state, True)
    assert geometry(_at(*places), "amdgpu").state == "none"


def test_three_counts_and_packing() -> None:
    summary = summarise(parse_listing((DATA / "objdump-mtgpu-invented.txt").read_text()).functions[0])
    assert (summary.words, summary.slots, summary.empty_slots, summary.instructions) == (6, 18, 6, 10)
    assert summary.counts is not None and summary.main_loop_counts is not None
    assert (summary.counts.packing, summary.counts.matrix_words) == (12 / 18, 1)
    assert (summary.main_loop_counts.words, summary.main_loop_counts.slots) == (3, 9)
    assert (summary.code_bytes, summary.unknown_encodings) == (72, 1)


def test_bytes_that_fit_no_cut_are_no_instructions_and_no_words() -> None:
    listing, _ = open_listing([CodeSymbol("k", 0x100, bytes(range(36)), ".text")], "mp_22")
    summary = summarise(listing.functions[0])
    assert (summary.instructions, summary.words, summary.slots, summary.geometry.state) == (None, None, None, "unknown")
    assert summary.unknown_encodings == 1


def test_bytes_that_fit_the_cut_are_no_words() -> None:
    """A listing may step by 12 bytes: what its bytes say counts."""
    one = bytes.fromhex("1c000000 1c000000 1c000080")
    fits = Function("f", tuple(Instruction(12 * at, one, "X", "", "X", "FOP") for at in range(4)))
    assert geometry(fits, "mtgpu").state == "dwords"
    assert summarise(fits).sizes == {3: 4} and summarise(fits).words is None
    two = bytes.fromhex("1c000080 1c000000 1c000080")
    other = Function("f", tuple(Instruction(12 * at, two, "X", "", "X", "FOP") for at in range(4)))
    assert geometry(other, "mtgpu").state == "unknown" and "bit 31" in geometry(other, "mtgpu").reason


@given(st.integers(0, 1 << 40), st.binary(min_size=1, max_size=200))
def test_words_put_together_are_the_code(start: int, code: bytes) -> None:
    words = list(iter_words(start, code))
    assert b"".join(slot for word in words for slot in word.slots) == code
    assert [word.address for word in words] == [start + 12 * index for index in range(len(words))]


def test_elided_zeros_are_empty_slots() -> None:
    function = _at((0, 12), (36, 12))
    assert len(image_of(function)[1]) == 48
    summary = summarise(function)
    assert (summary.words, summary.empty_slots) == (4, 6)
