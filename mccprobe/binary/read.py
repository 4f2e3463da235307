"""One door to all inputs: a file to images, an image to kernels, notes and code. (under construction)"""

from __future__ import annotations

from pathlib import Path

from mccprobe.binary.records import CodeSymbol, DeviceImage, KernelMetadata, Note


def read_images(path: Path) -> list[DeviceImage]:
    """The images in a file, recognised by content."""
    raise NotImplementedError


def read_kernels(image: DeviceImage) -> tuple[list[KernelMetadata], list[str]]:
    """The kernels of an image, and warnings about it."""
    raise NotImplementedError


def read_notes(image: DeviceImage) -> list[Note]:
    """Every note of an image."""
    raise NotImplementedError


def code_symbols(image: DeviceImage) -> list[CodeSymbol]:
    """Functions and kernels with their bytes."""
    raise NotImplementedError


def is_listing(data: bytes) -> bool:
    """True for the text of `llvm-objdump -d`."""
    raise NotImplementedError
