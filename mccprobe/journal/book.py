"""The file of the journal across runs: one JSON line an entry, appended by many processes, never rewritten.

Entry -> one line -> one write to a file opened for appending, under a lock. A writer that is killed
loses at most its line in flight; what is left of that line is ended by the next writer, so that it
damages no other, and is skipped and reported by every reader. The lines are as in the journal of one
run (mccprobe.build.journal): "t" says the kind, the first line the format.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from mccprobe.base.errors import JournalUnreadable, RunDirectoryUnusable, UnknownEntry, UsageError
from mccprobe.journal.entry import MAX_TEXT, Entry, read_entry

DEFAULT_BOOK = Path("mccprobe-out") / "journal.jsonl"
FORMAT = {"t": "book", "version": 1}
MAX_LINE_BYTES = 4 << 20  # of one entry; a longer line is damage
LOCK_WAIT_S = 10.0  # for another writer, who needs microseconds; then without: one write is whole all the same
LOCK_POLL_S = 0.002
ID_BYTES = 4  # of a random id; entries are told apart by people, and a prefix is enough
SHOWN = 80  # characters of a damaged line


@dataclass(frozen=True)
class Damage:
    """A line that is no entry. number: from 1. text: its beginning. ended: False for a last line without an end."""

    number: int
    text: str
    ended: bool


@dataclass(frozen=True)
class Contents:
    """All that a journal holds, in the order of writing."""

    entries: tuple[Entry, ...]
    damaged: tuple[Damage, ...]

    def find(self, text: str, journal: str) -> Entry:
        """The entry of this id or beginning of one; "last" is the newest. Raises UnknownEntry."""
        if text == "last" and self.entries:
            return self.entries[-1]
        found = [one for one in self.entries if text and one.id.startswith(text)]
        if len(found) != 1:
            raise UnknownEntry(text, [one.id for one in found], journal)
        return found[0]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Book:
    """The journal at `path`; made by the first append. Safe for any number of processes and threads."""

    def __init__(self, path: Path = DEFAULT_BOOK, now: Callable[[], datetime] = _utc_now) -> None:
        self.path = path
        self._now = now

    def append(self, entry: Entry) -> Entry:
        """Write one entry and return it with its time and id.

        Raises RunDirectoryUnusable when the file cannot be written, UsageError for a text of book length.
        """
        if len(entry.text) > MAX_TEXT or len(entry.why) > MAX_TEXT:
            raise UsageError(f"a text of more than {MAX_TEXT} characters", hint="write a file and name it in the text")
        moment = self._now().astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        written = replace(entry, time=entry.time or moment, id=entry.id or os.urandom(ID_BYTES).hex())
        line = _line(written.to_dict())
        if len(line) > MAX_LINE_BYTES:
            raise UsageError(f"an entry of more than {MAX_LINE_BYTES} bytes", hint="it belongs into a run directory")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._append(file, line)
        finally:
            os.close(file)  # and the lock with it
        return written

    def _append(self, file: int, line: bytes) -> None:
        try:
            _require_file(file)
            locked = _lock(file, fcntl.LOCK_EX)
            end = os.fstat(file).st_size
            if end == 0:
                line = _line(FORMAT) + line
            elif os.pread(file, 1, end - 1) != b"\n":
                line = b"\n" + line  # the rest of a killed writer's line stays a line of its own
            written = os.write(file, line)
            if written != len(line):
                if locked:
                    os.ftruncate(file, end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> RunDirectoryUnusable:
        what = "the disk is full" if error.errno == errno.ENOSPC else str(error.strerror or error)
        return RunDirectoryUnusable(f"{self.path}: cannot be written: {what}", hint="choose another journal")

    def read(self) -> Contents:
        """Every entry, and the lines that are none. An absent journal is an empty one.

        Raises JournalUnreadable for a file that cannot be read or is no journal across runs.
        """
        entries: list[Entry] = []
        damaged: list[Damage] = []
        try:
            for number, line in self._lines():
                ended = line.endswith(b"\n")
                if not line.strip():
                    continue
                try:
                    data = json.loads(line) if ended else None
                    if isinstance(data, dict) and data.get("t") in ("book", "journal"):
                        self._check_format(data)
                        continue
                    entries.append(read_entry(data))
                except (ValueError, RecursionError):
                    damaged.append(Damage(number, line[:SHOWN].decode("utf-8", "replace").rstrip("\n"), ended))
        except OSError as error:
            raise JournalUnreadable(
                f"{self.path}: cannot be read: {error.strerror or error}", hint="choose another --journal FILE"
            ) from error
        if damaged and not entries and damaged[0].number == 1 and damaged[0].ended:
            raise JournalUnreadable(
                f"{self.path}: not a journal", hint="choose another --journal FILE; it is made by the first entry"
            )
        return Contents(tuple(entries), tuple(damaged))

    def entries(self) -> tuple[Entry, ...]:
        """As `read`, without the damaged lines."""
        return self.read().entries

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        with os.fdopen(file, "rb") as stream:
            _require_file(file)
            _lock(file, fcntl.LOCK_SH)  # nobody is in the middle of a line
            end = os.fstat(file).st_size
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)
            yield from enumerate(_lines_up_to(stream, end), 1)

    def _check_format(self, data: dict[str, object]) -> None:
        if data["t"] == "journal":
            raise JournalUnreadable(
                f"{self.path}: the journal of one run, not the one across runs",
                hint=f"choose another --journal FILE: that is {DEFAULT_BOOK} beside the run directories",
            )
        if data.get("version") != FORMAT["version"]:
            raise JournalUnreadable(
                f"{self.path}: format {data.get('version')}, this mccprobe reads {FORMAT['version']}",
                hint="a later mccprobe wrote it; choose another --journal FILE",
            )


def _line(data: dict[str, object]) -> bytes:
    """ASCII only, so that the file itself can be shown on any terminal."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode() + b"\n"


def _lines_up_to(stream: BinaryIO, end: int) -> Iterator[bytes]:
    """Lines of the first `end` bytes; of one that is too long only the beginning."""
    place = 0
    while place < end and (line := stream.readline(min(MAX_LINE_BYTES, end - place))):
        place += len(line)
        whole = line.endswith(b"\n") or place >= end
        yield line if whole else line[:SHOWN] + b"\n"
        while not whole and place < end and (rest := stream.readline(min(MAX_LINE_BYTES, end - place))):
            place += len(rest)
            whole = rest.endswith(b"\n")


def _require_file(file: int) -> None:
    if not stat.S_ISREG(os.fstat(file).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")


def _lock(file: int, kind: int) -> bool:
    """Wait for the lock; False where there is none to be had."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(LOCK_POLL_S)
        except OSError:  # a file system without locks
            return False
