"""One run at a time in a folder of the user's: two programs that write the same file there would spoil each other."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

_LOCKS: dict[str, threading.RLock] = {}
_GUARD = threading.Lock()


@contextlib.contextmanager
def alone_in(folder: Path | None) -> Iterator[None]:
    """Hold the folder for one run. None: a folder of the run's own, which needs no lock."""
    if folder is None:
        yield
        return
    with _GUARD:
        lock = _LOCKS.setdefault(os.path.realpath(folder), threading.RLock())
    with lock:
        yield
