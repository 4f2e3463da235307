"""Instructions of each kernel of an image: from its own text, or from a disassembler that is here.

A device ELF is only bytes; what stands in them is told by a disassembler (`mccprobe.isa.disassemble`).
Where there is none, the count is None with the reason: words without a disassembler are no instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mccprobe.binary.read import code_symbols
from mccprobe.binary.records import DeviceImage
from mccprobe.errors import MccprobeError
from mccprobe.isa.disassemble import Disassemblers, disassemble
from mccprobe.isa.pipes import mix
from mccprobe.isa.records import Function, Listing
from mccprobe.isa.summary import summarise
from mccprobe.model.resources import InstructionMix
from mccprobe.toolchain.mcc import MccPaths, find_mcc

_SHARED_SYMBOLS = ("llvm.musa.kernel.", "llvm.mtgpu.kernel.")  # of mcc, of hand assembly (mtgpu.md 4.1, 4.2)
_NO_TOOL = {"mtgpu-elf": "MTGPU code is told by the SDK's llvm-objdump alone, and it is not here"}
_TEXTS = {"mtgpu-asm": "assembly text", "amdgpu-asm": "assembly text", "listing": "listing"}


@dataclass(frozen=True)
class ImageCode:
    """What the code of an image tells. declared_shared: kernel symbol -> bytes of its shared symbol."""

    functions: Mapping[str, Function] = field(default_factory=dict)
    declared_shared: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    reason: str = ""

    def function(self, *names: str | None) -> Function | None:
        """The function under the first of these names that the code has."""
        return next((self.functions[name] for name in names if name is not None and name in self.functions), None)

    def mix_of(self, *names: str | None) -> InstructionMix:
        found = self.function(*names)
        if found is None:
            return InstructionMix(None, reason=self.reason or f"no code of this name in the {self.source}")
        return InstructionMix(len(found.instructions), mix(found.instructions), self.source)

    def shared_of(self, *names: str | None) -> int | None:
        found = (self.declared_shared.get(name) for name in names if name is not None)
        return next((size for size in found if size is not None), None)

    def main_loop_words(self, *names: str | None) -> int | None:
        """12-byte words of the main loop of MTGPU code; None without bytes, or without a loop."""
        found = self.function(*names)
        counts = summarise(found, "mtgpu").main_loop_counts if found is not None else None
        return counts.words if counts is not None else None


def disassemblers(mcc: MccPaths, stock: tuple[str, ...]) -> Disassemblers:
    """The vendor's llvm-objdump beside mcc, and the stock ones."""
    try:
        found = find_mcc(mcc).path
    except MccprobeError:
        found = None
    vendor = found.resolve().parent / "llvm-objdump" if found is not None else Path()
    return Disassemblers(str(vendor) if vendor.is_file() else "", stock)


def image_code(image: DeviceImage, tools: Disassemblers) -> ImageCode:
    """The code of an image as far as something here can read it. Never raises for what is not here."""
    try:
        found = disassemble(image, tools)
    except MccprobeError as error:
        return ImageCode(reason=error.message)
    if found.tool == "none":
        return ImageCode(reason=_NO_TOOL.get(image.kind, "; ".join(found.warnings)))
    source = _TEXTS.get(image.kind) or f"{Path(found.tool).name} -d"
    functions = {function.name: function for function in _without_padding(image, found.listing)}
    return ImageCode(functions, _shared_symbols(found.listing), source)


def _without_padding(image: DeviceImage, listing: Listing) -> Iterator[Function]:
    """The functions without what a disassembler shows between the end of one symbol and the next."""
    try:
        ends = {symbol.name: symbol.address + len(symbol.data) for symbol in code_symbols(image)}
    except MccprobeError:
        ends = {}
    for function in listing.functions:
        end = ends.get(function.name)
        last = function.instructions[-1].address if function.instructions else None
        if end is None or last is None or last < end:
            yield function
            continue
        kept = tuple(one for one in function.instructions if one.address is None or one.address < end)
        yield replace(function, instructions=kept, labels={n: min(i, len(kept)) for n, i in function.labels.items()})


def _shared_symbols(listing: Listing) -> dict[str, int]:
    found = {}
    for symbol, size in listing.symbols.items():
        for prefix in _SHARED_SYMBOLS:
            if symbol.startswith(prefix) and symbol.endswith(".sm"):
                found[symbol[len(prefix) : -len(".sm")]] = size
    return found
