"""Text to a Listing: which kind of listing it is (by content), then the parser for it.

Every line is either understood or kept in `Listing.unknown`; nothing is dropped in silence and
nothing is guessed.
"""

from __future__ import annotations

import re

from mccprobe.base.errors import InputError
from mccprobe.objects.isa.listing_asm import parse_assembly
from mccprobe.objects.isa.listing_nvdisasm import parse_nvdisasm
from mccprobe.objects.isa.listing_objdump import parse_objdump
from mccprobe.objects.isa.records import Listing
from mccprobe.objects.isa.spans import Spans

SNIFF_CHARACTERS = 1 << 16  # a header, or an instruction, stands in the first 64 KB of every listing
_FILE_FORMAT = re.compile(r"^.*:\s+file format (\S+)", re.MULTILINE)
_CONTROL = re.compile(r"^[ \t]*+(?:[0-9a-f]+:.*)?\[N[-a-z]{2}D[-a-z]{3}\]", re.MULTILINE)
_OBJDUMP_LINE = re.compile(
    r"^ *[0-9a-fA-F]+:\s+(?:[0-9a-f]{2} ?)+\s*\t|^\t\S.*// [0-9A-F]{6,}: [0-9A-F]{2}|^[0-9a-f]{8,} <.*>:$", re.MULTILINE
)
_NVDISASM = re.compile(r"^[ \t]*+/\*[0-9a-f]{4,}\*/\s", re.MULTILINE)
_AMD_ASM = re.compile(r"^[ \t]*+\.(?:amdgcn_target\b|amdhsa_|amdgpu_metadata\b)", re.MULTILINE)
_MTGPU_ASM = re.compile(r"\.mtgpu_metadata\.start|^[ \t]*+\[N[-a-z]{2}D[-a-z]{3}\]", re.MULTILINE)


def sniff(text: str) -> str:
    """Which kind of listing: `asm-mtgpu`, `asm-amdgpu`, `objdump`, `nvdisasm`, or "" for none."""
    head = text[:SNIFF_CHARACTERS]
    if _FILE_FORMAT.search(head):
        return "objdump"
    if _NVDISASM.search(head):
        return "nvdisasm"
    if _AMD_ASM.search(head):
        return "asm-amdgpu"
    if _MTGPU_ASM.search(head) and not _OBJDUMP_LINE.search(head):
        return "asm-mtgpu"
    return "objdump" if _OBJDUMP_LINE.search(head) else ""


def parse_listing(text: str, name: str = "listing", *, spans: Spans | None = None, known_as: str = "") -> Listing:
    """The listing in `text`. Raises InputError when it is none of the known kinds; `name` is for the message.

    spans: of the object that was disassembled. known_as: what it is where its beginning does not show it.
    """
    kind = sniff(text) or known_as
    if kind == "objdump":
        return parse_objdump(text, spans)
    if kind == "nvdisasm":
        return parse_nvdisasm(text)
    if kind == "asm-mtgpu":
        return parse_assembly(text, "mtgpu")
    if kind == "asm-amdgpu":
        return parse_assembly(text, "amdgpu")
    raise InputError(
        f"{name}: no listing that is known here",
        hint="known: mcc -S and amdgcn -S text, llvm-objdump -d of MTGPU, AMDGPU and x86, nvdisasm -hex",
    )


def objdump_format(text: str) -> str:
    """What llvm-objdump says of the file (`elf64-amdgpu`), "" if nothing."""
    found = _FILE_FORMAT.search(text[:SNIFF_CHARACTERS])
    return found[1] if found else ""
