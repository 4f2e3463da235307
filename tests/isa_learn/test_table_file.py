"""Tables as files: a round trip, the schema, and damage that gives one clear error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import InputError, MccprobeError
from mccprobe.objects.isa.encoding import EncodingTable, HeldOut, Source
from mccprobe.objects.isa.learn import learn
from mccprobe.objects.isa.operands import sample_of
from mccprobe.objects.isa.records import Instruction
from mccprobe.objects.isa.table_file import read_table, table_document, write_table

ROOT = Path(__file__).resolve().parents[2]


def small_table() -> EncodingTable:
    from dataclasses import replace

    lines = [
        Instruction(0, bytes((b, a, 0, opcode)), name, f"v{a}, v{b}", f"{name} v{a}, v{b}", "toy")
        for opcode, name in ((1, "opadd"), (2, "opsub"), (0x81, "opmul"))
        for a, b in ((1, 2), (3, 4), (7, 0), (0, 7), (12, 9), (5, 5), (15, 15), (8, 8), (0, 1))
    ]
    long = Instruction(0, bytes.fromhex("ff00008111223344"), "opmul", "v0, 0x44332211", "opmul v0, 0x44332211", "toy")
    samples = [sample for line in (*lines, long) if (sample := sample_of(line)) is not None]
    table = learn(
        samples, target="toy", unit=4, word=8, tool="toydump 1", sources=(Source("a.lst", "0" * 64, "toy", 9),)
    )
    return replace(table, held_out=HeldOut(1, 1, 0, 1, 0, 0, 0, 0), probes={"asked": 3})


def test_round_trip_and_schema(tmp_path: Path) -> None:
    table = small_table()
    path = tmp_path / "t.json"
    write_table(path, table, "0.1.0")
    assert read_table(path) == table
    write_table(path, table, "0.1.0")  # over a table of its own
    schema = json.loads((ROOT / "reports/isa-table.schema.json").read_text())
    jsonschema.validate(json.loads(path.read_text()), schema)
    assert table_document(table, "0.1.0") == json.loads(path.read_text())


def test_nothing_else_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "kernel.mu"
    path.write_text("int x;")
    with pytest.raises(InputError, match="no encoding table"):
        write_table(path, small_table(), "0.1.0")
    assert path.read_text() == "int x;"


def damaged(document: Any, data: st.DataObject) -> Any:
    """One value somewhere replaced by something else."""
    junk = st.sampled_from([None, True, -1, 10**30, 1.5, "", "zz", "f" * 999, [], {}, [[]], float("1e308")])
    node = document
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        inner = node[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            node[key] = data.draw(junk)
            return document
        node = inner


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_gives_a_table_or_one_clear_error(tmp_path: Path, data: st.DataObject) -> None:
    document = damaged(json.loads(json.dumps(table_document(small_table(), "0.1.0"))), data)
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document))
    try:
        table = read_table(path)
    except MccprobeError as error:
        assert str(path) in str(error)
    else:
        assert all(row.mnemonic and row.relaxed for row in table.rows)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"format":"x"}', "[" * 100_000, '{"a":NaN}', "\x00"])
def test_what_is_no_table(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises(MccprobeError, match=r"t\.json"):
        read_table(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MccprobeError, match="UTF-8"):
        read_table(path)
    with pytest.raises(MccprobeError, match="cannot be read"):
        read_table(tmp_path / "none.json")
