"""Which blocks run together, which strips of A and B they share, and what of that fits into the L2 cache.

A strip is what one row (A) or column (B) of blocks reads over all of K. The orders are enumerated, not estimated;
a wave is what the multiprocessors hold at one time. Blocks of a wave go through K side by side, so what they have
in common is read once; that nothing of a wave is left for the next is the pessimistic assumption here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mccprobe.base.errors import UsageError
from mccprobe.tuning.plan.machine import BANDWIDTH, HALF_BYTES, L2_BYTES
from mccprobe.tuning.plan.tile import Tile

ORDERS = ("n-first", "m-first", "serpentine", "grouped")
GROUP = 8  # blocks along M of a group, as in the "super tile" of section 14
MAX_BLOCKS = 1 << 20


@dataclass(frozen=True)
class Problem:
    """C is M x N, summed over K."""

    m: int
    n: int
    k: int

    @property
    def flop(self) -> int:
        return 2 * self.m * self.n * self.k


@dataclass(frozen=True)
class OrderTraffic:
    """One order. strips: different strips of A and B that a full wave reads. shared_turns: column turns at which
    the next block reads the same strip of A. bytes: read from global memory by all waves, each strip once a wave."""

    order: str
    strips_a: float
    strips_b: float
    shared_turns: int
    turns: int
    bytes: int

    @property
    def seconds(self) -> float:
        return self.bytes / BANDWIDTH.value

    def to_dict(self) -> dict[str, Any]:
        return {
            "order": self.order,
            "strips_a_per_wave": round(self.strips_a, 2),
            "strips_b_per_wave": round(self.strips_b, 2),
            "shared_turns": self.shared_turns,
            "turns": self.turns,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 6),
        }


@dataclass(frozen=True)
class GridPlan:
    """tiles_m, tiles_n: blocks along M and N. resident: blocks that run together."""

    problem: Problem
    tiles_m: int
    tiles_n: int
    resident: int
    strip_a: int
    strip_b: int
    orders: tuple[OrderTraffic, ...]

    @property
    def blocks(self) -> int:
        return self.tiles_m * self.tiles_n

    @property
    def waves(self) -> int:
        return math.ceil(self.blocks / self.resident)

    @property
    def last_wave(self) -> float:
        """Share of the block slots that the waves fill: below 1 where the last one is not full."""
        return self.blocks / (self.waves * self.resident)

    @property
    def all_a(self) -> int:
        return self.strip_a * self.tiles_m

    @property
    def all_b(self) -> int:
        return self.strip_b * self.tiles_n

    def to_dict(self) -> dict[str, Any]:
        return {
            "m": self.problem.m,
            "n": self.problem.n,
            "k": self.problem.k,
            "tiles_m": self.tiles_m,
            "tiles_n": self.tiles_n,
            "blocks": self.blocks,
            "resident": self.resident,
            "waves": self.waves,
            "filled": round(self.last_wave, 4),
            "l2_bytes": L2_BYTES,
            "strip_a_bytes": self.strip_a,
            "strip_b_bytes": self.strip_b,
            "all_a_bytes": self.all_a,
            "all_b_bytes": self.all_b,
            "strip_fits_l2": max(self.strip_a, self.strip_b) <= L2_BYTES,
            "all_a_fits_l2": self.all_a <= L2_BYTES,
            "all_b_fits_l2": self.all_b <= L2_BYTES,
            "orders": [order.to_dict() for order in self.orders],
        }


def blocks_in_order(order: str, tiles_m: int, tiles_n: int) -> Iterator[tuple[int, int]]:
    """(m, n) of each block in the order in which it starts. serpentine: along M, odd columns backwards."""
    if order == "n-first":
        yield from ((m, n) for m in range(tiles_m) for n in range(tiles_n))
    elif order == "grouped":
        for first in range(0, tiles_m, GROUP):
            yield from ((m, n) for n in range(tiles_n) for m in range(first, min(first + GROUP, tiles_m)))
    else:
        for n in range(tiles_n):
            backwards = order == "serpentine" and n % 2
            yield from ((tiles_m - 1 - m if backwards else m, n) for m in range(tiles_m))


def grid_plan(tile: Tile, problem: Problem, resident: int) -> GridPlan:
    """resident: blocks on all multiprocessors. Raises UsageError for a problem that is no whole number of tiles."""
    if problem.m % tile.m or problem.n % tile.n or problem.k % tile.k:
        raise UsageError(
            f"{problem.m}x{problem.n}x{problem.k} is no whole number of tiles of {tile.m}x{tile.n}x{tile.k}",
            hint="the planner reckons with whole tiles; round the problem up",
        )
    tiles_m, tiles_n = problem.m // tile.m, problem.n // tile.n
    if tiles_m * tiles_n > MAX_BLOCKS:
        raise UsageError(f"{tiles_m * tiles_n:,} blocks: more than {MAX_BLOCKS:,} are not enumerated")
    strip_a, strip_b = tile.m * problem.k * HALF_BYTES, tile.n * problem.k * HALF_BYTES
    orders = tuple(_traffic(order, tiles_m, tiles_n, resident, strip_a, strip_b) for order in ORDERS)
    return GridPlan(problem, tiles_m, tiles_n, resident, strip_a, strip_b, orders)


def _traffic(order: str, tiles_m: int, tiles_n: int, resident: int, strip_a: int, strip_b: int) -> OrderTraffic:
    blocks = list(blocks_in_order(order, tiles_m, tiles_n))
    waves = [blocks[at : at + resident] for at in range(0, len(blocks), resident)]
    rows = [len({m for m, _ in wave}) for wave in waves]
    columns = [len({n for _, n in wave}) for wave in waves]
    full = [at for at, wave in enumerate(waves) if len(wave) == resident] or [0]
    turns = [(before, after) for before, after in itertools.pairwise(blocks) if before[1] != after[1]]
    if order == "n-first":  # there every step changes the column; a turn is where the row changes
        turns = [(before, after) for before, after in itertools.pairwise(blocks) if before[0] != after[0]]
    return OrderTraffic(
        order,
        sum(rows[at] for at in full) / len(full),
        sum(columns[at] for at in full) / len(full),
        sum(before[0] == after[0] for before, after in turns),
        len(turns),
        sum(a * strip_a + b * strip_b for a, b in zip(rows, columns, strict=True)),
    )
