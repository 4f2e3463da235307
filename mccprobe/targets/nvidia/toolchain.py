"""A real GPU as a stand-in: a .mu file for an NVIDIA GPU with nvcc, through headers of our own (`include/`).

The arithmetic, the barriers and the full size are real; the GPU is another one. Everything made here carries
the GPU's name, and no figure of it is set beside one of an S4000. nvcc honours -opt-bisect-limit, but mccprobe does not
read its jobs yet, and the flags of mcc mean nothing to it: nothing is bisected or flagged here.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mccprobe.base.errors import ToolchainError, UsageError
from mccprobe.base.process import RunSpec, run
from mccprobe.targets.amdgcn.toolchain import SHARED_INCLUDE, device_arguments
from mccprobe.targets.llvm import locate
from mccprobe.targets.llvm.driver import ClangDriver
from mccprobe.targets.protocol import Capabilities, Identity, Recording

INSTALL_HINT = "install NVIDIA's CUDA toolkit (nvcc), or put its bin folder into PATH"
INCLUDE = Path(__file__).resolve().parent / "include"
DEFAULT_HOME = "/usr/local/cuda"  # where NVIDIA's installer puts the toolkit
LEAST_CAPABILITY = 80  # mma.sync.m16n8k16 with half operands: PTX ISA, "requires sm_80 or higher"
_DEFAULT_CAPABILITY = 80  # compiled for where no GPU can be asked: ptxas of the driver takes it further
_PROBE = "__global__ void mccprobe_probe(float *out) { *out = *out * 2.0f; }\n"
# what gcc or clang take in front of a host compile and nvcc only behind -Xcompiler
_HOST_OPTIONS = ("-f", "-m", "-W", "-pthread")
_NVCC_OPTIONS = ("-O", "-D", "-I", "-U", "-std=", "-g", "-l", "-L")


class CudaToolchain(ClangDriver):
    """nvcc, and the GPU that this machine has."""

    name = "cuda"
    simulated = False
    counter = None

    def __init__(self, nvcc: Path) -> None:
        super().__init__([str(nvcc)])
        self._gpu: tuple[str, int] | None = None

    def identify(self) -> Identity:
        """As every driver; nvcc's first line names no version, so the line with the release stands for it."""
        identity = super().identify()
        result = run(RunSpec([str(identity.path), "--version"], timeout_s=locate.QUERY_TIMEOUT_S))
        line = next((text for text in result.stdout_text.splitlines() if "release" in text), identity.version)
        return replace(identity, version=f"nvcc: {line.strip()}")

    @property
    def gpu(self) -> tuple[str, int]:
        """Name and compute capability (90 for 9.0) of the first GPU; ("", 0) where there is none."""
        if self._gpu is None:
            self._gpu = _first_gpu()
        return self._gpu

    @property
    def heading(self) -> str:
        """What every figure of this toolchain is marked with."""
        name = self.gpu[0] or f"sm_{_DEFAULT_CAPABILITY} (no GPU here)"
        return f"{name} stand-in, not an S4000"

    def capabilities(self) -> Capabilities:
        """compile and run are tried on a one-line kernel."""
        notes = [self.heading]
        name, capability = self.gpu
        with tempfile.TemporaryDirectory(prefix="mccprobe-cuda-") as folder:
            source, output = Path(folder) / "probe.cu", Path(folder) / "probe.o"
            source.write_text(_PROBE, encoding="utf-8")
            argv = self.compile_argv([], str(source), str(output))
            result = run(RunSpec(argv, env=self.environment(Path(folder)), timeout_s=locate.QUERY_TIMEOUT_S))
        if not result.ok:
            notes.append(f"a one-line kernel does not compile: {' '.join(result.stderr_text.split())[-300:]}")
        if name and capability < LEAST_CAPABILITY:
            notes.append(f"sm_{capability} is too old for the fragments: sm_{LEAST_CAPABILITY} or later")
        usable = bool(name) and capability >= LEAST_CAPABILITY
        return Capabilities(
            compile=result.ok,
            run=result.ok and usable,
            bisect=False,
            resources=result.ok,
            timing=usable,
            bundle=False,
            notes=tuple(notes),
        )

    def refusal(self, argv: Sequence[str], scratch: Path) -> str:
        return "" if not argv else f"{' '.join(argv)}: flags of mcc mean nothing to nvcc"

    def record(self, args: Sequence[str], scratch: Path, *, cwd: Path | None = None) -> Recording:
        raise ToolchainError(
            "bisection with nvcc is not supported yet: --toolchain cuda compiles, checks and times",
            hint="bisect with mcc, or on the stand-in: --toolchain sim",
        )

    def compile_argv(self, options: Sequence[str], source: str, output: str) -> tuple[str, ...]:
        capability = max(self.gpu[1], _DEFAULT_CAPABILITY)
        return (
            *self.driver,
            "-x",
            "cu",
            "-std=c++17",
            f"-arch=sm_{capability}",
            f"-I{INCLUDE}",
            f"-I{SHARED_INCLUDE}",
            "-DMCCPROBE_REFERENCE_FLOAT64",
            "-Xcompiler",
            "-fopenmp",
            *nvcc_options(options),
            "-c",
            source,
            "-o",
            output,
        )

    def link_argv(self, inputs: Sequence[str], options: Sequence[str], output: str) -> tuple[str, ...]:
        kept = [option for option in options if option != "-lmusart"]
        return (*self.driver, "-Xcompiler", "-fopenmp", *inputs, *nvcc_options(kept), "-o", output)


def nvcc_options(options: Sequence[str]) -> list[str]:
    """Compile options of mcc as nvcc takes them: architectures and -mllvm of mcc left out, host options passed on.

    Raises UsageError for an -mllvm option that is not mcc's own: nvcc has no LLVM options.
    """
    kept: list[str] = []
    rest = iter(device_arguments(options))
    for argument in rest:
        if argument in ("-mllvm", "-Xclang"):
            raise UsageError(
                f"{argument} {next(rest, '')}: nvcc has no LLVM options",
                hint="flags are tried with mcc, or on the stand-in: --toolchain sim",
            )
        if argument in ("-I", "-D", "-U", "-l", "-L", "-include", "-isystem"):
            kept += [argument, next(rest, "")]
        elif argument.startswith(_NVCC_OPTIONS):
            kept.append("-O3" if argument in ("-Ofast", "-Os", "-Oz") else argument)
        elif argument.startswith(_HOST_OPTIONS):
            kept += ["-Xcompiler", argument]
        else:
            kept.append(argument)
    return kept


def _first_gpu() -> tuple[str, int]:
    program = locate.which("nvidia-smi")
    if program is None:
        return "", 0
    query = [str(program), "--query-gpu=name,compute_cap", "--format=csv,noheader", "-i", _visible_gpu()]
    result = run(RunSpec(query, timeout_s=locate.QUERY_TIMEOUT_S))
    line = result.stdout_text.strip().splitlines()[:1]
    name, _, capability = line[0].rpartition(",") if result.ok and line else ("", "", "")
    try:
        return name.strip(), round(float(capability) * 10)
    except ValueError:
        return "", 0


def _visible_gpu() -> str:
    """The first GPU that programs see."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    return first if first.isdigit() else "0"


def cuda_toolchain() -> CudaToolchain:
    """nvcc from PATH or CUDA_HOME. Raises CompilerNotFound, ToolchainError."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for home in [*homes, DEFAULT_HOME]:
        nvcc = Path(home) / "bin" / "nvcc"
        if locate.which("nvcc") is None and nvcc.is_file():
            return CudaToolchain(nvcc)
    nvcc = locate.require_program("nvcc", what="nvcc for the stand-in cuda", hint=INSTALL_HINT)
    return CudaToolchain(nvcc)
