"""A tool that failed because the disk is full says nothing of its input."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from mccprobe.base.errors import NoRoom
from mccprobe.build.store import require_room

LLD = b"clang: error: unable to execute command: Bus error\nclang: error: linker command failed due to signal"
ENDS = {
    "told": (b"error: unable to open output file 'x.o': 'No space left on device'", 1, True, True),
    "quota": (b"x.o: Disk quota exceeded", 1, True, True),
    "mapped": (LLD, 254, True, False),
    "mapped, by a shell": (b"", 128 + signal.SIGBUS, True, False),
    "mapped, alone": (b"", -signal.SIGBUS, True, False),
    "crash": (b"Segmentation fault", -signal.SIGSEGV, False, False),
    "syntax": (b"x.c:1:1: error: unknown type name", 1, False, False),
}


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("free", [1 << 12, 1 << 30])
def test_want_of_room(name: str, free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bus error is one of a full disk only where little is free: elsewhere it is the compiler's own."""
    complaint, code, nearly_full, with_room = ENDS[name]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    if nearly_full if free < 1 << 20 else with_room:
        with pytest.raises(NoRoom, match="the disk is full"):
            require_room(tmp_path, complaint, code)
    else:
        require_room(tmp_path, complaint, code)
