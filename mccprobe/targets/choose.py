"""Which toolchain a command uses, and why; a stand-in is never chosen silently for a user's kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import CompilerNotFound, ToolchainError, UsageError
from mccprobe.targets.clang.toolchain import clang_toolchain
from mccprobe.targets.mcc.toolchain import MccPaths, MccToolchain, find_mcc, foreign_homes, mcc_toolchain
from mccprobe.targets.nvidia.toolchain import cuda_toolchain
from mccprobe.targets.protocol import Toolchain
from mccprobe.targets.sim.toolchain import SIMULATED_MARK, SimToolchain, sim_toolchain

NAMES = ("auto", "mcc", "sim", "clang", "cuda")
DEVICE_SUFFIXES = frozenset((".mu",))


@dataclass(frozen=True)
class Choice:
    """The toolchain and the sentence that tells the user about it ("" when it is what was asked for)."""

    toolchain: Toolchain
    told: str = ""


def choose(
    name: str, *, sources: Sequence[str], shipped: bool, compiler: str | None, mcc: MccPaths, cache: Path
) -> Choice:  # fmt: skip
    """Resolve `--toolchain`.

    shipped: the source is one of the kernels that come with mccprobe.
    Raises CompilerNotFound (exit 3) when the compiler is not there, UsageError for options that contradict.
    """
    device = any(Path(source).suffix in DEVICE_SUFFIXES for source in sources)
    if compiler and name in ("mcc", "sim", "cuda"):
        raise UsageError(
            f"--compiler does not go with --toolchain {name}",
            hint="name mcc with --mcc PATH; sim brings its own, nvcc comes from PATH",
        )
    if name == "clang" or (name == "auto" and not device):
        return Choice(_clang(compiler, sources))
    if name == "sim":
        return Choice(sim_toolchain(cache))
    if name == "cuda":
        nvidia = cuda_toolchain()
        return Choice(nvidia, f"cuda: every figure below is of a {nvidia.heading}")
    if name == "mcc":
        return _mcc(mcc_toolchain(mcc, cache), "")
    if compiler:
        return Choice(_clang(compiler, sources))
    found = find_mcc(mcc)
    if found.path is not None:
        toolchain = mcc_toolchain(mcc, cache)
        if toolchain.simulated and not shipped:
            # our planted fault must not be "found" in a user's kernel that was meant for the real compiler
            raise ToolchainError(
                f"the only mcc here, {found.path} ({found.by}), is mccprobe's stand-in",
                hint="name the real mcc with --mcc PATH; to try your kernel on the stand-in, say so: --toolchain sim",
            )
        what = "the stand-in" if toolchain.simulated else "mcc"
        return _mcc(toolchain, f"using {what}: {found.path} ({found.by})")
    if shipped:
        return Choice(
            sim_toolchain(cache),
            "no mcc here: this shipped kernel runs on the stand-in `sim` (clang-14 with an emulated 128-lane warp)",
        )
    raise CompilerNotFound(
        "mcc", found.looked,
        hint="install the MUSA SDK or name it with --mcc PATH; to try your kernel on the stand-in, say so: "
        "--toolchain sim",
    )  # fmt: skip


def _mcc(toolchain: Toolchain, told: str) -> Choice:
    """With what of the environment is not used: another toolkit's variables are no secret."""
    notes = foreign_homes(toolchain.root) if isinstance(toolchain, MccToolchain) and toolchain.root else []
    return Choice(toolchain, "; ".join(filter(None, (told, *notes))))


def _clang(compiler: str | None, sources: Sequence[str]) -> Toolchain:
    """A compiler that says that it is the stand-in is the stand-in, also under this name."""
    toolchain = clang_toolchain(compiler, sources)
    identity = toolchain.identify()
    return SimToolchain(identity.path) if SIMULATED_MARK in identity.version else toolchain
