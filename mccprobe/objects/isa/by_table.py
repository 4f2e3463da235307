"""An image to a Listing by a learned table: mnemonics and pipes, no operands, nothing where the table is silent.

A table holds for its own target alone. The default place of tables is a folder with one `TARGET.json` each,
as `mccprobe isa learn` writes them: MCCPROBE_TABLES, else mccprobe/tables below the user's data folder
(XDG base directory specification). It is no cache: a table may come from a machine that has the vendor's tools.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from mccprobe.base.paths import is_file
from mccprobe.objects.binary.read import code_symbols
from mccprobe.objects.binary.records import DeviceImage
from mccprobe.objects.isa.encoding import EncodingTable
from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import OTHER, Function, Instruction, Listing
from mccprobe.objects.isa.stream import AMBIGUOUS, OUT_OF_STEP, Decoded, Decoder
from mccprobe.objects.isa.table_file import read_table

KINDS = {"mp_": "mtgpu-elf", "gfx": "amdgpu-elf"}  # how targets begin, and the objects that they are of
NO_OPERANDS = "a table names instructions without their operands: branch targets and loops are not known"


def tables_folder() -> Path | None:
    """Where tables are looked for by themselves; None if none is named and the user has no home folder."""
    named = os.environ.get("MCCPROBE_TABLES")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_DATA_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "share") / "mccprobe" / "tables"
    except RuntimeError:
        return None


@lru_cache(maxsize=8)
def table_at(path: Path) -> EncodingTable:
    """The table in a file, read once. Raises InputError, BadDataFile."""
    return read_table(path)


def base_of(target: str) -> str:
    """gfx908 of gfx908:xnack+; tables do not depend on features."""
    return target.partition(":")[0]


def misfit(table: EncodingTable, image: DeviceImage) -> str:
    """Why the table is not for the image, "" if it is."""
    if not table.target:
        return "the table does not say which target it is of (isa learn --target)"
    if image.target and base_of(image.target) != base_of(table.target):
        return f"the table is of {table.target}"
    kind = KINDS.get(table.target[:3])
    return f"the table is of {table.target}" if kind is not None and image.kind != kind else ""


def find_table(folder: Path | None, image: DeviceImage) -> Path | None:
    """The table of the image's target in the folder of tables."""
    target = base_of(image.target)
    if folder is None or not target or not target.replace("_", "").replace("-", "").isalnum():
        return None
    path = folder / f"{target}.json"
    return path if is_file(path) else None


def listing_by_table(image: DeviceImage, table: EncodingTable) -> tuple[Listing, tuple[str, ...]]:
    """The listing, and what must be known of it. Raises BadElf."""
    isa = image.kind.partition("-")[0]
    symbols = code_symbols(image)
    streams = Decoder(table).decode([(symbol.address, symbol.data) for symbol in symbols])
    functions = tuple(
        Function(symbol.name, tuple(_instruction(one) for one in stream), {}, symbol.address)
        for symbol, stream in zip(symbols, streams, strict=True)
    )
    warnings = [NO_OPERANDS]
    if not image.target:
        warnings.insert(0, f"the object does not say its target: read as {table.target}")
    return Listing(f"table-{isa}", functions, target=image.target or table.target), tuple(warnings)


def _instruction(one: Decoded) -> Instruction:
    if one.mnemonic:
        level = one.confidence.name.lower()
        return Instruction(one.address, one.data, one.mnemonic, "", one.mnemonic, one.pipe or OTHER, confidence=level)
    text = {AMBIGUOUS: f"<{' or '.join(one.rivals)}>", OUT_OF_STEP: "<out of step>"}.get(one.state, "<unknown>")
    return Instruction(one.address, one.data, "<unknown>", "", text, one.pipe or UNKNOWN)
