"""Archives that are no reports or would do harm are refused; what "changed" means."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.console import Console
from mccprobe.base.errors import BadReport
from mccprobe.build.executor import LocalExecutor
from mccprobe.cli.recheck_cmd import recheck as command
from mccprobe.explain.bundle import archive as bundle_archive
from mccprobe.explain.bundle.archive import unpack, write_archive
from mccprobe.explain.bundle.recheck import Recheck, Recurrence, compared, read_report, recheck
from mccprobe.explain.deadline import Deadline
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.report.record import BisectReport, Culprit, Status

SOURCE = "int main(void) { return 0; }\n"


def old_report(folder: Path, **changes: Any) -> Path:
    """A report's folder as `bug-report` lays it out, reduced to what is read."""
    (folder / "source").mkdir(parents=True)
    (folder / "source/test.c").write_text(SOURCE)
    document = {
        "schema_version": 1,
        "title": "[gvn] [main] wrong result with -O2",
        "toolchain": "clang",
        "simulated": False,
        "compiler": {"name": "clang-14", "version": "clang version 14"},
        "status": "found",
        "failure_rate": None,
        "culprit": {"pass": "GVNPass", "pass_argument": "gvn", "function": "main", "function_symbol": "main"},
        "bad": {"text": "prints '0'"},
        "expected": {"sha256": None, "status": 0},
        "options": {"file": "{bundle}/source/test.c", "reference": "-O1", "args": ["-O2", "-I{bundle}/source"]},
        "files": {"source/test.c": hashlib.sha256(SOURCE.encode()).hexdigest()},
        **changes,
    }
    (folder / "bundle.json").write_text(json.dumps(document))
    return folder


def archive_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def link(name: str, kind: bytes, target: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def test_folder_and_archive_read_alike(tmp_path: Path) -> None:
    folder = old_report(tmp_path / "report")
    write_archive(folder, tmp_path / "report.tar.gz")
    (tmp_path / "scratch").mkdir()
    for path in (folder, tmp_path / "report.tar.gz"):
        report = read_report(path, tmp_path / "scratch")
        assert report.title == "[gvn] [main] wrong result with -O2"
        assert Path(report.options.file or "").read_text() == SOURCE
        assert report.options.args[1] == f"-I{report.folder}/source"


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (tarfile.TarInfo("../outside"), "leads out"),
        (tarfile.TarInfo("report/../../outside"), "leads out"),
        (tarfile.TarInfo("/tmp/outside"), "leads out"),
        (link("report/x", tarfile.SYMTYPE, "/etc/passwd"), "no plain file"),
        (link("report/x", tarfile.LNKTYPE, "report/y"), "no plain file"),
        (link("report/x", tarfile.FIFOTYPE, ""), "no plain file"),
        (link("report/x", tarfile.CHRTYPE, ""), "no plain file"),
    ],
)
def test_an_archive_cannot_reach_out(tmp_path: Path, member: tarfile.TarInfo, words: str) -> None:
    target = tmp_path / "a" / "b"
    target.mkdir(parents=True)
    with pytest.raises(BadReport, match=words):
        unpack(archive_of(tmp_path / "x.tar.gz", (member, b"")), target)
    assert not list(tmp_path.glob("**/outside")) and not list(target.rglob("x"))


def test_an_archive_is_not_written_through_a_link(tmp_path: Path) -> None:
    for name in ("target", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "target/report").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "target/x").symlink_to(tmp_path / "elsewhere/made")
    for number, name in enumerate(("report/deep/x", "x")):
        archive = archive_of(tmp_path / f"{number}.tar.gz", (tarfile.TarInfo(name), b"data"))
        with pytest.raises(BadReport, match="cannot be unpacked"):
            unpack(archive, tmp_path / "target")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_only_the_owners_right_to_execute_is_taken_over(tmp_path: Path) -> None:
    members = {"report/run.sh": 0o6777, "report/secret": 0o000, "report/read.sh": 0o611}
    heads = []
    for name, mode in members.items():
        head = tarfile.TarInfo(name)
        head.mode, head.uid, head.gid = mode, 12345, 12345
        heads.append((head, name.encode()))
    before = os.umask(0o022)
    try:
        folder = unpack(archive_of(tmp_path / "x.tar.gz", *heads), tmp_path)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o7777 for path in folder.iterdir()}
    assert modes == {"run.sh": 0o755, "secret": 0o644, "read.sh": 0o644}
    assert {path.stat().st_uid for path in folder.iterdir()} == {os.getuid()}
    assert all(path.read_bytes() == f"report/{path.name}".encode() for path in folder.iterdir())


def test_a_name_that_comes_twice_or_is_deeper_than_any_report(tmp_path: Path) -> None:
    twice = [(tarfile.TarInfo("report/x"), b"first"), (tarfile.TarInfo("report/x"), b"second")]
    with pytest.raises(BadReport, match="File exists"):
        unpack(archive_of(tmp_path / "twice.tar.gz", *twice), tmp_path)
    deep = tarfile.TarInfo("/".join(["report", *["d"] * 2000]))
    with pytest.raises(BadReport, match="folders more than 40 deep"):
        unpack(archive_of(tmp_path / "deep.tar.gz", (deep, b"")), tmp_path)
    assert not (tmp_path / "report/d").exists()


def test_bombs_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle_archive, "MAX_FILES", 5)
    monkeypatch.setattr(bundle_archive, "MAX_BYTES", 1000)
    many = [(tarfile.TarInfo(f"report/{number}"), b"") for number in range(9)]
    (tmp_path / "t").mkdir()
    with pytest.raises(BadReport, match="more than 5 files"):
        unpack(archive_of(tmp_path / "many.tar.gz", *many), tmp_path / "t")
    with pytest.raises(BadReport, match="more than 5 files"):
        unpack(archive_of(tmp_path / "big.tar.gz", (tarfile.TarInfo("report/x"), bytes(5000))), tmp_path / "t")
    assert not (tmp_path / "t/report/x").exists()


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive", gzip.compress(b"no tar"), gzip.compress(b"x" * 4096)[:-9], bytes(600)],
    ids=["empty", "text", "no-tar", "cut", "zeros"],
)
def test_what_is_no_archive(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_bytes(data)
    with pytest.raises(BadReport):
        read_report(path, tmp_path)


def _no_bundle(folder: Path) -> None:
    (folder / "bundle.json").unlink()


def _no_json(folder: Path) -> None:
    (folder / "bundle.json").write_text("{")


def _list(folder: Path) -> None:
    (folder / "bundle.json").write_text("[]")


def _changed(folder: Path) -> None:
    (folder / "source/test.c").write_text("int main(void) { return 1; }\n")


def _missing(folder: Path) -> None:
    (folder / "source/test.c").unlink()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_no_bundle, "holds no bundle.json"),
        (_no_json, "not what mccprobe writes"),
        (_list, "not what mccprobe writes"),
        (_changed, "was changed after"),
        (_missing, "is missing"),
    ],
)
def test_damaged_reports(tmp_path: Path, damage: Callable[[Path], None], words: str) -> None:
    folder = old_report(tmp_path / "report")
    damage(folder)
    with pytest.raises(BadReport, match=words):
        read_report(folder, tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema_version": 99}, "report version 99"),
        ({"options": {"unknown": 1}}, "unknown key unknown"),
        ({"files": {"../../etc/passwd": "0"}}, "is missing"),
        ({"culprit": 5, "bad": 5}, "not what mccprobe writes"),
    ],
)
def test_reports_of_others(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadReport, match=words):
        read_report(old_report(tmp_path / "report", **changes), tmp_path)


def test_a_bad_report_is_exit_4_before_any_compile(tmp_path: Path) -> None:
    with pytest.raises(BadReport) as raised:
        command.main([str(tmp_path / "none"), "--compiler", "clang-14"], standalone_mode=False, obj=Console(quiet=True))
    assert raised.value.exit_code == 4 and "no such report" in raised.value.message


def test_a_flaky_fault_needs_more_runs_before_it_is_gone(tmp_path: Path) -> None:
    steady = read_report(old_report(tmp_path / "a"), tmp_path)
    flaky = read_report(old_report(tmp_path / "b", failure_rate={"low": 0.1, "estimate": 0.3, "high": 0.5}), tmp_path)
    assert steady.runs == 2
    assert flaky.runs == 44  # 0.9 ** 44 < 0.01


NOW = Culprit("GVNPass", "gvn", "main", "main", "log", 10, 20)
OTHER = Culprit("InstCombinePass", "instcombine", "main", "main", "log", 11, 20)


@pytest.mark.parametrize(
    ("changes", "status", "culprit", "reason", "answer"),
    [
        ({}, Status.FOUND, NOW, "prints '0'", Recurrence.STILL_THERE),
        ({}, Status.FOUND, NOW, "prints '7'", Recurrence.STILL_THERE),
        ({}, Status.FOUND, OTHER, "prints '0'", Recurrence.CHANGED),
        ({}, Status.FOUND, NOW, "signal SIGSEGV, prints ''", Recurrence.CHANGED),
        ({}, Status.WRONG_AT_ZERO, None, "prints '0'", Recurrence.CHANGED),
        ({}, Status.UNDECIDED, None, "prints '0'", Recurrence.CANNOT_TELL),
        (
            {"culprit": None, "status": "wrong-at-zero"},
            Status.WRONG_AT_ZERO,
            None,
            "prints '0'",
            Recurrence.STILL_THERE,
        ),
        ({"culprit": None, "status": "wrong-at-zero"}, Status.FOUND, NOW, "prints '0'", Recurrence.CHANGED),
    ],
)
def test_what_is_changed(
    tmp_path: Path, changes: dict[str, Any], status: Status, culprit: Culprit | None, reason: str, answer: Recurrence
) -> None:
    report = read_report(old_report(tmp_path / "report", **changes), tmp_path)
    row = Recheck("r", "t", "clang-14", "", False, Recurrence.CANNOT_TELL, "")
    found = BisectReport(status, "clang", "clang-14", "clang version 14", False, "test.c", (), culprit=culprit)
    assert compared(report, row, Outcome(Verdict.BAD, reason), found).answer is answer


@pytest.mark.toolchain("clang-14")
def test_a_report_takes_no_longer_than_its_budget(tmp_path: Path) -> None:
    """The program runs for an hour, and the report asks for a day."""
    options = {"file": "{bundle}/source/test.c", "reference": "-O1", "args": ["-O2"], "timeout": 86_400}
    text = "int sleep(unsigned);\nint main(void) { return sleep(3600); }\n"
    folder = old_report(
        tmp_path / "report", options=options, files={"source/test.c": hashlib.sha256(text.encode()).hexdigest()}
    )
    (folder / "source/test.c").write_text(text)
    executor = LocalExecutor(1)
    try:
        row = recheck(
            read_report(folder, tmp_path),
            "clang-14",
            cache=tmp_path,
            scratch=tmp_path,
            executor=executor,
            tell=lambda text: None,
            deadline=Deadline(1.0),
        )
    finally:
        executor.shutdown(cancel=True)
    assert row.answer is Recurrence.CANNOT_TELL and "timeout after 1.0 s" in row.text
