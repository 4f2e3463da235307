"""Instructions of each kernel of an image: from its own text, or from a disassembler that is here.

A device ELF is only bytes; a disassembler reads them (`mccprobe.objects.isa.disassemble`), for MTGPU also the open
table.
Where neither does, the count is None with the reason.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mccprobe.base.errors import MccprobeError
from mccprobe.objects.binary.read import code_symbols
from mccprobe.objects.binary.records import DeviceImage
from mccprobe.objects.isa.count import CodeCount, count_amdgpu, count_function, count_x86
from mccprobe.objects.isa.disassemble import Disassemblers, ImageListing, by_tools, disassemble, find_stock, is_x86
from mccprobe.objects.isa.mtgpu.listing import FORMAT as OPEN_FORMAT
from mccprobe.objects.isa.mtgpu.listing import is_cut
from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import Function, Listing
from mccprobe.objects.isa.summary import summarise
from mccprobe.objects.model.resources import InstructionMix
from mccprobe.targets.mcc.toolchain import MccPaths, find_mcc

_SHARED_SYMBOLS = ("llvm.musa.kernel.", "llvm.mtgpu.kernel.")  # of mcc, of hand assembly (mtgpu.md 4.1, 4.2)
OPEN = ("open table", "cut at bit 31")  # sources that know no encoding of MMA
CUT_ALONE = "cut at bit 31, no open table of this architecture"
_TEXTS = {"mtgpu-asm": "assembly text", "amdgpu-asm": "assembly text", "listing": "listing"}


@dataclass(frozen=True)
class ImageCode:
    """What the code of an image tells.

    functions: in full, where the image is small text or was asked for so. declared_shared: kernel symbol ->
    bytes of its shared symbol.
    """

    counts: Mapping[str, CodeCount] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    declared_shared: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    reason: str = ""

    def mix_of(self, *names: str | None) -> InstructionMix:
        """Of the function under the first of these names that the code has."""
        found = next((self.counts[name] for name in names if name is not None and name in self.counts), None)
        if found is None:
            return InstructionMix(None, reason=self.reason or f"no code of this name in the {self.source}")
        return InstructionMix(
            found.instructions, found.pipes, self.source, marks=found.marks, names_mma=not self.source.startswith(OPEN)
        )

    def shared_of(self, *names: str | None) -> int | None:
        found = (self.declared_shared.get(name) for name in names if name is not None)
        return next((size for size in found if size is not None), None)

    def main_loop_words(self, *names: str | None) -> int | None:
        """12-byte words of the main loop of MTGPU code; None without bytes, or without a loop."""
        found = next((self.functions[name] for name in names if name is not None and name in self.functions), None)
        counts = summarise(found, "mtgpu").main_loop_counts if found is not None else None
        return counts.words if counts is not None else None


def disassemblers(mcc: MccPaths) -> Disassemblers:
    """The vendor's llvm-objdump beside mcc (or MCCPROBE_OBJDUMP), and the stock ones in PATH."""
    vendor = os.environ.get("MCCPROBE_OBJDUMP", "")
    if vendor:
        return Disassemblers(shutil.which(vendor) or vendor, find_stock())
    try:
        found = find_mcc(mcc).path
    except MccprobeError:
        found = None
    folders = dict.fromkeys((found.parent, found.resolve().parent)) if found is not None else ()
    beside = (shutil.which("llvm-objdump", path=str(folder)) for folder in folders)
    named = next((path for path in beside if path), None) or shutil.which("llvm-objdump-mtgpu")
    return Disassemblers(named or "", find_stock())


def image_code(image: DeviceImage, tools: Disassemblers) -> ImageCode:
    """The code of an image as far as something here can read it. Never raises for what is not here."""
    try:
        if is_x86(image):
            return ImageCode(count_x86(code_symbols(image)), source="capstone")
        if image.kind == "amdgpu-elf":
            symbols = code_symbols(image)
            counts, tool, _ = by_tools(image, tools.stock, lambda text, _: count_amdgpu(text, symbols))
            if counts is not None:
                return ImageCode(counts, source=f"{Path(tool).name} -d")
        found = disassemble(image, tools)
    except MccprobeError as error:
        return ImageCode(reason=error.message)
    if found.listing.format == OPEN_FORMAT:
        return _by_open_table(found)
    if found.tool == "none":
        return ImageCode(reason="; ".join(found.warnings))
    source = _TEXTS.get(image.kind) or _named(found.tool)
    functions = {function.name: function for function in found.listing.functions}
    counts = {name: count_function(function) for name, function in functions.items()}
    if found.tool.startswith("table "):
        whole = {name: count for name, count in counts.items() if UNKNOWN not in count.pipes}
        if len(whole) < len(counts):
            reason = f"the {found.tool} has no name for some words of it, and what has no name has no size"
            return ImageCode(whole, functions, source=_named(found.tool), reason=reason)
    return ImageCode(counts, functions, _shared_symbols(found.listing), source)


def _by_open_table(found: ImageListing) -> ImageCode:
    """Functions whose every byte is in an instruction, by class where the architecture has a table."""
    functions = {function.name: function for function in found.listing.functions if is_cut(function)}
    source = found.tool if found.tool != "none" else CUT_ALONE
    counts = {name: count_function(function) for name, function in functions.items()}
    reason = "the object has no function of this name"
    if len(functions) < len(found.listing.functions):
        reason = "its code does not fit instructions of 1 to 4 dwords that end at bit 31, or is missing"
    return ImageCode(counts, functions, source=source, reason=reason)


def _named(tool: str) -> str:
    return tool if tool.startswith("table ") else f"{Path(tool).name} -d"


def _shared_symbols(listing: Listing) -> dict[str, int]:
    found = {}
    for symbol, size in listing.symbols.items():
        for prefix in _SHARED_SYMBOLS:
            if symbol.startswith(prefix) and symbol.endswith(".sm"):
                found[symbol[len(prefix) : -len(".sm")]] = size
    return found
