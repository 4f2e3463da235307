"""Everything that `mccprobe notes` shows of a file, as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mccprobe.base.errors import BadMetadata, InputError
from mccprobe.objects.binary.assembly import read_metadata_texts
from mccprobe.objects.binary.describe import decode_note
from mccprobe.objects.binary.metadata import few
from mccprobe.objects.binary.read import (
    SIMULATED,
    dialect_of_note,
    dialect_of_text,
    is_simulated,
    kernels_of,
    read_images,
    read_notes,
)
from mccprobe.objects.binary.records import DeviceImage


def list_notes(file: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The images of a file with their notes (`descriptor` still as bytes), and warnings.

    Raises InputError for a file that is of no known kind, and what `read_images` and `read_notes` raise.
    A descriptor that cannot be decoded is a `problem` of its note, not an error: the others are shown.
    """
    images = read_images(file, carriers=True)
    if all(image.kind in ("unknown", "listing") and image.data[:4] != b"\x7fELF" for image in images) and images:
        what = "a disassembler's listing" if images[0].kind == "listing" else "of no known kind"
        raise InputError(
            f"{file}: {what}, so there are no notes in it",
            hint="expected ELF, an offload bundle, or assembly text",
        )
    shown, warnings = [], []
    if not images:
        warnings.append(f"{file}: the bundle holds no object")
    for image in images:
        described, told = shown_image(image)
        shown.append(described)
        warnings += told
    return shown, warnings


def shown_image(image: DeviceImage) -> tuple[dict[str, Any], list[str]]:
    """What is shown of one image, and its warnings: schema drift and damaged metadata, one line each."""
    listed: list[dict[str, Any]] = []
    warnings = [f"{image.origin}: {SIMULATED}"] if is_simulated(image) else []
    documents: list[tuple[Any, Any]] = []
    for note in read_notes(image):
        decoded, problem = None, None
        try:
            decoded = decode_note(note, image.origin)
            documents.append((dialect_of_note(note), decoded))
        except BadMetadata as error:
            problem = error.message
            warnings.append(problem)
        listed.append(
            {
                "owner": note.owner,
                "type": note.type,
                "name": note.name,
                "location": note.location,
                "size_bytes": len(note.descriptor),
                "decoded": decoded,
                "problem": problem,
                "descriptor": note.descriptor,
            }
        )
    texts = read_metadata_texts(image.data, image.origin) if image.kind.endswith("-asm") else []
    documents += [(dialect_of_text(text), text.document) for text in texts]
    described = {
        "origin": image.origin,
        "kind": image.kind,
        "target": image.target,
        "entry_id": image.entry_id,
        "notes": listed,
        "assembly_metadata": [{"vendor": text.vendor, "line": text.line, "decoded": text.document} for text in texts],
    }
    return described, warnings + _drift(image, documents)


def _drift(image: DeviceImage, documents: list[tuple[Any, Any]]) -> list[str]:
    try:
        kernels, warnings = kernels_of(image, documents, {})
    except BadMetadata as error:  # no map: it is shown as it is
        return [error.message]
    unknown: dict[tuple[str, ...], list[str]] = {}
    for kernel in kernels:
        warnings += [f"{image.origin}: kernel {kernel.name}: {told}" for told in kernel.warnings]
        if kernel.unknown_keys:
            unknown.setdefault(kernel.unknown_keys, []).append(kernel.name)
    for keys, names in unknown.items():
        whose = f"kernel {names[0]}" if len(names) == 1 else f"{len(names)} kernels, the first {names[0]}"
        warnings.append(f"{image.origin}: {whose}: unknown keys: {', '.join(keys)}")
    return few(warnings, image.origin)
