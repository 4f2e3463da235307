"""`mccprobe plan`: one tile in, everything that counting says of it out.

Flow: PlanRequest -> `Plan` (records of tile, registers, occupancy, banks, grid, speed) -> text or `to_dict`.
Nothing here is measured, and nothing says that a kernel will be as fast as a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mccprobe import __version__
from mccprobe.objects.model.limits import ARTICLE_LIMITS
from mccprobe.objects.model.occupancy import Demand, Occupancy, disagreements, estimate
from mccprobe.objects.model.resources import MCC_RESERVE_BYTES
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH
from mccprobe.tuning.plan import machine, speed
from mccprobe.tuning.plan.banks import Conflict, alignment_note, fragment_load, row_reads, strided
from mccprobe.tuning.plan.grid import GridPlan, Problem, grid_plan
from mccprobe.tuning.plan.tile import RegisterBudget, Tile, register_budgets

SOURCE = "the plan's own threads"


@dataclass(frozen=True)
class PlanRequest:
    """registers: temp registers a thread, as `mccprobe report` gives them, None if not known yet.

    epilogue_stride: floats from column to column in the epilogue's tile. strides: more of them to look at.
    instructions: of the main loop, for section 23's model.
    """

    tile: Tile
    problem: Problem | None = None
    registers: int | None = None
    epilogue_stride: int = 33
    strides: Sequence[int] = ()
    instructions: int | None = None
    barriers: int = 2
    clock_ghz: float = 1.5


@dataclass(frozen=True)
class TilePlan:
    """What the arithmetic says. grid: None without a problem."""

    request: PlanRequest
    shared_with_reserve: int
    shared_limit: int
    registers: tuple[RegisterBudget, ...]
    occupancy: tuple[Occupancy, ...]
    notes: tuple[str, ...]
    banks: tuple[Conflict, ...]
    grid: GridPlan | None
    bounds: tuple[speed.Bound, ...]
    latency: speed.Latency | None
    model: speed.ModelAnswer

    @property
    def fits_shared_memory(self) -> bool:
        return self.shared_with_reserve <= self.shared_limit

    def to_dict(self) -> dict[str, Any]:
        """The document of `--json` (reports/plan.schema.json)."""
        tile, request = self.request.tile, self.request
        return {
            "schema_version": 1,
            "tool_version": __version__,
            "status": "ok",
            "target": DEFAULT_ARCH,
            "tile": tile.to_dict(),
            "shared_memory": {
                "a_bytes": tile.bytes_a,
                "b_bytes": tile.bytes_b,
                "declared_bytes": tile.shared_bytes,
                "with_reserve_bytes": self.shared_with_reserve,
                "limit_bytes": self.shared_limit,
                "fits": self.fits_shared_memory,
                "moved_bytes": tile.moved_bytes,
                "vectors_per_thread": round(tile.vectors, 4),
            },
            "registers": [budget.to_dict() for budget in self.registers],
            "occupancy": [entry.to_dict() for entry in self.occupancy],
            "banks": [entry.to_dict() for entry in self.banks],
            "layouts": [layout.to_dict() for layout in tile.layouts()],
            "grid": None if self.grid is None else self.grid.to_dict(),
            "clock_ghz": request.clock_ghz,
            "ridge": round(speed.ridge(), 2),
            "bounds": [bound.to_dict() for bound in self.bounds],
            "latency": None if self.latency is None else self.latency.to_dict(),
            "model": self.model.to_dict(),
            "notes": list(self.notes),
            "machine": [
                {"name": one.name, "value": one.value, "unit": one.unit, "source": one.source}
                for one in machine.QUANTITIES
            ],
        }


def plan(request: PlanRequest) -> TilePlan:
    """Count it all. Raises UsageError for a tile or problem that does not divide."""
    tile = request.tile
    shared = tile.shared_bytes + MCC_RESERVE_BYTES
    demand = Demand(DEFAULT_ARCH, {"temp": request.registers}, shared, tile.threads, SOURCE)
    occupancy = estimate(demand)
    limit = ARTICLE_LIMITS.shared_per_block.value or 0
    budgets = tuple(register_budgets(tile, ARTICLE_LIMITS.registers_per_mp.value))
    clocks = (*dict.fromkeys((*(clock.value for clock in machine.CLOCKS), request.clock_ghz)),)
    return TilePlan(
        request=request,
        shared_with_reserve=shared,
        shared_limit=limit,
        registers=budgets,
        occupancy=occupancy,
        notes=tuple(_notes(tile, demand, occupancy, budgets)),
        banks=tuple(_banks(request)),
        grid=None if request.problem is None else grid_plan(tile, request.problem, _resident(occupancy)),
        bounds=(*speed.roofline(tile.intensity), speed.shared_memory_bound(tile, request.clock_ghz)),
        latency=speed.latency(tile, request.clock_ghz),
        model=speed.section_23(tile, request.instructions, request.barriers, clocks),
    )


def _resident(occupancy: Sequence[Occupancy]) -> int:
    """Blocks on the whole chip by the article's own model; one a multiprocessor where it has no answer."""
    blocks = occupancy[0].blocks_per_mp or 1
    return blocks * int(machine.MULTIPROCESSORS.value)


def _banks(request: PlanRequest) -> list[Conflict]:
    found = [strided(request.epilogue_stride, machine.FLOAT_BYTES)]
    found += [strided(stride, machine.FLOAT_BYTES) for stride in request.strides if stride != request.epilogue_stride]
    for operand in ("A", "B"):
        found += [fragment_load(request.tile, operand), *row_reads(request.tile, operand)]
    return found


def _notes(tile: Tile, demand: Demand, occupancy: Sequence[Occupancy], budgets: Sequence[RegisterBudget]) -> list[str]:
    refused = [note for entry in occupancy[:1] if entry.blocks_per_mp == 0 for note in entry.notes]
    if any(entry.blocks_per_mp == 0 for entry in occupancy):
        refused.append("no block of this tile runs: waves and bounds are those of one block on each multiprocessor")
    notes = [note for note in (*refused, alignment_note(tile), *disagreements(demand, occupancy)) if note]
    if tile.warp_threads != 128:
        notes.append(
            f"warps of {tile.warp_threads} threads: a physical warp of MP22 has 128, and WMMA addresses that differ "
            "inside one give wrong results (article, section 11)"
        )
    if any(budget.floats == machine.SDK_ACCUMULATOR_FLOATS and budget.fits is False for budget in budgets):
        notes.append(
            "with 32 floats an accumulator the article's own kernel (8 accumulators, 256 registers for them) would not "
            "fit either, and it reports 126 temp registers and 8 bytes: a compiler may drop what no lane uses"
        )
    if not float(tile.vectors).is_integer():
        notes.append(f"{tile.vectors:g} float4 a thread: the threads do not share the tile evenly")
    notes.append("which lane of a WMMA load reads which word is not public: 'all at once' is a bound for every order")
    return notes
