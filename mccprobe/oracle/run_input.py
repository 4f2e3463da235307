"""The file that programs read from standard input."""

from __future__ import annotations

import stat
from pathlib import Path

from mccprobe.base.errors import InputError
from mccprobe.base.paths import read_file


def stdin_file(name: str) -> Path:
    """The file of --stdin. Raises InputError: a pipe or a terminal would give each run something else."""
    path = Path(name).absolute()
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}", hint="--stdin takes a file that can be read") from error
    if not regular:
        raise InputError(f"{name}: not a regular file", hint="--stdin takes a file that every run reads anew")
    try:
        read_file(path)  # that it can be read
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}", hint="--stdin takes a file that can be read") from error
    return path
