"""Assembly text with kernel metadata: `mcc --musa-device-only -S`, and clang's for amdgcn.

Only the metadata, the `.amdhsa_kernel` blocks and the target are read here; instructions are the business
of `mccprobe.objects.isa`.

    .mtgpu_metadata.start                 .amdgpu_metadata
    ---                                   ---
    mtgpu.kernels: ...                    amdhsa.kernels: ...
    ...                                   ...
    .mtgpu_metadata.end                   .end_amdgpu_metadata

Sources: two public mcc outputs (mp_22); LLVM AMDGPUUsage, "Assembler Directives".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mccprobe.base.errors import BadMetadata
from mccprobe.objects.binary.document import read_yaml

_START = re.compile(rb"^[ \t]*(\.mtgpu_metadata\.start|\.amdgpu_metadata)[ \t]*(?:[;#/].*)?\r?$", re.MULTILINE)
_END = {
    b".mtgpu_metadata.start": re.compile(rb"^[ \t]*\.mtgpu_metadata\.end\b", re.MULTILINE),
    b".amdgpu_metadata": re.compile(rb"^[ \t]*\.end_amdgpu_metadata\b", re.MULTILINE),
}
# an instruction of MTGPU assembly: two tabs, then [N..D...] (reference of the text format, mp_22)
_MTGPU_LINE = re.compile(rb"^[ \t]*\[N[-sw]{2}D[-swo]{3}\][ \t]", re.MULTILINE)
_AMDGPU_TARGET = re.compile(rb'^[ \t]*\.amdgcn_target[ \t]+"([^"\n]{1,200})"', re.MULTILINE)

_DESCRIPTOR = re.compile(rb"^[ \t]*\.amdhsa_kernel[ \t]+([^\s;/]{1,4096})", re.MULTILINE)
_DESCRIPTOR_END = re.compile(rb"^[ \t]*\.end_amdhsa_kernel\b", re.MULTILINE)
_DESCRIPTOR_VALUE = re.compile(rb"^[ \t]*\.amdhsa_(\w{1,64})[ \t]+([^\n;]{1,200})", re.MULTILINE)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,16}|\d{1,18}")

# `llvm-objdump -d`: its head line; without it, an address in front of bytes; `nvdisasm -hex`: /*0010*/
_LISTING = re.compile(
    rb"^[^\n]{0,4096}:[ \t]+file format (\S+)[ \t]*\r?$"
    rb"|^Disassembly of section \S+:[ \t]*\r?$"
    rb"|^[ \t]*[0-9a-f]{1,16} <[^\n]{1,4096}>:[ \t]*\r?$"
    rb"|^[ \t]*[0-9a-f]{1,16}:[ \t]+(?:[0-9a-f]{2} ?){1,64} *\t"
    rb"|^[ \t]*/\*[0-9a-f]{4,16}\*/[ \t]",
    re.MULTILINE,
)
_CHIP = re.compile(rb"^\s*(?:\.target\s+|code for )(sm_\w+)", re.MULTILINE)  # nvdisasm, cuobjdump
_CHIP_FLAG = re.compile(rb"^\s*\.headerflags\s[^\n]{0,400}?\bEF_CUDA_SM(\d+[af]?)\b", re.MULTILINE)  # before CUDA 12
_FORMAT = re.compile(rb":[ \t]+file format elf\d+-([\w-]+)")
SNIFF_BYTES = 1 << 20  # heads of listings stand in front; metadata is looked for in the whole text


@dataclass(frozen=True)
class MetadataText:
    """A metadata document in an assembly text."""

    vendor: str  # "mtgpu" or "amdgpu"
    line: int  # of the directive, from 1
    document: Any


@dataclass(frozen=True)
class KernelDescriptor:
    """An `.amdhsa_kernel` block. values: directive without `.amdhsa_` -> its number, or its text where it has none."""

    name: str
    line: int  # of the directive, from 1
    values: dict[str, int | str]


def is_text(data: bytes) -> bool:
    """True if its beginning has no byte that text has not."""
    return bool(data) and b"\0" not in data[:SNIFF_BYTES]


def is_listing(data: bytes) -> bool:
    """True for the text of a disassembler: llvm-objdump's, or nvdisasm's with addresses."""
    return is_text(data) and _LISTING.search(data, 0, SNIFF_BYTES) is not None


def listing_target(data: bytes) -> str:
    """What the head line of a listing names: "mtgpu", "amdgpu", "x86-64", "sm_80"; "" without one."""
    match = _FORMAT.search(data, 0, SNIFF_BYTES) or _CHIP.search(data, 0, SNIFF_BYTES)
    if match is None and (flag := _CHIP_FLAG.search(data, 0, SNIFF_BYTES)):
        return f"sm_{flag[1].decode()}"
    return match[1].decode("ascii", "replace") if match else ""


def assembly_kind(data: bytes) -> str:
    """ "mtgpu-asm", "amdgpu-asm", or "" for anything else."""
    if not is_text(data):
        return ""
    if match := _START.search(data):
        return "mtgpu-asm" if match[1].startswith(b".mtgpu") else "amdgpu-asm"
    if _MTGPU_LINE.search(data, 0, SNIFF_BYTES):
        return "mtgpu-asm"
    return "amdgpu-asm" if _AMDGPU_TARGET.search(data, 0, SNIFF_BYTES) or _DESCRIPTOR.search(data) else ""


def assembly_target(data: bytes) -> str:
    """gfx908 of `.amdgcn_target "amdgcn-amd-amdhsa--gfx908"`; "" where there is none."""
    match = _AMDGPU_TARGET.search(data, 0, SNIFF_BYTES)
    return match[1].decode("utf-8", "surrogateescape").rpartition("--")[2] if match else ""


def read_metadata_texts(data: bytes, origin: str = "") -> list[MetadataText]:
    """Every metadata document of the text. Raises BadMetadata if one has no end or is no document."""
    found = []
    at = 0
    line, counted = 1, 0
    while match := _START.search(data, at):
        closing = _END[match[1]].search(data, match.end())
        line += data.count(b"\n", counted, match.start())
        counted = match.start()
        directive = match[1].decode()
        if closing is None:
            raise BadMetadata(origin, f"line {line}: {directive} has no end", offset=match.start())
        text = data[match.end() : closing.start()].decode("utf-8", "surrogateescape")
        document = read_yaml(_clean(text), f"{origin}: line {line}" if origin else f"line {line}")
        found.append(MetadataText("mtgpu" if directive.startswith(".mtgpu") else "amdgpu", line, document))
        at = closing.end()
    return found


def read_descriptors(data: bytes, origin: str = "") -> list[KernelDescriptor]:
    """Every `.amdhsa_kernel` block of the text. Raises BadMetadata if one has no end."""
    found = []
    line, counted, at = 1, 0, 0
    while match := _DESCRIPTOR.search(data, at):
        line += data.count(b"\n", counted, match.start())
        counted = match.start()
        closing = _DESCRIPTOR_END.search(data, match.end())
        if closing is None:
            raise BadMetadata(origin, f"line {line}: .amdhsa_kernel has no .end_amdhsa_kernel", offset=match.start())
        values = {
            value[1].decode("ascii", "replace"): _value(value[2].decode("utf-8", "surrogateescape").strip())
            for value in _DESCRIPTOR_VALUE.finditer(data, match.end(), closing.start())
        }
        found.append(KernelDescriptor(match[1].decode("utf-8", "surrogateescape").strip('"'), line, values))
        at = closing.end()
    return found


def _value(text: str) -> int | str:
    return int(text, 0 if text[:2].lower() == "0x" else 10) if _NUMBER.fullmatch(text) else _clean(text)


def _clean(text: str) -> str:
    """Without what libyaml refuses in any place: surrogates (odd bytes of a name) and control characters."""
    return _REFUSED.sub("\N{REPLACEMENT CHARACTER}", text)


_REFUSED = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
