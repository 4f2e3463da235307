"""`disasm` and `report` with a learned table: named by it where it fits, never for another target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from mccprobe.base.console import Console
from mccprobe.base.errors import MccprobeError, ToolchainError
from mccprobe.cli.disasm_cmd import disasm

from .test_isa_cmd import device_object, document, listing

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "reports/disasm.schema.json").read_text())
WORDS = [0x7E04 << 16 | 0x0302, 0x7E05 << 16, 0xFFFFFFFF]


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tables with one for gfx908, and no disassembler in PATH."""
    folder = tmp_path / "tables"
    folder.mkdir()
    text = listing(tmp_path / "a.lst", (0x7E04, 0x7E05))
    document("learn", "--from", text, "-o", folder / "gfx908.json", "--target", "gfx908")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("MCCPROBE_TABLES", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nothing"))
    return folder


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(disasm, [str(one) for one in arguments], obj=Console(), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def stream(*arguments: str | Path) -> tuple[dict[str, Any], list[tuple[str, str | None]]]:
    found = json.loads(run(*arguments, "--json").stdout)
    jsonschema.validate(found, SCHEMA)
    (image,) = found["images"]
    return image, [(one["mnemonic"], one["confidence"]) for one in image["functions"][0]["stream"]]


def test_named_by_the_table_that_is_given(tables: Path, tmp_path: Path) -> None:
    kernel = device_object(tmp_path / "k.o", WORDS)
    image, names = stream(kernel, "--table", tables / "gfx908.json")
    assert names == [("v_op7e04", "certain"), ("v_op7e05", "certain"), ("<unknown>", None)]
    assert (image["tool"], image["format"]) == ("table gfx908.json", "table-amdgpu")
    function = image["functions"][0]
    assert (function["instructions"], function["loops"], function["unknown_encodings"]) == (None, None, 1)
    text = run(kernel, "--table", tables / "gfx908.json").stdout
    assert "v_op7e04 (certain)" in text and "<unknown> ff ff ff ff" in text and "loops          unknown" in text


def test_a_table_at_the_default_place_is_used_where_no_disassembler_is(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = device_object(tmp_path / "k.o", WORDS[:2])
    with pytest.raises(ToolchainError, match="no llvm-objdump here"):
        run(kernel)
    for name, value in (("MCCPROBE_TABLES", tables), ("XDG_DATA_HOME", tmp_path / "data")):
        monkeypatch.setenv(name, str(value))
        assert stream(kernel)[0]["functions"][0]["instructions"] == 2
        monkeypatch.delenv(name)
        (tmp_path / "data/mccprobe").mkdir(parents=True, exist_ok=True)
        if not (tmp_path / "data/mccprobe/tables").exists():
            (tmp_path / "data/mccprobe/tables").symlink_to(tables)


@pytest.mark.parametrize("target", ["gfx90a", "mp_22", ""])
def test_a_table_of_another_target_names_nothing(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    table = tables / "gfx908.json"
    table.write_text(table.read_text().replace('"target":"gfx908"', f'"target":"{target}"', 1))
    monkeypatch.setenv("MCCPROBE_TABLES", str(tables))
    kernel = device_object(tmp_path / "k.o", WORDS)
    for options in ([], ["--table", table]):
        with pytest.raises(MccprobeError, match="no llvm-objdump here disassembles gfx908") as raised:
            run(kernel, *options)
    assert "is not used" in raised.value.detail
