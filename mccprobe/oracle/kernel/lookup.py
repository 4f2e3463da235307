"""Which kernel a user's text or path means: the one look-up of all commands."""

from __future__ import annotations

from pathlib import Path

from mccprobe.base.paths import exists, is_file, is_folder, resolved
from mccprobe.oracle.kernel.shipped import FILE_NAME, find_shipped_kernels
from mccprobe.oracle.kernel.spec import KernelSpec, load_kernel, shipped_kernel


def find_kernel(text: str | Path) -> KernelSpec | None:
    """The kernel of a folder, of a kernel.toml, of a file in a folder with one, or of a shipped kernel's name.

    None where there is no kernel.toml. What is there hides a shipped kernel of its name.
    Raises PathUnusable, BadDataFile.
    """
    path = Path(text)
    if not exists(path):
        return shipped_kernel(str(text)) if str(text) in {folder.name for folder in find_shipped_kernels()} else None
    description = (path if is_folder(path) else path.absolute().parent) / FILE_NAME
    return load_kernel(description) if is_file(description) else None


def is_source_of(path: Path, kernel: KernelSpec) -> bool:
    """True if kernel.toml lists the file among its sources. Raises PathUnusable."""
    return resolved(path) in kernel.sources
