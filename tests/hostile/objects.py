"""Readers of objects, listings and learned tables: whole inputs and calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from .reader import as_file, text_of

# ---- objects --------------------------------------------------------------------------------------


@cache
def shapes() -> dict[str, bytes]:
    import msgpack

    from tests.binary.writer import (
        BODY,
        EM_X86_64,
        ET_DYN,
        ElfWriter,
        Function,
        Part,
        archive,
        bundle,
        compressed,
        mtgpu_assembly,
        mtgpu_document,
        mtgpu_elf,
        mtgpu_kernel,
        note,
        text_bundle,
    )

    document = mtgpu_document(mtgpu_kernel("a"), mtgpu_kernel("b"))
    assembly = mtgpu_assembly(document, BODY)
    functions = [Function("a", 0, 12), Function("b", 12, 12)]
    device = mtgpu_elf(document, type=ET_DYN, note_segment=True, text=bytes(24), functions=functions)
    packed = bundle([("host-x86_64-unknown-linux-gnu", b""), ("musa-mtgpu-mt-musa--mp_22", device)])
    parts = [Part(".mt_fatbin", packed), Part(".data", compressed(packed, 3))]
    amd = {"amdhsa.version": [1, 1], "amdhsa.kernels": [{".name": "k", ".symbol": "k.kd", ".vgpr_count": 8}]}
    own = note("MTGPU", 0x40, msgpack.packb(document))
    return {
        "elf": device,
        "amd-elf": ElfWriter(notes=note("AMDGPU", 32, msgpack.packb(amd)), machine=224).build(),
        "notes": ElfWriter(notes=own + note("GNU", 1, b"x" * 9), machine=253).build(),
        "assembly": assembly.encode(),
        "bundle": packed,
        "text-bundle": text_bundle([("host-x", "x"), ("musa-mtgpu-mt-musa-mp_22", assembly)]).encode(),
        "zlib": compressed(packed, 2),
        "zstd": compressed(packed, 1, 1),
        "zstd3": compressed(packed, 3, 1),
        "host": ElfWriter(machine=EM_X86_64, parts=parts).build(),
        "archive": archive([("a.o", device), ("a name that is too long.o", b"")]),
        "messagepack": msgpack.packb(document),
        "amd-messagepack": msgpack.packb(amd),
    }


def shape(*names: str) -> Callable[[], list[bytes]]:
    return lambda: [shapes()[name] for name in names]


def read_object(data: bytes, scratch: Path) -> object:
    from mccprobe.base.console import json_text
    from mccprobe.base.errors import MccprobeError
    from mccprobe.inspection.host_elf import host_functions, host_kernels
    from mccprobe.objects.binary.describe import iter_described
    from mccprobe.objects.binary.listed import shown_image
    from mccprobe.objects.binary.read import code_symbols, images_of, is_simulated, read_kernels, read_notes
    from mccprobe.objects.model.resources import Options, resources_of

    for image in images_of(data, "x", carriers=True)[:8]:
        for read in (read_notes, code_symbols, host_functions):
            try:
                read(image)
            except MccprobeError:
                continue
        try:
            kernels, _ = read_kernels(image)
            described, _ = shown_image(image)
            for note in described["notes"]:
                note["descriptor"] = note["descriptor"].hex()
                list(iter_described(note["decoded"], 4))
            json_text(described)
            host_kernels(image, simulated=is_simulated(image))
        except MccprobeError:
            continue
        for kernel in kernels[:4]:
            resources_of(kernel, options=Options()).to_dict()
    return None


def read_messages(data: bytes, scratch: Path) -> object:
    from mccprobe.base.errors import MccprobeError
    from mccprobe.objects.binary.document import plain, read_messagepack
    from mccprobe.objects.binary.metadata import AMDGPU, MTGPU, read_document

    document = read_messagepack(data, "x")
    plain(document)
    for dialect in (MTGPU, AMDGPU):
        try:
            read_document(document, dialect, target="mp_22", source_format="mtgpu-elf", origin="x", code_bytes={})
        except MccprobeError:
            continue
    return None


def read_yaml_text(data: bytes, scratch: Path) -> object:
    from mccprobe.objects.binary.document import plain, read_yaml

    return plain(read_yaml(text_of(data), "x"))


def yaml_seeds() -> list[bytes]:
    from tests.binary.writer import mtgpu_document, mtgpu_kernel, yaml_lines

    written = "\n".join(yaml_lines(mtgpu_document(mtgpu_kernel("a")))).encode()
    return [written, b"a: !str 1\nb: [1, 'x', {c: 0x10}]\nd: |\n  text\n"]


# ---- listings and tables --------------------------------------------------------------------------


def read_listing_text(data: bytes, scratch: Path) -> object:
    """disasm, lint and diff of one text."""
    from mccprobe.base.errors import InputError
    from mccprobe.inspection import diff as diff_record
    from mccprobe.inspection import disasm as disasm_record
    from mccprobe.inspection import lint as lint_record
    from mccprobe.objects.binary.records import DeviceImage
    from mccprobe.objects.isa.diff import diff_images
    from mccprobe.objects.isa.disassemble import Disassemblers, ImageListing, disassemble
    from mccprobe.objects.isa.lint import lint_images
    from mccprobe.objects.isa.lint_rules import RULES
    from mccprobe.objects.isa.listing import parse_listing
    from mccprobe.report import disasm_text

    listing = parse_listing(text_of(data))
    kind = "mtgpu-asm" if listing.format == "mcc-s" else "amdgpu-asm" if listing.format == "amdgpu-s" else "listing"
    image = DeviceImage("", kind, data, "x", "")
    one = disassemble(image, Disassemblers()) if kind != "listing" else ImageListing(image, listing, "text")
    views = [disasm_record.view(one)]
    disasm_record.document(views, with_words=True)
    disasm_text.render(views, words=True, loops=True)
    try:
        results = lint_images([one], RULES)
        lint_record.document(results, RULES)
        lint_record.render(results)
        half = replace(
            one,
            listing=replace(
                listing,
                functions=tuple(
                    replace(function, instructions=function.instructions[::2], labels={})
                    for function in listing.functions
                ),
            ),
        )
        changes = diff_images([one], [half])
        diff_record.document(changes, "a", "b")
        diff_record.render(changes, "a", "b", limit=50)
    except InputError:
        return None
    return None


@as_file("a.lst")
def learn_from(path: Path) -> object:
    from mccprobe.objects.isa.learn_files import learn_files
    from mccprobe.objects.isa.table_file import table_document

    return table_document(learn_files([path]).table, "0")


@cache
def table_bytes() -> bytes:
    from mccprobe.objects.isa.table_file import table_document
    from tests.isa_learn.test_table_file import small_table

    return json.dumps(table_document(small_table(), "0.1.0")).encode()


@as_file("t.json")
def read_table_file(path: Path) -> object:
    from mccprobe.objects.isa.stream import Decoder
    from mccprobe.objects.isa.table_file import read_table

    table = read_table(path)
    code = bytes(range(64)) * 4
    return list(Decoder(table).decode([(0, code), (len(code), code[1:])]))


def decode_with_table(data: bytes, scratch: Path) -> object:
    from mccprobe.objects.isa.decode_file import decode_file
    from mccprobe.objects.isa.table_file import read_table

    table, target = scratch / "t.json", scratch / "d.o"
    if not table.exists():
        table.write_bytes(table_bytes())
    target.write_bytes(data)
    return decode_file(replace(read_table(table), target=""), target)


def read_operands(data: bytes, scratch: Path) -> object:
    from mccprobe.objects.isa.operands import parse_operand
    from mccprobe.objects.isa.registers import split_operands

    return [parse_operand(one) for one in split_operands(text_of(data))]


def objdump_seeds() -> list[bytes]:
    amd = b"""
a.o:\tfile format elf64-amdgpu

Disassembly of section .text:

0000000000000000 <work>:
\ts_load_dwordx4 s[0:3], s[4:5], 0x0                          // 000000000000: C00A0002 00000000
\tv_mov_b32_e32 v1, s0                                        // 000000000008: 7E020200
\ts_cbranch_scc0 65534                                        // 00000000000C: BF84FFFE <work+0x8>
\ts_endpgm                                                    // 000000000010: BF810000
"""
    x86 = b"""
a.o:     file format elf64-x86-64

Disassembly of section .text:

0000000000000000 <work>:
       0: 55                            pushq   %rbp
       1: 48 89 e5                      movq    %rsp, %rbp
       4: e8 00 00 00 00                callq   0x9 <work+0x9>
       9: 75 f5                         jne     0x0 <work>
       b: c3                            retq
"""
    hexagon = b"""
a.o:\tfile format elf32-hexagon

Disassembly of section .text:

00000000 <work>:
       0:\t01 c0 9d a0\ta09dc001 { \tallocframe(r29,#8):raw }
       4:\t02 40 00 78\t78004002 { \tr2 = #0
       8:\t00 c0 00 7f\t7f00c000   \tnop }
"""
    return [amd, x86, hexagon]
