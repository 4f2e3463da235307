"""The stand-in SDK: stock clang-14 behind mcc's command line, with an emulated 128-lane warp.

It goes through the very code of `mcc`: its driver shows jobs, the device compile is edited, the
host half stays. Everything from it is marked simulated; its times say nothing about a GPU.
"""

from __future__ import annotations

from pathlib import Path

from mccprobe.base.errors import CompilerNotFound, ToolchainError
from mccprobe.targets.llvm import locate
from mccprobe.targets.llvm.driver import ClangDriver
from mccprobe.targets.mcc.toolkit import toolkit_root
from mccprobe.targets.protocol import Capabilities
from mccprobe.targets.sim.build import SimBuildError, SimSdk, sim_sdk

SIMULATED_MARK = "mccprobe-sim version"  # first line of its --version, however it was found


class SimToolchain(ClangDriver):
    """The stand-in SDK's driver."""

    name = "sim"
    simulated = True

    def __init__(self, mcc: Path, sdk: SimSdk | None = None) -> None:
        super().__init__([str(mcc)])
        self.sdk = sdk
        self.root = toolkit_root(mcc, None)

    @property
    def incomplete(self) -> str:
        """What this stand-in lacks, "" if nothing: without LLVM's headers it has no fault to plant."""
        if self.sdk is None or self.sdk.has_fault_plugin:
            return ""
        return f"the stand-in was built without its plugin: {self.sdk.why_no_plugin}"

    @property
    def takes_catalogue(self) -> bool:
        """Our own plugin takes every LLVM option of our own catalogue (tests/sim)."""
        return not self.incomplete

    def capabilities(self) -> Capabilities:
        notes = ["SIMULATED: x86-64 emulation; says nothing about an S4000"]
        if self.sdk is not None and not self.sdk.has_fault_plugin:
            notes.append(f"without the fault plugin: {self.sdk.why_no_plugin}")
        return Capabilities(
            compile=True, run=True, bisect=True, resources=False, timing=False, bundle=True, notes=tuple(notes)
        )


def sim_toolchain(cache: Path) -> SimToolchain:
    """Build the SDK on first use. Raises CompilerNotFound or ToolchainError."""
    if locate.which("clang-14") is None:
        raise CompilerNotFound(
            "clang-14 for the stand-in", ["clang-14"], hint="Debian: apt-get install clang-14 lld-14 llvm-14-dev"
        )
    try:
        sdk = sim_sdk(cache)
    except SimBuildError as error:
        text = f"the stand-in SDK cannot be built: {error}"
        raise ToolchainError(text, detail=error.stderr, hint=error.hint) from error
    return SimToolchain(sdk.mcc, sdk)
