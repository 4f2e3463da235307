"""The real mcc: where it is looked for, how its toolkit is pinned, what of it is probed.

Looked for in this order: --mcc, MCCPROBE_MCC, MUSA_HOME / MUSA_PATH / MUSA_INSTALL_PATH (bin/mcc
below each), /usr/local/musa/bin/mcc, PATH. mccprobe's own wrapper is never taken for the compiler.
An inherited MUSA_HOME can contaminate a run silently (julia-musa S2, S4), so the toolkit is pinned
to where the chosen mcc lies and the environment that matters is recorded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.errors import CompilerNotFound, StaleCompileCache, ToolchainError
from mccprobe.toolchain import locate
from mccprobe.toolchain.base import Capabilities, Toolchain
from mccprobe.toolchain.driver import ClangDriver
from mccprobe.toolchain.sim import SIMULATED_MARK, SimToolchain

HOME_VARIABLES = ("MUSA_HOME", "MUSA_PATH", "MUSA_INSTALL_PATH")
DEFAULT_MCC = Path("/usr/local/musa/bin/mcc")  # where the SDK installs itself (mtgpu.md section 6)
STALE_CACHE = Path("/tmp/mcc_cache")  # named in the article, section 19: a stale one misled its bisection


@dataclass(frozen=True)
class MccPaths:
    """What the user said: --mcc and --musa-path."""

    mcc: str | None = None
    musa_path: str | None = None


@dataclass(frozen=True)
class FoundMcc:
    """Where mcc is (None: nowhere), who named it, and where it was looked for."""

    path: Path | None
    by: str
    looked: tuple[str, ...]


def find_mcc(paths: MccPaths) -> FoundMcc:
    """Look for mcc. A path that the user named must be there; the rest is a search."""
    for name, value in (("--mcc", paths.mcc), ("MCCPROBE_MCC", os.environ.get("MCCPROBE_MCC"))):
        if value:
            found = shutil.which(value)
            if found is None:
                raise CompilerNotFound(f"mcc ({name})", [value], hint=f"{name} must name an executable file")
            return FoundMcc(Path(found), name, (value,))
    candidates = [("--musa-path", Path(paths.musa_path) / "bin" / "mcc")] if paths.musa_path else []
    candidates += [(name, Path(os.environ[name]) / "bin" / "mcc") for name in HOME_VARIABLES if os.environ.get(name)]
    candidates.append((str(DEFAULT_MCC), DEFAULT_MCC))
    candidates += [("PATH", Path(folder) / "mcc") for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    looked = []
    for name, path in candidates:
        if name != "PATH":
            looked.append(str(path))
        if path.is_file() and os.access(path, os.X_OK) and not locate.is_our_wrapper(path):
            return FoundMcc(path, name, tuple(looked))
    return FoundMcc(None, "", (*looked, "PATH"))


class MccToolchain(ClangDriver):
    """Moore Threads' compiler on the user's machine."""

    name = "mcc"
    simulated = False

    def __init__(self, mcc: Path, musa_path: Path | None) -> None:
        super().__init__([str(mcc)])
        self.musa_path = musa_path

    def _pinned(self) -> tuple[str, ...]:
        return (f"--musa-path={self.musa_path}",) if self.musa_path else ()

    def environment(self, scratch: Path) -> dict[str, str]:
        env = super().environment(scratch)
        if self.musa_path:
            for name in HOME_VARIABLES:
                env.pop(name, None)
            env["MUSA_HOME"] = str(self.musa_path)
        return env

    def capabilities(self) -> Capabilities:
        return Capabilities(compile=True)


def mcc_toolchain(paths: MccPaths) -> Toolchain:
    """The mcc that `find_mcc` finds. One that says it is the stand-in is treated as the stand-in.

    Raises CompilerNotFound or ToolchainError.
    """
    found = find_mcc(paths)
    if found.path is None:
        raise CompilerNotFound(
            "mcc", found.looked, hint="install the MUSA SDK, or name it with --mcc PATH; without it: --toolchain sim"
        )
    if locate.is_our_wrapper(found.path):
        raise ToolchainError(
            f"{found.path} is mccprobe's wrapper, not the compiler", hint="name the real mcc with --mcc PATH"
        )
    identity = locate.identify([str(found.path)])
    if SIMULATED_MARK in identity.version:
        return SimToolchain(found.path)
    root = Path(paths.musa_path) if paths.musa_path else found.path.resolve().parent.parent
    return MccToolchain(found.path, root)


def refuse_stale_cache(folders: Sequence[Path] = (STALE_CACHE,)) -> list[str]:
    """Notes on compile caches that lie on this machine."""
    return [f"a compile cache lies at {folder}; every trial's log is checked against its limit" for folder in folders
            if folder.is_dir()]  # fmt: skip


__all__ = ["FoundMcc", "MccPaths", "MccToolchain", "StaleCompileCache", "find_mcc", "mcc_toolchain"]
