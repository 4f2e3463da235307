"""The journal: a killed process loses one line at most, and nothing else passes for a journal."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.errors import JournalUnreadable, RunDirectoryUnusable
from mccprobe.build.journal import FORMAT_VERSION, Journal
from mccprobe.targets.llvm.opt_bisect import LogSummary


def compiled(identity: str, digest: str | None = "d" * 64) -> dict[str, Any]:
    return {
        "t": "compile",
        "id": identity,
        "object": digest,
        "reason": "",
        "seconds": 0.5,
        "log": LogSummary(7, 3).to_dict(),
        "diagnostics": "",
    }


def judged(ordinal: int, verdict: str = "BAD") -> dict[str, Any]:
    return {
        "t": "run",
        "object": "d",
        "oracle": "o/bad",
        "ordinal": ordinal,
        "verdict": verdict,
        "reason": "prints 'ä\n\udcff'",
        "max_err": None,
        "seconds": 0.1,
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def written(path: Path, *entries: dict[str, Any]) -> None:
    journal = Journal(path)
    for entry in entries:
        journal.append(entry)
    journal.close()


def test_what_was_written_is_read_back(path: Path) -> None:
    written(path, compiled("a"), compiled("b", None), judged(0), judged(1, "GOOD"), {"t": "note", "x": 1})
    again = Journal(path)
    assert again.compiles == {"a": compiled("a"), "b": compiled("b", None)}
    assert [again.runs["d", "o/bad", n]["verdict"] for n in (0, 1)] == ["BAD", "GOOD"]
    assert again.runs["d", "o/bad", 0] == judged(0)
    again.close()
    again.close()
    assert len(path.read_bytes().splitlines()) == 6


def test_every_cut_of_the_file_is_a_prefix_of_the_answers(path: Path) -> None:
    """Killed at any byte: what is whole is kept, the rest is gone, and appending starts clean."""
    written(path, compiled("a"), judged(0), compiled("b"))
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        written(path, compiled("new"))
        kept = whole[:size].count(b"\n")
        journal = Journal(path)
        assert list(journal.compiles) == [*["a"] * (kept >= 2), *["b"] * (kept >= 4), "new"]
        assert len(journal.runs) == (kept >= 3)
        journal.close()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"{}",
        b"[]",
        b"7",
        b"null",
        b'{"t": "run"}',
        b'{"t": "compile", "id": "x"}',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        json.dumps({**judged(0), "verdict": "MAYBE"}).encode(),
        json.dumps({**judged(0), "ordinal": "first"}).encode(),
        json.dumps({**judged(0), "max_err": "big"}).encode(),
        json.dumps({**judged(0), "reason": 5}).encode(),
        json.dumps({**compiled("a"), "object": 5}).encode(),
        json.dumps({**compiled("a"), "seconds": None}).encode(),
        json.dumps({**compiled("a"), "log": {}}).encode(),
        json.dumps({**compiled("a"), "log": None}).encode(),
    ],
    ids=range(18),
)
def test_a_damaged_line_is_told_with_its_number(path: Path, line: bytes) -> None:
    written(path, compiled("a"))
    before = path.read_bytes() + line + b"\n"
    path.write_bytes(before)
    with pytest.raises(JournalUnreadable, match=r"line 3 is not a journal entry") as caught:
        Journal(path)
    assert caught.value.hint and int(caught.value.exit_code) == 4
    assert path.read_bytes() == before, "a damaged journal is left as it is"
    path.write_bytes(path.read_bytes()[: -len(line) - 1])
    Journal(path).close()  # and its lock is free


@pytest.mark.parametrize("first", [b'{"t": "run"}', b'{"event": "start"}', b'{"t": "note"}', b"# a log"])
def test_another_file_is_no_journal(path: Path, first: bytes) -> None:
    path.write_bytes(first + b"\n")
    with pytest.raises(JournalUnreadable, match="line 1"):
        Journal(path)


def test_another_version_is_named(path: Path) -> None:
    path.write_text(json.dumps({"t": "journal", "version": FORMAT_VERSION + 1}) + "\n")
    with pytest.raises(JournalUnreadable, match=rf"version {FORMAT_VERSION + 1}") as caught:
        Journal(path)
    assert "began the run" in caught.value.hint


def test_two_processes_cannot_write_one_journal(path: Path) -> None:
    """Not even the second one's look at it may touch what the first is writing."""
    first = Journal(path)
    first.append(compiled("a"))
    os.write(first._fd, b'{"t": "compi')  # in the middle of its line
    program = """
    import sys
    from pathlib import Path
    from mccprobe.build.journal import Journal
    from mccprobe.base.errors import RunDirectoryUnusable
    try:
        Journal(Path(sys.argv[1]))
    except RunDirectoryUnusable as error:
        print(error)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == f"{path.parent} is in use by another mccprobe\n", ran
    assert path.read_bytes().endswith(b'{"t": "compi')
    first.close()
    Journal(path).close()


def test_threads_do_not_mix_their_lines(path: Path) -> None:
    journal = Journal(path)
    threads = [
        threading.Thread(target=lambda n=n: [journal.append(compiled(f"{n}-{k}")) for k in range(100)])
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    assert len(Journal(path).compiles) == 800


def test_a_full_disk_is_told_and_leaves_no_half_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(path)
    journal.append(compiled("a"))
    before = path.read_bytes()
    real = os.write
    left = 20

    def short(fd: int, data: bytes) -> int:
        nonlocal left
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = real(fd, bytes(data)[:left])
        left -= done
        return done

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(RunDirectoryUnusable, match="the disk is full") as caught:
        journal.append(compiled("b"))
    assert "--resume" in caught.value.hint
    assert "b" not in journal.compiles, "an answer that is not in the journal is not used"
    assert path.read_bytes() == before
    monkeypatch.undo()
    journal.append(compiled("c"))
    journal.close()
    assert set(Journal(path).compiles) == {"a", "c"}


def test_a_file_size_limit_of_the_system(path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = Journal(path)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))
        with pytest.raises(RunDirectoryUnusable, match="File too large"):
            for number in range(10):
                journal.append(compiled(str(number)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous)
        journal.close()
    assert path.read_bytes().endswith(b"\n")
    assert set(Journal(path).compiles) == set(journal.compiles)


def test_a_journal_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(RunDirectoryUnusable, match="cannot be written: Is a directory") as caught:
        Journal(tmp_path / "journal.jsonl")
    assert caught.value.hint


@pytest.mark.parametrize("name", ["with space", "new\nline", "-leading-dash", "\udcff\udcfe", "漢字 ä", "quo'te\""])
def test_odd_names(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    written(folder / "journal.jsonl", compiled(name))
    assert set(Journal(folder / "journal.jsonl").compiles) == {name}
