"""The stand-in SDK as a target: mcc's command line, kernels emulated on the CPU."""

from __future__ import annotations

from pathlib import Path

from mccprobe.targets.mcc.target import TARGET as MCC
from mccprobe.targets.protocol import Choice, Target, Wanted


def _find(wanted: Wanted) -> Choice:
    """A named compiler is a stand-in that an earlier run has built."""
    from mccprobe.targets.sim.toolchain import SimToolchain, sim_toolchain

    named = wanted.options.get("compiler")
    return Choice(SimToolchain(Path(named)) if named else sim_toolchain(wanted.cache))


def _automatic(wanted: Wanted) -> Choice | None:
    """For kernels that come with mccprobe alone: a user's own kernel is never given to a stand-in unasked."""
    if not wanted.device or not wanted.shipped or wanted.options.get("compiler"):
        return None
    told = "no mcc here: this shipped kernel runs on the stand-in `sim` (clang-14 with an emulated 128-lane warp)"
    return Choice(_find(wanted).toolchain, told)


TARGET = Target(
    name="sim",
    help="the stand-in SDK: clang 14 behind mcc's command line, emulated on the CPU; marked SIMULATED everywhere",
    offers=frozenset({"bisect", "check", "report", "flags", "search", "doctor"}),
    find=_find,
    automatic=_automatic,
    device=True,
    emulated=True,
    sdk_headers=True,
    absent="the shipped kernels cannot be tried without mcc; apt-get install clang-14 lld-14 llvm-14-dev",
    options_of="clang",
    pass_data=MCC.pass_data,
    space=MCC.space,
    assumptions=MCC.assumptions,
)
