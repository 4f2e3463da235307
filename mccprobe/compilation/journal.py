"""The journal of one run: one JSON line a trial, written before its answer is used.

A killed process loses at most the trial in flight: each line is one write to a file opened for
appending. On resume the same lines are read back, and no recorded trial runs again.

Lines: {"t": "compile", "id", "object", "reason", "seconds", "log"}
       {"t": "run", "object", "oracle", "ordinal", "verdict", "reason", "max_err", "seconds"}
       {"t": "note", ...}   told to people, not read back
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Any

from mccprobe.errors import JournalUnreadable, RunDirectoryUnusable

FORMAT_VERSION = 1


class Journal:
    """Append-only trial record with look-up. Safe for several threads; one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.compiles: dict[str, dict[str, Any]] = {}
        self.runs: dict[tuple[str, str, int], dict[str, Any]] = {}
        self.replayed = 0
        existing = self._read()
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise RunDirectoryUnusable(f"{path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise RunDirectoryUnusable(
                f"{path.parent} is in use by another mccprobe", hint="wait for it, or choose another -o DIR"
            ) from error
        if existing is None:
            self._write({"t": "journal", "version": FORMAT_VERSION})

    def _read(self) -> int | None:
        """Load existing lines; None if there is no journal yet."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise JournalUnreadable(f"{self.path}: cannot be read: {error.strerror}") from error
        if not data:
            return None
        lines = data.split(b"\n")
        complete = data.endswith(b"\n")
        if not complete:
            # the line in flight when the process was killed: cut it off, so that appending starts clean
            with self.path.open("r+b") as file:
                file.truncate(len(data) - len(lines[-1]))
        lines.pop()
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                self._load(entry)
            except (ValueError, KeyError, TypeError) as error:
                raise JournalUnreadable(
                    f"{self.path}: line {number} is not a journal entry: {line[:80].decode('utf-8', 'replace')}",
                    hint="start a new run; or cut the damaged line if you know how it came there",
                ) from error
        return len(lines) or None

    def _load(self, entry: dict[str, Any]) -> None:
        kind = entry["t"]
        if kind == "journal" and entry["version"] != FORMAT_VERSION:
            raise KeyError("version")
        if kind == "compile":
            self.compiles[str(entry["id"])] = entry
        elif kind == "run":
            self.runs[(str(entry["object"]), str(entry["oracle"]), int(entry["ordinal"]))] = entry

    def append(self, entry: dict[str, Any]) -> None:
        """Write one line, then make it known. Raises RunDirectoryUnusable when the disk is full."""
        self._write(entry)
        self._load(entry)

    def _write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
        with self._lock:
            try:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError as error:
                what = "the disk is full" if error.errno == errno.ENOSPC else str(error.strerror)
                raise RunDirectoryUnusable(
                    f"{self.path}: cannot be written: {what}", hint="free space and go on with --resume"
                ) from error

    def close(self) -> None:
        """Release the file and its lock."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
