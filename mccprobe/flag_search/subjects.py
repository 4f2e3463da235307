"""What is searched for: a kernel behind the gate, a kernel that can only be compiled, an ordinary program.

Each is built with flags and -D parameters, judged, and can name the command that follows a wrong result up.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mccprobe.compilation.store import disk_errors, file_digest, require_room
from mccprobe.errors import MccprobeError, OracleUnusable
from mccprobe.gate.build import BuildFailure, BuiltKernel, build_kernel
from mccprobe.gate.check import check_built
from mccprobe.kernel.spec import KernelSpec
from mccprobe.oracle.checks import Expected, Oracle, ReferenceOracle, observe
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.process import RunSpec, run
from mccprobe.toolchain.amdgcn import AmdgcnToolchain
from mccprobe.toolchain.base import Toolchain
from mccprobe.toolchain.command import (
    compile_options,
    is_source,
    link_options,
    mllvm_value,
    split_arguments,
    without_flags,
)

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
    """heading: of a stand-in, before every figure; "" otherwise. compile_only: nothing can be run."""

    @property
    def name(self) -> str: ...

    @property
    def toolchain(self) -> Toolchain: ...

    @property
    def heading(self) -> str: ...

    @property
    def compile_only(self) -> bool: ...

    def build(self, flags: Flags, defines: Defines, folder: Path) -> Made | BuildFailure:
        """Build in a new folder below `folder`."""

    def judge(self, made: Made) -> Outcome:
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
    if again.verdict is not Verdict.BAD:
        return Outcome(Verdict.UNRESOLVED, f"wrong once ({first.reason}), then {again.verdict}: flaky")
    return first


@dataclass(frozen=True)
class GateSettings:
    """As the options of `check`."""

    cases: str = "legacy"
    seeds: tuple[int, ...] = (1, 2, 3)
    timeout_s: float = 300.0
    compile_timeout_s: float = 300.0
    arch: str = "mp_22"


@dataclass
class GatedKernel:
    """A kernel.toml with a toolchain that can run it."""

    kernel: KernelSpec
    toolchain: Toolchain
    settings: GateSettings
    options: tuple[str, ...] = ()  # of the toolchain, as on the command line

    compile_only = False

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def heading(self) -> str:
        return "SIMULATED (sim)" if self.toolchain.simulated else ""

    def build(self, flags: Flags, defines: Defines, folder: Path) -> Made | BuildFailure:
        built = build_kernel(
            self.kernel, self.toolchain, flags=flags, defines=dict(defines), folder=folder,
            timeout_s=self.settings.compile_timeout_s, arch=self.settings.arch,
        )  # fmt: skip
        if isinstance(built, BuildFailure):
            return built
        objects = tuple(built.folder / f"{number}.o" for number in range(len(self.kernel.sources)))
        # a parameter also goes to the host program: two builds are equal only with equal ones
        key = f"{built.device_object}\0{sorted(defines)}"
        return Made(hashlib.sha256(key.encode()).hexdigest(), objects, built.folder, built.program, built)

    def judge(self, made: Made) -> Outcome:
        """By the gate; a wrong result twice, for one alone may be the machine's."""
        return _wrong_twice(lambda: self._gate(made))

    def _gate(self, made: Made) -> Outcome:
        assert made.built is not None
        settings = self.settings
        report = check_built(
            made.built, cases=settings.cases, seeds=settings.seeds, timeout_s=settings.timeout_s, stop_at_bad=True
        )
        reasons = report.reasons()
        return Outcome(report.verdict, reasons[0] if reasons else "the gate passed", report.worst_error)

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
        return {"kernel": str(self.kernel.path), "sources": _sources_digest(paths),
                "compiler": self.toolchain.identify().fingerprint}  # fmt: skip


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

    def build(self, flags: Flags, defines: Defines, folder: Path) -> Made | BuildFailure:
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            place = Path(tempfile.mkdtemp(prefix="build-", dir=folder))
        kept = without_flags(split_arguments(self.args), flags).flat
        levels = any(flag[0].startswith("-O") for flag in flags)
        given = [argument for argument in kept if not (levels and argument.startswith("-O"))]
        given += [argument for flag in flags for argument in flag] + [f"-D{name}={value}" for name, value in defines]
        objects = []
        for number, source in enumerate(self.sources):
            output = place / f"{number}.so"
            try:
                self.toolchain.compile(source, output, place, given)
            except MccprobeError as error:  # its own words: SourceDoesNotCompile, ToolchainError
                return BuildFailure(error.message, tuple(given), error.detail)
            objects.append(output)
        digest = hashlib.sha256("".join(file_digest(path) for path in objects).encode()).hexdigest()
        return Made(digest, tuple(objects), place)

    def judge(self, made: Made) -> Outcome:
        return Outcome(Verdict.UNRESOLVED, COMPILED_ONLY)

    def run_argv(self, made: Made) -> tuple[str, ...]:
        raise OracleUnusable(f"nothing from {self.heading} can be run")

    def why(self, flags: Flags, defines: Defines) -> tuple[str, ...]:
        raise OracleUnusable(f"nothing from {self.heading} can be judged")

    def described(self) -> dict[str, Any]:
        return {"args": list(self.args), "sources": _sources_digest(self.sources),
                "compiler": self.toolchain.identify().fingerprint}  # fmt: skip


REFERENCE_RUNS = 2


class OrdinaryProgram:
    """One source of an ordinary program; right is what the build without flags prints.

    args: as for the compiler: options, further sources, objects and libraries, which are built once, without flags.
    """

    compile_only = False
    heading = ""

    def __init__(
        self, source: Path, args: Sequence[str], toolchain: Toolchain, *, run_args: Sequence[str] = (),
        timeout_s: float = 60.0, compile_timeout_s: float = 300.0, given: str = "", options: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.source, self.args, self.toolchain = source, split_arguments(args), toolchain
        self.run_args, self.timeout_s, self.compile_timeout_s = tuple(run_args), timeout_s, compile_timeout_s
        self.name, self.given, self.options = source.name, given or str(source), tuple(options)
        self._oracle: Oracle | None = None

    def build(self, flags: Flags, defines: Defines, folder: Path) -> Made | BuildFailure:
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            place = Path(tempfile.mkdtemp(prefix="build-", dir=folder))
        kept = without_flags(self.args, flags)
        level = any(flag[0].startswith("-O") for flag in flags)
        options = [group for group in kept.options if not (level and group[0].startswith("-O"))]
        own = split_arguments([argument for group in options for argument in group])
        output, program = place / "0.o", place / "program"
        given = [argument for flag in flags for argument in flag]
        failure = self._step([*compile_options(own), *given, "-c", str(self.source), "-o", str(output)], place)
        if failure is not None:
            return failure
        rest = []
        for number, name in enumerate(self.args.inputs):
            if not is_source(name):
                rest.append(name)
                continue
            other = place / f"rest-{number}.o"
            failure = self._step([*compile_options(self.args), "-c", name, "-o", str(other)], place)
            if failure is not None:
                return failure
            rest.append(str(other))
        failure = self._step([str(output), *rest, *link_options(self.args), "-o", str(program)], place)
        return failure or Made(file_digest(output), (output,), place, program)

    def _step(self, words: list[str], place: Path) -> BuildFailure | None:
        command = [*self.toolchain.driver, *words]
        result = run(RunSpec(command, env=self.toolchain.environment(place), timeout_s=self.compile_timeout_s))
        if result.ok:
            return None
        require_room(place, result.stderr)
        return BuildFailure(f"compile: {result.describe()}", tuple(command), result.stderr_text.strip()[-4000:])

    def expect(self, made: Made) -> None:
        """Take what this build prints for right. Raises OracleUnusable if two runs differ or it gives no answer."""
        seen = []
        for _ in range(REFERENCE_RUNS):
            with tempfile.TemporaryDirectory(prefix="run-", dir=made.folder) as scratch:
                result = observe(Path(str(made.program)), self.run_args, Path(scratch), self.timeout_s)
            if result.returncode is None or result.timed_out or result.stdout_bytes > len(result.stdout):
                raise OracleUnusable(
                    f"{self.name} without flags gives no answer: {result.describe()}", hint="raise --timeout"
                )
            seen.append(Expected(result.stdout, result.returncode))
        if seen[0] != seen[1]:
            raise OracleUnusable(
                f"{self.name} prints something else at each run, so nothing can be held against it",
                hint="make the program deterministic",
            )
        self._oracle = ReferenceOracle(seen[0], self.run_args, self.timeout_s)

    def judge(self, made: Made) -> Outcome:
        if self._oracle is None:
            self.expect(made)
        return _wrong_twice(lambda: self._judge(made))

    def _judge(self, made: Made) -> Outcome:
        assert self._oracle is not None and made.program is not None
        with tempfile.TemporaryDirectory(prefix="run-", dir=made.folder) as scratch:
            return self._oracle.judge(made.program, Path(scratch))

    def run_argv(self, made: Made) -> tuple[str, ...]:
        return (str(made.program), *self.run_args)

    def why(self, flags: Flags, defines: Defines) -> tuple[str, ...]:
        given = [word for flag in _plain(flags) for word in ("--flag", flag)]
        runs = ["--run-args", shlex.join(self.run_args)] if self.run_args else []
        args = [*self.args.flat, *self.args.inputs]
        return ("mccprobe", "why", self.given, *self.options, *given, *runs, *(["--", *args] if args else []))

    def described(self) -> dict[str, Any]:
        others = [Path(name) for name in self.args.inputs if Path(name).is_file()]
        return {"source": str(self.source), "sources": _sources_digest([self.source, *others]),
                "args": [*self.args.flat, *self.args.inputs], "run_args": list(self.run_args),
                "compiler": self.toolchain.identify().fingerprint}  # fmt: skip
