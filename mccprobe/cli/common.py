"""What several commands share: where the one cache lies, and numbers that are numbers."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import click

from mccprobe.base.errors import NoHomeFolder


class FiniteRange(click.FloatRange):
    """FloatRange without `nan`, which no comparison keeps out, and `inf`, which JSON does not have."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number", param, ctx)
        return number


def cache_directory() -> Path:
    """MCCPROBE_CACHE, else mccprobe below the user's cache folder (XDG base directory specification). Raises
    NoHomeFolder."""
    named = os.environ.get("MCCPROBE_CACHE")
    if named:
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "mccprobe"
    try:
        return Path.home() / ".cache" / "mccprobe"
    except RuntimeError as error:
        raise NoHomeFolder("name the cache folder: MCCPROBE_CACHE=DIR") from error
