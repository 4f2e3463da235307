"""Runs that cannot be resumed, readers that go away, streams that are full or not UTF-8."""

from __future__ import annotations

import json
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .refusals import CLANG, PLAIN, RunCli, both

# --- resume ---------------------------------------------------------------------------------------


def ruin_nothing_there(run: Path) -> None:
    subprocess.run(["rm", "-r", str(run)], check=True)


def ruin_run_json(run: Path) -> None:
    (run / "run.json").write_text("{")


def ruin_run_json_kind(run: Path) -> None:
    (run / "run.json").write_text("[]")


def ruin_options(run: Path) -> None:
    document = json.loads((run / "run.json").read_text())
    document["options"]["count"] = "many"
    (run / "run.json").write_text(json.dumps(document))


def of_version_one(run: Path) -> None:
    document = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**document, "schema_version": 1}))


def ruin_request(run: Path) -> None:
    document = json.loads((run / "run.json").read_text())
    del document["request"]
    (run / "run.json").write_text(json.dumps(document))


def ruin_no_journal(run: Path) -> None:
    (run / "journal.jsonl").unlink()


def ruin_journal(run: Path) -> None:
    with (run / "journal.jsonl").open("a") as file:
        file.write("garbage\n")


def ruin_version(run: Path) -> None:
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    (run / "journal.jsonl").write_text("".join([lines[0].replace('"version":2', '"version":9'), *lines[1:]]))


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    ("ruin", "told"),
    [
        (ruin_nothing_there, "No such file or directory"),
        (ruin_run_json, "run.json: not JSON"),
        (ruin_run_json_kind, "run.json: holds no options"),
        (ruin_options, "count must be int"),
        (of_version_one, "format 1 and cannot be resumed; expected 2"),
        (ruin_request, "holds no request"),
        (ruin_no_journal, "holds no journal.jsonl"),
        (ruin_journal, "garbage"),
        (ruin_version, "version 9"),
    ],
)
def test_a_run_that_cannot_be_resumed(
    ruin: Callable[[Path], None], told: str, run_cli: RunCli, source: Path, tmp_path: Path
) -> None:
    place = tmp_path / "run"
    assert run_cli("bisect", source, *CLANG, *PLAIN, "-o", place, "--", "-O1").code == 1
    ruin(place)
    both(run_cli, 4, ["--resume", place], told)


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("what", ["source", "other", "check"])
def test_what_changed_since(what: str, run_cli: RunCli, source: Path, tmp_path: Path) -> None:
    other, check, place = tmp_path / "other.c", tmp_path / "check.sh", tmp_path / "run"
    other.write_text("int other;\n")
    check.write_text('#!/bin/sh\n"$1"\n')
    check.chmod(check.stat().st_mode | stat.S_IXUSR)
    first = run_cli("bisect", source, *CLANG, *PLAIN, "--oracle", check, "-o", place, "--", "-O1", other)
    assert first.code == 1, first
    assert run_cli("bisect", "--resume", place).code == 1
    changed = {"source": source, "other": other, "check": check}[what]
    changed.write_text(changed.read_text() + "\n")
    both(run_cli, 4, ["--resume", place], "cannot be resumed", "changed since")


@pytest.mark.toolchain("clang-14")
def test_resume_takes_no_other_options(run_cli: RunCli, source: Path, tmp_path: Path) -> None:
    both(run_cli, 2, ["--resume", tmp_path, "--count", "3"], "count", "--resume takes every option from the run")
    both(run_cli, 2, ["--resume", tmp_path, source], "--resume takes every option from the run")


# --- streams --------------------------------------------------------------------------------------


def mccprobe(*args: str | Path) -> list[str]:
    return [sys.executable, "-m", "mccprobe", *map(str, args)]


@pytest.mark.clean("run", "out")
@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("streams", ["| true", "2>&1 | true", "2>&1 | head -1", "2>&-", "2>/dev/full"])
def test_a_reader_that_goes_away_ends_no_work(streams: str, source: Path) -> None:
    line = shlex.join(mccprobe("bisect", source, *CLANG, *PLAIN, "-o", "run", "--", "-O1"))
    ran = subprocess.run(
        ["bash", "-c", f"{line} {streams}; echo ${{PIPESTATUS[0]}} >out"], capture_output=True, text=True, check=False
    )
    assert Path("out").read_text() == "1\n", ran
    assert json.loads(Path("run/result.json").read_text())["status"] == "no-difference"
    assert "Traceback" not in ran.stderr and "Exception ignored" not in ran.stderr and "error:" not in ran.stderr, ran


@pytest.mark.clean("run")
@pytest.mark.toolchain("clang-14")
def test_a_closed_standard_output(source: Path) -> None:
    """No file of the run gets its number, the answer lies in the run folder, and the exit code is not the answer's."""
    line = shlex.join(mccprobe("bisect", source, *CLANG, *PLAIN, "-o", "run", "--", "-O1"))
    ran = subprocess.run(["bash", "-c", f"{line} >&-"], capture_output=True, text=True, check=False)
    assert ran.returncode == 4, ran
    assert "error: standard output cannot be written: it is closed" in ran.stderr, ran
    assert json.loads(Path("run/result.json").read_text())["status"] == "no-difference"
    assert "Traceback" not in ran.stderr and "Exception ignored" not in ran.stderr, ran


@pytest.mark.clean("run")
@pytest.mark.toolchain("clang-14")
def test_a_full_standard_output(source: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            mccprobe("bisect", source, *CLANG, *PLAIN, "-o", "run", "--", "-O1"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 4, ran
    assert "error: standard output cannot be written: No space left on device" in ran.stderr
    assert "Exception ignored" not in ran.stderr


@pytest.mark.clean("run")
@pytest.mark.toolchain("clang-14")
def test_a_caller_that_ignores_its_children(source: Path) -> None:
    """With SIGCHLD ignored, as some daemons leave it, exit statuses would be lost."""
    ran = subprocess.run(
        mccprobe("bisect", source, *CLANG, *PLAIN, "--oracle", "false", "-o", "run", "--", "-O1"),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal_ignore_children(),
    )
    assert ran.returncode == 5 and "the reference build is not GOOD" in ran.stderr, ran


def signal_ignore_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


@pytest.mark.clean("run")
@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_is_not_utf8(encoding: str, run_cli: RunCli, tmp_path: Path) -> None:
    odd = tmp_path / "漢字.c"
    odd.write_text("int main(void) { return 0; }\n")
    run = run_cli("bisect", odd, *CLANG, *PLAIN, "--json", "-o", "run", env={"PYTHONIOENCODING": encoding})
    assert json.loads(run.stdout)["source"] == str(odd), run
