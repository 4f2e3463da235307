"""What is searched for: a kernel behind the gate, a kernel that can only be compiled, an ordinary program.

Each is built with flags and -D parameters, judged, and can name the command that follows a wrong result up.
Compiles and judged runs go through the executor: on a cluster to its workers, else to this machine.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from mccprobe.base.errors import MccprobeError, OracleUnusable
from mccprobe.base.files import file_digest
from mccprobe.build.executor import Executor
from mccprobe.build.record import of_command
from mccprobe.build.step import compile_unit, link_program
from mccprobe.build.store import disk_errors
from mccprobe.oracle.checks import Expected, Oracle, ReferenceOracle, observe_files
from mccprobe.oracle.kernel.spec import KernelSpec
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.oracle.written import stable
from mccprobe.targets.amdgcn.toolchain import AmdgcnToolchain
from mccprobe.targets.flags.levels import replaces
from mccprobe.targets.llvm.command import (
    compile_options,
    flag_of,
    link_options,
    mllvm_value,
    split_arguments,
    without_flags,
)
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.targets.protocol import Toolchain
from mccprobe.tuning.check.build import BuildFailure, BuiltKernel, build_kernel
from mccprobe.tuning.check.check import check_built

COMPILED_ONLY = "compiled only"
Flags = tuple[tuple[str, ...], ...]
Defines = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Made:
    """One build. object: SHA-256 of what the flags can change, equal for equal builds. objects: its files.

    program: None where nothing can be run. built: the gate's record of a kernel.
    """

    object: str
    objects: tuple[Path, ...]
    folder: Path
    program: Path | None = None
    built: BuiltKernel | None = None

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class Subject(Protocol):
    """heading: of a stand-in, before every figure; "" otherwise. compile_only: nothing can be run.

    beside: compiler options that every build has, one text each; () where the kernel's own files say them.
    """

    @property
    def name(self) -> str: ...

    @property
    def toolchain(self) -> Toolchain: ...

    @property
    def heading(self) -> str: ...

    @property
    def compile_only(self) -> bool: ...

    @property
    def beside(self) -> tuple[str, ...]: ...

    def build(self, flags: Flags, defines: Defines, folder: Path, executor: Executor) -> Made | BuildFailure:
        """Build in a new folder below `folder`."""

    def judge(self, made: Made, executor: Executor) -> Outcome:
        """Whether it is right."""

    def run_argv(self, made: Made) -> tuple[str, ...]:
        """The program with the arguments that it is measured with."""

    def why(self, flags: Flags, defines: Defines) -> tuple[str, ...]:
        """The command that follows a wrong result."""

    def described(self) -> dict[str, Any]:
        """What a resumed run must find unchanged."""


def _sources_digest(paths: Sequence[Path]) -> str:
    return hashlib.sha256("".join(file_digest(path) for path in paths).encode()).hexdigest()


def _plain(flags: Flags) -> list[str]:
    """Flags as `--flag` takes them, one text each."""
    return [mllvm_value(flag) or " ".join(flag) for flag in flags]


def _wrong_twice(judge: Callable[[], Outcome]) -> Outcome:
    """BAD only if it is so twice: one wrong result alone may be the machine's."""
    first = judge()
    if first.verdict is not Verdict.BAD:
        return first
    again = judge()
    return first if again.verdict is Verdict.BAD else _flaky(first, again)


def _flaky(first: Outcome, again: Outcome) -> Outcome:
    then = again.verdict if again.verdict is Verdict.GOOD else f"{again.verdict}: {again.reason}"
    return Outcome(Verdict.UNRESOLVED, f"wrong once ({first.reason}), then {then}: flaky")


@dataclass(frozen=True)
class GateSettings:
    """As the options of `check`."""

    cases: str = "legacy"
    seeds: tuple[int, ...] = (1, 2, 3)
    timeout_s: float = 300.0
    compile_timeout_s: float = 300.0
    arch: str = DEFAULT_ARCH


def pass_gate(program: Path, scratch: Path, *, built: BuiltKernel, settings: GateSettings) -> Outcome:
    """The gate's word on a program, wherever it lies: as an executor's `run_program` calls it."""
    report = check_built(
        replace(built, program=program),
        cases=settings.cases,
        seeds=settings.seeds,
        timeout_s=settings.timeout_s,
        stop_at_bad=True,
    )
    reasons = report.reasons()
    return Outcome(report.verdict, reasons[0] if reasons else "the gate passed", report.worst_error)


@dataclass
class GatedKernel:
    """A kernel.toml with a toolchain that can run it."""

    kernel: KernelSpec
    toolchain: Toolchain
    settings: GateSettings
    options: tuple[str, ...] = ()  # of the toolchain, as on the command line

    compile_only = False
    beside = ()

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def heading(self) -> str:
        return "SIMULATED (sim)" if self.toolchain.simulated else ""

    def build(self, flags: Flags, defines: Defines, folder: Path, executor: Executor) -> Made | BuildFailure:
        built = build_kernel(
            self.kernel,
            self.toolchain,
            flags=flags,
            defines=dict(defines),
            folder=folder,
            timeout_s=self.settings.compile_timeout_s,
            arch=self.settings.arch,
            step=executor.build_step,
        )
        if isinstance(built, BuildFailure):
            return built
        objects = tuple(built.folder / f"{number}.o" for number in range(len(self.kernel.sources)))
        # a parameter also goes to the host program: two builds are equal only with equal ones
        key = f"{built.device_object}\0{sorted(defines)}"
        return Made(hashlib.sha256(key.encode()).hexdigest(), objects, built.folder, built.program, built)

    def judge(self, made: Made, executor: Executor) -> Outcome:
        """By the gate, all its cases on one machine; a wrong result twice, for one alone may be the machine's."""
        assert made.built is not None and made.program is not None
        asked = partial(pass_gate, built=made.built, settings=self.settings)
        program = made.program

        def once() -> Outcome:
            with tempfile.TemporaryDirectory(prefix="gate-", dir=made.folder) as scratch:
                outcome: Outcome = executor.run_program(asked, program, Path(scratch))
            return outcome

        return _wrong_twice(once)

    def run_argv(self, made: Made) -> tuple[str, ...]:
        case = self.kernel.case(self.kernel.default_case)
        shape, seed = f"{case.m}x{case.n}x{case.k}", str(self.settings.seeds[0])
        return (str(made.program), "--case", shape, "--seed", seed, "--input", "random", "--json")

    def why(self, flags: Flags, defines: Defines) -> tuple[str, ...]:
        given = [word for flag in _plain(flags) for word in ("--flag", flag)]
        rest = ["--", *(f"-D{name}={value}" for name, value in defines)] if defines else []
        return ("mccprobe", "why", str(self.kernel.folder), *self.options, *given, *rest)

    def described(self) -> dict[str, Any]:
        paths = (self.kernel.path, *self.kernel.sources, *self.kernel.host_sources)
        return {
            "kernel": str(self.kernel.path),
            "sources": _sources_digest(paths),
            "compiler": self.toolchain.identify().fingerprint,
        }


@dataclass
class CompiledKernel:
    """A kernel for the stand-in amdgcn, which cannot run it."""

    sources: tuple[Path, ...]
    args: tuple[str, ...]
    toolchain: AmdgcnToolchain
    name: str

    compile_only = True

    @property
    def heading(self) -> str:
        return self.toolchain.heading

    @property
    def beside(self) -> tuple[str, ...]:
        return tuple(" ".join(group) for group in split_arguments(self.args).options)

    def build(self, flags: Flags, defines: Defines, folder: Path, executor: Executor) -> Made | BuildFailure:
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            place = Path(tempfile.mkdtemp(prefix="build-", dir=folder))
        kept = without_flags(split_arguments(self.args), map(flag_of, flags)).flat
        given = [argument for argument in kept if not any(replaces(flag[0], argument) for flag in flags)]
        given += [argument for flag in flags for argument in flag] + [f"-D{name}={value}" for name, value in defines]
        objects = []
        for number, source in enumerate(self.sources):
            output = place / f"{number}.so"
            try:
                self.toolchain.compile(source, output, place, given, step=executor.build_step)
            except MccprobeError as error:  # its own words: SourceDoesNotCompile, ToolchainError
                return BuildFailure(error.message, tuple(given), error.detail)
            objects.append(output)
        digest = hashlib.sha256("".join(file_digest(path) for path in objects).encode()).hexdigest()
        return Made(digest, tuple(objects), place)

    def judge(self, made: Made, executor: Executor) -> Outcome:
        return Outcome(Verdict.UNRESOLVED, COMPILED_ONLY)

    def run_argv(self, made: Made) -> tuple[str, ...]:
        raise OracleUnusable(f"nothing from {self.heading} can be run")

    def why(self, flags: Flags, defines: Defines) -> tuple[str, ...]:
        raise OracleUnusable(f"nothing from {self.heading} can be judged")

    def described(self) -> dict[str, Any]:
        return {
            "args": list(self.args),
            "sources": _sources_digest(self.sources),
            "compiler": self.toolchain.identify().fingerprint,
        }


REFERENCE_RUNS = 2


def judge_beside(program: Path, scratch: Path, reference: Path, *, oracle: Oracle) -> Outcome:
    """Judge it on a machine on which the reference is right; UNRESOLVED on another one: the difference may be its."""
    folders = scratch / "reference", scratch / "program"
    for folder in folders:
        folder.mkdir()
    here = oracle.judge(reference, folders[0])
    if here.verdict is not Verdict.GOOD:
        return Outcome(Verdict.UNRESOLVED, f"the build without flags is not right there either ({here.reason})")
    return oracle.judge(program, folders[1])


class OrdinaryProgram:
    """One source of an ordinary program; right is what the build without flags prints and writes into its folder.

    stdin: the file that it reads from standard input, None for nothing; it is of this machine, so runs are, too.
    args: as for the compiler: options, further sources, objects and libraries, which are built once, without flags.
    """

    compile_only = False
    heading = ""

    def __init__(
        self,
        source: Path,
        args: Sequence[str],
        toolchain: Toolchain,
        *,
        run_args: Sequence[str] = (),
        timeout_s: float = 60.0,
        compile_timeout_s: float = 300.0,
        given: str = "",
        options: Sequence[str] = (),
        stdin: Path | None = None,
    ) -> None:
        self.stdin = stdin
        self.source, self.args, self.toolchain = source, split_arguments(args), toolchain
        self.run_args, self.timeout_s, self.compile_timeout_s = tuple(run_args), timeout_s, compile_timeout_s
        self.name, self.given, self.options = source.name, given or str(source), tuple(options)
        self.beside = tuple(" ".join(group) for group in self.args.options)
        self._oracle: Oracle | None = None
        self._reference = Path()  # the program without flags, once there is an oracle

    def build(self, flags: Flags, defines: Defines, folder: Path, executor: Executor) -> Made | BuildFailure:
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            place = Path(tempfile.mkdtemp(prefix="build-", dir=folder))
        kept = without_flags(self.args, map(flag_of, flags))
        options = [group for group in kept.options if not any(replaces(flag[0], group[0]) for flag in flags)]
        own = split_arguments([argument for group in options for argument in group])
        flagged = (*compile_options(own), *(argument for flag in flags for argument in flag))
        build = of_command(
            self.source, flagged, self.args.inputs, link_options(self.args), rest_args=compile_options(self.args)
        )
        objects: list[Path] = []
        for number, unit in enumerate(build.units):
            objects.append(place / f"{number}.o")
            done = compile_unit(
                self.toolchain,
                unit,
                objects[-1],
                scratch=place,
                timeout_s=self.compile_timeout_s,
                step=executor.build_step,
            )
            if done.failure:
                return BuildFailure(f"compile: {done.failure}", done.command, done.detail)
        program = place / "program"
        inputs = [one if isinstance(one, str) else str(objects[one]) for one in build.link.inputs]
        done = link_program(
            self.toolchain,
            inputs,
            build.link.args,
            program,
            scratch=place,
            timeout_s=self.compile_timeout_s,
            step=executor.build_step,
        )
        if done.failure:
            return BuildFailure(f"link: {done.failure}", done.command, done.detail)
        return Made(file_digest(objects[0]), (objects[0],), place, program)

    def expect(self, made: Made, executor: Executor) -> None:
        """Take what this build prints for right. Raises OracleUnusable if two runs differ or it gives no answer."""
        seen = []
        see = partial(observe_files, args=self.run_args, timeout_s=self.timeout_s, stdin=self.stdin)
        program = Path(str(made.program))
        for _ in range(REFERENCE_RUNS):
            with tempfile.TemporaryDirectory(prefix="run-", dir=made.folder) as scratch:
                observation = self._run(executor, see, program, Path(scratch))
            result = observation.result
            if result.returncode is None or result.timed_out or result.stdout_bytes > len(result.stdout):
                raise OracleUnusable(
                    f"{self.name} without flags gives no answer: {result.describe()}", hint="raise --timeout"
                )
            seen.append(Expected(result.stdout, result.returncode, observation.files))
        if (seen[0].stdout, seen[0].returncode) != (seen[1].stdout, seen[1].returncode):
            raise OracleUnusable(
                f"{self.name} prints something else at each run, so nothing can be held against it",
                hint="make the program deterministic",
            )
        files, others = stable(seen[0].files or (), seen[1].files or ())
        expected = replace(seen[0], files=files, unstable=others)
        self._oracle = ReferenceOracle(expected, self.run_args, self.timeout_s, stdin=self.stdin)
        self._reference = made.folder.parent / "reference"
        with disk_errors(self._reference):
            shutil.copy2(program, self._reference)

    def judge(self, made: Made, executor: Executor) -> Outcome:
        """Against what the build without flags prints; what differs must differ from it on one machine, twice."""
        if self._oracle is None:
            self.expect(made, executor)
        assert self._oracle is not None and made.program is not None
        with tempfile.TemporaryDirectory(prefix="run-", dir=made.folder) as scratch:
            first: Outcome = self._run(executor, self._oracle.judge, made.program, Path(scratch))
        if first.verdict is not Verdict.BAD:
            return first
        with tempfile.TemporaryDirectory(prefix="run-", dir=made.folder) as scratch:
            beside = partial(judge_beside, oracle=self._oracle)
            again: Outcome = self._run(executor, beside, made.program, Path(scratch), self._reference)
        return again if again.verdict is Verdict.BAD else _flaky(first, again)

    def _run(self, executor: Executor, function: Callable[..., Any], program: Path, scratch: Path, *more: Path) -> Any:
        if self.stdin is not None:
            return function(program, scratch, *more)
        return executor.run_program(function, program, scratch, *more)

    def run_argv(self, made: Made) -> tuple[str, ...]:
        return (str(made.program), *self.run_args)

    def why(self, flags: Flags, defines: Defines) -> tuple[str, ...]:
        given = [word for flag in _plain(flags) for word in ("--flag", flag)]
        runs = ["--run-args", shlex.join(self.run_args)] if self.run_args else []
        runs += ["--stdin", str(self.stdin)] if self.stdin is not None else []
        args = [*self.args.flat, *self.args.inputs]
        return ("mccprobe", "why", self.given, *self.options, *given, *runs, *(["--", *args] if args else []))

    def described(self) -> dict[str, Any]:
        others = [Path(name) for name in self.args.inputs if Path(name).is_file()]
        return {
            "source": str(self.source),
            "sources": _sources_digest([self.source, *others]),
            "args": [*self.args.flat, *self.args.inputs],
            "run_args": list(self.run_args),
            "compiler": self.toolchain.identify().fingerprint,
            **({"stdin": file_digest(self.stdin)} if self.stdin is not None else {}),
        }
