"""Files that are there in full or not at all, whenever the process is killed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mccprobe.compilation.store import disk_errors


def write_atomically(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write beside `path`, to the disk, then rename. Raises RunDirectoryUnusable."""
    with disk_errors(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Names in it reach the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
