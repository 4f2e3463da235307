"""Records from any bytes: damaged lines are counted, nothing is believed that leads out of the folder."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mccprobe.tuning.trace.read import read_record

LAUNCH = {
    "event": "launch", "pid": 1, "tid": 1, "time_ns": 5, "api": "muLaunchKernel", "order": 1, "kernel": "k",
    "symbol": None, "grid": [1, 2, 3], "block": [4, 5, 6], "dynamic_shared_bytes": 7, "stream": "0x0",
    "simulated": False, "inside": None,
}  # fmt: skip
MODULE = {
    "event": "module", "pid": 1, "tid": 1, "time_ns": 5, "api": "muModuleLoadData", "bytes": 3, "saved": 3,
    "file": "modules/a.bin", "path": None, "inside": None,
}  # fmt: skip


def write(folder: Path, *entries: object) -> Path:
    (folder / "modules").mkdir(exist_ok=True)
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    (folder / "launches.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_no_file_is_an_empty_record(tmp_path: Path) -> None:
    record = read_record(tmp_path)
    assert (record.launches, record.modules, record.processes, record.unreadable) == ((), (), (), 0)


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    bad = [
        json.dumps(LAUNCH)[:40],
        "[]",
        "5",
        "",
        {**LAUNCH, "grid": [1, 2]},
        {**LAUNCH, "pid": "1"},
        {**LAUNCH, "kernel": 5},
        {**LAUNCH, "order": True},
    ]
    record = read_record(write(tmp_path, LAUNCH, *bad, {**LAUNCH, "order": 2}))
    assert [one.order for one in record.launches] == [1, 2]
    assert record.unreadable == len(bad)


def test_refused_launches(tmp_path: Path) -> None:
    refused = {"event": "refused", "pid": 1, "tid": 1, "time_ns": 6, "api": "muLaunchKernel", "order": 2, "result": 9}
    record = read_record(write(tmp_path, LAUNCH, {**LAUNCH, "order": 2}, refused, {**LAUNCH, "order": 2, "pid": 3}))
    assert [one.result for one in record.launches] == [0, 9, 0]
    (use,) = record.kernels()
    assert (use.launches, use.refused) == (3, 1)


def test_no_file_outside_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("abc")
    folder = tmp_path / "t"
    folder.mkdir()
    record = read_record(write(folder, {**MODULE, "file": "../secret"}, {**MODULE, "file": "/etc/passwd"}))
    assert [one.file for one in record.modules] == [None, None]


def test_a_short_copy_is_not_offered(tmp_path: Path) -> None:
    write(tmp_path, MODULE, MODULE, {**MODULE, "file": "modules/b.bin", "saved": 2})
    (tmp_path / "modules" / "a.bin").write_bytes(b"abc")
    (tmp_path / "modules" / "b.bin").write_bytes(b"ab")
    modules = read_record(tmp_path).modules
    assert [(one.file, one.loads) for one in modules] == [("modules/a.bin", 2), (None, 1)]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400), st.integers(0, 300), st.binary(max_size=8))
def test_any_bytes(tmp_path: Path, noise: bytes, at: int, put: bytes) -> None:
    line = json.dumps(LAUNCH).encode()
    (tmp_path / "launches.jsonl").write_bytes(line[:at] + put + line[at:] + b"\n" + noise)
    record = read_record(tmp_path)
    assert len(record.launches) + record.unreadable >= 1
