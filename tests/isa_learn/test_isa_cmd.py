"""The command `isa`, in-process: learn, show, decode, each with its JSON document checked against the schema."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from mccprobe.base.console import Console
from mccprobe.base.errors import MccprobeError
from mccprobe.cli.isa_cmd import isa

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "reports/isa.schema.json").read_text())
OPERANDS = [(a, b) for a in range(0, 32, 5) for b in (0, 1, 9, 31)]


def listing(path: Path, opcodes: tuple[int, ...]) -> Path:
    """Words of 4 bytes; the opcode in the two highest bytes, two registers below."""
    words = [op << 16 | b << 8 | a for op in opcodes for a, b in OPERANDS]
    lines = [
        f"\tv_op{word >> 16:x} v{word & 255}, v{word >> 8 & 255}    // {4 * n:012X}: {word:08X}"
        for n, word in enumerate(words)
    ]
    path.write_text("x:\tfile format elf64-amdgpu\n\n0000000000000000 <k>:\n" + "\n".join(lines) + "\n")
    return path


def device_object(path: Path, words: list[int]) -> Path:
    code = struct.pack(f"<{len(words)}I", *words)
    names = b"\0.text\0.shstrtab\0"
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01\x40".ljust(16, b"\0"),
        1,
        224,
        1,
        0,
        0,
        64 + len(code + names),
        0x30,
        64,
        0,
        0,
        64,
        3,
        2,
    )
    sections = struct.pack("<IIQQQQIIQQ", *[0] * 10)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 6, 0, 64, len(code), 0, 0, 4, 0)
    sections += struct.pack("<IIQQQQIIQQ", 7, 3, 0, 0, 64 + len(code), len(names), 0, 0, 1, 0)
    path.write_bytes(header + code + names + sections)
    return path


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(isa, [str(one) for one in arguments], obj=Console(quiet=True), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value or 0), result.stdout


def document(*arguments: str | Path) -> dict[str, Any]:
    _, text = run(*arguments, "--json")
    parsed: dict[str, Any] = json.loads(text)
    jsonschema.validate(parsed, SCHEMA)
    return parsed


@pytest.fixture
def table(tmp_path: Path) -> Path:
    files = [listing(tmp_path / f"{n}.lst", (0x7E04, 0x7E05, 0x0200 + n)) for n in range(3)]
    path = tmp_path / "t.json"
    learned = document("learn", "--from", *files, "-o", path, "--target", "gfx908")
    assert learned["status"] == "learned" and learned["instructions"] == 9 * len(OPERANDS)
    assert learned["held_out"]["unseen"] == len(OPERANDS) and learned["held_out"]["unseen_named"] == 0
    return path


def test_learn_says_what_it_did(tmp_path: Path) -> None:
    files = [listing(tmp_path / f"{n}.lst", (0x7E04, 0x7E05, 0x0200 + n)) for n in range(3)]
    code, text = run("learn", "--from", *files, "-o", tmp_path / "t.json")
    assert code == 0 and "held out (before probing)" in text and "0 of them named" in text


def test_show(table: Path) -> None:
    code, text = run("show", table, "v_op7e04")
    assert code == 0 and "01111110 00000100" in text and "certain" in text
    assert document("show", table, "v_op7e04")["rows"][0]["confidence"] == "certain"
    assert document("show", table)["summary"]["mnemonics"] == 5
    assert run("show", table)[0] == 0
    code, text = run("show", table, "v_fma_f32")
    assert code == 1 and "no name is guessed" in text


def test_decode(table: Path, tmp_path: Path) -> None:
    kernel = device_object(tmp_path / "k.o", [0x7E04 << 16 | 0x0302, 0x7E05 << 16, 0xFFFFFFFF, 0x7F04 << 16])
    found = document("decode", table, kernel)
    names = [one["mnemonic"] for one in found["functions"][0]["instructions"]]
    assert names == ["v_op7e04", "v_op7e05", None, None]
    assert found["functions"][0]["states"]["unknown"] == 2
    code, text = run("decode", table, kernel)
    assert code == 0 and "<unknown>" in text and "v_op7e05" in text
    assert document("decode", table, kernel, "--counts")["functions"][0]["instructions"] is None


def test_a_table_of_another_target_is_not_used(table: Path, tmp_path: Path) -> None:
    text = table.read_text().replace('"target":"gfx908"', '"target":"gfx90a"', 1)
    table.write_text(text)
    with pytest.raises(MccprobeError, match="no code that this table could decode"):
        run("decode", table, device_object(tmp_path / "k.o", [0x7E040302]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--word-bytes", "zero"], "neither auto nor a number"),
        (["--word-bytes", "6"], "do not fit"),
        (["--probe", "llvm-objdump"], "go together"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: list[str], message: str) -> None:
    with pytest.raises(MccprobeError, match=message):
        run("learn", "--from", listing(tmp_path / "a.lst", (1, 2)), "-o", tmp_path / "t.json", *options)
