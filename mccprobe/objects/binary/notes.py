"""Notes of an ELF file, walked by ourselves over every SHT_NOTE and PT_NOTE.

pyelftools gives vendor notes GNU names by their number and drops a header-only note at the end, so a
note is named here by (owner, number), and the bytes are walked as `llvm-readelf` does:

    namesz u32 | descsz u32 | type u32 | name | pad | descriptor | pad        little-endian

The header and the name together are padded to 4, to 8 where the section or segment says 8
(llvm/Object/ELFTypes.h, Elf_Nhdr_Impl). The owner may or may not end in NUL.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mccprobe.base.errors import BadNote
from mccprobe.objects.binary.elf import PT_NOTE, SHT_NOTE, Elf
from mccprobe.objects.binary.records import Note

HEADER = struct.Struct("<III")  # 12 bytes
MAX_NOTES = 65_536  # of one file, those walked twice included; real objects have a few
MAX_BYTES_FACTOR = 4  # descriptor bytes over bytes of the file: overlapping sections stop here

MTGPU_METADATA = ("MTGPU", 0x40)  # zml/xla musa_mubin.cc, julia-musa S2 row C14
AMDGPU_METADATA = ("AMDGPU", 32)  # NT_AMDGPU_METADATA
# The others: llvm/BinaryFormat/ELF.h, the NT_ constants of each owner.
NAMES = {
    MTGPU_METADATA: "MTGPU metadata (MessagePack)",
    AMDGPU_METADATA: "NT_AMDGPU_METADATA (AMDGPU metadata, MessagePack)",
    ("AMD", 1): "NT_AMD_HSA_CODE_OBJECT_VERSION",
    ("AMD", 2): "NT_AMD_HSA_HSAIL",
    ("AMD", 3): "NT_AMD_HSA_ISA_VERSION",
    ("AMD", 10): "NT_AMD_HSA_METADATA (YAML, code object V2)",
    ("AMD", 11): "NT_AMD_HSA_ISA_NAME",
    ("AMD", 12): "NT_AMD_PAL_METADATA",
    ("GNU", 1): "NT_GNU_ABI_TAG",
    ("GNU", 2): "NT_GNU_HWCAP",
    ("GNU", 3): "NT_GNU_BUILD_ID",
    ("GNU", 4): "NT_GNU_GOLD_VERSION",
    ("GNU", 5): "NT_GNU_PROPERTY_TYPE_0",
    ("LLVMOMPOFFLOAD", 1): "NT_LLVM_OPENMP_OFFLOAD_VERSION",
    ("LLVMOMPOFFLOAD", 2): "NT_LLVM_OPENMP_OFFLOAD_PRODUCER",
    ("LLVMOMPOFFLOAD", 3): "NT_LLVM_OPENMP_OFFLOAD_PRODUCER_VERSION",
}


def read_elf_notes(elf: Elf) -> list[Note]:
    """Every note once, in the order of the file's sections, then of its segments.

    Raises BadNote if a section or segment of notes does not consist of notes.
    """
    places = [
        (f"section {section.name or section.index}", section.offset, section.size, section.align)
        for section in elf.sections
        if section.type == SHT_NOTE
    ]
    places += [
        (f"segment {segment.index}", segment.offset, segment.size, segment.align)
        for segment in elf.segments
        if segment.type == PT_NOTE
    ]
    notes: dict[int, Note] = {}
    walked: set[tuple[int, int]] = set()
    count, room = 0, MAX_BYTES_FACTOR * len(elf.data) + HEADER.size
    for place, offset, size, align in places:
        if (offset, size) in walked:
            continue
        walked.add((offset, size))
        for at, note in _walk(elf, place, offset, size, align):
            count += 1
            room -= len(note.descriptor) + len(note.owner)
            if count > MAX_NOTES:
                raise BadNote(elf.origin, f"{place}: more than {MAX_NOTES} notes", offset=at)
            if room < 0:
                raise BadNote(elf.origin, f"{place}: sections of notes overlap many times", offset=at)
            notes.setdefault(at, note)
    return list(notes.values())


def _walk(
    elf: Elf, place: str, offset: int, size: int, align: int
) -> list[tuple[int, Note]] | Iterator[tuple[int, Note]]:
    """The notes of one place. Some tools pad to 4 in a section that says 8: both are tried."""
    if align != 8:
        return iter_notes(elf.data, offset, size, origin=elf.origin, place=place)
    try:
        wide = []
        for entry in iter_notes(elf.data, offset, size, origin=elf.origin, place=place, align=8):
            wide.append(entry)
            if len(wide) > MAX_NOTES:
                break
        return wide
    except BadNote:
        return iter_notes(elf.data, offset, size, origin=elf.origin, place=place)


def iter_notes(
    data: bytes, offset: int, size: int, *, origin: str = "", place: str = "", align: int = 4
) -> Iterator[tuple[int, Note]]:
    """(offset of the header in `data`, note) for each note in data[offset:offset + size].

    Less than a header of zeros at the end is padding; padding that the end cuts off is none missing.
    Raises BadNote (offset of the note) if a name or descriptor runs past the end.
    """
    end = min(offset + size, len(data))
    at, index = offset, 0
    while at < end:
        if end - at < HEADER.size:
            if any(data[at:end]):
                raise BadNote(origin, f"{place}: {end - at} bytes are left after note {index - 1}", offset=at)
            return
        name_size, size_bytes, kind = HEADER.unpack_from(data, at)
        start = at + _padded(HEADER.size + name_size, align)
        if at + HEADER.size + name_size > end:
            raise BadNote(
                origin,
                f"{place}: note {index}: a name of {name_size} bytes runs past the end "
                f"({end - at - HEADER.size} bytes are left)",
                offset=at,
            )
        if size_bytes and start + size_bytes > end:
            raise BadNote(
                origin,
                f"{place}: note {index}: a descriptor of {size_bytes} bytes runs past the end "
                f"({max(0, end - start)} bytes are left)",
                offset=at,
            )
        owner = data[at + HEADER.size : at + HEADER.size + name_size]
        text = owner.removesuffix(b"\0").decode("utf-8", "surrogateescape")
        descriptor = data[start : start + size_bytes]
        yield at, Note(text, kind, descriptor, NAMES.get((text, kind), ""), f"{place} at 0x{at:x}")
        at = start + _padded(size_bytes, align)
        index += 1


def _padded(size: int, align: int) -> int:
    return (size + align - 1) // align * align
