"""Makes the binary shapes that the readers read; every fixture is made by a test, none is stored.

Invented shape: no MTGPU binary with its note is public. Section names, the order of things and the
code bytes here are ours; what is documented (e_machine 253, owner MTGPU type 0x40, the keys of the
metadata, the bundle's layout) is as in the public sources that the readers name. Code bytes are
zeros and counters: no instruction encoding of MTGPU is public and none is made up.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack

EM_MTGPU, EM_AMDGPU, EM_X86_64 = 253, 224, 62
ET_REL, ET_DYN = 1, 3
NONE32 = 0xFFFF_FFFF


def padded(data: bytes, align: int = 4) -> bytes:
    return data + bytes(-len(data) % align)


def note(owner: str | bytes, kind: int, descriptor: bytes = b"", *, nul: bool = True, align: int = 4) -> bytes:
    """One note; nul: whether the owner's NUL is stored and counted."""
    name = (owner.encode() if isinstance(owner, str) else owner) + (b"\0" if nul else b"")
    head = struct.pack("<III", len(name), len(descriptor), kind) + name
    return padded(head, align) + padded(descriptor, align)


@dataclass(frozen=True)
class Part:
    """A section to write."""

    name: str
    content: bytes
    type: int = 1  # PROGBITS
    flags: int = 0
    align: int = 4
    link: int = 0
    entsize: int = 0


@dataclass(frozen=True)
class Function:
    """A symbol of type FUNC in .text."""

    name: str
    start: int
    size: int


@dataclass
class ElfWriter:
    """An ELF64 little-endian file: .text with functions, notes, more sections, optionally PT_NOTE."""

    machine: int = EM_MTGPU
    type: int = ET_REL
    flags: int = 0
    text: bytes = b""
    functions: Sequence[Function] = ()
    notes: bytes = b""
    note_align: int = 4
    note_segment: bool = False  # PT_NOTE over the notes, as in linked files
    note_section: bool = True
    parts: Sequence[Part] = field(default_factory=tuple)
    text_address: int = 0

    def build(self) -> bytes:
        sections = [Part("", b"", type=0)]
        names = {"": 0}
        if self.text:
            sections.append(Part(".text", self.text, flags=0x6, align=256))
        text_index = len(sections) - 1
        if self.notes and self.note_section:
            sections.append(Part(".note", self.notes, type=7, flags=0x2, align=self.note_align))
        sections += self.parts
        if self.functions:
            strings = b"\0"
            symbols = bytes(24)
            for function in self.functions:
                value = function.start + (self.text_address if self.type != ET_REL else 0)
                # STB_GLOBAL, STT_FUNC; STV_PROTECTED, as zml/xla's mubin_validator.cc demands
                symbols += struct.pack("<IBBHQQ", len(strings), 0x12, 3, text_index, value, function.size)
                strings += function.name.encode("utf-8", "surrogateescape") + b"\0"
            table = ".dynsym" if self.type == ET_DYN else ".symtab"
            kind = 11 if self.type == ET_DYN else 2
            sections.append(Part(table, symbols, type=kind, align=8, link=len(sections) + 1, entsize=24))
            sections.append(Part(".dynstr" if self.type == ET_DYN else ".strtab", strings, type=3, align=1))
        sections.append(Part(".shstrtab", b"", type=3, align=1))
        strings = b"\0"
        for section in sections[1:]:
            if section.name not in names:
                names[section.name] = len(strings)
                strings += section.name.encode() + b"\0"
        sections[-1] = Part(".shstrtab", strings, type=3, align=1)
        phnum = 1 if self.note_segment else 0
        body = bytearray(64 + 56 * phnum)
        headers = b""
        segments = b""
        for index, section in enumerate(sections):
            body += bytes(-len(body) % max(1, section.align))
            offset = len(body) if index else 0
            address = self.text_address if section.name == ".text" and self.type != ET_REL else 0
            headers += struct.pack(
                "<IIQQQQIIQQ",
                names[section.name],
                section.type,
                section.flags,
                address,
                offset,
                len(section.content),
                section.link,
                0,
                section.align,
                section.entsize,
            )
            if self.note_segment and section.content == self.notes and section.type == 7:
                segments = struct.pack(
                    "<IIQQQQQQ", 4, 4, offset, 0, 0, len(self.notes), len(self.notes), self.note_align
                )
            body += section.content
        if self.note_segment and not segments:
            body += bytes(-len(body) % 8)
            segments = struct.pack(
                "<IIQQQQQQ", 4, 4, len(body), 0, 0, len(self.notes), len(self.notes), self.note_align
            )
            body += self.notes
        body += bytes(-len(body) % 8)
        shoff = len(body)
        body += headers
        body[:64] = struct.pack(
            "<16sHHIQQQIHHHHHH",
            b"\x7fELF\x02\x01\x01",
            self.type,
            self.machine,
            1,
            0,
            64 if phnum else 0,
            shoff,
            self.flags,
            64,
            56 if phnum else 0,
            phnum,
            64,
            len(sections),
            len(sections) - 1,
        )
        body[64 : 64 + len(segments)] = segments
        return bytes(body)


# --- metadata -----------------------------------------------------------------------------------


def mtgpu_kernel(name: str = "_Z5demo1Pf", *, dotted: bool = True, **changes: Any) -> dict[str, Any]:
    """A kernel's map with the keys of mcc's output on mp_22; a change to None leaves the key out."""
    values: dict[str, Any] = {
        "arch_id": 220,
        "args": [
            {
                ".argBase": {
                    ".address_space": 0,
                    ".align": 8,
                    ".isVolatile": False,
                    ".layout": 0,
                    ".name": "",
                    ".offset": 14,
                    ".reg_bank": 3,
                    ".size": 8,
                    ".type": 14,
                },
                ".input_mode": 0,
                ".kind": 18,
            }
        ],
        "async_bar_count": 0,
        "attr_reg_count": 2,
        "attrs": {},
        "barrier_coef": NONE32,
        "coef_reg_count": 0,
        "const_calc_kernel": "",
        "has_barrier": False,
        "has_cluster_barrier": False,
        "imm_info": {".offset": 21, ".reg_bank": 3, ".size": 16, ".values": [65536, 262144, 20, 30]},
        "internal_reg_count": 2,
        "max_block_size": 1,
        "name": name,
        "private_memory_size": 0,
        "shared_memory_size": 20,
        "shared_reg_count": 25,
        "slot_reg_count": 0,
        "temp_reg_count": 5,
        "wave_mode": 0,
    }
    values |= changes
    prefix = "." if dotted else ""
    return {prefix + key: value for key, value in values.items() if value is not None}


def mtgpu_document(*kernels: Mapping[str, Any], version: Sequence[int] = (1, 0)) -> dict[str, Any]:
    return {"mtgpu.kernels": list(kernels), "mtgpu.version": list(version)}


def mtgpu_elf(document: Any, *, nul: bool = True, **writer: Any) -> bytes:
    """A device ELF with one metadata note."""
    descriptor = document if isinstance(document, bytes) else msgpack.packb(document)
    return ElfWriter(notes=note("MTGPU", 0x40, descriptor, nul=nul), **writer).build()


_AMBIGUOUS = frozenset(
    "true True TRUE y Y yes Yes YES on On ON false False FALSE n N no No NO off Off OFF null ~".split()
)


def yaml_scalar(value: Any) -> str:
    """As LLVM writes it: `!str` before a string that would be read as something else."""
    if value is True or value is False:
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    if value == "":
        return "!str ''"
    if value in _AMBIGUOUS or value[0].isdigit() or value.lower() in {"nan", ".nan", "inf", ".inf"}:
        return f"!str '{value}'" if value[0] in "TtFf" else f"!str {value}"
    return value if value.replace("_", "").replace(".", "").isalnum() else "'" + value.replace("'", "''") + "'"


def yaml_lines(value: Any, indent: int = 0) -> list[str]:
    """Block style, as LLVM's MessagePack-to-YAML writer does it."""
    pad = " " * indent
    lines: list[str] = []
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, Mapping | list) and item:
                lines += [f"{pad}{key}:", *yaml_lines(item, indent + 2)]
            else:
                lines.append(f"{pad}{key}: {_empty_or_scalar(item)}")
    else:
        for item in value:
            if isinstance(item, Mapping | list) and item:
                inner = yaml_lines(item, indent + 2)
                lines += [f"{pad}- {inner[0].lstrip()}", *inner[1:]]
            else:
                lines.append(f"{pad}- {_empty_or_scalar(item)}")
    return lines


def _empty_or_scalar(item: Any) -> str:
    return "{}" if isinstance(item, Mapping) else "[]" if isinstance(item, list) else yaml_scalar(item)


def mtgpu_assembly(document: Mapping[str, Any], body: str = "") -> str:
    """Assembly text: body, then the metadata between its directives."""
    text = "\n".join(yaml_lines(document))
    return f"{body}\t.addrsig\n\t.mtgpu_metadata.start\n---\n{text}\n...\n\n\t.mtgpu_metadata.end\n"


# own composition; every instruction form is in the public samples
BODY = """\
\t.text
\t.protected\t_Z5demo1Pf
\t.globl\t_Z5demo1Pf
\t.p2align\t8
\t.type\t_Z5demo1Pf,@function
_Z5demo1Pf:
\t\t[N-sD---]\t\tFOP.MOV R1, SH23
\t\t[N-wD---]\t\tCTRL.END
.Lfunc_end0:
\t.size\t_Z5demo1Pf, .Lfunc_end0-_Z5demo1Pf
"""


# --- bundles ------------------------------------------------------------------------------------


def bundle(entries: Sequence[tuple[str | bytes, bytes]], *, align: int = 1) -> bytes:
    """An offload bundle; align: of the objects in it (clang's -bundle-align)."""
    ids = [name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name for name, _ in entries]
    offset = 24 + 8 + sum(24 + len(name) for name in ids)
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    body = b""
    for name, (_, content) in zip(ids, entries, strict=True):
        body += bytes(-(offset + len(body)) % align)
        head += struct.pack("<QQQ", offset + len(body), len(content), len(name)) + name
        body += content
    return head + body


def text_bundle(entries: Sequence[tuple[str, str]], mark: str = "#") -> str:
    return "".join(
        f"\n{mark} __CLANG_OFFLOAD_BUNDLE____START__ {name}\n{content}\n{mark} __CLANG_OFFLOAD_BUNDLE____END__ {name}\n"
        for name, content in entries
    )


def compressed(content: bytes, version: int, method: int = 0, **changes: int) -> bytes:
    """A compressed bundle; changes: size, file_size, md5 as the header shall say them."""
    if method == 0:
        packed = zlib.compress(content)
    else:
        import zstandard

        packed = zstandard.ZstdCompressor().compress(content)
    head_bytes = {1: 20, 2: 24, 3: 32}.get(version, 24)
    size = changes.get("size", len(content))
    file_size = changes.get("file_size", head_bytes + len(packed))
    md5 = changes.get("md5", int.from_bytes(hashlib.md5(content).digest()[:8], "little"))
    head = b"CCOB" + struct.pack("<HH", version, changes.get("method_said", method))
    if version == 1:
        head += struct.pack("<IQ", size, md5)
    elif version == 3:
        head += struct.pack("<QQQ", file_size, size, md5)
    else:
        head += struct.pack("<IIQ", file_size, size, md5)
    return head + packed


def archive(members: Sequence[tuple[str, bytes]]) -> bytes:
    """A static library with GNU's long names."""
    long_names = b""
    body = b""
    for name, content in members:
        short = f"{name}/".encode()
        if len(short) > 16:
            short = f"/{len(long_names)}".encode()
            long_names += f"{name}/\n".encode()
        body += _member(short, content)
    return b"!<arch>\n" + (_member(b"//", long_names) if long_names else b"") + body


def _member(name: bytes, content: bytes) -> bytes:
    head = b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (name, 0, 0, 0, 0o644, len(content))
    return padded(head + content, 2)
