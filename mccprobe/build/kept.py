"""Files that a run keeps for its next life, with their hashes: used again only if they are what was recorded.

An object is named by its hash. Everything else that is used again (programs, the host half, the rest of the program)
has a line in the journal; a file without one is made again, so that nothing is executed that no journal knows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mccprobe.base.errors import ChangedRunFile
from mccprobe.base.files import file_digest


class KeptFiles:
    """The recorded files of one run folder. Safe for several threads; each file is hashed once a process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: Mapping[str, str] = {}
        self._record: Callable[[dict[str, Any]], None] = lambda entry: None
        self._checked: set[str] = set()
        self._lock = threading.Lock()

    def attach(self, known: Mapping[str, str], record: Callable[[dict[str, Any]], None]) -> None:
        """Take what the journal of an earlier life recorded. record: writes a journal line."""
        self._known, self._record = known, record

    def usable(self, path: Path) -> bool:
        """True if this process made the file or it is as recorded; False: make it. Raises ChangedRunFile."""
        name = path.relative_to(self.root).as_posix()
        with self._lock:
            if not path.is_file():
                return False
            if name in self._checked:
                return True
            expected = self._known.get(name)
            if expected is None:
                return False
            _require(path, expected)
            self._checked.add(name)
            return True

    def keep(self, made: Path, path: Path) -> Path:
        """Give a finished file its name; recorded before it is used. Raises NoRoom."""
        name = path.relative_to(self.root).as_posix()
        digest = file_digest(made)
        made.replace(path)
        self._record({"t": "file", "name": name, "sha256": digest})
        with self._lock:
            self._checked.add(name)
        return path

    def require_object(self, path: Path) -> None:
        """An object that an earlier life made. Raises ChangedRunFile if its content is not what its name says."""
        with self._lock:
            if path.name not in self._checked:
                _require(path, path.name)
                self._checked.add(path.name)


def _require(path: Path, expected: str) -> None:
    found = file_digest(path)
    if found != expected:
        raise ChangedRunFile(str(path), expected, found)
