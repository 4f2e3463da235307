"""Documents and programs of others decide neither how long mccprobe works nor that it breaks."""

from __future__ import annotations

import io
import json
import shlex
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.errors import BadDataFile, BadReport, JournalUnreadable
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.explain.bundle.archive import MAX_DEPTH, unpack
from mccprobe.explain.bundle.recheck import read_report
from mccprobe.tuning.flag_search.options import SearchOptions, read_options

from . import travels

CallCli = Callable[..., tuple[int, str, str]]
HUGE = 10**9


def archive(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
    return path


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 2000])
def test_an_archive_of_deep_folders(depth: int, tmp_path: Path, call_cli: CallCli) -> None:
    deep = archive(tmp_path / "deep.tar.gz", "a/" * (depth - 1) + "f")
    with pytest.raises(BadReport, match=f"more than {MAX_DEPTH} deep"):
        unpack(deep, tmp_path / "target")
    code, _, err = call_cli("recheck", deep, "--compiler", "clang-14")
    assert code == 4 and f"more than {MAX_DEPTH} deep" in err, err


def test_an_archive_as_deep_as_reports_are(tmp_path: Path) -> None:
    allowed = archive(tmp_path / "a.tar.gz", "a/" * (MAX_DEPTH - 1) + "f")
    assert unpack(allowed, tmp_path / "target") == tmp_path / "target" / "a"


def report_with(folder: Path, **changed: Any) -> Path:
    """A report of bytes that a reader takes, with other values in its options or at its top."""
    document = json.loads(travels.bundle_document())
    for key, value in changed.items():
        (document if key in document and key != "options" else document["options"])[key] = value
    document["files"] = {}
    folder.mkdir(exist_ok=True)
    (folder / "bundle.json").write_text(json.dumps(document))
    return folder


def test_the_report_that_is_changed_below_is_read(tmp_path: Path) -> None:
    assert read_report(report_with(tmp_path / "report"), tmp_path).options.count == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", HUGE),
        ("count", 0),
        ("count", None),
        ("count", True),
        ("count", "2"),
        ("count", 2.5),
        ("spot_checks", HUGE),
        ("spot_checks", -1),
        ("timeout", 1e300),
        ("timeout", -1),
        ("timeout", float("nan")),
        ("compile_timeout", float("inf")),
        ("confidence", 1),
        ("seed", -1),
        ("seed", 10**400),
        ("max_runs", 0),
        ("file", "a\0b"),
        ("args", ["\0"]),
        ("args", [["x"]]),
        ("culprit", []),
        ("culprit", "x"),
        ("bad", 7),
        ("expected", [1]),
        ("environment", []),
        ("failure_rate", {"low": "x"}),
        ("failure_rate", {"low": float("nan")}),
    ],
)
def test_values_of_a_report(name: str, value: object, tmp_path: Path, call_cli: CallCli) -> None:
    report = report_with(tmp_path / "report", **{name: value})
    if name == "culprit" and value == []:
        assert not read_report(report, tmp_path).culprit
        return
    with pytest.raises(BadReport):
        read_report(report, tmp_path)
    code, _, err = call_cli("recheck", report, "--compiler", "clang-14")
    assert code == 4 and "Traceback" not in err, err


@pytest.mark.parametrize(
    ("name", "value"),
    [("count", None), ("count", 1), ("seed", -1), ("timeout", 1e9), ("timeout", float("nan")), ("file", "\0")],
)
def test_options_of_a_run(name: str, value: object) -> None:
    with pytest.raises(BadDataFile):
        BisectOptions.from_dict({name: value}, "run.json")


def test_options_that_the_command_line_gives_are_read_back() -> None:
    given = BisectOptions(file="a.c", count=5000, max_runs=7, timeout=1, confidence=0.5, args=("-O2",))
    assert BisectOptions.from_dict(json.loads(json.dumps(given.to_dict())), "run.json") == given
    search = SearchOptions(file="a.c", args=("-O2",), seeds=(1, 2))
    assert read_options({"search": json.loads(json.dumps(search.to_dict()))}, Path("run.json")) == search


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("file", 7),
        ("file", None),
        ("seeds", ["x"]),
        ("seeds", 3),
        ("args", [1]),
        ("bound", 1),
        ("bound", "9"),
        ("bound", True),
        ("timeout", "1"),
        ("timeout", float("inf")),
        ("random_seed", -1),
        ("space", 1),
        ("why", "\0"),
    ],
)
def test_options_of_a_search(name: str, value: object) -> None:
    with pytest.raises(JournalUnreadable):
        read_options({"search": {name: value}}, Path("run.json"))


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("calls", [1, 3])
def test_an_oracle_that_removes_the_run(calls: int, tmp_path: Path, call_cli: CallCli) -> None:
    """calls: in which of its calls."""
    source, check, run, count = (tmp_path / name for name in ("p.c", "check", "run", "count"))
    source.write_text("int main(void) { return 0; }\n")
    check.write_text(
        f"#!/bin/sh\necho >>{shlex.quote(str(count))}\n"
        '"$1"\nstatus=$?\n'
        f'[ "$(wc -l <{shlex.quote(str(count))})" -lt {calls} ] || rm -rf {shlex.quote(str(run))}\nexit $status\n'
    )
    check.chmod(0o755)
    code, out, err = call_cli(
        "bisect",
        source,
        "--compiler",
        "clang-14",
        "--flag",
        "-align-all-functions=6",
        "--oracle",
        check,
        "-o",
        run,
        "--json",
        "--",
        "-O1",
    )
    assert code == 4 and json.loads(out)["code"] == "run-directory", (out, err)
    assert str(run) in err, err
