"""A tile of a block, how its warps lie over it, and what follows by counting.

In shared memory the tile of A is [K][M + pad_a] halfs and the tile of B [N][K + pad_b] (article, section 5).
A step is one WMMA operation's part of K; a warp loads its operands once a step and uses each for a whole row
or column of its accumulators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from mccprobe.base.errors import UsageError
from mccprobe.tuning.plan.machine import (
    FLOAT_BYTES,
    HALF_BYTES,
    MAX_REGISTERS,
    OPERAND_REGISTERS,
    SDK_ACCUMULATOR_FLOATS,
    VECTOR_HALFS,
)

FRAGMENT_STEP = 8  # of every WMMA shape of mp_22 that is public (mtgpu.md 8)
NATIVE = (32, 32, 16)  # MMA.323216, the shape whose registers and latency are known


@dataclass(frozen=True)
class Tile:
    """m, n, k: elements of the block's tile. warps_m, warps_n: warps along M and N. pads: in halfs.

    buffers: copies of the operand tiles in shared memory. Raises UsageError where the parts do not fit.
    """

    m: int
    n: int
    k: int
    warps_m: int
    warps_n: int
    fragment: tuple[int, int, int] = NATIVE
    pad_a: int = 8
    pad_b: int = 8
    buffers: int = 1
    warp_threads: int = 128

    def __post_init__(self) -> None:
        rows, columns, depth = self.fragment
        if any(side % FRAGMENT_STEP for side in self.fragment):
            raise UsageError(
                f"a fragment of {rows}x{columns}x{depth}: each side is a multiple of {FRAGMENT_STEP}",
                hint="32x32x16 and 16x16x16 are the shapes of half that are public",
            )
        for size, warps, part, name in ((self.m, self.warps_m, rows, "M"), (self.n, self.warps_n, columns, "N")):
            if size % (warps * part):
                raise UsageError(
                    f"{size} elements along {name} are not whole fragments of {part} for {warps} warps",
                    hint=f"a multiple of {warps * part} along {name}, or another --warps or --fragment",
                )
        if self.k % depth:
            raise UsageError(f"{self.k} elements along K are not whole steps of {depth}")
        if rows * columns % self.warp_threads:
            raise UsageError(f"an accumulator of {rows}x{columns} is not shared evenly by {self.warp_threads} lanes")

    @property
    def warps(self) -> int:
        return self.warps_m * self.warps_n

    @property
    def threads(self) -> int:
        return self.warps * self.warp_threads

    @property
    def intensity(self) -> float:
        """FLOP for each byte of A and B that comes from global memory: BM*BN / (BM+BN)."""
        return self.m * self.n / (self.m + self.n)

    @property
    def warp_m(self) -> int:
        return self.m // self.warps_m

    @property
    def warp_n(self) -> int:
        return self.n // self.warps_n

    @property
    def loads_a(self) -> int:
        """Fragments of A that a warp loads in a step."""
        return self.warp_m // self.fragment[0]

    @property
    def loads_b(self) -> int:
        return self.warp_n // self.fragment[1]

    @property
    def accumulators(self) -> int:
        """Of a warp; also its MMAs in a step."""
        return self.loads_a * self.loads_b

    @property
    def ratio(self) -> float:
        """MMAs for each fragment load."""
        return self.accumulators / (self.loads_a + self.loads_b)

    @property
    def steps(self) -> int:
        """WMMA steps of one tile."""
        return self.k // self.fragment[2]

    @property
    def line_a(self) -> int:
        return self.m + self.pad_a

    @property
    def line_b(self) -> int:
        return self.k + self.pad_b

    @property
    def bytes_a(self) -> int:
        """Shared memory of one tile of A, padding included."""
        return self.k * self.line_a * HALF_BYTES

    @property
    def bytes_b(self) -> int:
        return self.n * self.line_b * HALF_BYTES

    @property
    def shared_bytes(self) -> int:
        """Declared shared memory of a block; what the compiler reserves beside it is not in it."""
        return self.buffers * (self.bytes_a + self.bytes_b)

    @property
    def moved_bytes(self) -> int:
        """Bytes of A and B that a block moves for one tile; padding is not moved."""
        return (self.m + self.n) * self.k * HALF_BYTES

    @property
    def vectors(self) -> float:
        """float4 registers of a thread for the prefetch of one tile; not whole where the last are shared unevenly."""
        return self.moved_bytes / HALF_BYTES / VECTOR_HALFS / self.threads

    @property
    def flop(self) -> int:
        """Of one tile of K, for the whole block."""
        return 2 * self.m * self.n * self.k

    def with_layout(self, warps_m: int, warps_n: int) -> Tile | None:
        """The same tile with other warps; None where it does not divide."""
        try:
            return replace(self, warps_m=warps_m, warps_n=warps_n)
        except UsageError:
            return None

    def layouts(self) -> list[Tile]:
        """Every way to lay the same number of warps over the tile, most along M first."""
        pairs = [(self.warps // n, n) for n in range(1, self.warps + 1) if self.warps % n == 0]
        return [tile for warps_m, warps_n in pairs if (tile := self.with_layout(warps_m, warps_n)) is not None]

    def to_dict(self) -> dict[str, Any]:
        return {
            "m": self.m,
            "n": self.n,
            "k": self.k,
            "warps_m": self.warps_m,
            "warps_n": self.warps_n,
            "warp_threads": self.warp_threads,
            "threads": self.threads,
            "fragment": list(self.fragment),
            "pad_a": self.pad_a,
            "pad_b": self.pad_b,
            "buffers": self.buffers,
            "warp_m": self.warp_m,
            "warp_n": self.warp_n,
            "steps": self.steps,
            "loads_a": self.loads_a,
            "loads_b": self.loads_b,
            "mmas": self.accumulators,
            "ratio": round(self.ratio, 4),
            "intensity": round(self.intensity, 4),
        }


@dataclass(frozen=True)
class RegisterBudget:
    """Registers of a thread that the tile needs at the least, for one size of the accumulator fragment.

    floats: of one accumulator in a lane. prefetch, operands: registers; operands None for a shape whose operand
    registers are not public. budget: what a thread can have, None where nothing public says it.
    """

    floats: int
    accumulators: int
    prefetch: int
    operands: int | None
    budget: int | None

    @property
    def at_least(self) -> int:
        return self.accumulators + self.prefetch + (self.operands or 0)

    @property
    def fits(self) -> bool | None:
        return None if self.budget is None else self.at_least <= self.budget

    def to_dict(self) -> dict[str, Any]:
        return {
            "floats_per_accumulator": self.floats,
            "accumulator_registers": self.accumulators,
            "accumulator_bytes": self.accumulators * FLOAT_BYTES,
            "prefetch_registers": self.prefetch,
            "operand_registers": self.operands,
            "at_least": self.at_least,
            "budget": self.budget,
            "fits": self.fits,
        }


def register_budgets(tile: Tile, registers_per_mp: int | None) -> list[RegisterBudget]:
    """With as many floats as the lanes need (32x32 over 128: 8), and with the 32 of SDK 3.1.0 for its native shape."""
    rows, columns, _ = tile.fragment
    needed = rows * columns // tile.warp_threads
    sizes = [needed]
    if tile.fragment == NATIVE and needed != SDK_ACCUMULATOR_FLOATS:
        sizes.append(SDK_ACCUMULATOR_FLOATS)
    operands = None
    if tile.fragment == NATIVE and tile.warp_threads == 128:
        operands = OPERAND_REGISTERS * (tile.loads_a + tile.loads_b)
    budget = None if registers_per_mp is None else min(MAX_REGISTERS, registers_per_mp // tile.threads)
    prefetch = 4 * math.ceil(tile.vectors)  # a float4 is four registers
    return [RegisterBudget(size, tile.accumulators * size, prefetch, operands, budget) for size in sizes]
