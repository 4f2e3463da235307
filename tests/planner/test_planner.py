"""Laws of the planner's arithmetic, the limits of its answers, and the command."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import jsonschema
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.base.console import Console
from mccprobe.base.errors import UsageError
from mccprobe.cli.plan_cmd import HELP
from mccprobe.cli.plan_cmd import plan as plan_command
from mccprobe.report.text.plan import render_plan
from mccprobe.tuning.plan import speed
from mccprobe.tuning.plan.banks import fragment_load, request, row_reads, strided
from mccprobe.tuning.plan.grid import ORDERS, Problem, blocks_in_order, grid_plan
from mccprobe.tuning.plan.plan import PlanRequest, plan
from mccprobe.tuning.plan.tile import Tile

FINAL = Tile(256, 256, 32, 4, 2)


@given(st.integers(0, 200), st.sampled_from([2, 4, 8]), st.sampled_from([4, 8, 16]), st.integers(1, 128))
def test_conflicts_against_a_cycle_by_cycle_simulation(stride: int, element: int, width: int, lanes: int) -> None:
    """Serve one word a bank and cycle until all are served."""
    found = strided(stride, element, width_bytes=width, lanes=lanes)
    waiting = {
        at // 4 for lane in range(lanes) for at in range(lane * stride * element, lane * stride * element + width)
    }
    assert found.words == len(waiting)
    cycles = 0
    while waiting:
        served: dict[int, int] = {word % 16: word for word in waiting}
        waiting -= set(served.values())
        cycles += 1
    assert found.cycles == cycles
    assert found.ideal <= found.cycles <= found.words


@pytest.mark.parametrize(("stride", "ways"), [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 32), (31, 2), (33, 2)])
def test_strides_of_floats(stride: int, ways: int) -> None:
    assert strided(stride, 4).cycles == ways


def test_half_words_in_one_bank_are_one_word() -> None:
    assert strided(1, 2, width_bytes=2).words == 16
    assert strided(1, 2, width_bytes=2).cycles == 1


def test_no_order_beats_the_whole_fragment() -> None:
    for pad in range(0, 40, 2):
        tile = Tile(256, 256, 32, 4, 2, pad_a=pad, pad_b=pad)
        for operand in ("A", "B"):
            whole = fragment_load(tile, operand)
            assert whole.words == 32 * 16 // 2
            for one in row_reads(tile, operand):
                pieces = whole.words / one.words  # requests of this width that load the fragment, if all are alike
                assert one.cycles * pieces >= whole.ideal


@pytest.mark.parametrize("bad", [-1, 1 << 21])
def test_strides_that_make_no_sense(bad: int) -> None:
    with pytest.raises(UsageError):
        strided(bad, 4)
    with pytest.raises(UsageError):
        request("nothing", [], 4)


@pytest.mark.parametrize(
    "arguments",
    [(250, 256, 32, 4, 2), (256, 256, 24, 4, 2), (256, 256, 32, 3, 2), (256, 256, 32, 4, 16)],
)
def test_tiles_that_do_not_divide(arguments: tuple[int, int, int, int, int]) -> None:
    with pytest.raises(UsageError):
        Tile(*arguments)


@settings(max_examples=50)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_laws_of_a_tile(rows: int, columns: int, warps_m: int, warps_n: int, depth: int) -> None:
    tile = Tile(32 * rows * warps_m, 32 * columns * warps_n, 16 * depth, warps_m, warps_n)
    assert tile.accumulators * tile.warps * 32 * 32 == tile.m * tile.n
    assert tile.flop == 2 * 32 * 32 * 16 * tile.accumulators * tile.steps * tile.warps
    assert tile.ratio <= min(rows, columns)
    assert tile in tile.layouts()
    assert {one.accumulators for one in tile.layouts()} == {tile.accumulators}


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_has_every_block_once(order: str) -> None:
    blocks = list(blocks_in_order(order, 19, 7))
    assert sorted(blocks) == [(m, n) for m in range(19) for n in range(7)]


def test_serpentine_shares_a_strip_at_every_turn() -> None:
    grid = grid_plan(FINAL, Problem(2048, 1024, 512), 4)
    turns = {one.order: (one.shared_turns, one.turns) for one in grid.orders}
    assert turns["serpentine"] == (3, 3)
    assert turns["m-first"] == (0, 3)


def test_traffic_is_between_once_and_never_shared() -> None:
    grid = grid_plan(FINAL, Problem(4096, 2048, 1024), 56)
    for one in grid.orders:
        assert grid.all_a + grid.all_b <= one.bytes <= grid.blocks * (grid.strip_a + grid.strip_b)


@pytest.mark.parametrize(
    ("tile", "instructions", "reason"),
    [
        (FINAL, None, "not given"),
        (FINAL, 32, "ratio 0.500"),
        (FINAL, 1600, "ratio 0.010"),
        (FINAL, 229, "ratio 0.070, fitted from 0.07"),
        (FINAL, 159, "ratio 0.101"),
        (FINAL, 160, "146 TFLOPS, more than the peak of 100"),
        (Tile(256, 256, 32, 2, 2), 400, "4 warps, fitted for 8"),
        (Tile(128, 128, 32, 4, 2), 50, "fitted to 256x256 tiles"),
        (Tile(256, 256, 64, 4, 2), 446, "BK 16 and 32"),
        (Tile(256, 256, 32, 4, 2, (16, 16, 16), warp_threads=32), 800, "32x32x16 MMA"),
    ],
)
def test_outside_the_model(tile: Tile, instructions: int | None, reason: str) -> None:
    answer = speed.section_23(tile, instructions, 2, (1.6,))
    assert answer.answer == speed.OUTSIDE
    assert not answer.tflops
    assert answer.cycles is None
    assert any(reason in one for one in answer.reasons), answer.reasons


@pytest.mark.parametrize("instructions", [195, 210, 228])
def test_inside_the_model(instructions: int) -> None:
    answer = speed.section_23(FINAL, instructions, 2, (1.6,))
    assert not answer.reasons
    assert 0 < answer.tflops[0][1] <= 100


def test_the_wrong_warp_is_told() -> None:
    made = plan(PlanRequest(Tile(256, 256, 32, 4, 4, warp_threads=32)))
    assert any("physical warp of MP22 has 128" in note for note in made.notes)


def test_two_buffers_do_not_fit() -> None:
    made = plan(PlanRequest(Tile(256, 256, 32, 4, 2, buffers=2), registers=126))
    assert not made.fits_shared_memory
    assert made.occupancy[0].blocks_per_mp == 0
    assert "DOES NOT FIT" in render_plan(made)


def test_a_block_that_cannot_run_is_told_with_the_reason() -> None:
    for tile, words in (
        (Tile(512, 512, 32, 16, 16), "32,768 threads"),
        (Tile(256, 256, 32, 4, 2, buffers=8), "bytes of shared memory, the limit is"),
    ):
        notes = plan(PlanRequest(tile, Problem(512, 512, 32))).notes
        assert any(words in note and "does not start" in note for note in notes), notes
        assert any("no block of this tile runs" in note for note in notes)
    assert not any("no block" in note for note in plan(PlanRequest(FINAL)).notes)


def test_the_roofline_says_that_it_leaves_the_cache_out() -> None:
    """The article reached 54 TFLOPS with an intensity for which it gives 47.9."""
    bound = speed.roofline(64)[1]
    assert bound.tflops is not None
    assert bound.tflops < 54
    assert "L2" in bound.how


# --- the command --------------------------------------------------------------------------------

ARGUMENTS = [
    ["--problem", "8192x8192x16384", "--instructions", "223", "--registers", "126", "--stride", "32"],
    [],
    ["--tile", "64x64x32", "--warps", "2x2", "--fragment", "16x16x16", "--warp-threads", "32", "--pad", "0"],
    ["--tile", "256x256x32", "--warps", "2x2", "--buffers", "2", "--pad-b", "0", "--clock-ghz", "1.6"],
]


def run_plan(arguments: list[str]) -> Result:
    return CliRunner().invoke(plan_command, arguments, obj=Console(), standalone_mode=False)


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=" ".join)
def test_json_follows_its_schema(arguments: list[str], root: Path) -> None:
    schema = json.loads((root / "reports" / "plan.schema.json").read_text(encoding="utf-8"))
    result = run_plan([*arguments, "--json"])
    assert (result.exception, result.stderr) == (None, "")
    jsonschema.validate(json.loads(result.stdout), schema)


def test_examples_of_the_help_run() -> None:
    examples = re.findall(r"^  mccprobe plan (.*)$", HELP, re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        assert run_plan(shlex.split(example)).exception is None


def test_text_has_the_tables() -> None:
    out = run_plan(ARGUMENTS[0]).stdout
    for part in (
        "2 A + 4 B loads, 8 MMAs: 1.33",
        "37,396 with mcc's reserve",
        "8x1     32x256     1  8     8  0.89",
        "limited by shared memory",
        "stride 32 x 4 bytes, 4 bytes a lane: 32 cycles",
        "all: 256 MiB, does not fit",
        "67.7 TFLOPS at 1.5 GHz",
    ):
        assert part in out, part


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tile", "256x256"],
        ["--tile", "0x256x32"],
        ["--tile", "a"],
        ["--warps", "4x2x1"],
        ["--warps", "3x2"],
        ["--problem", "8191x8192x16384"],
        ["--problem", "16777216x16777216x32"],
        ["--epilogue-stride", "99999999"],
        ["--fragment", "1x1x1", "--warp-threads", "1", "--tile", "1x1x1", "--warps", "1x1"],
    ],
    ids=" ".join,
)
def test_bad_input_is_a_usage_error(arguments: list[str]) -> None:
    result = run_plan(arguments)
    assert isinstance(result.exception, UsageError)
    assert result.stdout == ""


def test_a_clock_that_is_no_number_is_refused() -> None:
    result = run_plan(["--clock-ghz", "nan", "--json"])
    assert isinstance(result.exception, click.BadParameter)
    assert result.stdout == ""
