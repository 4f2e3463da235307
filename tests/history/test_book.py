"""The file: many writers, killed writers, damaged lines, foreign files."""

from __future__ import annotations

import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mccprobe.base.errors import JournalUnreadable, RunDirectoryUnusable, UnknownEntry, UsageError
from mccprobe.journal.book import DEFAULT_BOOK, MAX_LINE_BYTES, Book
from mccprobe.journal.entry import KINDS, MAX_TEXT, Entry, Figure, read_entry
from mccprobe.oracle.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]
WRITER = Path(__file__).with_name("writer.py")
SCHEMA = json.loads((ROOT / "reports/journal.schema.json").read_text())
ENTRY = Draft202012Validator({"$schema": SCHEMA["$schema"], **SCHEMA["$defs"]["entry"]})

FULL = Entry(
    "bench", "pad 8", "bank conflicts", "kernels/gemm", "a" * 40 + "-dirty", "mcc", False,
    ("-mllvm -mtgpu-if-convert", "-Od3"), Verdict.GOOD, {"tflops": Figure(73.8, "TFLOPS"), "cv": Figure(0.4, "%")},
    {"peak": 97.1, "state": "ok", "busy": False, "clock": None}, "mccprobe-out/3", True, "abcd",
)  # fmt: skip


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path / "mccprobe-out" / "journal.jsonl")


def test_what_is_appended_is_read(book: Book) -> None:
    assert book.entries() == ()  # absent is empty
    first, second = book.append(FULL), book.append(Entry("note", "second"))
    assert book.entries() == (first, second)
    assert first.id != second.id and first.time <= second.time
    lines = book.path.read_text("ascii").splitlines()
    assert json.loads(lines[0]) == {"t": "book", "version": 1} and len(lines) == 3
    assert list(ENTRY.iter_errors(json.loads(lines[1]))) == []
    assert DEFAULT_BOOK.as_posix() == "mccprobe-out/journal.jsonl"


def test_time_is_utc_and_given_by_the_clock(tmp_path: Path) -> None:
    book = Book(tmp_path / "j", now=lambda: datetime(2026, 11, 30, 1, 2, 3, tzinfo=UTC))
    assert book.append(Entry("note")).time == "2026-11-30T01:02:03.000000Z"


def test_numbers_that_json_has_not_are_null_not_zero(book: Book) -> None:
    book.append(Entry("bench", figures={"a": Figure(math.nan, "s"), "b": Figure(math.inf, "")}, health={"t": math.nan}))
    (read,) = book.entries()
    assert read.figures == {"a": Figure(None, "s"), "b": Figure(None, "")} and read.health == {"t": None}


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 60), 1 << 60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
words = st.text(max_size=4)
figures = st.builds(Figure, st.none() | st.floats(-1e300, 1e300), words)
entries = st.builds(
    Entry,
    kind=st.sampled_from(KINDS),
    text=st.text(),
    why=st.text(),
    kernel=st.none() | st.text(),
    simulated=st.booleans(),
    flags=st.lists(st.text(), max_size=3).map(tuple),
    verdict=st.none() | st.sampled_from(Verdict),
    figures=st.dictionaries(words, figures, max_size=3),
    health=st.none() | st.dictionaries(words, scalars, max_size=3),
    dead_end=st.booleans(),
)


@given(entries)
@settings(max_examples=60)
def test_an_entry_survives_its_line(entry: Entry) -> None:
    line = json.dumps(entry.to_dict(), allow_nan=False)
    assert read_entry(json.loads(line)) == entry


half_entries = st.fixed_dictionaries(
    {"t": st.sampled_from(KINDS), **{key: scalars | st.lists(scalars) for key in FULL.to_dict() if key != "t"}}
)


@given(st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)) | half_entries)
@settings(max_examples=60)
def test_any_value_is_an_entry_or_a_valueerror(data: object) -> None:
    try:
        read_entry(data)
    except ValueError:
        return


# --- several writers -----------------------------------------------------------------------------


def _writers(book: Book, names: Iterable[str], count: int, length: int) -> list[subprocess.Popen[str]]:
    command = [sys.executable, str(WRITER), str(book.path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    return [
        subprocess.Popen([*command, name, str(count), str(length)], stdout=subprocess.PIPE, text=True, env=env)
        for name in names
    ]


def test_concurrent_writers_lose_nothing(book: Book) -> None:
    writers = _writers(book, "abcd", 100, 300)
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    contents = book.read()
    assert contents.damaged == ()
    for name in "abcd":
        mine = [int(one.text.split()[1]) for one in contents.entries if one.text.startswith(name)]
        assert mine == list(range(100))  # all, and in order
    assert len({one.id for one in contents.entries}) == 400
    assert book.path.read_text().count('"book"') == 1


def test_threads_of_one_process(book: Book) -> None:
    threads = [threading.Thread(target=lambda: [book.append(Entry("trial")) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(book.entries()) == 200 and book.read().damaged == ()


def test_killed_writers_lose_at_most_their_line_in_flight(book: Book) -> None:
    told: dict[str, int] = {}
    choice = random.Random(5)
    for round_ in range(4):
        names = [f"{round_}{letter}" for letter in "ab"]
        writers = [_writers(book, [name], 100_000, 20_000)[0] for name in names]
        for name, writer in zip(names, writers, strict=True):
            assert writer.stdout is not None
            for _ in range(choice.randrange(5, 40)):
                told[name] = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            told[name] = int(([str(told[name]), *writer.stdout.read().split()])[-1])
            writer.wait()
    book.append(Entry("note", "after"))
    contents = book.read()
    assert len(contents.damaged) <= len(told)
    for name, last in told.items():
        mine = [int(one.text.split()[1]) for one in contents.entries if one.text.startswith(name + " ")]
        assert mine == list(range(len(mine))) and len(mine) >= last + 1
    assert contents.entries[-1].text == "after"


@pytest.mark.parametrize("cut", [1, 7, 50, 150])
def test_the_rest_of_a_killed_writers_line_damages_no_other(book: Book, cut: int) -> None:
    book.append(Entry("note", "before"))
    book.append(Entry("note", "in flight"))
    data = book.path.read_bytes()
    book.path.write_bytes(data[:-cut])
    contents = book.read()
    assert [one.text for one in contents.entries] == ["before"]
    assert [one.ended for one in contents.damaged] == [False]
    written = book.path.read_bytes()
    book.append(Entry("note", "after"))
    assert book.path.read_bytes().startswith(written)  # only appended
    contents = book.read()
    # a whole line that lacked nothing but its end is an entry again
    assert [one.text for one in contents.entries] == ["before", *["in flight"] * (cut == 1), "after"]
    assert len(contents.damaged) == (cut != 1)


def test_a_writer_that_stopped_with_the_lock_holds_up_nobody_for_good(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    book.append(Entry("note", "first"))
    monkeypatch.setattr("mccprobe.journal.book.LOCK_WAIT_S", 0.05)
    with book.path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        book.append(Entry("note", "second"))
        assert [one.text for one in book.entries()] == ["first", "second"]


def test_a_full_disk_is_told_and_leaves_no_half_line(book: Book) -> None:
    book.append(Entry("note", "before"))
    size = book.path.stat().st_size
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, old[1]))
        with pytest.raises(RunDirectoryUnusable, match="cannot be written"):
            book.append(Entry("note", "too much"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert book.path.stat().st_size == size


# --- what is no journal ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"{",
        b"[]",
        b'{"t":"note"}',
        b'{"t":"gossip"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"1" * 5000,
        b"null",
        b'{"t":"book"}{"t":"book"}',
    ],
    ids=lambda line: line[:12].decode("latin-1"),
)
def test_a_damaged_line_is_skipped_and_told(book: Book, line: bytes) -> None:
    book.append(Entry("note", "before"))
    with book.path.open("ab") as file:
        file.write(line + b"\n\n")
    book.append(Entry("note", "after"))
    contents = book.read()
    assert [one.text for one in contents.entries] == ["before", "after"]
    (damage,) = contents.damaged
    assert (damage.number, damage.ended) == (3, True) and len(damage.text) <= 80


def test_an_endless_line_is_not_kept_in_memory(book: Book) -> None:
    book.append(Entry("note", "before"))
    with book.path.open("ab") as file:
        for _ in range(3):
            file.write(b"x" * MAX_LINE_BYTES)
        file.write(b"\n")
    book.append(Entry("note", "after"))
    contents = book.read()
    assert [one.text for one in contents.entries] == ["before", "after"] and len(contents.damaged) == 1


def test_foreign_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    run = tmp_path / "journal.jsonl"
    run.write_text('{"t":"journal","version":1}\n')
    with pytest.raises(JournalUnreadable, match="the journal of one run"):
        Book(run).read()
    run.write_text('{"t":"book","version":2}\n')
    with pytest.raises(JournalUnreadable, match="format 2"):
        Book(run).read()
    run.write_text("int main() {}\n")
    with pytest.raises(JournalUnreadable, match="not a journal"):
        Book(run).read()
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(JournalUnreadable, match="cannot be read"):
            Book(place).read()
        with pytest.raises(RunDirectoryUnusable, match="cannot be written"):
            Book(place).append(Entry("note"))
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryUnusable):
        Book(tmp_path / "file" / "journal.jsonl").append(Entry("note"))


def test_a_log_is_no_note(book: Book) -> None:
    with pytest.raises(UsageError, match="more than"):
        book.append(Entry("note", "x" * (MAX_TEXT + 1)))
    with pytest.raises(UsageError, match="more than"):
        book.append(Entry("note", flags=("x" * MAX_LINE_BYTES,)))
    assert not book.path.exists()


def test_entries_are_found_by_the_beginning_of_their_id(book: Book) -> None:
    for name in ("aa11", "aa22", "bb33"):
        book.append(Entry("note", name, id=name))
    contents = book.read()
    assert contents.find("b", "j").text == "bb33" and contents.find("last", "j").text == "bb33"
    with pytest.raises(UnknownEntry) as several:
        contents.find("aa", "j")
    assert several.value.candidates == ("aa11", "aa22")
    for text in ("zz", ""):
        with pytest.raises(UnknownEntry, match=r"is no entry of j|fits"):
            contents.find(text, "j")
