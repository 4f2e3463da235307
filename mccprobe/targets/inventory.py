"""What `mccprobe toolchains` lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mccprobe.base.errors import MccprobeError
from mccprobe.targets.protocol import Target, Toolchain, Wanted

if TYPE_CHECKING:
    from mccprobe.targets.mcc.toolchain import MccPaths


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
            "name": self.name,
            "found": self.found,
            "path": self.path or None,
            "version": self.version or None,
            "simulated": self.simulated,
            "capabilities": self.capabilities,
            "notes": list(self.notes),
        }


def inventory(paths: MccPaths, cache: Path) -> list[Entry]:
    """Every target, probed; targets that may have several compilers here come last."""
    from mccprobe.targets import registry
    from mccprobe.targets.choose import wanted_of

    wanted = wanted_of(paths, cache)
    every = sorted(registry.targets(), key=lambda target: target.path_option == "compiler")
    return [entry for target in every for entry in _listed(target, wanted)]


def _listed(target: Target, wanted: Wanted) -> list[Entry]:
    if target.listed is not None:
        return target.listed(wanted)
    return [entry_of(target.name, lambda: target.find(wanted).toolchain)]


def entry_of(name: str, make: Callable[[], Toolchain]) -> Entry:
    """The line of one compiler, which is probed."""
    try:
        toolchain = make()
        identity = toolchain.identify()
        able = toolchain.capabilities()
    except MccprobeError as error:
        return Entry(name, False, notes=(error.message, error.hint))
    kinds = ("compile", "run", "bisect", "resources", "timing", "bundle")
    return Entry(
        toolchain.name,
        True,
        str(identity.path),
        identity.version,
        toolchain.simulated,
        {kind: getattr(able, kind) for kind in kinds},
        able.notes,
    )
