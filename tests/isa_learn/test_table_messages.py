"""A damaged table is refused with the key that is wrong and what is wrong with it; limits hold to the last value."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.errors import BadDataFile
from mccprobe.objects.isa.encoding import EncodingTable, Field, Guard, HeldOut, Row, Source
from mccprobe.objects.isa.table_file import (
    MAX_FORM,
    MAX_REFUSED_BITS,
    MAX_TEXT,
    MAX_WORD_BYTES,
    read_table,
    write_table,
)

ROWS = (
    Row("op.add", ("v", "v"), 4, 0, 0, 9, 2, 0x81, 0xFF, 0x7F, (0,)),
    Row("op.mul", None, 4, -1, 1, 5, 5, 0x02, 0xFF, 0xFF, ()),
)
TABLE = EncodingTable(
    "toy", 4, 8, 2, "toydump 1", ROWS, {"op.add": "ALU"},
    (Source("a.lst", "0" * 64, "toy", 14),), (Field(4, "v", 0, 8, 5, 14),), (Guard(4, 8, 3, (1, 6)),),
    {4: 0xF0000000}, ((4, 0x1234, ("op.add", "op.mul")),), {"asked": 3}, HeldOut(*range(8)), 1, ("words of 4",),
)  # fmt: skip


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "t.json"
    write_table(path, TABLE, "0")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def read(document: Any, folder: Path) -> EncodingTable:
    path = folder / "damaged.json"
    path.write_text(json.dumps(document))
    return read_table(path)


def test_every_part_comes_back(document: dict[str, Any], tmp_path: Path) -> None:
    assert read(document, tmp_path) == TABLE


def at(document: Any, key: str) -> tuple[Any, Any]:
    """(owner, last key) of a dotted path."""
    *way, last = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", key)]
    for part in way:
        document = document[part]
    return document, last


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format", "x", "format: 'x' is not "),
        ("format_version", 99, "format_version: 99; this mccprobe reads "),
        ("word", MAX_WORD_BYTES + 1, f"word: {MAX_WORD_BYTES + 1} is no whole number from 1 to {MAX_WORD_BYTES}"),
        ("word", True, f"word: True is no whole number from 1 to {MAX_WORD_BYTES}"),
        ("unit", 9, "unit: 9 is no whole number from 1 to 8"),
        ("slots", 3, "slots: 3 slots of 4 bytes are no word of 8"),
        ("rows[0].slot", 2, "rows: a row stands in a slot that a word does not have"),
        ("target", None, f"target: no text of at most {MAX_TEXT} characters"),
        ("tool", "x" * (MAX_TEXT + 1), f"tool: no text of at most {MAX_TEXT} characters"),
        ("rows", {}, "rows: no list of at most "),
        ("assumptions", ["x"] * 101, "assumptions: no list of at most 100 entries"),
        ("assumptions[0]", 1, "assumptions: no text of at most "),
        ("mnemonics[0]", ["x"], "mnemonics[0]: no [mnemonic, pipe]"),
        ("mnemonics[1]", ["", None], "mnemonics[1]: an empty mnemonic"),
        ("mnemonics[1]", ["op.add", None], "mnemonics: one stands there twice"),
        ("mnemonics[0]", ["op.add", 1], "mnemonics[0]: no text of at most "),
        ("forms[0]", "v", f"forms[0]: no list of at most {MAX_FORM} operand kinds"),
        ("forms[0]", [1], "forms[0]: no text of at most "),
        ("guards[0]", [], "guards[0].: no object"),
        ("guards[0].size", 0, f"guards[0].size: 0 is no whole number from 1 to {MAX_WORD_BYTES}"),
        ("guards[0].width", 99, f"guards[0].width: 99 is no whole number from 1 to {MAX_REFUSED_BITS}"),
        ("guards[0].low", 30, "guards[0].low: 30 is no whole number from 0 to 29"),
        ("guards[0].refused", [0] * 9, "guards[0].refused: no list of at most 8 entries"),
        ("guards[0].refused[1]", 8, "guards[0].refused: a value that is none of 3 bits"),
        ("guards[0].refused[1]", True, "guards[0].refused: a value that is none of 3 bits"),
        ("rows[1].size", None, f"rows[1].size: None is no whole number from 1 to {MAX_WORD_BYTES}"),
        ("rows[1].value", "FF", "rows[1].value: no hexadecimal number of at most 4 bytes"),
        ("rows[1].value", "0" * 9, "rows[1].value: no hexadecimal number of at most 4 bytes"),
        ("rows[1].strict", "01", "rows[1].strict: does not cover value and relaxed"),
        ("rows[1].relaxed", "00", "rows[1].relaxed: a row that accepts every word"),
        ("rows[1].samples", 0, f"rows[1].samples: 0 is no whole number from 1 to {1 << 40}"),
        ("rows[1].probed", 6, "rows[1].probed: 6 is no whole number from 0 to 5"),
        ("rows[0].form", 1, "rows[0].form: 1 is no whole number from 0 to 0"),
        ("rows[0].mnemonic", 2, "rows[0].mnemonic: 2 is no whole number from 0 to 1"),
        ("rows[0].part", 65537, "rows[0].part: 65537 is no whole number from 0 to 65536"),
        ("rows[0].slot", -2, f"rows[0].slot: -2 is no whole number from -1 to {MAX_WORD_BYTES}"),
        ("rows[0].guards", None, "rows[0].guards: no list of at most 100 entries"),
        ("conflicts[0].mnemonics", {}, "conflicts[0].mnemonics: no list of at most 1000 entries"),
        ("rows[0].guards", [1], "rows[0].guards: a guard that is not there"),
        ("rows[0].guards", [True], "rows[0].guards: a guard that is not there"),
        ("sources[0].sha256", 0, "sources[0].sha256: no text of at most "),
        ("sources[0].instructions", -1, f"sources[0].instructions: -1 is no whole number from 0 to {1 << 40}"),
        ("fields[0].kind", None, "fields[0].kind: no text of at most "),
        ("fields[0].ordinal", 101, "fields[0].ordinal: 101 is no whole number from 0 to 100"),
        ("fields[0].low", 32, "fields[0].low: 32 is no whole number from 0 to 31"),
        ("fields[0].width", 33, "fields[0].width: 33 is no whole number from 1 to 32"),
        ("fields[0].votes", -1, f"fields[0].votes: -1 is no whole number from 0 to {1 << 40}"),
        ("invisible", {"x": "0"}, "invisible: 'x' is no size"),
        ("invisible", {"0": "0"}, "invisible: '0' is no size"),
        ("invisible", {"004": "0"}, "invisible: '004' is no size"),
        ("invisible", {str(MAX_WORD_BYTES + 1): "0"}, f"invisible: '{MAX_WORD_BYTES + 1}' is no size"),
        ("invisible", {"1": "100"}, "invisible.1: no hexadecimal number of at most 1 bytes"),
        ("conflicts[0].size", 0, f"conflicts[0].size: 0 is no whole number from 1 to {MAX_WORD_BYTES}"),
        ("conflicts[0].word", "g", "conflicts[0].word: no hexadecimal number of at most 4 bytes"),
        ("conflicts[0].mnemonics", [1], "conflicts[0].mnemonics: no text of at most "),
        ("probes", {str(n): 1 for n in range(21)}, "probes: more than 20 entries"),
        ("probes", {"asked": -1}, f"probes.asked: -1 is no whole number from 0 to {1 << 40}"),
        ("held_out", [], "held_out: no object"),
        ("refused_rows", -1, "refused_rows: -1 is no whole number from 0 to "),
        ("another", 1, "another: unknown key"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 30 else "",
)
def test_what_is_wrong_is_named(document: dict[str, Any], tmp_path: Path, key: str, value: Any, message: str) -> None:
    owner, last = at(document, key)
    owner[last] = value
    with pytest.raises(BadDataFile) as caught:
        read(document, tmp_path)
    assert caught.value.message.startswith(f"{tmp_path / 'damaged.json'}: {message}"), caught.value.message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tool", "x" * MAX_TEXT),
        ("rows[0].part", 1 << 16),
        ("rows[0].probed", 9),
        ("rows[0].slot", 1),
        ("guards[0].low", 29),
        ("guards[0].refused", [0, 7]),
        ("fields[0].ordinal", 100),
        ("fields[0].low", 31),
        ("fields[0].width", 32),
        ("invisible", {str(MAX_WORD_BYTES): "ff"}),
        ("invisible", {"1": "ff"}),
        ("held_out", None),
        ("assumptions", ["x"] * 100),
        ("probes", {str(n): 1 << 40 for n in range(20)}),
    ],
    ids=str,
)
def test_the_last_value_that_is_allowed(document: dict[str, Any], tmp_path: Path, key: str, value: Any) -> None:
    owner, last = at(document, key)
    owner[last] = value
    read(document, tmp_path)


def test_no_pipe_is_no_entry(document: dict[str, Any], tmp_path: Path) -> None:
    document["mnemonics"][1][1] = "MUL"
    assert read(document, tmp_path).pipes == {"op.add": "ALU", "op.mul": "MUL"}
