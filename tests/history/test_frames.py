"""The journal as a table."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

from mccprobe.base.errors import UsageError
from mccprobe.base.extras import install_command
from mccprobe.journal.entry import Entry, Figure
from mccprobe.journal.frames import COLUMNS, csv_text, entries_frame, flat_rows, write_parquet
from mccprobe.oracle.verdict import Verdict

TIME = "2026-11-30T01:02:03.000004Z"
ENTRIES = (
    Entry("bench", "a,\"b\"\nc", flags=("-mllvm -x", "-Od3"), verdict=Verdict.GOOD, time=TIME, id="01",
          figures={"speed": Figure(73.8, "TFLOPS"), "runs": Figure(20, "")}, health={"state": "ok", "mixed": 1}),
    Entry("note", "esc \x1b[31m\u202e", time=TIME, id="02", health={"mixed": "word"}),
    Entry("check", figures={"speed": Figure(None, "TFLOPS"), "text": Figure(1, "")}, time="yesterday", id="03"),
)  # fmt: skip


def test_all_rows_have_the_same_columns() -> None:
    rows = flat_rows(ENTRIES)
    assert len({tuple(row) for row in rows}) == 1
    assert tuple(rows[0])[: len(COLUMNS)] == COLUMNS
    assert rows[0]["flags"] == "'-mllvm -x' -Od3"
    assert (rows[0]["speed"], rows[0]["speed_unit"], rows[0]["health_state"]) == (73.8, "TFLOPS", "ok")
    assert rows[1]["speed"] is None and rows[2]["speed"] is None and rows[2]["speed_unit"] == "TFLOPS"
    assert rows[2]["text"] == "" and rows[2]["text_"] == 1  # a figure called as a column is


def test_csv_is_read_back() -> None:
    text = csv_text(ENTRIES)
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["id"] for row in read] == ["01", "02", "03"]
    assert read[0]["text"] == 'a,"b"\nc' and float(read[0]["speed"]) == 73.8 and read[0]["verdict"] == "GOOD"
    assert read[1]["speed"] == "" and read[1]["text"] == "esc \\x1b[31m\\u202e"
    assert "\x1b" not in text
    assert csv_text(()).strip() == ",".join(COLUMNS)


def test_frame() -> None:
    pd = pytest.importorskip("pandas")
    frame = entries_frame(ENTRIES)
    assert list(frame["id"]) == ["01", "02", "03"]
    assert frame["speed"].max() == 73.8 and frame["speed"].isna().sum() == 2
    assert frame["time"][0] == pd.Timestamp(TIME) and frame["time"].isna()[2]
    assert str(frame["runs"].dtype) == "Int64" and frame["verdict"].isna().sum() == 2
    assert list(entries_frame(()).columns) == list(COLUMNS) and len(entries_frame(())) == 0


def test_without_pandas_or_pyarrow_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pyarrow") as error:
        write_parquet(ENTRIES, tmp_path / "x.parquet")
    assert install_command("parquet") in error.value.hint and not (tmp_path / "x.parquet").exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pandas" else object())
    with pytest.raises(UsageError, match="pandas and pyarrow") as error:
        write_parquet(ENTRIES, tmp_path / "x.parquet")
    assert install_command("parquet") in error.value.hint
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas"):
        entries_frame(ENTRIES)


def test_parquet_is_read_back(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    write_parquet(ENTRIES, tmp_path / "x.parquet")
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert list(frame["id"]) == ["01", "02", "03"] and frame["speed"][0] == 73.8
    assert list(frame["health_mixed"])[:2] == ["1", "word"]
    write_parquet((), tmp_path / "none.parquet")
    assert len(pd.read_parquet(tmp_path / "none.parquet")) == 0
