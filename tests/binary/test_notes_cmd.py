"""`mccprobe notes`: text, hex, JSON by its schema, drift as warnings, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from mccprobe.base.console import Console
from mccprobe.base.errors import BadElf, InputError
from mccprobe.cli.notes_cmd import notes

from .writer import (
    BODY,
    EM_X86_64,
    ElfWriter,
    Part,
    bundle,
    mtgpu_assembly,
    mtgpu_document,
    mtgpu_elf,
    mtgpu_kernel,
    note,
)

KERNEL = {".name": "no", ".temp_reg_count": 5, ".barrier_coef": 0xFFFF_FFFF, ".args": [{".kind": 18}], ".attrs": {}}
DOCUMENT = mtgpu_document(KERNEL)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """`run(data, "--json")` writes the data to k.o and shows its notes."""

    def call(data: bytes | str, *options: str) -> Result:
        path = tmp_path / "k.o"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return CliRunner().invoke(notes, [str(path), *options], obj=Console())

    return call


def text_of(result: Result, tmp_path: Path) -> str:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout.replace(str(tmp_path), "DIR")


def test_text(run: Any, tmp_path: Path) -> None:
    data = ElfWriter(notes=note("MTGPU", 0x40, mtgpu_elf_descriptor()) + note("other", 7, b"ab\x1b")).build()
    assert (
        text_of(run(data), tmp_path)
        == """\
DIR/k.o  (mtgpu-elf)
  MTGPU type 0x40: MTGPU metadata (MessagePack), 102 bytes, section .note at 0x40
    mtgpu.kernels:
      - .name: "no"
        .temp_reg_count: 5
        .barrier_coef: 4294967295 (all ones)
        .args:
          - .kind: 18 (user parameter)
        .attrs: {}
    mtgpu.version: [1, 0]
  other type 0x7: 3 bytes, section .note at 0xbc
    not decoded; --hex shows the bytes
"""
    )


def mtgpu_elf_descriptor() -> bytes:
    import msgpack

    packed: bytes = msgpack.packb(DOCUMENT)
    return packed


def test_hex(run: Any, tmp_path: Path) -> None:
    shown = text_of(run(ElfWriter(notes=note("other", 7, bytes(range(0x3E, 0x50)))).build(), "--hex"), tmp_path)
    assert shown.splitlines()[2:] == [
        "    000000  3e 3f 40 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d  >?@ABCDEFGHIJKLM",
        "    000010  4e 4f                                            NO",
    ]


def test_assembly_text(run: Any, tmp_path: Path) -> None:
    shown = text_of(run(mtgpu_assembly(DOCUMENT, BODY)), tmp_path).splitlines()
    assert shown[:4] == [
        "DIR/k.o  (mtgpu-asm)",
        "  mtgpu metadata in assembly text, line 12",
        "    mtgpu.kernels:",
        '      - .name: "no"',
    ]


def test_containers_are_taken_apart(run: Any, tmp_path: Path) -> None:
    device = mtgpu_elf(DOCUMENT)
    fat = bundle([("host-x", b""), ("musa-mtgpu-mt-musa-mp_22", device), ("musa-mtgpu-mt-musa-mp_31", device)])
    shown = text_of(run(ElfWriter(machine=EM_X86_64, parts=[Part(".mt_fatbin", fat)]).build()), tmp_path)
    assert [line for line in shown.splitlines() if line[0] != " "] == [
        "DIR/k.o: section .mt_fatbin, entry musa-mtgpu-mt-musa-mp_22  (mtgpu-elf, mp_22)",
        "DIR/k.o: section .mt_fatbin, entry musa-mtgpu-mt-musa-mp_31  (mtgpu-elf, mp_31)",
        "DIR/k.o  (host-elf, x86-64)",
    ]


def test_notes_of_a_carrier_and_of_an_unknown_container(run: Any, tmp_path: Path) -> None:
    foreign = Part(".nv_fatbin", b"\x50\xed\x55\xba" + bytes(60))
    data = ElfWriter(machine=EM_X86_64, notes=note("GNU", 3, b"\x12\x34"), parts=[foreign]).build()
    assert text_of(run(data), tmp_path).splitlines()[:5] == [
        "DIR/k.o: section .nv_fatbin  (unknown)",
        "  no notes",
        "DIR/k.o  (host-elf, x86-64)",
        "  GNU type 0x3: NT_GNU_BUILD_ID, 2 bytes, section .note at 0x40",
        '    "1234"',
    ]


def test_an_unknown_key_of_many_kernels_is_one_warning(run: Any) -> None:
    names = ("first", "second", "third")
    kernels = [mtgpu_kernel(name, **({"surprise": 1} if name != "third" else {"other": 2})) for name in names]
    told = run(mtgpu_elf(mtgpu_document(*kernels))).stderr
    assert "2 kernels, the first first: unknown keys: .surprise\n" in told
    assert "kernel third: unknown keys: .other\n" in told


@pytest.mark.parametrize("options", [(), ("--hex",)])
@pytest.mark.parametrize(
    "data",
    [
        mtgpu_elf(DOCUMENT),
        mtgpu_assembly(DOCUMENT, BODY).encode(),
        bundle([("host-x", b"")]),
        ElfWriter(notes=note("MTGPU", 0x40, b"\xc1") + note(b"\xff\x1b", 7, b"\0")).build(),
        mtgpu_elf(mtgpu_document(mtgpu_kernel(new=1), version=(9, 9))),
    ],
)
def test_json_follows_its_schema(run: Any, root: Path, data: bytes, options: tuple[str, ...]) -> None:
    result = run(data, "--json", *options)
    document = json.loads(result.stdout)
    jsonschema.validate(document, json.loads((root / "reports/notes.schema.json").read_text()))
    for image in document["images"]:
        for shown in image["notes"]:
            assert (shown["hex"] is not None) is bool(options)


def test_drift_and_damage_are_warnings(run: Any) -> None:
    result = run(mtgpu_elf(mtgpu_document(mtgpu_kernel(new=1), version=(9, 9))), "--json")
    told = [warning.rpartition("k.o: ")[2] for warning in json.loads(result.stdout)["warnings"]]
    assert told == [
        "mtgpu.version is 9.9; known are 1.0, 2.2: keys may differ",
        "kernel _Z5demo1Pf: unknown keys: .new",
    ]
    assert [line.rpartition("k.o: ")[2] for line in result.stderr.splitlines()] == told
    result = run(ElfWriter(notes=note("MTGPU", 0x40, b"\xc1")).build())
    assert "    not decoded: " in result.stdout and "byte c1 has no meaning in MessagePack" in result.stdout


def test_control_characters_do_not_reach_the_terminal(run: Any) -> None:
    result = run(ElfWriter(notes=note(b"a\x1b[2J", 7, b"\0")).build())
    assert "\x1b" not in result.stdout and "a\\x1b[2J type 0x7" in result.stdout


@pytest.mark.parametrize(
    ("data", "error", "problem"),
    [
        ("int main() {}\n", InputError, "of no known kind, so there are no notes in it"),
        ("k.o:\tfile format elf64-amdgpu\n", InputError, "a disassembler's listing, so"),
        (mtgpu_elf(DOCUMENT)[:40], BadElf, "cut off in the ELF header: 40 bytes, expected 64 (offset 0x0)"),
    ],
)
def test_errors(run: Any, data: bytes | str, error: type[InputError], problem: str) -> None:
    result = run(data)
    assert type(result.exception) is error and problem in str(result.exception)
    assert result.exception.hint
