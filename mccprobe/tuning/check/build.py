"""Build a kernel's program with a set of flags, and run one case of it.

The compile is the plain command that a Makefile or a grader runs: flags stand on the command line as the
wrapper would put them, host and device half included, so that what passes here is what is built there.
The flags go to the kernel's own sources; the host program with its reference is built without them, so
that a flag which breaks arithmetic cannot break the judge too.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import BadBinary, InputError
from mccprobe.base.files import file_digest
from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.build.record import TranslationUnit
from mccprobe.build.step import Done, compile_unit, link_program
from mccprobe.build.store import disk_errors
from mccprobe.objects.binary.read import read_images
from mccprobe.oracle.kernel.spec import Case, KernelSpec
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets import registry
from mccprobe.targets.flags.levels import is_level
from mccprobe.targets.llvm.command import (
    compile_options,
    link_options,
    mllvm_value,
    names_architecture,
    split_arguments,
)
from mccprobe.targets.llvm.jobs import option_key
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.targets.protocol import Toolchain
from mccprobe.tuning.check.answer import HostAnswer, read_answer
from mccprobe.tuning.check.launchable import emulated_launches, kernels_in


@dataclass(frozen=True)
class BuildFailure:
    """A build that gave no program. command: what failed; detail: the compiler's message."""

    reason: str
    command: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True)
class BuiltKernel:
    """A program and what is known of it.

    device_object: SHA-256 over the device images of the kernel's own sources (of the objects, where there
    is no device half): equal builds have equal ones. launchable: kernels by name, None if unknown.
    """

    kernel: KernelSpec
    toolchain: str
    simulated: bool
    program: Path
    device_object: str
    commands: tuple[tuple[str, ...], ...]
    flags: tuple[tuple[str, ...], ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    launchable: tuple[str, ...] | None = None
    seconds: float = 0.0

    @property
    def folder(self) -> Path:
        return self.program.parent


@dataclass(frozen=True)
class CaseResult:
    """One run of one case.

    launches: kernel -> launches, None if unknown; of the emulator itself on `sim`. told: what the host
    program reported, None if nothing. refused: no kernel takes this shape.
    """

    case: Case
    seed: int
    verdict: Verdict
    reason: str
    max_err: float | None
    tolerance: float | None
    launches: Mapping[str, int] | None
    seconds: float
    told: Mapping[str, int] | None = None
    refused: bool = False
    milliseconds: tuple[float, ...] = ()
    zero_share: float | None = None
    input: str = ""
    device: str = ""


def build_kernel(
    kernel: KernelSpec,
    toolchain: Toolchain,
    *,
    flags: Sequence[Sequence[str]] = (),
    defines: Mapping[str, str] | None = None,
    folder: Path,
    timeout_s: float = 300.0,
    arch: str = DEFAULT_ARCH,
    step: Callable[[RunSpec], RunResult] = run,
) -> BuiltKernel | BuildFailure:
    """Compile and link below `folder`, in a folder of this build's own, which stays.

    flags: driver arguments, one group a flag, such as ("-mllvm", "-mtgpu-load-store-opt"); they win over the
    same option of kernel.toml. defines: -D parameters, for the host program too. timeout_s: of one command.
    The host program's objects are kept in `folder` and used again, so a folder is for one run over unchanged
    sources. step: runs each command, such as an executor's `build_step`.
    Raises RunDirectoryUnusable when the disk is full.
    """
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix="build-", dir=folder))
    return _Build(kernel, toolchain, folder, place, timeout_s, arch, step).make(
        tuple(tuple(flag) for flag in flags), tuple(sorted((defines or {}).items()))
    )


class _Failed(Exception):
    def __init__(self, failure: BuildFailure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class _Build:
    """One build in progress."""

    def __init__(
        self,
        kernel: KernelSpec,
        toolchain: Toolchain,
        folder: Path,
        place: Path,
        timeout_s: float,
        arch: str,
        step: Callable[[RunSpec], RunResult],
    ) -> None:
        self.kernel, self.toolchain, self.folder, self.place = kernel, toolchain, folder, place
        self.timeout_s, self.arch, self.run_step = timeout_s, arch, step
        self.device = registry.target(toolchain.name).device
        self.commands: list[tuple[str, ...]] = []
        self.seconds = 0.0

    def make(
        self, flags: tuple[tuple[str, ...], ...], defines: tuple[tuple[str, str], ...]
    ) -> BuiltKernel | BuildFailure:
        own = split_arguments([*self.kernel.compile_args, *self.kernel.link_args])
        plain = self._options(own.options, ())
        given = [f"-D{name}={value}" for name, value in defines]
        flat = [argument for flag in flags for argument in flag]
        try:
            compiled = [*self._options(own.options, flags), *given, *flat]
            objects = [
                self._compile(source, compiled, self.place / f"{n}.o") for n, source in enumerate(self.kernel.sources)
            ]
            hosts = [self._host_object(source, [*plain, *given]) for source in self.kernel.host_sources]
            program = self.place / "program"
            libraries = () if not self.device or "-lmusart" in own.flat else ("-lmusart",)
            inputs = [*map(str, (*objects, *hosts)), *own.inputs]
            options = [*link_options(own), *libraries]
            self._keep(
                "link",
                link_program(
                    self.toolchain,
                    inputs,
                    options,
                    program,
                    scratch=self.place,
                    timeout_s=self.timeout_s,
                    cwd=self.place,
                    step=self.run_step,
                ),
            )
        except _Failed as error:
            return error.failure
        return BuiltKernel(
            self.kernel,
            self.toolchain.name,
            self.toolchain.simulated,
            program,
            device_digest(objects),
            tuple(self.commands),
            flags,
            defines,
            kernels_in(objects),
            self.seconds,
        )

    def _options(self, own: Sequence[tuple[str, ...]], flags: Sequence[tuple[str, ...]]) -> list[str]:
        """kernel.toml's compile options without what `flags` give again, and the architecture."""
        keys = {option_key(mllvm_value(flag)) for flag in flags if mllvm_value(flag)}
        level = any(is_level(flag[0]) for flag in flags if flag)
        kept = [
            group
            for group in own
            if not (mllvm_value(group) and option_key(mllvm_value(group)) in keys)
            and not (level and is_level(group[0]))
            and group not in flags
        ]
        named = any(names_architecture(group[0]) for group in (*kept, *flags))
        arch = [] if named or not self.device else [f"--offload-arch={self.arch}"]
        options = [argument for group in kept for argument in group]
        return [*arch, *compile_options(split_arguments(options))]

    def _host_object(self, source: Path, options: Sequence[str]) -> Path:
        """The host program's object: made once for each command line and source, by a rename."""
        key = json.dumps([list(self.toolchain.driver), list(options), str(source), file_digest(source)])
        kept = self.folder / f"host-{hashlib.sha256(key.encode()).hexdigest()[:16]}.o"
        if not kept.is_file():
            made = self._compile(source, options, self.place / f"{source.stem}-host.o")
            with disk_errors(kept):
                made.replace(kept)
        return kept

    def _compile(self, source: Path, options: Sequence[str], output: Path) -> Path:
        unit = TranslationUnit(str(source), tuple(options), self.place)
        done = compile_unit(
            self.toolchain, unit, output, scratch=self.place, timeout_s=self.timeout_s, step=self.run_step
        )
        self._keep("compile", done)
        return output

    def _keep(self, what: str, done: Done) -> None:
        self.commands.append(done.command)
        self.seconds += done.seconds
        if done.failure:
            raise _Failed(BuildFailure(f"{what}: {done.failure}", done.command, done.detail))


def device_digest(objects: Sequence[Path]) -> str:
    """SHA-256 over the device images in these objects, in order."""
    digest = hashlib.sha256()
    for path in objects:
        try:
            images = [image.data for image in read_images(path)]
        except (BadBinary, InputError):  # what cannot be taken apart is compared as a whole
            images = [path.read_bytes()]
        for data in images:
            digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()


def run_case(
    built: BuiltKernel,
    case: Case,
    *,
    seed: int = 1,
    timeout_s: float = 120.0,
    repeat: int = 1,
    data: str = "random",
    check: str = "",
) -> CaseResult:
    """Run one case once, in a folder of its own that is removed.

    repeat: launches in the one process; their times are in `milliseconds`. data: "random", or "zero" (then the
    verdict is UNRESOLVED). check: "last" compares only the last repeat's output, "" every one.
    """
    argv = [str(built.program), "--case", f"{case.m}x{case.n}x{case.k}", "--seed", str(seed), "--input", data]
    argv += [*(["--repeat", str(repeat)] if repeat > 1 else []), *(["--check", check] if check else []), "--json"]
    with disk_errors(built.folder), tempfile.TemporaryDirectory(prefix="run-", dir=built.folder) as scratch:
        env = {**os.environ, "TMPDIR": scratch}
        if built.simulated:
            env["MCCSIM_VERBOSE"] = "1"  # it tells each launch: the program's own report need not be believed
        result = run(RunSpec(argv, cwd=Path(scratch), env=env, timeout_s=timeout_s))
    answer = read_answer(built.kernel, case, result, seed=seed)
    return _case_result(built, case, seed, answer, result.seconds, result.stderr_text)


def _case_result(
    built: BuiltKernel, case: Case, seed: int, answer: HostAnswer, seconds: float, stderr: str
) -> CaseResult:
    launches = emulated_launches(stderr) if built.simulated else answer.launches
    return CaseResult(
        case,
        seed,
        answer.verdict,
        answer.reason,
        answer.max_err,
        answer.tolerance,
        launches,
        seconds,
        told=answer.launches,
        refused=answer.refused,
        milliseconds=answer.milliseconds,
        zero_share=answer.zero_share,
        input=str(answer.document.get("input") or ""),
        device=answer.device,
    )
