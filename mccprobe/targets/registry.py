"""The only list of targets: one folder for each vendor, each with a `target.py` that describes it.

Further folders come from the environment variable MCCPROBE_TARGETS (separated as in PATH). Each is a Python
package whose `target.py` holds `TARGET`; its code is executed, so name only folders that you trust.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path

from mccprobe.base.errors import BadTarget, UsageError
from mccprobe.targets.amdgcn.target import TARGET as AMDGCN
from mccprobe.targets.clang.target import TARGET as CLANG
from mccprobe.targets.mcc.target import TARGET as MCC
from mccprobe.targets.nvidia.target import TARGET as NVIDIA
from mccprobe.targets.protocol import Target
from mccprobe.targets.sim.target import TARGET as SIM

SHIPPED = (MCC, SIM, CLANG, AMDGCN, NVIDIA)
AUTO = "auto"
# what a target may offer: `bisect` and all that builds on it; `check` and all that builds kernels; `report` of sources
OFFERS = frozenset({"bisect", "check", "report", "flags", "search", "doctor"})


def targets() -> tuple[Target, ...]:
    """All targets, those of MCCPROBE_TARGETS last. Raises BadTarget."""
    return _targets(os.environ.get("MCCPROBE_TARGETS", ""))


@functools.cache
def _targets(folders: str) -> tuple[Target, ...]:
    found = list(SHIPPED)
    for folder in filter(None, folders.split(os.pathsep)):
        target = _load(Path(folder))
        if target.name == AUTO or any(target.name == other.name for other in found):
            raise BadTarget(folder, f"the name {target.name} is taken")
        found.append(target)
    return tuple(found)


def _load(folder: Path) -> Target:
    """The TARGET of a folder outside of mccprobe. Raises BadTarget."""
    folder = folder.expanduser().absolute()
    if not (folder / "target.py").is_file():
        raise BadTarget(str(folder), "no target.py in it")
    name = f"mccprobe_targets_{folder.name}"
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    for known in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
        del sys.modules[known]  # of another folder of this name
    sys.modules[name] = package
    try:
        target = importlib.import_module(f"{name}.target").TARGET
    except Exception as error:  # the code is not ours
        raise BadTarget(str(folder), f"{type(error).__name__}: {error}") from error
    if not isinstance(target, Target):
        raise BadTarget(str(folder), "TARGET is not a mccprobe.targets.protocol.Target")
    unknown = target.offers - OFFERS
    if unknown:
        raise BadTarget(str(folder), f"offers {', '.join(sorted(unknown))}; known: {', '.join(sorted(OFFERS))}")
    return target


def names(offer: str | None = None) -> tuple[str, ...]:
    """Names of all targets, or of those that this command takes."""
    return tuple(target.name for target in targets() if offer is None or offer in target.offers)


def find(name: str) -> Target | None:
    """The target of this name, None if there is none (as in a report from another machine)."""
    return next((target for target in targets() if target.name == name), None)


def target(name: str) -> Target:
    """The target of this name. Raises UsageError."""
    found = find(name)
    if found is None:
        raise UsageError(f"unknown toolchain: {name}", hint=f"toolchains: {', '.join(names())}")
    return found


def compilers() -> tuple[str, ...]:
    """Whose options flag data describes, in the order of the list."""
    return tuple(dict.fromkeys(one.options_of for one in targets() if one.options_of))


def is_device_source(name: str) -> bool:
    """True for a source that its name alone makes device code."""
    return any(Path(name).suffix in one.suffixes for one in targets())


def bundles_are_public(compilers: Sequence[str]) -> bool:
    """True where a bundle of flags of these compilers holds what is documented and nothing else."""
    return any(one.stock and one.options_of in compilers for one in targets())


def emulator() -> Target:
    """The target whose kernels run in the emulator."""
    return next(one for one in targets() if one.emulated)


def help_rows() -> dict[str, str]:
    """Rows of `mccprobe help toolchains`."""
    rows = {AUTO: "mcc for .mu and .cu sources; sim for shipped kernels where mcc is missing; clang for C and C++"}
    return rows | {one.name: one.help for one in targets()}
