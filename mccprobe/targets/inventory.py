"""What `mccprobe toolchains` lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mccprobe.base.errors import MccprobeError
from mccprobe.targets.amdgcn.toolchain import amdgcn_toolchain
from mccprobe.targets.clang.toolchain import ClangToolchain
from mccprobe.targets.llvm import locate
from mccprobe.targets.mcc.toolchain import MccPaths, find_mcc, mcc_toolchain
from mccprobe.targets.nvidia.toolchain import cuda_toolchain
from mccprobe.targets.protocol import Toolchain
from mccprobe.targets.sim.toolchain import sim_toolchain


@dataclass(frozen=True)
class Entry:
    """One line of the list."""

    name: str
    found: bool
    path: str = ""
    version: str = ""
    simulated: bool = False
    capabilities: dict[str, bool | str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "found": self.found, "path": self.path or None, "version": self.version or None,
            "simulated": self.simulated, "capabilities": self.capabilities, "notes": list(self.notes),
        }  # fmt: skip


def inventory(paths: MccPaths, cache: Path) -> list[Entry]:
    """mcc, the stand-ins and every clang of PATH, each probed."""
    entries = [_mcc(paths, cache), _sim(cache)]
    entries += [_described("amdgcn", amdgcn_toolchain), _described("cuda", cuda_toolchain)]
    clangs = locate.installed_clangs()
    entries += [_described("clang", lambda p=path: ClangToolchain([str(p)])) for path in clangs.values()]
    if not clangs:
        entries.append(Entry("clang", False, notes=("Debian: apt-get install clang-14",)))
    return entries


def _described(name: str, make: Any) -> Entry:
    try:
        toolchain: Toolchain = make()
        identity = toolchain.identify()
        able = toolchain.capabilities()
    except MccprobeError as error:
        return Entry(name, False, notes=(error.message, error.hint))
    kinds = ("compile", "run", "bisect", "resources", "timing", "bundle")
    return Entry(
        toolchain.name, True, str(identity.path), identity.version, toolchain.simulated,
        {kind: getattr(able, kind) for kind in kinds}, able.notes,
    )  # fmt: skip


def _mcc(paths: MccPaths, cache: Path) -> Entry:
    try:
        found = find_mcc(paths)
    except MccprobeError as error:
        return Entry("mcc", False, notes=(error.message, error.hint))
    if found.path is None:
        return Entry("mcc", False, notes=("looked at: " + ", ".join(found.looked),))
    return _described("mcc", lambda: mcc_toolchain(paths, cache))


def _sim(cache: Path) -> Entry:
    return _described("sim", lambda: sim_toolchain(cache))
