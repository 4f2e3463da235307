"""Where the kernels that ship with mccprobe lie, in a source tree and in an installed wheel.

Looked for in this order: MCCPROBE_KERNELS, a folder `kernels` beside the package (source tree),
`mccprobe/_kernels` (wheel). A folder counts if one of its folders has a kernel.toml.
"""

from __future__ import annotations

import os
from pathlib import Path

from mccprobe.base.errors import InputError
from mccprobe.base.paths import exists

FILE_NAME = "kernel.toml"
DEFAULT_KERNEL = "gemm"  # where the user names none
PACKAGE = Path(__file__).resolve().parents[2]


def kernels_folder() -> Path | None:
    """The folder of shipped kernels, None if there is none."""
    given = os.environ.get("MCCPROBE_KERNELS")
    places = [Path(given)] if given else [PACKAGE.parent / "kernels", PACKAGE / "_kernels"]
    return next((place for place in places if _kernels_in(place)), None)


def find_shipped_kernels() -> list[Path]:
    """The folder of each shipped kernel, by name."""
    folder = kernels_folder()
    return _kernels_in(folder) if folder else []


def file_or_shipped(path: Path) -> Path:
    """`path`, or where there is no such file the folder of the shipped kernel of that name, if there is one."""
    named = next((folder for folder in find_shipped_kernels() if folder.name == str(path)), None)
    return path if named is None or exists(path) else named


def hint_of_shipped(path: Path) -> str:
    """What to write for a path that is no kernel but has the name of a shipped one; else empty."""
    folder = next((folder for folder in find_shipped_kernels() if folder.name == path.name), None)
    if folder is None:
        return ""
    if exists(path):
        return f"this file hides the shipped kernel {folder.name}, which is {folder}"
    return f"the shipped kernel is {folder.name}, without a folder"


def refuse_shipped_name(path: Path, *, takes_source: bool) -> None:
    """Before a file is read. Raises InputError if it is not there and has the name of a shipped kernel.

    takes_source: the command reads a kernel's source as well; the others want what a compiler wrote.
    """
    hint = hint_of_shipped(path)
    if not hint or exists(path):
        return
    if not takes_source:
        hint = (
            f"the shipped kernel {path.name} is source, and this command reads objects, bundles and assembly text; "
            f"mccprobe report {path.name} compiles it"
        )
    raise InputError(f"{path}: no such file", hint=hint)


def is_shipped(path: Path) -> bool:
    """True if the file or folder really lies in the folder of shipped kernels (links are followed)."""
    folder = kernels_folder()
    try:
        return folder is not None and path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a loop of links, a name that no file system takes
        return False


def _kernels_in(place: Path) -> list[Path]:
    try:
        return sorted(file.parent for file in place.glob(f"*/{FILE_NAME}"))
    except (OSError, ValueError):
        return []
