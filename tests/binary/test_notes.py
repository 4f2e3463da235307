"""The note walk: owners, padding, the last note, dedupe, damage; and what pyelftools makes of it."""

from __future__ import annotations

import io
import struct

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import BadNote
from mccprobe.objects.binary.elf import parse_elf
from mccprobe.objects.binary.notes import MAX_NOTES, iter_notes, read_elf_notes

from .writer import ET_DYN, ElfWriter, Part, note, padded

relaxed = settings(deadline=None)  # a busy machine is no failure


def walk(data: bytes, align: int = 4) -> list[tuple[str, int, bytes]]:
    return [
        (found.owner, found.type, found.descriptor)
        for _, found in iter_notes(data, 0, len(data), place="here", align=align)
    ]


@pytest.mark.parametrize("nul", [True, False])
@pytest.mark.parametrize(("owner", "kind", "name"), [("MTGPU", 0x40, "MTGPU metadata"), ("AMDGPU", 32, "NT_AMDGPU")])
def test_an_owner_counts_with_and_without_its_nul(nul: bool, owner: str, kind: int, name: str) -> None:
    elf = parse_elf(ElfWriter(notes=note(owner, kind, b"\x80", nul=nul)).build())
    (found,) = read_elf_notes(elf)
    assert (found.owner, found.type, found.descriptor) == (owner, kind, b"\x80")
    assert found.name.startswith(name)


def test_names_go_by_owner_and_number() -> None:
    notes = note("GNU", 3, b"id") + note("MTGPU", 3, b"id") + note("GNU", 0x40)
    assert [found.name for found in read_elf_notes(parse_elf(ElfWriter(notes=notes).build()))] == [
        "NT_GNU_BUILD_ID",
        "",
        "",
    ]


def test_location_is_the_offset_in_the_file() -> None:
    data = ElfWriter(notes=note("GNU", 3, b"abcd") + note("MTGPU", 0x40, b"\x80")).build()
    first, second = read_elf_notes(parse_elf(data))
    start = data.index(b"GNU\0") - 12
    assert first.location == f"section .note at 0x{start:x}"
    assert second.location == f"section .note at 0x{start + 20:x}"


def test_a_header_only_note_at_the_end_is_read_and_pyelftools_still_drops_it() -> None:
    """pyelftools 0.33; when this fails it was repaired, and style.md K can say so."""
    notes = note("MTGPU", 0x40, b"\x80") + struct.pack("<III", 0, 0, 7)
    data = ElfWriter(notes=notes).build()
    assert [(found.owner, found.type) for found in read_elf_notes(parse_elf(data))] == [("MTGPU", 0x40), ("", 7)]
    assert len(list(ELFFile(io.BytesIO(data)).get_section_by_name(".note").iter_notes())) == 1


def test_padding_that_the_end_cuts_off_and_padding_behind_the_last_note() -> None:
    assert walk(note("MTGPU", 0x40, b"abcde")[:-3]) == [("MTGPU", 0x40, b"abcde")]
    assert walk(note("X", 1, b"")[:-2]) == [("X", 1, b"")]
    assert walk(note("MTGPU", 0x40, b"abcd") + bytes(8)) == [("MTGPU", 0x40, b"abcd")]


def test_notes_are_padded_to_8_where_the_section_says_so() -> None:
    notes = note("GNU", 5, b"abcd", align=8) + note("MTGPU", 0x40, b"\x80", align=8)
    found = read_elf_notes(parse_elf(ElfWriter(notes=notes, note_align=8).build()))
    assert [(entry.owner, entry.descriptor) for entry in found] == [("GNU", b"abcd"), ("MTGPU", b"\x80")]


def test_a_section_that_says_8_and_pads_to_4_is_read_all_the_same() -> None:
    notes = note("MTGPU", 0x40, b"abcd") + note("MTGPU", 0x41, b"wxyz") + note("GNU", 3, b"12345678")
    found = read_elf_notes(parse_elf(ElfWriter(notes=notes, note_align=8).build()))
    assert [entry.descriptor for entry in found] == [b"abcd", b"wxyz", b"12345678"]


@pytest.mark.parametrize("section", [True, False])
def test_segment_and_section_give_each_note_once(section: bool) -> None:
    data = ElfWriter(notes=note("MTGPU", 0x40, b"\x80"), type=ET_DYN, note_segment=True, note_section=section).build()
    (found,) = read_elf_notes(parse_elf(data))
    assert found.location.startswith("section .note at" if section else "segment 0 at")


def test_a_segment_over_two_sections_adds_none() -> None:
    first, second = note("GNU", 3, b"abcd"), note("MTGPU", 0x40, b"\x80")
    data = ElfWriter(notes=first, parts=[Part(".note.b", second, type=7)], type=ET_DYN, note_segment=True).build()
    offset = struct.unpack_from("<Q", data, 64 + 8)[0]
    wide = bytearray(data)
    struct.pack_into("<Q", wide, 64 + 32, len(first) + len(second))  # p_filesz
    assert data[offset : offset + len(first) + len(second)] == first + second
    assert [entry.owner for entry in read_elf_notes(parse_elf(bytes(wide)))] == ["GNU", "MTGPU"]


@pytest.mark.parametrize(
    ("notes", "problem"),
    [
        (struct.pack("<III", 0xFFFF_FFFF, 0, 1), "note 0: a name of 4294967295 bytes runs past the end (0 bytes"),
        (struct.pack("<III", 4, 0xFFFF_FFFF, 1) + b"GNU\0", "note 0: a descriptor of 4294967295 bytes runs past"),
        (note("GNU", 3, b"abcd") + b"\1", "1 bytes are left after note 0"),
        (note("GNU", 3, b"abcd") + struct.pack("<III", 0, 8, 1) + b"1234", "note 1: a descriptor of 8 bytes"),
    ],
    ids=["name", "descriptor", "rest", "second"],
)
def test_damage_is_named_with_its_offset(notes: bytes, problem: str) -> None:
    data = ElfWriter(notes=notes).build()
    with pytest.raises(BadNote) as caught:
        read_elf_notes(parse_elf(data, "x.o"))
    assert caught.value.message.startswith(f"x.o: section .note: {problem}"), caught.value.message
    assert "(offset 0x" in caught.value.message


def test_a_flood_of_notes_is_refused() -> None:
    data = ElfWriter(notes=bytes(12 * (MAX_NOTES + 1))).build()
    with pytest.raises(BadNote, match="more than 65536 notes"):
        read_elf_notes(parse_elf(data))


OWNERS = st.sampled_from(["MTGPU", "AMDGPU", "GNU", "", "a", "LLVMOMPOFFLOAD"]) | st.text(
    st.characters(min_codepoint=1, max_codepoint=0x2FF), max_size=9
)
NOTES = st.lists(st.tuples(OWNERS, st.integers(0, 0xFFFF_FFFF), st.binary(max_size=40)), max_size=6)


@relaxed
@given(NOTES, st.booleans(), st.sampled_from([4, 8]))
def test_what_is_written_is_read(notes: list[tuple[str, int, bytes]], nul: bool, align: int) -> None:
    assert walk(b"".join(note(*entry, nul=nul, align=align) for entry in notes), align) == notes


@relaxed
@given(NOTES.filter(bool), st.integers(1, 200))
def test_a_cut_gives_a_beginning_or_one_error(notes: list[tuple[str, int, bytes]], cut: int) -> None:
    whole = b"".join(note(*entry) for entry in notes)
    try:
        read = walk(whole[:-cut])
    except BadNote:
        return
    assert read == notes[: len(read)]


@relaxed
@given(st.lists(st.tuples(OWNERS.filter(bool), st.integers(0, 999), st.binary(min_size=1, max_size=40)), max_size=5))
def test_pyelftools_finds_the_same_descriptors(notes: list[tuple[str, int, bytes]]) -> None:
    ascii_notes = [(owner.encode("ascii", "replace").decode(), 1000 + kind, text) for owner, kind, text in notes]
    data = ElfWriter(notes=b"".join(note(*entry) for entry in ascii_notes)).build()
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".note")
    theirs = [entry["n_descdata"] for entry in section.iter_notes()] if section else []
    assert [found.descriptor for found in read_elf_notes(parse_elf(data))] == theirs


def test_padding_helper() -> None:
    assert [len(padded(bytes(size))) for size in range(6)] == [0, 4, 4, 4, 4, 8]
