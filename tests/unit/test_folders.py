"""In a folder of the user's one program runs at a time: two that write one file there would spoil each other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mccprobe.oracle.checks import CommandOracle, Expected, ReferenceOracle
from mccprobe.oracle.verdict import Verdict

# mkdir fails where another run is in the folder at the same time
BUSY = "mkdir busy || exit 3; sleep 0.1; rmdir busy"


def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\n{BUSY}\n")
    path.chmod(0o755)
    return path


def test_checks_of_the_user_run_one_at_a_time(tmp_path: Path) -> None:
    oracle = CommandOracle(["sh", "-c", "{exe}"], cwd=tmp_path)
    exe = program(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: oracle.judge(exe, tmp_path).verdict, range(4)))
    assert outcomes == [Verdict.GOOD] * 4


def test_programs_in_a_folder_that_was_named_run_one_at_a_time(tmp_path: Path) -> None:
    """Also where two oracles name it."""
    oracles = [ReferenceOracle(Expected(b"", 0), run_in=folder) for folder in (tmp_path, tmp_path / "." / "x" / "..")]
    (tmp_path / "x").mkdir()
    exe = program(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda one: one.judge(exe, tmp_path).verdict, oracles * 2))
    assert outcomes == [Verdict.GOOD] * 4


def test_folders_of_their_own_do_not_wait(tmp_path: Path) -> None:
    """Two that wait for each other both end."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    exe = tmp_path / "meets"
    exe.write_text(
        f"#!/bin/sh\ntouch {tmp_path}/$(basename $PWD).here\n"
        f"while [ ! -e {tmp_path}/a.here ] || [ ! -e {tmp_path}/b.here ]; do sleep 0.02; done\n"
    )
    exe.chmod(0o755)
    oracle = ReferenceOracle(Expected(b"", 0))
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda name: oracle.judge(exe, tmp_path / name).verdict, ("a", "b")))
    assert outcomes == [Verdict.GOOD] * 2
