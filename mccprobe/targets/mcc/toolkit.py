"""The toolkit around an mcc: the folder that holds its headers and libraries."""

from __future__ import annotations

from pathlib import Path

from mccprobe.base.errors import ToolchainError

# any of these makes the folder above bin/ a toolkit (mtgpu.md section 6)
_TOOLKIT_MARKS = (
    "version.json",
    "include/musa_runtime.h",
    "include/musa.h",
    "lib/libmusart.so",
    "mtgpu/bitcode",
)


def toolkit_root(mcc: Path, named: str | None) -> Path | None:
    """The toolkit of this mcc: as named, else the folder above its resolved bin/; None if that is none.

    Raises ToolchainError when the named one does not exist.
    """
    if named is not None:
        if not Path(named).is_dir():
            raise ToolchainError(f"--musa-path {named}: no such folder", hint="name the toolkit's root folder")
        return Path(named).resolve()
    for root in (mcc.resolve().parent.parent, mcc.parent.parent.resolve()):
        if any((root / mark).exists() for mark in _TOOLKIT_MARKS):
            return root
    return None
