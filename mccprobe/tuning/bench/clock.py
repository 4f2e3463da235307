"""What reads a time: the wall clock for processes, events of the device for launches.

A `Timer` gives one reading after the other; what is compared is read in turn. What kind of time it is stands
with every figure (`label`), and only a real device's events are kernel performance.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mccprobe.base.process import RunSpec, run
from mccprobe.oracle.kernel.spec import Case
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets import registry
from mccprobe.tuning.check.build import BuiltKernel, CaseResult, run_case

EMULATION = "emulation time on x86-64 (SIMULATED, never kernel performance)"
EVENTS = "device events"
WALL = "wall clock of the whole process"
FLOOR_RUNS = 9  # of a program that does nothing: what starting and ending a process costs here


@dataclass(frozen=True)
class Reading:
    """One timed run. milliseconds: None if it gave no time. output: equal for equal outputs.

    verdict: GOOD if the output was checked and is right, BAD if wrong, UNRESOLVED if nothing checks it.
    """

    milliseconds: float | None
    verdict: Verdict
    reason: str
    output: str
    launches: Mapping[str, int] | None = None
    zero_share: float | None = None


class Timer(Protocol):
    """Times one thing again and again. resolution_ms: two times closer than this are one."""

    label: str
    kernel_performance: bool
    resolution_ms: float

    def read(self, ordinal: int) -> Reading:
        """Run it once more. ordinal: the how-manieth pair this belongs to, so that both sides get the same data."""


class DeviceEvents(Protocol):
    """Times launches on a device between two events. Filled per platform; `HostProgramEvents` is the one for
    kernels whose host program has the events (musaEvent, cudaEvent) in it."""

    label: str
    kernel_performance: bool
    resolution_ms: float

    def launch(
        self, built: BuiltKernel, case: Case, *, seed: int, warmups: int, data: str, timeout_s: float
    ) -> tuple[float | None, CaseResult]:
        """Milliseconds of the last of warmups + 1 launches in one process, None if there is no time; and the
        result of the check of that very launch's output."""


@dataclass
class HostProgramEvents:
    """Events that the host program records around each launch and reports as `milliseconds`."""

    label: str
    kernel_performance: bool
    resolution_ms: float = 0.001  # the contract's host programs print microseconds

    def launch(
        self, built: BuiltKernel, case: Case, *, seed: int, warmups: int, data: str, timeout_s: float
    ) -> tuple[float | None, CaseResult]:
        result = run_case(built, case, seed=seed, timeout_s=timeout_s, repeat=warmups + 1, data=data, check="last")
        complete = len(result.milliseconds) == warmups + 1
        return (result.milliseconds[-1] if complete else None), result


def events_for(built: BuiltKernel) -> DeviceEvents:
    """The events of this build: on a stand-in they are events of the emulator, and say so."""
    if built.simulated:
        return HostProgramEvents(EMULATION, kernel_performance=False)
    if registry.target(built.toolchain).real_device:
        return HostProgramEvents(EVENTS, kernel_performance=True)
    return HostProgramEvents("times that the host program reports", kernel_performance=False)


@dataclass
class KernelTimer:
    """One case of one build. Pair number n has the seed `seed` + n, so that no single input is what is measured."""

    built: BuiltKernel
    case: Case
    events: DeviceEvents
    seed: int = 1
    warmups: int = 3
    data: str = "random"
    timeout_s: float = 300.0

    def __post_init__(self) -> None:
        self.label = self.events.label
        self.kernel_performance = self.events.kernel_performance
        self.resolution_ms = self.events.resolution_ms

    def read(self, ordinal: int) -> Reading:
        milliseconds, result = self.events.launch(
            self.built,
            self.case,
            seed=self.seed + ordinal,
            warmups=self.warmups,
            data=self.data,
            timeout_s=self.timeout_s,
        )
        return Reading(milliseconds, result.verdict, result.reason, "", result.launches, result.zero_share)


@dataclass
class ProcessTimer:
    """Wall clock of an ordinary program, started anew for each reading, in an empty folder or `run_in`.

    stdin: the file on standard input, None for nothing. resolution_ms: what starting and ending a program that does
    nothing takes here.
    """

    argv: Sequence[str]
    run_in: Path | None = None
    timeout_s: float = 300.0
    resolution_ms: float = 0.0
    label: str = WALL
    kernel_performance: bool = False
    stdin: Path | None = None

    def read(self, ordinal: int) -> Reading:
        with tempfile.TemporaryDirectory(prefix="mccprobe-bench-") as folder:
            env = {**os.environ, "TMPDIR": folder}
            where = self.run_in or Path(folder)
            result = run(RunSpec(self.argv, cwd=where, env=env, timeout_s=self.timeout_s, stdin=self.stdin))
        if result.returncode != 0 or result.timed_out:
            return Reading(None, Verdict.UNRESOLVED, f"{self.argv[0]}: {result.describe()}", "")
        digest = hashlib.sha256(result.stdout).hexdigest() + f":{result.stdout_bytes}"
        return Reading(1e3 * result.seconds, Verdict.UNRESOLVED, "", digest)


def process_floor_ms() -> float:
    """Smallest time of a program that does nothing: below some twenty of these a program's time is its start."""
    times = [run(RunSpec(["true"], timeout_s=10)).seconds for _ in range(FLOOR_RUNS)]
    return 1e3 * min(times)
