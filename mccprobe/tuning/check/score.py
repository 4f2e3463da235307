"""The grader's score of the article: 30 points for correctness, 70 for speed. Only where it means something.

Public (article sections 1 and 22): the cases and their tolerance, 70 points from 30 % of the baseline on. Not
public: how points fall below 30 %, and how the 30 points are shared among the cases; both are assumed, and said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mccprobe.oracle.kernel.spec import Case
from mccprobe.targets import registry
from mccprobe.tuning.check.check import GateReport

BASELINE_GFLOPS = 86_012.6  # muBLAS with DVFS off: mublas_baseline_gflops of the article's grader/test_cases.json
FULL_AT = 0.30  # share of the baseline that gives all points
CORRECTNESS_POINTS, SPEED_POINTS = 30.0, 70.0
SPEED_SHAPE = (8192, 8192, 16384)
DEVICE = "S4000"


@dataclass(frozen=True)
class Score:
    """points: None for n/a, and reason says why. assumed: what of it is not public."""

    points: float | None
    correctness: float | None
    speed: float | None
    reason: str
    assumed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "points": self.points,
            "correctness": self.correctness,
            "speed": self.speed,
            "reason": self.reason,
            "assumed": list(self.assumed),
            "baseline_gflops": BASELINE_GFLOPS,
        }


def speed_points(gflops: float) -> tuple[float, bool]:
    """Points, and whether the slope that is not published was used."""
    share = gflops / BASELINE_GFLOPS
    if share >= FULL_AT:
        return SPEED_POINTS, False
    return SPEED_POINTS * share / FULL_AT, True


def grader_score(gate: GateReport, *, case: Case | None = None, gflops: float | None = None) -> Score:
    """The score of a checked kernel. case, gflops: what was timed, None without a timing."""
    device = next((entry.result.device for entry in gate.cases if entry.result.device), "")
    why = _not_applicable(gate, device)
    if why:
        return Score(None, None, None, f"n/a: {why}")
    graded = [entry for entry in gate.cases if entry.planned.case.legacy]
    right = {
        name: all(e.right for e in graded if e.planned.case.name == name)
        for name in (entry.planned.case.name for entry in graded)
    }
    correctness = CORRECTNESS_POINTS * sum(right.values()) / len(right) if right else None
    assumed = ["each case has an equal share of the 30 points"] if right and not all(right.values()) else []
    if gflops is None or case is None or (case.m, case.n, case.k) != SPEED_SHAPE:
        return Score(None, correctness, None, f"no timing of {'x'.join(map(str, SPEED_SHAPE))}", tuple(assumed))
    if not gate.passed:
        return Score(correctness, correctness, 0.0, "no points for speed: the gate did not pass", tuple(assumed))
    speed, sloped = speed_points(gflops)
    if sloped:
        assumed.append("linear below 30 % of the baseline: the real slope is not published")
    total = None if correctness is None else correctness + speed
    return Score(total, correctness, speed, "", tuple(assumed))


def _not_applicable(gate: GateReport, device: str) -> str:
    if gate.simulated:
        return "on the stand-in"
    if not registry.target(gate.toolchain).graded:
        return f"with {gate.toolchain}, not mcc"
    return "" if DEVICE in device else f"the device is {device or 'unknown'}, not an {DEVICE}"
