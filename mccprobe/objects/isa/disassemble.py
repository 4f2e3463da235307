"""An image to a Listing: by its own text, by a disassembler that works on it, else by its bytes alone.

MTGPU objects go to the vendor's llvm-objdump only; without it to a learned table of their target; without
that to the open table, which cuts code at bit 31 and names classes of instructions, no mnemonics. AMDGPU objects
go to the stock llvm-objdump, or to a table; x86-64 ones to capstone.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from mccprobe.base.errors import InputError, MccprobeError, ToolchainError
from mccprobe.base.process import RunSpec, run
from mccprobe.objects.binary.elf import EM_X86_64, HOSTS, machine_of
from mccprobe.objects.binary.read import SIMULATED, code_symbols, is_simulated, read_images, read_kernels
from mccprobe.objects.binary.records import CodeSymbol, DeviceImage
from mccprobe.objects.isa.by_table import find_table, listing_by_table, misfit, table_at
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.mtgpu.listing import open_listing, tool_of
from mccprobe.objects.isa.pipes import pipe_table
from mccprobe.objects.isa.records import Function, Instruction, Listing
from mccprobe.objects.isa.spans import Spans, without_tail

STOCK_NAMES = ("llvm-objdump", *(f"llvm-objdump-{major}" for major in range(21, 12, -1)))
TOOL_TIMEOUT_S = 300.0  # a library of many kernels: about 20 MB of text a second
TEXT_LIMIT_BYTES = 1 << 30  # of one tool's output
TEXT_KINDS = frozenset({"listing", "mtgpu-asm", "amdgpu-asm"})
ELF_KINDS = frozenset({"mtgpu-elf", "amdgpu-elf", "host-elf"})
_ISA_OF_KIND = {"mtgpu-elf": "mtgpu", "amdgpu-elf": "amdgpu", "mtgpu-asm": "mtgpu", "amdgpu-asm": "amdgpu"}
Read = TypeVar("Read")


@dataclass(frozen=True)
class Disassemblers:
    """vendor: MTGPU's llvm-objdump, "" if none was found. stock: others to try, in order.

    table: a learned table that goes before them, for images of its target. tables: a folder of tables, for
    images that no disassembler here reads.
    """

    vendor: str = ""
    stock: tuple[str, ...] = ()
    table: Path | None = None
    tables: Path | None = None


@dataclass(frozen=True)
class ImageListing:
    """What one image says.

    tool: which disassembler made it, `text` for a listing, `open table NAME`, `none` for code that is cut alone.
    """

    image: DeviceImage
    listing: Listing
    tool: str
    warnings: tuple[str, ...] = ()


def find_stock() -> tuple[str, ...]:
    """The llvm-objdump programs in PATH, by name; whether one knows a file is seen by running it."""
    return tuple(found for name in STOCK_NAMES if (found := shutil.which(name)) is not None)


def load(path: Path, tools: Disassemblers, *, target: str = "") -> list[ImageListing]:
    """Every image of a file as a listing; `target` picks (`mp_22`).

    An image that nothing here reads has an empty listing and says why. Raises MccprobeError when that
    holds for all.
    """
    images = [image for image in read_images(path) if not target or image.target == target]
    if not images:
        raise InputError(f"{path}: no image for {target}" if target else f"{path}: nothing to disassemble")
    found, errors = [], []
    for image in images:
        try:
            found.append(disassemble(image, tools))
        except MccprobeError as error:
            errors.append(error)
            isa = _ISA_OF_KIND.get(image.kind, "x86")
            empty = Listing(f"unread-{isa}", (), target=image.target)
            found.append(ImageListing(image, empty, "none", (error.message,)))
    if len(errors) == len(images):
        raise errors[0]
    return found


def disassemble(image: DeviceImage, tools: Disassemblers) -> ImageListing:
    """One image as a listing."""
    if image.kind in TEXT_KINDS:
        known_as = f"asm-{_ISA_OF_KIND[image.kind]}" if image.kind in _ISA_OF_KIND else ""
        listing = parse_listing(image.data.decode("utf-8", "replace"), image.origin, known_as=known_as)
        return ImageListing(image, _with_target(listing, image.target or _told_target(image)), "text")
    if image.kind not in ELF_KINDS:
        raise InputError(f"{image.origin}: neither an object nor a listing", hint="mccprobe report knows sources")
    notes: tuple[str, ...] = ()
    if tools.table is not None:
        why = misfit(table_at(tools.table), image)
        if not why:
            return _by_table(image, tools.table)
        notes = (f"{tools.table.name} is not used: {why}",)
    try:
        found = _by_disassembler(image, tools)
    except ToolchainError as error:
        raise ToolchainError(error.message, detail="\n".join([*notes, error.detail]), hint=error.hint) from error
    return replace(found, warnings=(*notes, *found.warnings))


def _by_table(image: DeviceImage, path: Path, said: Sequence[str] = ()) -> ImageListing:
    listing, warnings = listing_by_table(image, table_at(path))
    return ImageListing(image, listing, f"table {path.name}", (*said, *warnings))


def _by_disassembler(image: DeviceImage, tools: Disassemblers) -> ImageListing:
    """By what is installed, else by a table at the default place."""
    if image.kind == "mtgpu-elf":
        return _mtgpu(image, tools)
    if is_x86(image):
        return ImageListing(image, _by_capstone(image), "capstone", (SIMULATED,) if is_simulated(image) else ())
    symbols = code_symbols(image)  # a damaged object is not the tools' fault: BadElf
    made, tool, said = by_tools(image, tools.stock, _reader(symbols))
    if made is not None:
        return ImageListing(image, _with_target(without_padding(made, symbols), image.target), tool)
    learned = find_table(tools.tables, image)
    if learned is not None:
        why = misfit(table_at(learned), image)
        if not why:
            return _by_table(image, learned, said)
        said = (*said, f"{learned} is not used: {why}")
    raise ToolchainError(
        f"{image.origin}: no llvm-objdump here disassembles {image.target or image.kind}",
        detail="\n".join(said),
        hint="install llvm (Debian: llvm-14), or put llvm-objdump into PATH",
    )


def _told_target(image: DeviceImage) -> str:
    """The architecture that the metadata of an assembly text tells, "" if it tells none, or several."""
    if image.kind == "listing":
        return ""
    try:
        targets = {kernel.target for kernel in read_kernels(image)[0]}
    except MccprobeError:
        return ""
    return targets.pop() if len(targets) == 1 else ""


def _with_target(listing: Listing, target: str) -> Listing:
    return listing if listing.target or not target else replace(listing, target=target)


def without_padding(listing: Listing, symbols: Sequence[CodeSymbol]) -> Listing:
    """The listing without what stands between the end of one symbol and the start of the next."""
    ends = {(symbol.name, symbol.address): symbol.address + len(symbol.data) for symbol in symbols}
    unsized = {(symbol.name, symbol.address) for symbol in symbols if not symbol.sized}
    functions = []
    for function in listing.functions:
        if listing.format == "objdump-amdgpu" and (function.name, function.address or 0) in unsized:
            functions.append(replace(function, instructions=tuple(without_tail(function.instructions))))
            continue
        end = ends.get((function.name, function.address or 0))
        last = function.instructions[-1].address if function.instructions else None
        if end is None or last is None or last < end or end == function.address:
            functions.append(function)
            continue
        kept = tuple(one for one in function.instructions if one.address is None or one.address < end)
        labels = {name: min(index, len(kept)) for name, index in function.labels.items()}
        functions.append(replace(function, instructions=kept, labels=labels))
    return replace(listing, functions=tuple(functions))


def _mtgpu(image: DeviceImage, tools: Disassemblers) -> ImageListing:
    said: tuple[str, ...] = ()
    if tools.vendor:
        symbols = code_symbols(image)
        listing, tool, said = by_tools(image, (tools.vendor,), _reader(symbols))
        if listing is not None:
            listing = without_padding(listing, symbols)
            return ImageListing(image, _with_target(listing, image.target), tool)
    learned = find_table(tools.tables, image)
    if learned is not None:
        why = misfit(table_at(learned), image)
        if not why:
            return _by_table(image, learned, said)
        said = (*said, f"{learned} is not used: {why}")
    listing, notes = open_listing(code_symbols(image), image.target)
    return ImageListing(image, listing, tool_of(image.target), (*said, *notes))


def _reader(symbols: Sequence[CodeSymbol]) -> Callable[[str, str], Listing]:
    spans = Spans(symbols)
    return lambda text, tool: parse_listing(text, tool, spans=spans)


def by_tools(
    image: DeviceImage, tools: Sequence[str], read: Callable[[str, str], Read]
) -> tuple[Read | None, str, tuple[str, ...]]:
    """What `read(text, tool)` makes of the first tool's text that it can read; else what each said."""
    said = []
    with tempfile.TemporaryDirectory(prefix="mccprobe-") as folder:
        file = Path(folder) / "image.o"
        file.write_bytes(image.data)
        for tool in tools:
            result = run(RunSpec([tool, "-d", str(file)], timeout_s=TOOL_TIMEOUT_S, capture_bytes=TEXT_LIMIT_BYTES))
            if not result.ok:
                first = (result.stderr_text.strip().splitlines() or ["no message"])[0]
                said.append(f"{tool}: {result.describe()}: {first}")
                continue
            try:
                return read(result.stdout_text, tool), tool, tuple(said)
            except InputError as error:
                said.append(f"{tool}: {error.message}")
    return None, "", tuple(said)


def is_x86(image: DeviceImage) -> bool:
    """True for x86-64 code, the stand-in's included, whatever its bundle entry is called."""
    return machine_of(image.data) == EM_X86_64


def iter_capstone(symbol: CodeSymbol) -> Iterator[tuple[int, int, str, str]]:
    """(address, size, mnemonic with prefixes, operands); what is no instruction is a .byte."""
    engine = _capstone()
    yield from engine.disasm_lite(symbol.data, symbol.address)


@functools.cache
def _capstone() -> Any:
    import capstone

    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    engine.syntax = capstone.CS_OPT_SYNTAX_ATT
    engine.skipdata = True
    return engine


def _by_capstone(image: DeviceImage) -> Listing:
    """x86-64 code through capstone, in AT&T spelling as llvm-objdump prints it; x86-64 whatever its bundle id says."""
    table = pipe_table("x86")
    functions = []
    for symbol in code_symbols(image):
        instructions = []
        for address, size, mnemonic, operands in iter_capstone(symbol):
            words = mnemonic.split(" ")
            kind = table.find(words[-1])
            target = operands if kind.flow and operands.startswith("0x") else ""
            place = address - symbol.address
            instructions.append(
                Instruction(
                    address,
                    bytes(symbol.data[place : place + size]),
                    words[-1],
                    operands,
                    f"{words[-1]} {operands}".rstrip(),
                    kind.pipe,
                    target,
                    "",
                    " ".join(words[:-1]),
                )
            )
        functions.append(Function(symbol.name, tuple(instructions), {}, symbol.address))
    return Listing("capstone-x86", tuple(functions), target=HOSTS[EM_X86_64])
