"""A stand-in that compiles only: a .mu file for AMD's gfx908 with stock clang-14, for its resource report.

Flow: .mu -> bitcode before any pass -> gfx908 object -> linked code object, with headers of our own
(`include/`). Registers, spills and code are a real GPU back end's, but another GPU's: they show
how a number moves with an edit or a flag, never what MP22 would have. Everything made here carries
`AmdgcnToolchain.heading`.

`clang -c` straight from the source wants clang-offload-bundler, which not every clang-14 package
brings; the way through bitcode does not.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import CompilerNotFound, SourceDoesNotCompile, ToolchainError
from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.targets import sim
from mccprobe.targets.flags.levels import is_device_level, levels_in
from mccprobe.targets.llvm import locate
from mccprobe.targets.llvm.command import names_architecture
from mccprobe.targets.llvm.driver import ClangDriver
from mccprobe.targets.protocol import Capabilities

ARCH = "gfx908"  # MI100: the oldest AMD target with matrix instructions, and clang 14 knows it well
INSTALL_HINT = "Debian: apt-get install clang-14 lld-14"
COMPILE_TIMEOUT_S = 300.0  # the shipped GEMM takes 2 to 5 seconds; this only ends a hung compile
INCLUDE = Path(__file__).resolve().parent / "include"
SHARED_INCLUDE = Path(sim.__file__).resolve().parent / "include" / "shared"  # what headers of stand-ins have in common

_LANGUAGE = (
    "-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "--rocm-path=/nonexistent", "-std=c++17",
    "-fdeclspec",
)  # fmt: skip
_UNOPTIMISED = ("-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c")
_PROBE = "__attribute__((global)) void mccprobe_probe(float *out) { *out = *out * 2.0f; }\n"
# what the user writes for mcc and means nothing here
_MUSA_ONLY = ("--musa-", "--offload-arch=", "--cuda-gpu-arch=", "-fmusa-", "-lmusa")
_MUSA_WORDS = frozenset({"-mtgpu"})
_LDS_TOO_LARGE = "local memory"


@dataclass(frozen=True)
class CompiledObject:
    """What one compile made. commands: as they ran, for the user to repeat."""

    path: Path
    target: str
    commands: tuple[tuple[str, ...], ...]


class AmdgcnToolchain(ClangDriver):
    """clang-14 and ld.lld-14 for gfx908; nothing from it can be run here."""

    name = "amdgcn"
    simulated = False
    arch = ARCH
    heading = f"{ARCH} stand-in, not MP22"

    def __init__(self, clang: Path, lld: Path) -> None:
        super().__init__([str(clang)])
        self.lld = lld

    def capabilities(self) -> Capabilities:
        """compile, resources, bisect and bundle are run on a one-line kernel."""
        with tempfile.TemporaryDirectory(prefix="mccprobe-amdgcn-") as folder:
            return self._probe(Path(folder))

    def _probe(self, scratch: Path) -> Capabilities:
        notes = [f"compile only, for {self.heading}"]
        source = scratch / "probe.mu"
        source.write_text(_PROBE, encoding="utf-8")
        try:
            compiled = self.compile(source, scratch / "probe.so", scratch, ["-O2"])
        except SourceDoesNotCompile as error:
            told = " ".join((error.detail or error.message).split())
            notes.append(f"a one-line kernel does not compile: {told}"[:300])
            return Capabilities(
                compile=False, run=False, bisect=False, resources=False, timing=False, bundle=False, notes=tuple(notes)
            )
        limited = [*compiled.commands[1], "-mllvm", "-opt-bisect-limit=-1"]
        bisected = run(RunSpec(limited, env=self.environment(scratch), timeout_s=locate.QUERY_TIMEOUT_S))
        bundled = run(
            RunSpec(
                [
                    *self.driver,
                    *_LANGUAGE,
                    f"--offload-arch={self.arch}",
                    "-c",
                    str(source),
                    "-o",
                    str(scratch / "probe.hipfb"),
                ],
                env=self.environment(scratch),
                timeout_s=locate.QUERY_TIMEOUT_S,
            )
        )
        if not bundled.ok:
            notes.append("no bundles: -c straight from a source wants clang-offload-bundler beside clang")
        return Capabilities(
            compile=True,
            run=False,
            bisect=bisected.ok and "BISECT: running pass (" in bisected.stderr_text,
            resources=b"AMDGPU\0" in compiled.path.read_bytes(),
            timing=False,
            bundle=bundled.ok,
            notes=tuple(notes),
        )

    def _probe_arguments(self) -> tuple[str, ...]:
        return (*_LANGUAGE, f"--offload-arch={self.arch}", "-emit-llvm")

    def compile(
        self,
        source: Path,
        output: Path,
        scratch: Path,
        args: Sequence[str] = (),
        *,
        include: Sequence[Path] = (),
        step: Callable[[RunSpec], RunResult] = run,
    ) -> CompiledObject:
        """Compile one .mu file to a linked code object at `output`.

        args: the user's compile arguments; those that only mcc knows are left out. step: runs each command.
        Raises SourceDoesNotCompile with the compiler's message.
        """
        env = self.environment(scratch)
        taken = device_arguments(args)
        bitcode, unlinked = scratch / f"{output.name}.bc", scratch / f"{output.name}.o"
        folders = [f"-I{folder}" for folder in (INCLUDE, SHARED_INCLUDE, *include)]
        levels = levels_in(taken)
        front_end = [*([] if levels else ["-O2"]), *_without(taken, "-mllvm")]
        back_end = [*(levels[-1:] or ["-O2"]), *_pairs(taken, "-mllvm")]
        commands = (
            (
                *self.driver,
                *_LANGUAGE,
                f"--offload-arch={self.arch}",
                *folders,
                *front_end,
                *_UNOPTIMISED,
                str(source),
                "-o",
                str(bitcode),
            ),
            (
                *self.driver,
                "--target=amdgcn-amd-amdhsa",
                f"-mcpu={self.arch}",
                "-nogpulib",
                *back_end,
                "-c",
                str(bitcode),
                "-o",
                str(unlinked),
            ),
            (str(self.lld), "-shared", str(unlinked), "-o", str(output)),
        )
        for command in commands:
            self._check(step(RunSpec(command, env=env, timeout_s=COMPILE_TIMEOUT_S)), command[0], source)
        return CompiledObject(output, self.arch, commands)

    def _check(self, result: RunResult, program: str, source: Path) -> None:
        if result.ok:
            return
        if result.returncode is None:
            raise ToolchainError(f"{program}: {result.describe()}", hint=INSTALL_HINT)
        raise SourceDoesNotCompile(
            f"{source} does not compile for {self.heading}: {result.describe()}",
            detail=result.stderr_text[-4000:].strip(),
            hint=_hint(result),
        )


def _hint(result: RunResult) -> str:
    if _LDS_TOO_LARGE in result.stderr_text and "exceeds limit" in result.stderr_text:
        return f"{ARCH} has 65536 bytes of shared memory for a block, MP22 has 73728: this kernel fits only the latter"
    return f"the headers of this stand-in hold what a WMMA kernel needs, not all of MUSA: {INCLUDE}"


def device_arguments(args: Sequence[str]) -> list[str]:
    """The arguments that mean the same to clang for gfx908: without architectures, libraries, -mtgpu-*.

    An `-mllvm -mtgpu-X` pair goes as a whole; other `-mllvm` options stay.
    """
    kept: list[str] = []
    rest = iter(args)
    for argument in rest:
        if argument in ("-mllvm", "-Xclang", "-x", "-o") or (names_architecture(argument) and "=" not in argument):
            value = next(rest, "")
            musa = value.lstrip("-").startswith(("mtgpu-", "FenceSetting", "misched=mtgpu-"))
            if value and argument in ("-mllvm", "-Xclang") and not musa:
                kept += [argument, value]
        elif not (
            argument.startswith(_MUSA_ONLY) or argument in (*_MUSA_WORDS, "-c", "-S") or is_device_level(argument)
        ):
            kept.append(argument)
    return kept


def _pairs(args: Sequence[str], name: str) -> list[str]:
    found = [(name, value) for option, value in itertools.pairwise(args) if option == name]
    return [word for pair in found for word in pair]


def _without(args: Sequence[str], name: str) -> list[str]:
    before = ("", *args)
    return [word for last, word in zip(before, args, strict=False) if name not in (last, word)]


def amdgcn_toolchain() -> AmdgcnToolchain:
    """clang-14 and ld.lld-14 from PATH. Raises CompilerNotFound."""
    clang = locate.require_program("clang-14", what="clang-14 for the stand-in amdgcn", hint=INSTALL_HINT)
    for name in ("ld.lld-14", str(clang.resolve().parent / "ld.lld")):
        lld = locate.which(name)
        if lld is not None:
            return AmdgcnToolchain(clang, lld)
    raise CompilerNotFound("ld.lld-14 for the stand-in amdgcn", ["ld.lld-14"], hint=INSTALL_HINT)
