"""A plan as text. Pure: record in, text out."""

from __future__ import annotations

from collections.abc import Iterator

from mccprobe.base.console import number_of
from mccprobe.objects.model.estimate import AT_MOST, Occupancy
from mccprobe.tuning.plan import machine, speed
from mccprobe.tuning.plan.grid import GridPlan
from mccprobe.tuning.plan.plan import TilePlan
from mccprobe.tuning.plan.tile import RegisterBudget, Tile


def render_plan(plan: TilePlan) -> str:
    """All of it, a paragraph a subject."""
    tile = plan.request.tile
    parts = [
        [_headline(tile), *_counts(tile)],
        _shared(plan),
        ["registers a thread (at least):", *map(_registers, plan.registers)],
        ["occupancy:", *map(_occupancy, plan.occupancy)],
        list(_layouts(tile)),
        list(_banks(plan)),
        list(_grid(plan.grid)) if plan.grid is not None else [],
        list(_speed(plan)),
        ["notes:", *(f"  - {note}" for note in plan.notes)],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _headline(tile: Tile) -> str:
    fragment = "x".join(map(str, tile.fragment))
    return (
        f"tile {tile.m}x{tile.n}x{tile.k}, {tile.warps_m}x{tile.warps_n} warps of {tile.warp_threads} = "
        f"{tile.threads} threads, fragment {fragment}, pads {tile.pad_a} and {tile.pad_b}, "
        f"{tile.buffers} buffer{'s' if tile.buffers > 1 else ''}"
    )


def _counts(tile: Tile) -> list[str]:
    return [
        f"  intensity     {tile.intensity:g} FLOP for each byte from global memory",
        f"  a warp        {tile.warp_m}x{tile.warp_n}: {tile.accumulators} accumulators",
        f"  a step of K   {tile.loads_a} A + {tile.loads_b} B loads, {tile.accumulators} MMAs: "
        f"{tile.ratio:.2f} MMAs a load",
        f"  a tile of K   {tile.steps} steps, {tile.accumulators * tile.steps} MMAs a warp",
    ]


def _shared(plan: TilePlan) -> list[str]:
    tile = plan.request.tile
    verdict = "fits" if plan.fits_shared_memory else "DOES NOT FIT"
    copies = f"{tile.buffers} x " if tile.buffers > 1 else ""
    return [
        f"shared memory: {copies}({tile.bytes_a:,} A + {tile.bytes_b:,} B) = {tile.shared_bytes:,} bytes, "
        f"{plan.shared_with_reserve:,} with mcc's reserve [I]; limit {plan.shared_limit:,}: {verdict}",
        f"  {tile.moved_bytes:,} bytes moved a tile: {tile.vectors:g} float4 a thread",
    ]


def _registers(budget: RegisterBudget) -> str:
    fits = {True: "fits", False: "DOES NOT FIT: memory traffic is to be expected", None: "limit unknown"}[budget.fits]
    operands = "operands unknown" if budget.operands is None else f"{budget.operands} operands"
    return (
        f"  {budget.floats:>2} floats an accumulator: {budget.accumulators} accumulators + "
        f"{budget.prefetch} prefetch + {operands} = {budget.at_least} of {budget.budget}: {fits}"
    )


def _occupancy(entry: Occupancy) -> str:
    if entry.blocks_per_mp is None:
        return f"  {entry.title}: no answer ({entry.reason})"
    at_most = "at most " if entry.bound == AT_MOST else ""
    percent = "" if entry.percent is None else f", {entry.percent} %"
    limiter = f", limited by {entry.limiter}" if entry.limiter else ""
    return f"  {entry.title}: {at_most}{number_of(entry.blocks_per_mp, 'block')} an MP{percent}{limiter}"


def _layouts(tile: Tile) -> Iterator[str]:
    yield f"layouts of {tile.warps} warps:"
    yield "  warps   a warp     A  B  MMAs  MMAs a load"
    for one in tile.layouts():
        mark = "  <" if (one.warps_m, one.warps_n) == (tile.warps_m, tile.warps_n) else ""
        warp = f"{one.warp_m}x{one.warp_n}"
        yield (
            f"  {f'{one.warps_m}x{one.warps_n}':<7} {warp:<9} {one.loads_a:>2} {one.loads_b:>2}  {one.accumulators:>4}"
            f"  {one.ratio:.2f}{mark}"
        )


def _banks(plan: TilePlan) -> Iterator[str]:
    yield f"bank conflicts ({machine.BANKS} banks of {machine.BANK_BYTES} bytes):"
    for one in plan.banks:
        yield (
            f"  {one.what}, {one.width_bytes} bytes a lane: {one.cycles} cycles, {one.ideal} without conflict "
            f"({one.slowdown:.2f}x)"
        )


def _grid(grid: GridPlan) -> Iterator[str]:
    problem = grid.problem
    yield (
        f"{problem.m}x{problem.n}x{problem.k}: {grid.tiles_m}x{grid.tiles_n} = {grid.blocks:,} blocks, "
        f"{grid.resident} at a time, {grid.waves} waves, {100 * grid.last_wave:.1f} % of their slots filled"
    )
    for name, strip, total in (("A", grid.strip_a, grid.all_a), ("B", grid.strip_b, grid.all_b)):
        fits = "fits" if total <= machine.L2_BYTES else "does not fit"
        yield f"  a strip of {name}: {_mib(strip)}; all: {_mib(total)}, {fits} the L2 of {_mib(machine.L2_BYTES)}"
    yield "  order of blocks, strips of A and B a wave, read from global memory if no wave helps the next:"
    for order in grid.orders:
        yield (
            f"  {order.order:<11} {order.strips_a:5.1f} A {order.strips_b:5.1f} B  {order.bytes / 1e9:7.2f} GB "
            f"= {1e3 * order.seconds:6.2f} ms; {order.shared_turns} of {order.turns} turns share a strip"
        )
    at_peak = problem.flop / machine.PEAK.value
    yield f"  {problem.flop:,} FLOP: {1e3 * at_peak:.2f} ms at the peak"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):g} MiB"


def _speed(plan: TilePlan) -> Iterator[str]:
    yield f"bounds at {plan.request.clock_ghz:g} GHz (a bound is no prediction):"
    for bound in plan.bounds:
        yield f"  {bound.name}: {bound.tflops:.1f} TFLOPS ({bound.how})"
    side = "above" if plan.request.tile.intensity >= speed.ridge() else "below"
    yield f"  {plan.request.tile.intensity:g} FLOP/byte is {side} the ridge of {speed.ridge():.1f}"
    if plan.latency is None:
        yield "  latency: not known for this fragment"
    else:
        yield (
            f"  latency: {plan.latency.needed:.1f} MMAs in flight an MP reach the peak, {plan.latency.available} are "
            f"independent; one a warp: {plan.latency.one_in_flight_tflops:.1f} TFLOPS"
        )
    model = plan.model
    if model.reasons:
        yield f"  model of section 23: {speed.OUTSIDE}: {'; '.join(model.reasons)}"
        return
    yield (
        f"  model of section 23 ({model.mmas} MMAs in {model.instructions} instructions, ratio {model.ratio:.4f}): "
        f"{model.cycles:,.0f} cycles a tile of K"
    )
    yield (
        "    "
        + ", ".join(f"{value:.1f} TFLOPS at {clock:g} GHz" for clock, value in model.tflops)
        + (f" (one block on each of {machine.MULTIPROCESSORS.value:g} MPs)")
    )
