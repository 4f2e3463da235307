"""A device object decoded with a learned table: every function of every image that fits the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import InputError
from mccprobe.objects.binary.read import code_symbols, read_images
from mccprobe.objects.isa.encoding import EncodingTable
from mccprobe.objects.isa.stream import Decoder, Stream

OBJECTS = ("mtgpu-elf", "amdgpu-elf")


@dataclass(frozen=True)
class DecodedFunction:
    """One function. address: in its section; image: where it comes from."""

    image: str
    target: str
    name: str
    address: int
    stream: Stream


def decode_file(table: EncodingTable, path: Path, target: str = "") -> tuple[list[DecodedFunction], list[str]]:
    """Functions, and warnings. Images of another target than the table's are left out, and named.

    Raises InputError if nothing can be decoded.
    """
    decoder = Decoder(table)
    found: list[DecodedFunction] = []
    warnings: list[str] = []
    wanted = target or table.target
    for image in read_images(path):
        if image.kind not in OBJECTS or (target and image.target != target):
            continue
        if wanted and image.target and image.target.split(":")[0] != wanted.split(":")[0]:
            warnings.append(f"{image.origin}: {image.target}, and the table is of {wanted}: left out")
            continue
        if not table.target:
            warnings.append(f"{image.origin}: the table does not say which target it is of")
        symbols = code_symbols(image)
        streams = decoder.decode([(symbol.address, symbol.data) for symbol in symbols])
        for symbol, stream in zip(symbols, streams, strict=True):
            found.append(DecodedFunction(image.origin, image.target, symbol.name, symbol.address, stream))
    if not found:
        raise InputError(
            f"{path}: no code that this table could decode", hint=warnings[0] if warnings else "give a device object"
        )
    return found, warnings
