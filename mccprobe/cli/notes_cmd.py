"""`mccprobe notes`: what the notes of a device object say, key by key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console, visible
from mccprobe.cli.collector import no_collection

DEPTH_OF_KERNELS = 7  # of the document: images, image, notes, note, decoded, kernels


@click.command("notes", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--hex", "with_hex", is_flag=True, help="the bytes of each descriptor as well")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/notes.schema.json)")
@click.pass_obj
@no_collection()
def notes(console: Console, files: tuple[Path, ...], with_hex: bool, as_json: bool) -> int:
    """Decode every note and every metadata document, with its raw keys.

    FILE: a device object, a bundle (compressed or not), a host object or library that carries some,
    or assembly text. It is recognised by its content.

    \b
    Example:
      mccprobe notes kernel.o
      mccprobe notes --hex libkernels.so
    """
    from mccprobe.objects.binary.listed import list_notes
    from mccprobe.oracle.kernel.shipped import refuse_shipped_name
    from mccprobe.report.json_stream import print_json

    images: list[dict[str, Any]] = []
    warnings: list[str] = []
    for file in files:
        refuse_shipped_name(file, takes_source=False)
        more, told = list_notes(file)
        images += more
        warnings += told
    for warning in warnings:
        console.message(f"warning: {warning}")
    if as_json:
        for image in images:
            for note in image["notes"]:
                descriptor = note.pop("descriptor")
                note["hex"] = descriptor.hex() if with_hex else None
        print_json(
            console,
            {"schema_version": 1, "tool_version": __version__, "status": "ok", "images": images, "warnings": warnings},
            DEPTH_OF_KERNELS,
        )
        return 0
    for image in images:
        for lines in _blocks(image, with_hex):
            console.result(visible("\n".join(lines)))
    return 0


def _blocks(image: dict[str, Any], with_hex: bool) -> Iterator[list[str]]:
    """Lines of the output, those of each kernel by themselves: a library has thousands."""
    from mccprobe.objects.binary.describe import hex_lines, iter_described

    kind = ", ".join(word for word in (image["kind"], image["target"]) if word)
    yield [f"{image['origin']}  ({kind})".replace("\n", "\\n")]
    for note in image["notes"]:
        name = f" {note['name']}," if note["name"] else ""
        owner = note["owner"].replace("\n", "\\n") or "(no owner)"
        yield [f"  {owner} type 0x{note['type']:x}:{name} {note['size_bytes']} bytes, {note['location']}"]
        if note["problem"]:
            yield [f"    not decoded: {note['problem']}"]
        elif note["decoded"] is not None:
            yield from iter_described(note["decoded"], 4)
        elif note["size_bytes"] and not with_hex:
            yield ["    not decoded; --hex shows the bytes"]
        if with_hex and note["descriptor"]:
            yield list(hex_lines(note["descriptor"], 4))
    for text in image["assembly_metadata"]:
        yield [f"  {text['vendor']} metadata in assembly text, line {text['line']}"]
        yield from iter_described(text["decoded"], 4)
    if not image["notes"] and not image["assembly_metadata"]:
        yield ["  no notes"]
