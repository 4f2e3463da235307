"""nvcc and an NVIDIA GPU as a target; its users call it `cuda`."""

from __future__ import annotations

from collections.abc import Sequence

from mccprobe.objects.binary.records import KernelMetadata
from mccprobe.targets.mcc.target import TARGET as MCC
from mccprobe.targets.protocol import Choice, ResourceText, Target, Wanted


def _find(wanted: Wanted) -> Choice:
    from mccprobe.targets.nvidia.toolchain import cuda_toolchain

    toolchain = cuda_toolchain()
    return Choice(toolchain, f"cuda: every figure below is of a {toolchain.heading}")


def _parse(text: str) -> Sequence[KernelMetadata]:
    from mccprobe.targets.nvidia.ptxas import parse_ptxas

    return parse_ptxas(text)


TARGET = Target(
    name="cuda",
    help="nvcc and an NVIDIA GPU, for check, bench and report of the shipped kernels",
    offers=frozenset({"check", "report"}),
    find=_find,
    device=True,
    real_device=True,
    absent="nothing of mcc is missing; kernels cannot be checked on an NVIDIA GPU",
    space=MCC.space,
    printed=ResourceText("nvcc", ("-Xptxas", "-v"), _parse, "not counted: ptxas tells resources only"),
)
