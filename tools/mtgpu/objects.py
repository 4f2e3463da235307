"""The objects that are measured, with what their notes and their sources say of each function."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mccprobe.objects.binary.read import code_symbols, read_images, read_kernels

BANK_SH, KIND_BLOCK_DIM, KIND_USER = 3, (9, 10, 11), 18
TYPES = {"a": 1, "h": 1, "s": 2, "t": 2, "i": 4, "j": 4, "l": 8, "m": 8, "f": 4, "d": 8}  # Itanium ABI -> bytes

# per template of the public sources: how often each class must occur; a set: one of these
_COUNTS: dict[str, dict[str, set[int]]] = {
    "EmptyKernel": {},
    "VectorAdd": {"load global": {2}, "store global": {1}, "read block index": {1}},
    "vectorAddition": {"load global": {2}, "store global": {1}, "read block index": {1}},
    "elementWiseMultiplication": {"load global": {2}, "store global": {1}, "read block index": {1}},
    "matrixMultiplication": {"load global": {2, 4}, "store global": {1}, "read block index": {2}},
    "matrixTranspose": {"load global": {1}, "store global": {1}, "read block index": {2}},
    "histogramCalculation": {"load global": {1}, "atomic global": {1}, "read block index": {1}},
    "parallelReduction": {
        "load global": {1},
        "store global": {1},
        "barrier": {2},
        "read block index": {2},
        "store shared": {2},
        "load shared": {3},
    },
    "parallelScan": {
        "load global": {1},
        "store global": {1},
        "barrier": {2},
        "read block index": {2},
        "store shared": {2},
        "load shared": {3},
    },
}
COUNTED = ("load global", "store global", "atomic global", "barrier", "read block index", "store shared", "load shared")
LOOPS = {"matrixMultiplication": 1, "parallelReduction": 1, "parallelScan": 1}
_NAME = re.compile(r"_Z(\d+)")


@dataclass(frozen=True)
class Sample:
    """One function. template: of its source, type: its Itanium letter, "" where it has none."""

    file: str
    target: str
    name: str
    code: bytes
    template: str
    type: str
    registers: dict[str, int | None] | None
    words: dict[int, str] = field(default_factory=dict)  # SH index -> "user", "block", "hidden" or "imm"
    imms: dict[int, int] = field(default_factory=dict)

    @property
    def expected(self) -> dict[str, set[int]] | None:
        """Counts of classes, None for functions without a source line of their own (ConstCalcProg)."""
        known = _COUNTS.get(self.template)
        if known is None:
            return None
        return {name: known.get(name, {0}) for name in COUNTED}

    @property
    def size(self) -> int | None:
        return TYPES.get(self.type)


def load(folder: Path) -> tuple[list[Sample], list[str]]:
    """All functions of all objects of a folder, and what they were read from."""
    samples: list[Sample] = []
    sources = []
    for path in sorted(folder.glob("*.elf")):
        sources.append(f"{path.name} sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
        for image in read_images(path):
            if image.kind == "mtgpu-elf":
                samples += _functions(path.stem, image)
    return samples, sources


def _functions(stem: str, image: Any) -> Iterator[Sample]:
    kernels = {kernel.name: kernel for kernel in read_kernels(image)[0]}
    for symbol in code_symbols(image):
        kernel = kernels.get(symbol.name)
        template, letter = _source(symbol.name) if kernel is not None else ("", "")
        words, imms = _words(kernel.raw) if kernel is not None else ({}, {})
        yield Sample(
            stem,
            image.target,
            symbol.name,
            symbol.data,
            template,
            letter,
            dict(kernel.registers) if kernel is not None else None,
            words,
            imms,
        )


def _source(symbol: str) -> tuple[str, str]:
    found = _NAME.match(symbol)
    if not found:
        return "", ""
    end = found.end() + int(found[1])
    rest = symbol[end:]
    return symbol[found.end() : end], rest[1] if rest.startswith("I") else ""


def _words(raw: Any) -> tuple[dict[int, str], dict[int, int]]:
    words: dict[int, str] = {}
    for argument in raw.get(".args", []):
        base = argument[".argBase"]
        if base[".reg_bank"] == BANK_SH:
            kind = argument[".kind"]
            label = "user" if kind == KIND_USER else "block" if kind in KIND_BLOCK_DIM else "hidden"
            for place in range(max(1, base[".size"] // 4)):
                words[base[".offset"] + place] = label
    imms = {one[".immBase"][".offset"]: one[".immBase"][".value"] for one in raw.get(".imms", [])}
    return {**words, **dict.fromkeys(imms, "imm")}, imms
