"""What several commands share: where the one cache lies."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """MCCPROBE_CACHE, else mccprobe below the user's cache folder (XDG base directory specification)."""
    named = os.environ.get("MCCPROBE_CACHE")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "mccprobe"
