"""ELF64 little-endian: header, sections, segments and symbols, from bytes to records.

Read with `struct` and not with pyelftools: on damaged input that raises what no caller expects, its
import alone costs as much as `llvm-readelf --notes` on a thousand kernels, and it takes the time of
that run again for the symbols. The tests compare the two. Everything is bounded by the size of the
file: a count that does not fit into it is refused before anything is allocated.

Source: System V ABI, chapters 4 and 5; e_machine 253 is the public fact about MTGPU (zml/xla
musa_target_contract.h, julia-musa readelf-header.log), its e_flags are 0 in all public objects of three architectures.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mccprobe.base.errors import BadElf
from mccprobe.objects.binary.records import CodeSymbol

MAGIC = b"\x7fELF"
EM_386, EM_PPC64, EM_X86_64, EM_AARCH64, EM_AMDGPU, EM_RISCV, EM_MTGPU = 3, 21, 62, 183, 224, 243, 253
HOSTS = {EM_386: "i386", EM_PPC64: "ppc64", EM_X86_64: "x86-64", EM_AARCH64: "aarch64", EM_RISCV: "riscv"}
ET_REL = 1
SHT_SYMTAB, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 7, 8, 11
SHF_ALLOC, SHF_EXECINSTR = 0x2, 0x4
PT_NOTE = 4
STT_NOTYPE, STT_OBJECT, STT_FUNC = 0, 1, 2
STB_LOCAL = 0
STT_AMDGPU_HSA_KERNEL = 10  # code object V2 (llvm/BinaryFormat/ELF.h)
SHN_UNDEF, SHN_LORESERVE = 0, 0xFF00

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # 64 bytes
SECTION = struct.Struct("<IIQQQQIIQQ")  # 64 bytes
SEGMENT = struct.Struct("<IIQQQQQQ")  # 56 bytes
SYMBOL = struct.Struct("<IBBHQQ")  # 24 bytes
MAX_NAME_BYTES = 65_536  # C++ names of kernels reach some thousand characters
MAX_NAMES_FACTOR = 16  # bytes of names over bytes of the file: names may share their ends
MAX_CODE_FACTOR = 8  # bytes of distinct symbols over bytes of the file: aliases cost nothing, nested ones do


@dataclass(frozen=True)
class Section:
    """A section header with its name; offset and size are of the file, size 0 for NOBITS."""

    index: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    align: int


@dataclass(frozen=True)
class Segment:
    """A program header."""

    index: int
    type: int
    offset: int
    size: int
    align: int


@dataclass(frozen=True)
class Elf:
    """A parsed file; `data` is the whole of it."""

    origin: str
    data: bytes
    type: int
    machine: int
    flags: int
    sections: tuple[Section, ...]
    segments: tuple[Segment, ...]

    def section_bytes(self, section: Section) -> bytes:
        """The content of a section as stored."""
        return self.data[section.offset : section.offset + section.size]


def is_elf(data: bytes) -> bool:
    """True for the first four bytes of any ELF file."""
    return data[:4] == MAGIC


def machine_of(data: bytes) -> int | None:
    """e_machine of an ELF64 little-endian file, None for anything else. Reads the header only."""
    if len(data) < HEADER.size or not is_elf(data) or data[4:6] != b"\x02\x01":
        return None
    return int.from_bytes(data[18:20], "little")


def flags_of(data: bytes) -> int:
    """e_flags of a file for which `machine_of` gave a number."""
    return int.from_bytes(data[48:52], "little")


def is_linked(data: bytes) -> bool:
    """True for a program or a shared library for which `machine_of` gave a number, False for an object file."""
    return int.from_bytes(data[16:18], "little") != ET_REL


def parse_elf(data: bytes, origin: str = "") -> Elf:
    """Read all headers. Raises BadElf if one of them, or what it points to, is not inside the file."""
    if not is_elf(data):
        raise BadElf(origin, f"no ELF file: it begins with {data[:4].hex(' ') or 'nothing'}", offset=0)
    if len(data) < HEADER.size:
        raise BadElf(origin, f"cut off in the ELF header: {len(data)} bytes", offset=0, expected="64")
    if data[4:6] != b"\x02\x01":
        raise BadElf(origin, "32-bit or big-endian ELF", offset=4, expected="ELF64 little-endian (02 01)")
    (_, kind, machine, _, _, phoff, shoff, flags, _, phentsize, phnum, shentsize, shnum, shstrndx) = HEADER.unpack_from(
        data
    )
    headers = _section_headers(data, origin, shoff, shentsize, shnum)
    if shstrndx == 0xFFFF and headers:  # SHN_XINDEX: the number is in the link of section 0
        shstrndx = headers[0][6]
    if phnum == 0xFFFF and headers:  # PN_XNUM: the number is in the info of section 0
        phnum = headers[0][7]
    sections = tuple(_sections(data, origin, headers, shoff, shstrndx))
    return Elf(origin, data, kind, machine, flags, sections, tuple(_segments(data, origin, phoff, phentsize, phnum)))


def _section_headers(data: bytes, origin: str, shoff: int, size: int, count: int) -> list[tuple[int, ...]]:
    if shoff == 0:
        return []
    if size != SECTION.size:
        raise BadElf(origin, f"section headers of {size} bytes", offset=58, expected=f"{SECTION.size}")
    if shoff + SECTION.size > len(data):
        raise BadElf(origin, f"the section headers lie behind the end of the file (0x{len(data):x})", offset=shoff)
    if count == 0:  # more than 65,279 sections: the number is the size of section 0
        count = SECTION.unpack_from(data, shoff)[5]
    if shoff + count * SECTION.size > len(data):
        raise BadElf(origin, f"{count} section headers run past the end of the file (0x{len(data):x})", offset=shoff)
    return list(SECTION.iter_unpack(data[shoff : shoff + count * SECTION.size]))


def _sections(
    data: bytes, origin: str, headers: list[tuple[int, ...]], shoff: int, names_index: int
) -> Iterator[Section]:
    table = b""
    if headers and names_index:
        if names_index >= len(headers):
            raise BadElf(origin, f"section {names_index} of {len(headers)} is to hold the names", offset=62)
        table = data[headers[names_index][4] : headers[names_index][4] + headers[names_index][5]]
    names = _Names(len(data), origin, table)
    for index, (name, kind, flags, address, offset, size, link, _info, align, _) in enumerate(headers):
        if index == 0:  # the null section; its size is a count when there are many
            size = 0
        text = names.at(name)
        if kind == SHT_NOBITS:
            size = 0
        elif offset + size > len(data) and size:
            raise BadElf(
                origin,
                f"section {index} ({text}) of {size} bytes at 0x{offset:x} runs past the end of the file "
                f"(0x{len(data):x})",
                offset=shoff + index * SECTION.size,
            )
        yield Section(index, text, kind, flags, address, offset, size, link, align)


def _segments(data: bytes, origin: str, phoff: int, size: int, count: int) -> Iterator[Segment]:
    if phoff == 0 or count == 0:
        return
    if size != SEGMENT.size:
        raise BadElf(origin, f"program headers of {size} bytes", offset=54, expected=f"{SEGMENT.size}")
    if phoff + count * SEGMENT.size > len(data):
        raise BadElf(origin, f"{count} program headers run past the end of the file (0x{len(data):x})", offset=phoff)
    table = SEGMENT.iter_unpack(data[phoff : phoff + count * SEGMENT.size])
    for index, (kind, _flags, offset, _vaddr, _paddr, filesz, _memsz, align) in enumerate(table):
        if kind == PT_NOTE and offset + filesz > len(data):
            raise BadElf(
                origin,
                f"segment {index} (PT_NOTE) of {filesz} bytes at 0x{offset:x} runs past the end of the file "
                f"(0x{len(data):x})",
                offset=phoff + index * SEGMENT.size,
            )
        yield Segment(index, kind, offset, filesz, align)


class _Names:
    """A string table; names are cut at MAX_NAME_BYTES, and all of them together are bounded."""

    def __init__(self, elf_bytes: int, origin: str, table: bytes) -> None:
        self.table, self.origin = table, origin
        self.room = MAX_NAMES_FACTOR * elf_bytes

    def at(self, offset: int) -> str:
        """The NUL-terminated string there; "" outside of the table."""
        end = self.table.find(b"\0", offset, offset + MAX_NAME_BYTES)
        raw = self.table[offset : end if end >= 0 else offset + MAX_NAME_BYTES]
        self.room -= len(raw)
        if self.room < 0:
            raise BadElf(self.origin, "the names in a string table overlap many times")
        return raw.decode("utf-8", "surrogateescape")


class Symbol(NamedTuple):
    """An entry of a symbol table. kind: STT_..., value and size as stored; its name is made when asked for."""

    names: _Names
    name_offset: int
    kind: int
    is_local: bool
    section: int
    value: int
    size: int

    @property
    def name(self) -> str:
        return self.names.at(self.name_offset)


def iter_symbols(elf: Elf) -> Iterator[Symbol]:
    """Every symbol of every table. Raises BadElf if a table has no names."""
    for table in elf.sections:
        if table.type not in (SHT_SYMTAB, SHT_DYNSYM) or not table.size:
            continue
        if table.link >= len(elf.sections):
            raise BadElf(
                elf.origin,
                f"symbol table {table.index} ({table.name}) takes its names from section {table.link} "
                f"of {len(elf.sections)}",
                offset=table.offset,
            )
        names = _Names(len(elf.data), elf.origin, elf.section_bytes(elf.sections[table.link]))
        whole = table.size - table.size % SYMBOL.size
        for name, info, _other, shndx, value, size in SYMBOL.iter_unpack(elf.data[table.offset : table.offset + whole]):
            yield Symbol(names, name, info & 0xF, info >> 4 == STB_LOCAL, shndx, value, size)


def _described_kernels(elf: Elf) -> set[str]:
    """NAME of every NAME.kd in an object for AMDGPU."""
    if elf.machine != EM_AMDGPU:
        return set()
    names = {symbol.name for symbol in iter_symbols(elf) if symbol.kind == STT_OBJECT}
    return {name.removesuffix(".kd") for name in names if name.endswith(".kd")}


def read_code_symbols(elf: Elf) -> list[CodeSymbol]:
    """Functions in executable sections, by section and address; the whole section where none is named.

    A function without a size reaches to the next one or to the end of its section. On AMDGPU a symbol NAME
    without a type is a function where NAME.kd, the kernel's descriptor, exists. Raises BadElf if
    a function lies outside of its section.
    """
    found: dict[int, set[tuple[int, int, str]]] = {}
    described = _described_kernels(elf)
    for symbol in iter_symbols(elf):
        index = symbol.section
        if index == SHN_UNDEF or index >= SHN_LORESERVE:
            continue
        if symbol.kind not in (STT_FUNC, STT_AMDGPU_HSA_KERNEL) and not (
            described and symbol.kind == STT_NOTYPE and symbol.name in described
        ):
            continue
        if index >= len(elf.sections):
            raise BadElf(elf.origin, f"function {symbol.name} in section {index} of {len(elf.sections)}")
        section = elf.sections[index]
        if section.flags & SHF_EXECINSTR and section.type != SHT_NOBITS:
            start = symbol.value if elf.type == ET_REL else symbol.value - section.address
            found.setdefault(index, set()).add((start, symbol.size, symbol.name))
    result: list[CodeSymbol] = []
    room = MAX_CODE_FACTOR * len(elf.data)
    for section in elf.sections:
        if not section.flags & SHF_EXECINSTR or not section.size:
            continue
        base = 0 if elf.type == ET_REL else section.address
        pieces: dict[tuple[int, int], bytes] = {}
        symbols = sorted(found.get(section.index, ())) or [(0, section.size, section.name)]
        starts = sorted({start for start, _, _ in symbols})
        following = dict(zip(starts, [*starts[1:], section.size], strict=True))
        for start, size, label in symbols:
            end = start + size if size else following[start]
            if not 0 <= start <= end <= section.size:
                raise BadElf(
                    elf.origin,
                    f"function {label} (0x{start:x} to 0x{end:x}) lies outside of {section.name} "
                    f"({section.size} bytes)",
                    offset=section.offset,
                )
            if (start, end) not in pieces:
                room -= end - start
                if room < 0:
                    raise BadElf(
                        elf.origin, f"the functions of {section.name} overlap many times", offset=section.offset
                    )
                pieces[start, end] = elf.data[section.offset + start : section.offset + end]
            result.append(CodeSymbol(label, base + start, pieces[start, end], section.name, sized=size > 0))
    return result
