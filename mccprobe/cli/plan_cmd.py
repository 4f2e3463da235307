"""`mccprobe plan`: the arithmetic of a tile."""

from __future__ import annotations

import re

import click

from mccprobe.base.console import Console
from mccprobe.base.errors import UsageError
from mccprobe.cli.common import FiniteRange

HELP = """Count on paper what a GEMM tile needs and what bounds it, for mp_22 (S4000).

Intensity, shared memory, registers, occupancy, bank conflicts, fragment loads of every warp layout, L2 strips and
block orders, roofline, and the fitted model of the article inside its range only. Nothing is measured.

\b
Examples:
  mccprobe plan --problem 8192x8192x16384 --instructions 223 --registers 126
  mccprobe plan --tile 128x128x64 --warps 2x2 --epilogue-stride 32
"""


@click.command("plan", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--tile", default="256x256x32", show_default=True, metavar="MxNxK", help="of a block")
@click.option("--warps", default="4x2", show_default=True, metavar="RxC", help="warps along M and along N")
@click.option("--fragment", default="32x32x16", show_default=True, metavar="MxNxK", help="of one MMA")
@click.option(
    "--warp-threads",
    type=click.IntRange(1, 1024),
    default=128,
    show_default=True,
    metavar="N",
    help="32 is the mistake of the article's first kernels",
)
@click.option(
    "--pad",
    type=click.IntRange(0, 4096),
    default=8,
    show_default=True,
    metavar="N",
    help="halfs added to a line of A and of B",
)
@click.option("--pad-a", type=click.IntRange(0, 4096), metavar="N", help="of A alone")
@click.option("--pad-b", type=click.IntRange(0, 4096), metavar="N", help="of B alone")
@click.option(
    "--buffers",
    type=click.IntRange(1, 8),
    default=1,
    show_default=True,
    metavar="N",
    help="copies of the tiles in shared memory",
)
@click.option("--registers", type=click.IntRange(1, 4096), metavar="N", help="temp registers a thread, from a report")
@click.option("--problem", metavar="MxNxK", help="the whole GEMM: strips, waves, orders of blocks")
@click.option(
    "--epilogue-stride",
    type=click.IntRange(0),
    default=33,
    show_default=True,
    metavar="N",
    help="floats between lanes that read the epilogue's tile",
)
@click.option(
    "--stride",
    "strides",
    type=click.IntRange(0),
    multiple=True,
    metavar="N",
    help="another stride in floats; several may be given",
)
@click.option("--instructions", type=click.IntRange(1), metavar="N", help="of the main loop, for the article's model")
@click.option("--barriers", type=click.IntRange(0), default=2, show_default=True, metavar="N", help="of the main loop")
@click.option(
    "--clock-ghz", type=FiniteRange(0.1, 10), default=1.5, show_default=True, metavar="F", help="for the bounds"
)
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/plan.schema.json)")
@click.pass_obj
def plan(
    console: Console,
    /,
    tile: str,
    warps: str,
    fragment: str,
    warp_threads: int,
    pad: int,
    pad_a: int | None,
    pad_b: int | None,
    buffers: int,
    registers: int | None,
    problem: str | None,
    epilogue_stride: int,
    strides: tuple[int, ...],
    instructions: int | None,
    barriers: int,
    clock_ghz: float,
    as_json: bool,
) -> int:
    from mccprobe.report.text.plan import render_plan
    from mccprobe.tuning.plan.grid import Problem
    from mccprobe.tuning.plan.plan import PlanRequest
    from mccprobe.tuning.plan.plan import plan as make_plan
    from mccprobe.tuning.plan.tile import Tile

    m, n, k = _sizes("--tile", tile, 3)
    warps_m, warps_n = _sizes("--warps", warps, 2)
    rows, columns, depth = _sizes("--fragment", fragment, 3)
    request = PlanRequest(
        Tile(
            m,
            n,
            k,
            warps_m,
            warps_n,
            (rows, columns, depth),
            pad if pad_a is None else pad_a,
            pad if pad_b is None else pad_b,
            buffers,
            warp_threads,
        ),
        Problem(*_sizes("--problem", problem, 3)) if problem is not None else None,
        registers,
        epilogue_stride,
        strides,
        instructions,
        barriers,
        clock_ghz,
    )
    made = make_plan(request)
    if as_json:
        console.document(made.to_dict())
    else:
        console.result(render_plan(made))
    return 0


def _sizes(option: str, text: str, count: int) -> list[int]:
    """`256x256x32` as numbers from 1 to 2^24. Raises UsageError."""
    parts = text.split("x")
    if len(parts) != count or not all(re.fullmatch(r"[0-9]{1,8}", part) for part in parts):
        raise UsageError(f"{option} {text}: expected {'x'.join('MNK'[:count] if count == 3 else 'RC')}, whole numbers")
    sizes = [int(part) for part in parts]
    if not all(1 <= size <= 1 << 24 for size in sizes):
        raise UsageError(f"{option} {text}: each number must be from 1 to {1 << 24}")
    return sizes
