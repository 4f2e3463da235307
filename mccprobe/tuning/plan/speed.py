"""What bounds the speed of a tile, each bound by itself: roofline, shared memory, latency, and section 23's model.

The model is the article's fit through two points (BK 16 and 32 of one kernel family). Outside what it was fitted
to there is no number, only "outside the model" with the reasons. A bound is no prediction: none is averaged with
another, and a kernel may miss all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mccprobe.tuning.plan import machine
from mccprobe.tuning.plan.tile import NATIVE, Tile

RATIO_RANGE = (0.07, 0.10)  # MMAs / instructions, article section 23
FIT_INTERCEPT, FIT_SLOPE = -9.76, 2.15  # IPC_inv = intercept + slope / ratio, article section 23
FIT_WARPS = 8  # the fit's own: "IPC_inv(8w)"
FIT_TILE = (256, 256)  # "a local interpolation for the 256x256x32 kernel family"
FIT_DEPTHS = (16, 32)  # BK of its two points
OUTSIDE = "outside the model"


@dataclass(frozen=True)
class Bound:
    """tflops: what the named resource allows at the clock given; None with a reason."""

    name: str
    tflops: float | None
    how: str

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "tflops": None if self.tflops is None else round(self.tflops, 3), "how": self.how}


@dataclass(frozen=True)
class Latency:
    """MMAs in flight on a multiprocessor. needed: to reach the peak at this clock. available: independent ones."""

    needed: float
    available: int
    one_in_flight_tflops: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "needed": round(self.needed, 2),
            "available": self.available,
            "hidden": self.available >= self.needed,
            "one_in_flight_tflops": round(self.one_in_flight_tflops, 2),
        }


@dataclass(frozen=True)
class ModelAnswer:
    """Section 23's model. tflops: (clock in GHz, TFLOPS), empty when outside; reasons: why it is."""

    ratio: float | None
    instructions: int | None
    mmas: int
    cycles: float | None
    ipc_inverse: float | None
    tflops: tuple[tuple[float, float], ...]
    reasons: tuple[str, ...]

    @property
    def answer(self) -> str:
        return OUTSIDE if self.reasons else "inside the range of the fit"

    def to_dict(self) -> dict[str, Any]:
        return {
            "answer": self.answer,
            "ratio": None if self.ratio is None else round(self.ratio, 5),
            "instructions": self.instructions,
            "mmas": self.mmas,
            "cycles_per_iteration": None if self.cycles is None else round(self.cycles, 1),
            "ipc_inverse": None if self.ipc_inverse is None else round(self.ipc_inverse, 4),
            "tflops": [{"clock_ghz": clock, "tflops": round(value, 2)} for clock, value in self.tflops],
            "reasons": list(self.reasons),
        }


def roofline(intensity: float) -> list[Bound]:
    """Peak, and what global memory allows at this intensity without any help of the L2 cache.

    With its help a kernel can be faster: 54 TFLOPS from 128x128 tiles (article, section 14), where this gives 47.9.
    """
    found = [Bound("peak", machine.PEAK.value / 1e12, machine.PEAK.source)]
    for bandwidth in (machine.BANDWIDTH, machine.BANDWIDTH_SPECIFIED):
        allowed = min(intensity * bandwidth.value, machine.PEAK.value) / 1e12
        how = f"{intensity:g} FLOP/byte x {bandwidth.value / 1e9:g} GB/s, with no strip found in the L2 cache"
        found.append(Bound(bandwidth.name, allowed, how))
    return found


def ridge(bandwidth: machine.Quantity = machine.BANDWIDTH) -> float:
    """FLOP/byte above which global memory is no bound."""
    return machine.PEAK.value / bandwidth.value


def shared_memory_bound(tile: Tile, clock_ghz: float) -> Bound:
    """Fragment loads of all warps and the writes of the tile, at the article's sequential bandwidth."""
    rows, columns, depth = tile.fragment
    read = tile.warps * tile.steps * (tile.loads_a * rows + tile.loads_b * columns) * depth * machine.HALF_BYTES
    cycles = (read + tile.moved_bytes) / machine.SHARED_BANDWIDTH.value
    rate = f"{machine.SHARED_BANDWIDTH.value:g} bytes/cycle"
    how = f"{read:,} bytes read + {tile.moved_bytes:,} written a tile of K, {rate}"
    return Bound("shared memory", _tflops(tile.flop, cycles, clock_ghz), how)


def latency(tile: Tile, clock_ghz: float) -> Latency | None:
    """Little's law on MMA.323216; None for another shape, whose latency nobody has measured."""
    if tile.fragment != NATIVE:
        return None
    flop = 2 * NATIVE[0] * NATIVE[1] * NATIVE[2]
    interval = flop * machine.MULTIPROCESSORS.value * clock_ghz * 1e9 / machine.PEAK.value  # cycles between MMAs
    one = _tflops(tile.warps * flop, machine.MMA_LATENCY.value, clock_ghz)
    return Latency(machine.MMA_LATENCY.value / interval, tile.warps * tile.accumulators, one)


def section_23(tile: Tile, instructions: int | None, barriers: int, clocks: tuple[float, ...]) -> ModelAnswer:
    """The model's answer for one main loop. instructions: of one iteration of one warp, None if not counted."""
    mmas = tile.accumulators * tile.steps
    if instructions is None:
        return ModelAnswer(None, None, mmas, None, None, (), ("the instructions of the main loop are not given",))
    ratio = mmas / instructions
    reasons = _outside(tile, ratio)
    if reasons:
        return ModelAnswer(ratio, instructions, mmas, None, None, (), reasons)
    inverse = FIT_INTERCEPT + FIT_SLOPE / ratio
    latency_cycles = machine.MMA_LATENCY.value
    cycles = max(instructions * inverse, mmas * latency_cycles / tile.warps) + latency_cycles
    cycles += barriers * machine.BARRIER.value
    speeds = tuple((clock, _tflops(tile.flop, cycles, clock)) for clock in clocks)
    fastest = max(value for _, value in speeds)
    if fastest > machine.PEAK.value / 1e12:  # the fit's own range reaches so far
        why = f"the formula gives {fastest:.0f} TFLOPS, more than the peak of {machine.PEAK.value / 1e12:g}"
        return ModelAnswer(ratio, instructions, mmas, None, None, (), (why,))
    return ModelAnswer(ratio, instructions, mmas, cycles, inverse, speeds, ())


def _outside(tile: Tile, ratio: float) -> tuple[str, ...]:
    reasons = []
    low, high = RATIO_RANGE
    if not low <= ratio <= high:
        reasons.append(f"MMA/instruction ratio {ratio:.3f}, fitted from {low:.2f} to {high:.2f}")
    if tile.fragment != NATIVE or tile.warp_threads != 128:
        reasons.append("the latency of 403 cycles is of a 32x32x16 MMA of a 128-lane warp")
    if tile.warps != FIT_WARPS:
        reasons.append(f"{tile.warps} warps, fitted for {FIT_WARPS}")
    if (tile.m, tile.n) != FIT_TILE or tile.k not in FIT_DEPTHS or tile.buffers != 1:
        depths = " and ".join(map(str, FIT_DEPTHS))
        reasons.append(f"fitted to 256x256 tiles with BK {depths} in one buffer")
    return tuple(reasons)


def _tflops(flop: float, cycles: float, clock_ghz: float) -> float:
    """Of all multiprocessors, each of which does `flop` in `cycles`."""
    return flop * machine.MULTIPROCESSORS.value * clock_ghz * 1e9 / cycles / 1e12
