"""The journal as flat rows: for CSV, pandas and Parquet. pandas and pyarrow are needed when they are used.

A row has the columns of COLUMNS, then two for each figure (`tflops`, `tflops_unit`) and one for each
health key (`health_state`), the same for every row; what an entry does not have is None, never 0.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from mccprobe.base.errors import UsageError
from mccprobe.base.extras import install_command
from mccprobe.base.files import replace_file
from mccprobe.journal.entry import Entry
from mccprobe.journal.text import safe

Frame: TypeAlias = Any  # pandas.DataFrame: pandas brings no types and may be absent

COLUMNS = (
    "id", "time", "kind", "kernel", "kernel_commit", "toolchain", "simulated", "flags", "verdict", "dead_end",
    "text", "why", "run_directory", "about",
)  # fmt: skip


def flat_rows(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """One row an entry, all with the same columns in the same order. flags: as a shell would read them."""
    figures = list(dict.fromkeys(name for one in entries for name in one.figures))
    health = list(dict.fromkeys(name for one in entries for name in one.health or {}))
    rows = []
    for one in entries:
        data = one.to_dict()
        row: dict[str, Any] = {name: data["t" if name == "kind" else name] for name in COLUMNS}
        row["flags"] = shlex.join(one.flags)
        for name in figures:
            measured = data["figures"].get(name)
            row[_free(name, row)] = measured["value"] if measured else None
            row[_free(f"{name}_unit", row)] = measured["unit"] if measured else None
        for name in health:
            row[_free(f"health_{name}", row)] = (data["health"] or {}).get(name)
        rows.append(row)
    return rows


def _free(name: str, row: dict[str, Any]) -> str:
    """A figure may be called as a column is."""
    while name in row:
        name += "_"
    return name


def csv_text(entries: Sequence[Entry]) -> str:
    """RFC 4180 with a head line; control characters are written visibly."""
    text = io.StringIO()
    rows = flat_rows(entries)
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([safe(name) for name in (rows[0] if rows else COLUMNS)])
    writer.writerows([[_cell(value) for value in row.values()] for row in rows])
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return safe(value) if isinstance(value, str) else json.dumps(value)


def _utf8(value: Any) -> Any:
    """A text as Arrow can hold it: bytes of a name that are no UTF-8 as escapes."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def entries_frame(entries: Sequence[Entry]) -> Frame:
    """One row an entry; `time` as UTC times, whole numbers stay whole. Raises UsageError without pandas."""
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError("data frames need pandas", hint=install_command("frames")) from error
    rows = [{_utf8(name): _utf8(value) for name, value in row.items()} for row in flat_rows(entries)]
    frame = pd.DataFrame(rows, columns=list(rows[0]) if rows else list(COLUMNS)).convert_dtypes()
    frame["time"] = pd.to_datetime(frame["time"], utc=True, errors="coerce", format="ISO8601")
    return frame


def write_parquet(entries: Sequence[Entry], path: Path) -> None:
    """Raises UsageError without pandas and pyarrow; OSError when the file cannot be written."""
    if not all(importlib.util.find_spec(name) for name in ("pandas", "pyarrow")):
        raise UsageError(
            "Parquet files need pandas and pyarrow", hint=f"{install_command('parquet')}; --csv needs nothing"
        )
    frame = entries_frame(entries)
    # a health key may hold a number here and a word there; Parquet columns have one type
    for name in frame.columns:
        if frame[name].dtype == object:
            frame[name] = frame[name].map(_cell).astype("string")
    replace_file(path, frame.to_parquet(None, engine="pyarrow", index=False))
