"""Time one or two things by the article's rules, or refuse to.

    readings in pairs, which first by lot -> outputs checked -> statistics -> ratio with its interval

Refused, because each gave the article a figure that meant nothing: a kernel that the gate did not pass ("90
TFLOPS" was a quarter of the work), a kernel that is timed but was never checked, zero input (a false 77.5),
a wrong or changing output. A refusal has its reason and no figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mccprobe.oracle.kernel.spec import Case
from mccprobe.oracle.verdict import Verdict
from mccprobe.tuning.bench.clock import Reading, Timer
from mccprobe.tuning.bench.health import tflops
from mccprobe.tuning.bench.statistics import (
    Clusters,
    Ratio,
    Summary,
    find_two_clusters,
    paired_ratio,
    summarize,
    turned,
)
from mccprobe.tuning.check.answer import MAX_ZERO_SHARE, MEASUREMENT
from mccprobe.tuning.check.check import GateReport

DEFAULT_ROUNDS = 20  # the article's stable_bench
DEFAULT_WARMUPS = 3  # launches or runs that do not count: the article drops the first three
FLOOR_FACTOR = 20  # a process shorter than so many starts of an empty one is mostly its start


@dataclass(frozen=True)
class Side:
    """What is timed. gate: of a kernel; None for an ordinary program, whose output is compared instead."""

    name: str
    timer: Timer
    gate: GateReport | None = None
    case: Case | None = None


@dataclass(frozen=True)
class Timed:
    """One side's result. samples_ms: in the order of the rounds. tflops: of the median, None where that means
    nothing (no kernel, a stand-in)."""

    name: str
    samples_ms: tuple[float, ...]
    summary: Summary
    clusters: Clusters | None
    tflops: Summary | None
    launches: dict[str, int]


@dataclass(frozen=True)
class Measurement:
    """sides: empty if refused, and `refused` says why. ratio: of the second side's time to the first's.

    notes: what a reader must know to use the figures.
    """

    label: str
    kernel_performance: bool
    rounds: int
    warmups: int
    sides: tuple[Timed, ...]
    ratio: Ratio | None
    refused: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "status": "refused" if self.refused else "measured",
            "refused": self.refused or None,
            "label": self.label,
            "kernel_performance": self.kernel_performance,
            "rounds": self.rounds,
            "warmups": self.warmups,
            "sides": [_side_dict(side) for side in self.sides],
            "ratio": _ratio_dict(self.ratio),
            "notes": list(self.notes),
        }


def measure(
    sides: Sequence[Side],
    *,
    rounds: int = DEFAULT_ROUNDS,
    warmups: int = DEFAULT_WARMUPS,
    warm_runs: int = 0,
    confidence: float = 0.95,
    tell: Callable[[str, int, float], None] = lambda name, ordinal, milliseconds: None,
) -> Measurement:
    """One or two sides, read in pairs; half of the rounds, by lot, begin with the other one.

    warmups: what the timer itself drops, told. warm_runs: readings of each side to drop first.
    """
    first = sides[0].timer

    def refusal(reason: str) -> Measurement:
        return Measurement(first.label, False, rounds, warmups, (), None, reason, ())

    for side in sides:
        if side.gate is not None and not side.gate.passed:
            reasons = side.gate.reasons()
            return refusal(f"{side.name}: the gate did not pass: {reasons[0] if reasons else side.gate.verdict}")
    readings: list[list[Reading]] = [[] for _ in sides]
    second_first = turned(rounds)
    for ordinal in range(-warm_runs, rounds):
        order = list(range(len(sides)))
        for index in reversed(order) if ordinal >= 0 and second_first[ordinal] else order:
            reading = sides[index].timer.read(max(ordinal, 0))
            problem = _problem(sides[index], reading)
            if problem:
                return refusal(f"{sides[index].name}: {problem}")
            if ordinal >= 0:
                readings[index].append(reading)
                assert reading.milliseconds is not None
                tell(sides[index].name, ordinal, reading.milliseconds)
    problem = _outputs(sides, readings)
    if problem:
        return refusal(problem)
    timed = tuple(_timed(side, taken) for side, taken in zip(sides, readings, strict=True))
    ratio = None
    if len(timed) == 2:
        ratio = paired_ratio(timed[0].samples_ms, timed[1].samples_ms, confidence=confidence)
    performance = all(side.timer.kernel_performance for side in sides)
    return Measurement(
        first.label, performance, rounds, warmups, timed, ratio, "", tuple(_notes(sides, timed, ratio, performance))
    )


def _problem(side: Side, reading: Reading) -> str:
    """Why this reading cannot count, "" if it can."""
    if reading.zero_share is not None and reading.zero_share > MAX_ZERO_SHARE:
        return "all-zero input: its time is not that of the work (the cache serves every tile from one)"
    if reading.milliseconds is None or reading.milliseconds <= 0:
        return reading.reason or "no time was reported"
    if side.gate is None:
        return ""
    if reading.verdict is not Verdict.GOOD:
        return f"the output after timing is {reading.verdict}: {reading.reason}"
    if not side.gate.coverage:  # a program without a device half: the gate has no kernels to name
        return ""
    if reading.launches is None:
        return "timed but never checked: the program does not report which kernels it launched"
    unchecked = side.gate.unchecked(reading.launches)
    if unchecked:
        return f"timed but never checked by a correctness case: {', '.join(unchecked)}"
    return ""


def _outputs(sides: Sequence[Side], readings: Sequence[Sequence[Reading]]) -> str:
    """Programs must print the same in every run, and both the same."""
    plain = [(side, taken) for side, taken in zip(sides, readings, strict=True) if side.gate is None]
    for side, taken in plain:
        if len({reading.output for reading in taken}) > 1:
            return f"{side.name} prints something else from run to run: what was timed is not one computation"
    if len({taken[0].output for _, taken in plain}) > 1:
        return f"{sides[0].name} and {sides[1].name} print different results: they are not the same work"
    return ""


def _timed(side: Side, readings: Sequence[Reading]) -> Timed:
    samples = tuple(reading.milliseconds for reading in readings if reading.milliseconds is not None)
    launches: dict[str, int] = {}
    for reading in readings:
        for name, count in (reading.launches or {}).items():
            launches[name] = launches.get(name, 0) + count
    rates = None
    if _multiplies(side) and side.timer.kernel_performance and side.case is not None:
        case = side.case
        rates = summarize([tflops(case, milliseconds) for milliseconds in samples])
    clusters = find_two_clusters(samples, resolution=side.timer.resolution_ms)
    return Timed(side.name, samples, summarize(samples), clusters, rates, launches)


def _multiplies(side: Side) -> bool:
    """A kernel that passed, whose case is the shape of a GEMM: only there are 2*M*N*K operations known."""
    return side.gate is not None and side.gate.passed and side.gate.kernel.entry != MEASUREMENT


def _notes(sides: Sequence[Side], timed: Sequence[Timed], ratio: Ratio | None, performance: bool) -> list[str]:
    notes = []
    for side, result in zip(sides, timed, strict=True):
        found = result.clusters
        if found is not None:
            how = "alternating, as under DVFS" if found.alternating else "one after the other"
            notes.append(
                f"{result.name}: two states of the machine, {found.fast:.4g} ms ({found.fast_count} runs) and "
                f"{found.slow:.4g} ms ({found.slow_count} runs), {how}: the median belongs to one of them"
            )
        if side.gate is None and result.summary.median < FLOOR_FACTOR * side.timer.resolution_ms:
            notes.append(
                f"{result.name}: {result.summary.median:.3g} ms, of which starting any process takes "
                f"{side.timer.resolution_ms:.3g}: give it more work"
            )
        if side.gate is not None and not performance:
            notes.append(f"{result.name}: {side.timer.label}; no TFLOPS from it")
        elif side.gate is not None and not _multiplies(side):
            notes.append(f"{result.name}: its case is no shape of a GEMM; no TFLOPS from it")
    if ratio is not None and ratio.interval is None:
        notes.append(f"{ratio.pairs} pairs are too few for an interval: nothing is shown")
    return notes


def _side_dict(side: Timed) -> dict[str, Any]:
    clusters = None
    if side.clusters is not None:
        found = side.clusters
        clusters = {
            "fast_ms": found.fast,
            "slow_ms": found.slow,
            "fast_count": found.fast_count,
            "slow_count": found.slow_count,
            "changes": found.changes,
            "alternating": found.alternating,
        }
    return {
        "name": side.name,
        "samples_ms": list(side.samples_ms),
        "summary_ms": side.summary.to_dict(),
        "two_states": clusters,
        "tflops": side.tflops.to_dict() if side.tflops else None,
        "launches": side.launches,
    }


def _ratio_dict(ratio: Ratio | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    interval = ratio.interval
    return {
        "estimate": ratio.estimate,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "confidence": interval.confidence if interval else None,
        "pairs": ratio.pairs,
        "shown": ratio.shown,
    }
