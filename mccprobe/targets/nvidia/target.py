"""nvcc and an NVIDIA GPU as a target; its users call it `cuda`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mccprobe.targets.protocol import Choice, SourceResources, Target, Wanted


def _find(wanted: Wanted) -> Choice:
    from mccprobe.targets.nvidia.toolchain import cuda_toolchain

    toolchain = cuda_toolchain()
    return Choice(toolchain, f"cuda: every figure below is of a {toolchain.heading}")


def _sources(source: Path, args: Sequence[str], scratch: Path) -> SourceResources:
    """What ptxas prints of a source for this machine's GPU: another GPU's numbers, and headed so."""
    from mccprobe.targets.nvidia.ptxas import kernels_of_source
    from mccprobe.targets.nvidia.toolchain import cuda_toolchain

    toolchain = cuda_toolchain()
    kernels = kernels_of_source(toolchain, source, args, scratch)
    return SourceResources(kernels, "nvcc", toolchain.heading, "not counted: ptxas tells resources only")


TARGET = Target(
    name="cuda",
    help="nvcc and an NVIDIA GPU, for check, bench and report of the shipped kernels",
    offers=frozenset({"check", "report"}),
    find=_find,
    device=True,
    real_device=True,
    absent="nothing of mcc is missing; kernels cannot be checked on an NVIDIA GPU",
    sources=_sources,
)
