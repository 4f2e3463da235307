"""The journal of one run: one JSON line a trial, written before its answer is used.

A killed process loses at most the trial in flight: each line is one write to a file opened for
appending. On resume the same lines are read back, and no recorded trial runs again.

Lines: {"t": "compile", "id", "object", "reason", "seconds", "log", "diagnostics"}
       {"t": "run", "object", "oracle", "ordinal", "verdict", "reason", "max_err", "seconds"}
       {"t": "file", "name", "sha256"}   a file of the run that is used again (kept.py)
       {"t": "note", ...}   told to people, not read back
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mccprobe.base.errors import JournalUnreadable, NoRoom, RunDirectoryUnusable
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets.protocol import LogSummary

FORMAT_VERSION = 2
MOST_SECONDS = 2e6  # of one run; more is damage


class Journal:
    """Append-only trial record with look-up. Safe for several threads; one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._asking: dict[tuple[str, str, int], threading.Lock] = {}
        self.compiles: dict[str, dict[str, Any]] = {}
        self.runs: dict[tuple[str, str, int], dict[str, Any]] = {}
        self.files: dict[str, str] = {}
        self.replayed = 0
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._fd = os.open(path, flags, 0o644)
        except OSError as error:
            raise RunDirectoryUnusable(
                f"{path}: cannot be written: {error.strerror}", hint="choose another place with -o DIR"
            ) from error
        try:
            # before anything is read: another process may be in the middle of its line
            with contextlib.suppress(OSError):  # a file system without locks
                self._take_lock()
            if not self._read():
                self._write({"t": "journal", "version": FORMAT_VERSION})
        except BaseException:
            self.close()
            raise

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunDirectoryUnusable(
                f"{self.path.parent} is in use by another mccprobe",
                hint="wait for it, or choose another -o DIR",
            ) from error

    def _read(self) -> bool:
        """Load what is there; False if that is nothing."""
        try:
            with os.fdopen(os.dup(self._fd), "rb") as file:
                data = file.read()
        except OSError as error:
            raise JournalUnreadable(f"{self.path}: cannot be read: {error.strerror}") from error
        *lines, unfinished = data.split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                if number == 1:
                    self._check_header(entry)
                self._load(entry)
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                raise JournalUnreadable(
                    f"{self.path}: line {number} is not a journal entry: {line[:80].decode('utf-8', 'replace')}",
                    hint="start a new run; or cut the damaged line if you know how it came there",
                ) from error
        if unfinished:
            # the line in flight when the process was killed: cut it off, so that appending starts clean
            os.ftruncate(self._fd, len(data) - len(unfinished))
        return bool(lines)

    def _check_header(self, entry: dict[str, Any]) -> None:
        if entry["t"] != "journal":
            raise ValueError("no journal")
        if entry["version"] != FORMAT_VERSION:
            raise JournalUnreadable(
                f"{self.path}: journal version {entry['version']}, this mccprobe reads {FORMAT_VERSION}",
                hint="go on with the mccprobe that began the run, or start a new run",
            )

    def _load(self, entry: dict[str, Any]) -> None:
        """Raises KeyError, TypeError or ValueError for what `append` never wrote."""
        kind = entry["t"]
        if kind == "compile":
            if not isinstance(entry["object"], str | None) or not isinstance(entry["reason"], str):
                raise TypeError("compile")
            if entry["object"] is not None and entry["object"] != Path(entry["object"]).name:
                raise ValueError("an object is named by its hash")
            if not isinstance(entry["diagnostics"], str):
                raise TypeError("compile")
            float(entry["seconds"])
            LogSummary.from_dict(entry["log"])
            self.compiles[str(entry["id"])] = entry
        elif kind == "run":
            Verdict(entry["verdict"])
            if not isinstance(entry["max_err"], int | float | None) or not isinstance(entry["reason"], str):
                raise TypeError("run")
            if not isinstance(entry["seconds"], int | float) or not _is_time(entry.get("ran_s", 0.0)):
                raise TypeError("run")
            self.runs[(str(entry["object"]), str(entry["oracle"]), int(entry["ordinal"]))] = entry
        elif kind == "file":
            if not isinstance(entry["name"], str) or not isinstance(entry["sha256"], str):
                raise TypeError("file")
            self.files[entry["name"]] = entry["sha256"]

    @contextlib.contextmanager
    def asking(self, key: tuple[str, str, int]) -> Iterator[dict[str, Any] | None]:
        """The recorded run of this object, oracle and ordinal. None: it is to be run and appended inside; another
        thread with the same question waits meanwhile, so that nothing is run twice."""
        with self._lock:
            mine = self._asking.setdefault(key, threading.Lock())
        with mine:
            yield self.runs.get(key)

    def append(self, entry: dict[str, Any]) -> None:
        """Write one line, then make it known. Raises NoRoom when the disk takes no more."""
        self._write(entry)
        self._load(entry)

    def _write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
        with self._lock:
            end = os.fstat(self._fd).st_size
            try:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError as error:
                with contextlib.suppress(OSError):  # half a line must not run into the next one
                    os.ftruncate(self._fd, end)
                what = "the disk is full" if error.errno == errno.ENOSPC else str(error.strerror)
                raise NoRoom(
                    f"{self.path}: cannot be written: {what}", hint="free space; go on with --resume"
                ) from error

    def close(self) -> None:
        """Release the file and its lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _is_time(value: object) -> bool:
    """True for seconds as a run takes them: what follows from the time of a run must not be endless."""
    return isinstance(value, int | float) and 0 <= value < MOST_SECONDS
