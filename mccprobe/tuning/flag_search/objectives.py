"""What is made smaller, measured so that it means something on this machine.

    instructions  retired by an ordinary program: `perf stat` where it may count, else valgrind (cachegrind)
    code-size     bytes of code in the device object (in the object, of an ordinary program)
    registers     vector and accumulation registers of all kernels, from the metadata
    spills        spilled registers of all kernels, from the metadata
    time          events of a device (mcc), wall clock of an ordinary program; never the stand-in's

A count that is the same in two runs has no noise, and so no interval; that is said, not left out.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from mccprobe.base.errors import InputError, ToolchainError, UsageError
from mccprobe.base.process import RunSpec, run
from mccprobe.build.executor import Executor
from mccprobe.objects.binary.elf import is_elf
from mccprobe.objects.binary.read import read_images, read_kernels
from mccprobe.oracle.kernel.spec import Case
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets import registry
from mccprobe.targets.llvm.locate import which
from mccprobe.tuning.bench.clock import KernelTimer, ProcessTimer, Timer, events_for, process_floor_ms
from mccprobe.tuning.bench.session import default_case
from mccprobe.tuning.check.build import BuiltKernel
from mccprobe.tuning.flag_search.shares import Measured, Meter, Share, exact_share, median_of, paired
from mccprobe.tuning.flag_search.subjects import CompiledKernel, GatedKernel, Made, OrdinaryProgram, Subject

EXECUTABLE = 0x4  # SHF_EXECINSTR
REPEATS = 5  # of a noisy count, for the table
PROBE_S = 60.0
_REFS = re.compile(r"I\s+refs:\s+([\d,]+)")


# ---- counts from the objects ---------------------------------------------------------------------


class CodeSize:
    """Bytes of code: of the kernels where metadata and symbols tell, else of all executable sections."""

    objective, unit, exact, here = "code-size", "bytes", True, ""

    def __init__(self, subject: Subject) -> None:
        what = "code of the object"
        if isinstance(subject, GatedKernel | CompiledKernel):
            what = "code of the device object"
        self.label = f"{what} ({subject.heading})" if subject.heading else what

    def measure(self, made: Made, executor: Executor) -> Measured:
        return _counted(made, _code_bytes)

    def compare(self, made: Made, base: Made, executor: Executor) -> Share:
        return exact_share(self.measure(made, executor).value, self.measure(base, executor).value)


class Resource(CodeSize):
    """registers or spills, as the metadata of the device object has them, over all kernels."""

    def __init__(self, subject: Subject, objective: str) -> None:
        self.objective, self.unit = objective, "registers/thread, all kernels"
        self.label = f"metadata ({subject.heading})" if subject.heading else "metadata"

    def measure(self, made: Made, executor: Executor) -> Measured:
        return _counted(made, _registers if self.objective == "registers" else _spills)


def _counted(made: Made, count: Callable[[Path], int | None]) -> Measured:
    total = 0
    for path in made.objects:
        try:
            value = count(path)
        except InputError as error:
            return Measured(None, reason=error.message)
        if value is None:
            return Measured(None, reason="the object does not tell")
        total += value
    return Measured(float(total), (float(total),))


def _code_bytes(path: Path) -> int | None:
    total = None
    for image in read_images(path):
        kernels = read_kernels(image)[0]
        sizes = [kernel.code_bytes for kernel in kernels]
        if sizes and None not in sizes:
            total = (total or 0) + sum(size or 0 for size in sizes)
        elif is_elf(image.data):
            sections = image.elf.sections
            total = (total or 0) + sum(one.size for one in sections if one.flags & EXECUTABLE)
    return total


def _registers(path: Path) -> int | None:
    total = None
    for image in read_images(path):
        for kernel in read_kernels(image)[0]:
            known = [kernel.registers.get(name) for name in ("vector", "accumulation", "temp")]
            counts = [count for count in known if count is not None]
            if not counts:
                return None
            total = (total or 0) + sum(counts)
    return total


def _spills(path: Path) -> int | None:
    total = None
    for image in read_images(path):
        for kernel in read_kernels(image)[0]:
            if kernel.spills is None:
                return None
            total = (total or 0) + sum(kernel.spills.values())
    return total


def _stdin_of(subject: Subject) -> Path | None:
    return subject.stdin if isinstance(subject, OrdinaryProgram) else None


# ---- instructions retired -------------------------------------------------------------------------


PERF = ("perf", "stat", "-x,", "-e", "instructions:u", "-o", "{log}", "--")
CACHEGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--log-file={log}")


def perf_count(argv: Sequence[str], timeout_s: float, stdin: Path | None = None) -> Measured:
    """User-mode instructions by the processor's own counter."""
    return _instructions(PERF, argv, timeout_s, _perf_value, stdin)


def valgrind_count(argv: Sequence[str], timeout_s: float, stdin: Path | None = None) -> Measured:
    """Instructions that cachegrind executes; about 30 times slower than the program."""
    return _instructions(CACHEGRIND, argv, timeout_s, _refs_value, stdin)


def _perf_value(text: str) -> float | None:
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2].startswith("instructions") and fields[0].isdigit():
            return float(fields[0])
    return None


def _refs_value(text: str) -> float | None:
    found = _REFS.search(text)
    return float(found[1].replace(",", "")) if found else None


def _instructions(
    tool: Sequence[str],
    argv: Sequence[str],
    timeout_s: float,
    read: Callable[[str], float | None],
    stdin: Path | None,
) -> Measured:
    """argv: of a program of ours by its whole path, or of one in PATH."""
    with tempfile.TemporaryDirectory(prefix="mccprobe-count-") as folder:
        log = Path(folder, "log")
        command = [word.replace("{log}", str(log)) for word in tool]
        name = argv[0]
        if "/" in name:
            Path(folder, "program").symlink_to(name)
            name = "../program"
        scratch = Path(folder, "run")
        scratch.mkdir()
        env = {**os.environ, "TMPDIR": "."}  # its length, and that of the program's path, would be counted too
        result = run(RunSpec([*command, name, *argv[1:]], cwd=scratch, env=env, timeout_s=timeout_s, stdin=stdin))
        if result.returncode is None or result.timed_out:
            return Measured(None, reason=f"{tool[0]}: {result.describe()}")
        text = log.read_text("utf-8", "replace") if log.is_file() else ""
    value = read(text)
    if value is None:
        return Measured(None, reason=f"{tool[0]} counts nothing here ({result.describe()})")
    return Measured(value, (value,))


class Instructions:
    """Whole process, dynamic linker and start-up with it. exact is found out on the build without flags."""

    objective, unit = "instructions", "instructions"
    here = "a count holds for one C library and one loader"

    def __init__(self, subject: Subject, timeout_s: float) -> None:
        self.subject, self.timeout_s = subject, timeout_s
        self.exact = False
        self._count = perf_count
        if which("perf") is None or perf_count(["true"], PROBE_S).value is None:
            if which("valgrind") is None or valgrind_count(["true"], PROBE_S).value is None:
                raise ToolchainError(
                    "neither perf nor valgrind can count instructions here",
                    hint="apt-get install valgrind; or kernel.perf_event_paranoid <= 2 on a machine with counters",
                )
            self._count = valgrind_count
        self.tool = "perf stat" if self._count is perf_count else "valgrind (cachegrind)"
        self.label = f"user-mode instructions of the whole process, by {self.tool}"

    def settle(self, made: Made) -> None:
        """Two runs tell whether there is noise."""
        counts = [self.once(made) for _ in range(2)]
        self.exact = counts[0].value is not None and counts[0].value == counts[1].value

    def once(self, made: Made) -> Measured:
        return self._count(self.subject.run_argv(made), self.timeout_s, _stdin_of(self.subject))

    def measure(self, made: Made, executor: Executor) -> Measured:
        taken = [self.once(made) for _ in range(1 if self.exact else REPEATS)]
        return median_of(taken)

    def compare(self, made: Made, base: Made, executor: Executor) -> Share:
        if self.exact:
            return exact_share(self.measure(made, executor).value, self.measure(base, executor).value)
        return paired(lambda at: self.once(base), lambda at: self.once(made))


# ---- time -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clock:
    """How one build is timed, wherever its program lies: a kernel's case, or a process with `args`."""

    timeout_s: float
    built: BuiltKernel | None = None
    case: Case | None = None
    args: tuple[str, ...] = ()
    floor_ms: float = 0.0
    stdin: Path | None = None

    def read(self, program: Path, ordinal: int) -> Measured:
        """Milliseconds of one run; none of a kernel whose output is not right."""
        timer: Timer
        if self.built is not None and self.case is not None:
            built = replace(self.built, program=program)
            timer = KernelTimer(built, self.case, events_for(built), timeout_s=self.timeout_s)
        else:
            timer = ProcessTimer(
                (str(program), *self.args), timeout_s=self.timeout_s, resolution_ms=self.floor_ms, stdin=self.stdin
            )
        reading = timer.read(ordinal)
        wrong = self.built is not None and reading.verdict is not Verdict.GOOD
        if reading.milliseconds is None or wrong:
            return Measured(None, reason=reading.reason or "the output after timing is not right")
        return Measured(reading.milliseconds, (reading.milliseconds,))


def read_often(program: Path, scratch: Path, *, clock: Clock) -> list[Measured]:
    """As an executor's `run_program` calls it."""
    return [clock.read(program, ordinal) for ordinal in range(REPEATS)]


def read_in_turn(program: Path, scratch: Path, base: Path, *, clock: Clock, base_clock: Clock) -> Share:
    """The same; both on the machine on which it is called."""
    return paired(lambda at: base_clock.read(base, at), lambda at: clock.read(program, at))


class Time:
    """Milliseconds: of launches on a device, or of a whole ordinary process."""

    objective, unit, exact = "time", "ms", False

    def __init__(self, subject: Subject, timeout_s: float) -> None:
        self.subject, self.timeout_s = subject, timeout_s
        self._device = isinstance(subject, GatedKernel) and registry.target(subject.toolchain.name).real_device
        self.label = "device events" if self._device else "wall clock of the whole process"
        self.here = "" if self._device else "times of two machines cannot be compared"
        self._floor_ms = 0.0 if self._device else process_floor_ms()

    def _clock(self, made: Made) -> Clock:
        if made.built is not None and isinstance(self.subject, GatedKernel):
            case = default_case(self.subject.kernel, self.subject.toolchain.name)
            return Clock(self.timeout_s, made.built, case)
        args = tuple(self.subject.run_argv(made)[1:])
        return Clock(self.timeout_s, args=args, floor_ms=self._floor_ms, stdin=_stdin_of(self.subject))

    def _ask(self, executor: Executor, function: Callable[..., Any], *made: Made) -> Any:
        """A device may be another machine's; an ordinary process is timed on this one."""
        programs = [Path(str(one.program)) for one in made]
        with tempfile.TemporaryDirectory(prefix="time-", dir=made[0].folder) as scratch:
            if not self._device:
                return function(programs[0], Path(scratch), *programs[1:])
            return executor.run_program(function, programs[0], Path(scratch), *programs[1:], one_place=True)

    def measure(self, made: Made, executor: Executor) -> Measured:
        return median_of(self._ask(executor, partial(read_often, clock=self._clock(made)), made))

    def compare(self, made: Made, base: Made, executor: Executor) -> Share:
        in_turn = partial(read_in_turn, clock=self._clock(made), base_clock=self._clock(base))
        share: Share = self._ask(executor, in_turn, made, base)
        return share


def default_objective(subject: Subject) -> str:
    """What is honest here without being asked for."""
    if isinstance(subject, CompiledKernel):
        return "registers"
    if isinstance(subject, GatedKernel) and registry.target(subject.toolchain.name).real_device:
        return "time"
    return "code-size" if isinstance(subject, GatedKernel) and subject.toolchain.simulated else "instructions"


def make_meter(objective: str, subject: Subject, timeout_s: float) -> Meter:
    """Raises UsageError for an objective that means nothing for this subject, ToolchainError without its tool."""
    device = isinstance(subject, GatedKernel) and registry.target(subject.toolchain.name).device
    if objective == "code-size":
        return CodeSize(subject)
    if objective in ("registers", "spills"):
        if not isinstance(subject, CompiledKernel) and not (device and not subject.toolchain.simulated):
            raise UsageError(
                f"--objective {objective} is of device code, and {subject.toolchain.name} makes none",
                hint="--toolchain amdgcn or mcc; here code-size or instructions",
            )
        return Resource(subject, objective)
    if subject.compile_only:
        raise UsageError(
            f"--objective {objective} runs the program; {subject.heading}: nothing can be run",
            hint="registers, spills or code-size",
        )
    if subject.toolchain.simulated:
        raise UsageError(
            f"--objective {objective} on the stand-in would be the emulation's, never the kernel's",
            hint="--objective code-size; kernel speed needs a device and mcc",
        )
    if objective == "instructions":
        if device:
            raise UsageError("--objective instructions counts the host's, not the device's", hint="--objective time")
        return Instructions(subject, timeout_s)
    return Time(subject, timeout_s)
