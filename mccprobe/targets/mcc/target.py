"""Moore Threads' mcc as a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mccprobe.base.errors import CompilerNotFound, MccprobeError, ToolchainError
from mccprobe.targets.inventory import Entry, entry_of
from mccprobe.targets.llvm.data_files import PASSES
from mccprobe.targets.protocol import Choice, Target, Toolchain, Wanted

if TYPE_CHECKING:
    from mccprobe.targets.mcc.toolchain import MccPaths

DATA = Path(__file__).parent / "data"
ISA = "mtgpu"  # what binary formats and listings call its instruction set


def _paths(wanted: Wanted) -> MccPaths:
    from mccprobe.targets.mcc.toolchain import MccPaths

    return MccPaths(wanted.options.get("mcc"), wanted.options.get("musa_path"))


def _make(wanted: Wanted) -> Toolchain:
    from mccprobe.targets.mcc.toolchain import mcc_toolchain

    return mcc_toolchain(_paths(wanted), None if wanted.anew else wanted.cache)


def _find(wanted: Wanted, told: str = "") -> Choice:
    """With what of the environment is not used: another toolkit's variables are no secret."""
    from mccprobe.targets.mcc.toolchain import MccToolchain, foreign_homes

    toolchain = _make(wanted)
    notes = foreign_homes(toolchain.root) if isinstance(toolchain, MccToolchain) and toolchain.root else []
    return Choice(toolchain, "; ".join(filter(None, (told, *notes))))


def _automatic(wanted: Wanted) -> Choice | None:
    from mccprobe.targets.mcc.toolchain import find_mcc

    named = wanted.options.get("mcc") or wanted.options.get("musa_path")
    if wanted.options.get("compiler") or not (wanted.device or named):
        return None
    found = find_mcc(_paths(wanted))
    if found.path is None:
        return None
    choice = _find(wanted)
    simulated = choice.toolchain.simulated
    if simulated and not wanted.shipped:
        # our planted fault must not be "found" in a user's kernel that was meant for the real compiler
        raise ToolchainError(
            f"the only mcc here, {found.path} ({found.by}), is mccprobe's stand-in",
            hint="name the real mcc with --mcc PATH; to try your kernel on the stand-in, say so: --toolchain sim",
        )
    told = f"using {'the stand-in' if simulated else 'mcc'}: {found.path} ({found.by})"
    return Choice(choice.toolchain, "; ".join(filter(None, (told, choice.told))))


def _present(wanted: Wanted) -> bool:
    from mccprobe.targets.mcc.toolchain import find_mcc

    return find_mcc(_paths(wanted)).path is not None


def _listed(wanted: Wanted) -> list[Entry]:
    from mccprobe.targets.mcc.toolchain import find_mcc

    try:
        found = find_mcc(_paths(wanted))
    except MccprobeError as error:
        return [Entry(TARGET.name, False, notes=(error.message, error.hint))]
    if found.path is None:
        return [Entry(TARGET.name, False, notes=("looked at: " + ", ".join(found.looked),))]
    return [entry_of(TARGET.name, lambda: _make(wanted))]


def not_found(wanted: Wanted, hint: str) -> CompilerNotFound:
    """For a device source that no toolchain here compiles."""
    from mccprobe.targets.mcc.toolchain import find_mcc

    return CompilerNotFound(TARGET.name, find_mcc(_paths(wanted)).looked, hint=hint)


TARGET = Target(
    name="mcc",
    help="Moore Threads' compiler: --mcc, MCCPROBE_MCC, --musa-path, MUSA_HOME, /usr/local/musa, PATH",
    offers=frozenset({"bisect", "check", "report", "flags", "search", "doctor"}),
    find=_find,
    automatic=_automatic,
    present=_present,
    listed=_listed,
    path_option="mcc",
    device=True,
    real_device=True,
    sdk_headers=True,
    own_tools=True,
    graded=True,
    health_tool="mthreads-gmi",
    suffixes=(".mu", ".cu"),  # .cu: gpu-compute-driver-bench's gen.sh, sgl-kernel
    wrapped="mcc",
    absent="nothing can be said of a user's own .mu or .cu kernel; install the MUSA SDK, or name it with --mcc PATH",
    options_of="mcc",
    flag_data=DATA / "flags.toml",
    pass_data=(*PASSES, DATA / "passes.toml"),
    space=DATA / "search.toml",
    assumptions=DATA / "assumptions.toml",
)
