"""From a request to a measurement: health, gate of each side, timing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mccprobe.oracle.kernel.spec import Case, KernelSpec
from mccprobe.targets import registry
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.targets.protocol import Toolchain
from mccprobe.tuning.bench.clock import KernelTimer, ProcessTimer, events_for, process_floor_ms
from mccprobe.tuning.bench.health import Health, device_health
from mccprobe.tuning.bench.measure import DEFAULT_ROUNDS, DEFAULT_WARMUPS, Measurement, Side, measure
from mccprobe.tuning.check.check import DEFAULT_SEEDS, CheckedCase, GateReport, check_kernel
from mccprobe.tuning.check.score import Score, grader_score


@dataclass(frozen=True)
class Contender:
    """One build to time."""

    name: str
    kernel: KernelSpec
    flags: tuple[tuple[str, ...], ...] = ()
    defines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class BenchSettings:
    """How is measured. case: "" for the kernel's own choice. min_health: TFLOPS of the shipped GEMM."""

    cases: str = "legacy"
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    case: str = ""
    rounds: int = DEFAULT_ROUNDS
    warmups: int = DEFAULT_WARMUPS
    data: str = "random"
    confidence: float = 0.95
    min_health: float | None = None
    arch: str = DEFAULT_ARCH
    timeout_s: float = 300.0
    compile_timeout_s: float = 300.0


@dataclass(frozen=True)
class BenchReport:
    """One bench. gates: one a contender that was built and checked. measurement: None if it did not come to it."""

    simulated: bool
    toolchain: str
    case: Case | None
    health: Health | None
    min_health: float | None
    gates: tuple[GateReport, ...]
    measurement: Measurement | None
    refused: str
    score: Score | None

    def to_dict(self) -> dict[str, Any]:
        case = self.case
        return {
            "simulated": self.simulated,
            "toolchain": self.toolchain,
            "case": None if case is None else {"name": case.name, "m": case.m, "n": case.n, "k": case.k},
            "health": self.health.to_dict(self.min_health) if self.health else None,
            "gates": [gate.to_dict() for gate in self.gates],
            "measurement": self.measurement.to_dict() if self.measurement else None,
            "refused": self.refused or None,
            "score": self.score.to_dict() if self.score else None,
        }


@dataclass
class Hooks:
    """Where progress is told."""

    stage: Callable[[str], None] = lambda text: None
    case: Callable[[CheckedCase], None] = lambda case: None
    reading: Callable[[str, int, float], None] = lambda name, ordinal, milliseconds: None


def bench_kernels(
    contenders: Sequence[Contender],
    toolchain: Toolchain,
    settings: BenchSettings,
    folder: Path,
    hooks: Hooks,
    *,
    health: Health | None = None,
) -> BenchReport:
    """Time one kernel, or two in turn. Raises UsageError for a case that the kernel does not have."""
    kernel = contenders[0].kernel
    case = kernel.case(settings.case) if settings.case else default_case(kernel, toolchain.name)
    if health is None:
        hooks.stage("health of the device")
        health = device_health(toolchain, timeout_s=settings.timeout_s)
    report = BenchReport(toolchain.simulated, toolchain.name, case, health, settings.min_health, (), None, "", None)
    if health.meets(settings.min_health) is False:
        told = f"the device gives {health.value:.1f} TFLOPS, less than {settings.min_health:g}: it has throttled"
        return replace(report, refused=told)
    if settings.min_health is not None and health.value is None and not toolchain.simulated:
        told = f"--min-health {settings.min_health:g} asks for a healthy device, and its health is {health.reason}"
        return replace(report, refused=told)
    if settings.data == "zero":
        return replace(report, refused="all-zero input: its time is not that of the work; the article's 77.5 TFLOPS")
    gates: list[GateReport] = []
    for contender in contenders:
        hooks.stage(f"gate of {contender.name}")
        gates.append(
            check_kernel(
                contender.kernel,
                toolchain,
                cases=settings.cases,
                seeds=settings.seeds,
                flags=contender.flags,
                defines=dict(contender.defines),
                folder=folder,
                timeout_s=settings.timeout_s,
                compile_timeout_s=settings.compile_timeout_s,
                arch=settings.arch,
                tell=hooks.case,
            )
        )
        if not gates[-1].passed:
            reasons = gates[-1].reasons()
            why = reasons[0] if reasons else str(gates[-1].verdict)
            told = f"{contender.name}: the gate did not pass: {why}"
            return replace(report, gates=tuple(gates), refused=told)
    hooks.stage(f"timing {case.name}")
    found = time_gated(contenders, gates, settings, case, hooks)
    score = grader_score(gates[0], case=case, gflops=_gflops(found))
    return replace(report, gates=tuple(gates), measurement=found, refused=found.refused, score=score)


def time_gated(
    contenders: Sequence[Contender], gates: Sequence[GateReport], settings: BenchSettings, case: Case, hooks: Hooks
) -> Measurement:
    """Time what the gate has passed; two equal device objects are told, for they cannot differ."""
    sides = []
    for contender, gate in zip(contenders, gates, strict=True):
        assert gate.built is not None
        timer = KernelTimer(
            gate.built,
            case,
            events_for(gate.built),
            seed=settings.seeds[0],
            warmups=settings.warmups,
            data=settings.data,
            timeout_s=settings.timeout_s,
        )
        sides.append(Side(contender.name, timer, gate, case))
    found = measure(
        sides, rounds=settings.rounds, warmups=settings.warmups, confidence=settings.confidence, tell=hooks.reading
    )
    objects = [gate.built.device_object for gate in gates if gate.built is not None]
    if len(objects) == 2 and objects[0] == objects[1] and not found.refused:
        told = "both have the same device object: a difference in their times is the measurement's, not the build's"
        found = replace(found, notes=(*found.notes, told))
    return found


def _gflops(found: Measurement) -> float | None:
    rate = found.sides[0].tflops if found.sides else None
    return None if rate is None else 1e3 * rate.median


def default_case(kernel: KernelSpec, toolchain: str) -> Case:
    """What is timed without --case: the largest declared one on a device, the default one on the emulator."""
    if not registry.target(toolchain).real_device:
        return kernel.case(kernel.default_case)
    there = [case for case in kernel.cases if case.runs_on(toolchain)]
    return max(there, key=lambda case: case.m * case.n * case.k, default=kernel.case(kernel.default_case))


def bench_programs(
    commands: Sequence[Sequence[str]],
    *,
    rounds: int,
    warmups: int,
    confidence: float,
    run_in: Path | None,
    timeout_s: float,
    hooks: Hooks,
    stdin: Path | None = None,
) -> Measurement:
    """Wall clock of one ordinary program, or of two in turn whose outputs must be the same."""
    floor = process_floor_ms()
    names = [" ".join(command) for command in commands]
    if len(names) == 2 and names[0] == names[1]:
        names = [f"{names[0]} (first)", f"{names[1]} (second)"]
    sides = [
        Side(name, ProcessTimer(tuple(command), run_in, timeout_s, floor, stdin=stdin))
        for name, command in zip(names, commands, strict=True)
    ]
    return measure(sides, rounds=rounds, warmups=warmups, warm_runs=warmups, confidence=confidence, tell=hooks.reading)
