"""Every figure of the article that follows from others: those that agree, and the contradictions that
docs/article-figures.md states."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.objects.model.occupancy import Demand, estimate
from mccprobe.objects.model.resources import ASSEMBLY_RESERVE_BYTES, MCC_RESERVE_BYTES
from mccprobe.tuning.plan import machine, speed
from mccprobe.tuning.plan.banks import fragment_load, row_reads, strided
from mccprobe.tuning.plan.grid import GROUP, Problem, grid_plan
from mccprobe.tuning.plan.tile import Tile, register_budgets

FULL = Problem(8192, 8192, 16384)
FINAL = Tile(256, 256, 32, 4, 2)  # section 15
WIDE = Tile(256, 256, 32, 2, 2)  # section 20: 512 threads, 16 accumulators
REBUILT = Tile(128, 128, 64, 2, 2)  # section 12
V1 = Tile(64, 64, 32, 2, 2, (16, 16, 16), warp_threads=32)  # section 2
V2 = Tile(128, 128, 32, 4, 4, (16, 16, 16), warp_threads=32)  # section 3
V59 = Tile(256, 256, 32, 4, 4, (16, 16, 16), warp_threads=32)  # section 5
V68 = Tile(256, 256, 32, 4, 4, warp_threads=32)  # section 6
MUBLAS = Tile(256, 256, 32, 2, 2, pad_a=0, pad_b=0, buffers=2)  # section 22.2
LOOP = 223  # instructions of the main loop, section 23


def tflops(seconds: float) -> float:
    return FULL.flop / seconds / 1e12


def blocks(registers: int | None, shared: int, threads: int) -> int | None:
    found = estimate(Demand("mp_22", {"temp": registers}, shared, threads, "test"))[0]
    return found.blocks_per_mp


def budget(tile: Tile, floats: int) -> int:
    return next(one.accumulators for one in register_budgets(tile, 262_144) if one.floats == floats)


# (section, what, the arithmetic, the article, how exact the article is: share, or 0 for exactly)
AGREE: list[tuple[str, str, Callable[[], float], float, float]] = [
    ("1", "intensity of 16x16", lambda: Tile(16, 16, 16, 1, 1, (16, 16, 16), warp_threads=32).intensity, 8, 0),
    ("3", "intensity of 64x64", lambda: V1.intensity, 32, 0),
    ("3", "intensity of 128x128", lambda: V2.intensity, 64, 0),
    ("5", "intensity of 256x256", lambda: FINAL.intensity, 128, 0),
    ("8", "tolerance at K = 16384", lambda: 0.01 * math.sqrt(16384 / 512), 0.0566, 0.001),
    ("1", "full marks at 30 % of the baseline", lambda: 90 / (0.3 * 86.0126), 3.49, 0.01),
    ("2", "version 1 has 17 times to go", lambda: 86.0126 / 5, 17, 0.02),
    ("2", "threads of version 1", lambda: V1.threads, 128, 0),
    ("3", "threads of version 2", lambda: V2.threads, 512, 0),
    ("3", "accumulators of its 32-thread warp", lambda: V2.accumulators, 4, 0),
    ("3", "float tile of 128x128", lambda: 128 * 128 * 4, 65_536, 0),
    ("5", "MMAs a load of 128x128", lambda: V2.ratio, 1.0, 0),
    ("5", "shared memory of A", lambda: FINAL.bytes_a, 16_896, 0),
    ("5", "shared memory of B", lambda: FINAL.bytes_b, 20_480, 0),
    ("15", "shared memory", lambda: FINAL.shared_bytes, 37_376, 0),
    ("22.2", "with mcc's reserve", lambda: FINAL.shared_bytes + MCC_RESERVE_BYTES, 37_396, 0),
    ("5", "two buffers, in KB", lambda: 2 * FINAL.shared_bytes / 1000, 74, 0.02),
    ("22.2", "muBLAS shared memory", lambda: MUBLAS.shared_bytes + ASSEMBLY_RESERVE_BYTES, 65_664, 0),
    ("5", "accumulators of a block", lambda: 256 * 256, 65_536, 0),
    ("5", "floats a thread of 512", lambda: 256 * 256 / 512, 128, 0),
    ("5", "epilogue of 16 warps, KB", lambda: 16 * 32 * 32 * 4 / 1024, 64, 0),
    ("6", "32x32x16 against 16x16x16", lambda: (32 * 32 * 16) / (16 * 16 * 16), 4, 0),
    ("6", "accumulators of version 68", lambda: V68.accumulators, 4, 0),
    ("6", "MMAs a load of version 68", lambda: V68.ratio, 1.0, 0),
    ("6", "version 68 above muBLAS", lambda: 90 / 86.0126 - 1, 0.05, 0.1),
    ("7", "version 70: 27 s", lambda: tflops(27), 0.08, 0.03),
    ("8", "elements of C", lambda: FULL.m * FULL.n, 67_108_864, 0),
    ("11", "divergent sub-warps", lambda: 64477 / 65536, 0.984, 0.001),
    ("11", "one quarter of the work", lambda: 4 * 22, 90, 0.03),
    ("12", "accumulators of rebuilt 0", lambda: REBUILT.accumulators, 4, 0),
    ("12", "accumulators of 256x256 by 4 warps", lambda: WIDE.accumulators, 16, 0),
    ("13", "52.6 T in ms", lambda: FULL.flop / 52.6e12 * 1e3, 42, 0.01),
    ("13", "22.0 T in ms", lambda: FULL.flop / 22.0e12 * 1e3, 100, 0.001),
    ("13", "the epilogue's share in ms", lambda: FULL.flop * (1 / 22.0e12 - 1 / 52.6e12) * 1e3, 58, 0.01),
    ("13", "iterations with BK 32", lambda: FULL.k / 32, 512, 0),
    ("13", "stride 32", lambda: strided(32, 4).cycles, 32, 0),
    ("13", "stride 33", lambda: strided(33, 4).cycles, 2, 0),
    ("13", "stride 17", lambda: strided(17, 4).cycles, 2, 0),
    ("13", "stride 65", lambda: strided(65, 4).cycles, 2, 0),
    ("13", "32-way against 2-way", lambda: strided(32, 4).cycles / strided(33, 4).cycles, 16, 0),
    ("13", "22 to 48 T", lambda: 48 / 22 - 1, 1.18, 0.01),
    ("14", "strip of B, bytes", lambda: grid_plan(REBUILT, FULL, 56).strip_b, 4 << 20, 0),
    ("14", "strips of B", lambda: grid_plan(REBUILT, FULL, 56).tiles_n, 64, 0),
    ("14", "all of B, bytes", lambda: grid_plan(REBUILT, FULL, 56).all_b, 256 << 20, 0),
    ("14", "L2", lambda: machine.L2_BYTES / (1 << 20), 24, 0),
    ("14", "48 to 54 T", lambda: 54 / 48 - 1, 0.12, 0.05),
    ("15", "threads", lambda: FINAL.threads, 1024, 0),
    ("15", "accumulators of a warp", lambda: FINAL.accumulators, 8, 0),
    ("15", "loads of a step", lambda: FINAL.loads_a + FINAL.loads_b, 6, 0),
    ("15", "MMAs a load", lambda: FINAL.ratio, 1.33, 0.01),
    ("15", "float4 of A and B a thread", lambda: FINAL.vectors, 2, 0),
    ("15", "float4 of A and B, 512 threads", lambda: WIDE.vectors, 4, 0),
    ("15", "float4 with BK 64", lambda: Tile(256, 256, 64, 4, 2).vectors, 4, 0),
    ("15", "halfs of a tile of A", lambda: FINAL.m * FINAL.k, 8192, 0),
    ("15", "registers of two blocks of 130", lambda: 1024 * 2 * 130, 266_000, 0.002),
    ("15", "occupancy in percent", lambda: 100 * 1024 / 6144, 16, 0.05),
    ("15", "registers of a block", lambda: 126 * 1024, 129_000, 0.001),
    ("15", "blocks an MP", lambda: blocks(126, FINAL.shared_bytes + MCC_RESERVE_BYTES, 1024) or 0, 1, 0),
    ("15", "54 to 57 T", lambda: 57 / 54 - 1, 0.06, 0.1),
    ("16", "55 words x 3 slots", lambda: 55 * 3, 165, 0),
    ("16", "MMAs of the loop", lambda: FINAL.accumulators * FINAL.steps, 16, 0),
    ("16", "sum of the pipes listed", lambda: 16 + 24 + 2 + 2 + 7 + 2 + 2, 55, 0),
    ("16", "57 to 67 T", lambda: 67 / 57 - 1, 0.18, 0.03),
    ("17", "67 to 73 T", lambda: 73 / 67 - 1, 0.09, 0.01),
    ("18", "73 to 73.8 T", lambda: 73.8 / 73 - 1, 0.01, 0.1),
    ("18", "57 to 73.8 T", lambda: 73.8 / 57 - 1, 0.295, 0.01),
    ("19", "73 to 79 T", lambda: 79 / 73 - 1, 0.08, 0.03),
    ("20", "floats of an accumulator in 128 lanes", lambda: 32 * 32 / 128, 8, 0),
    ("20", "bytes of 16 accumulators of 32 floats", lambda: 4 * budget(WIDE, 32) + 32, 2080, 0),
    ("20", "three times too many", lambda: (32 - 8) / 8, 3, 0),
    ("20", "MMAs a load of muBLAS", lambda: WIDE.ratio, 2.0, 0),
    ("20", "2.0 is 50 % more", lambda: WIDE.ratio / FINAL.ratio - 1, 0.5, 0.001),
    ("20", "58 to 69 T", lambda: 69 - 58, 11, 0),
    ("22.1", "16 of 55", lambda: 16 / 55, 0.29, 0.01),
    ("22.2", "blocks of muBLAS", lambda: grid_plan(MUBLAS, FULL, 56).blocks, 1024, 0),
    ("22.3", "share of muBLAS", lambda: 73.8 / 78.5, 0.94, 0.001),
    ("23", "403 against the guess of 31", lambda: 403 / 31, 13, 0.001),
    ("23", "operations of m16n8k16", lambda: 16 * 8 * 16 * 2, 4096, 0),
    ("23", "operations of an MMA", lambda: 32 * 32 * 16 * 2, 32_768, 0),
    ("23", "latency for each m16n8k16", lambda: 403 / 8, 50, 0.01),
    ("23", "one MMA a warp, at 1.565 GHz", lambda: speed.latency(FINAL, 1.565).one_in_flight_tflops, 57, 0.001),  # type: ignore[union-attr]
    ("23", "instructions of the loop", lambda: 16 + 24 + 5 + 57 + 69 + 45 + 5 + 2, LOOP, 0),
    ("23", "IPC_inv at 0.5", lambda: speed.FIT_INTERCEPT + speed.FIT_SLOPE / 0.5, -5.46, 0.001),
    ("23", "IPC_inv at 0.01", lambda: speed.FIT_INTERCEPT + speed.FIT_SLOPE / 0.01, 205, 0.002),
    ("23", "model at the clock that it must have had", lambda: model(1.6154), 72.9, 0.001),
    ("23", "748 of 768 GB/s", lambda: machine.BANDWIDTH.value / machine.BANDWIDTH_SPECIFIED.value, 0.97, 0.01),
    ("23.1", "one GEMM in ms at 73.8 T", lambda: FULL.flop / 73.8e12 * 1e3, 30, 0.01),
]


def model(clock_ghz: float, tile: Tile = FINAL, instructions: int = LOOP) -> float:
    found = speed.section_23(tile, instructions, 2, (clock_ghz,))
    return found.tflops[0][1]


def formula(tile: Tile, instructions: int, clock_ghz: float) -> float:
    """Section 23's, without its range. One block an MP on 56 MPs, two barriers."""
    mmas = tile.accumulators * tile.steps
    inverse = -9.76 + 2.15 / (mmas / instructions)
    cycles = max(instructions * inverse, mmas * 403 / tile.warps) + 403 + 2 * 148
    return tile.flop * 56 * clock_ghz * 1e9 / cycles / 1e12


@pytest.mark.parametrize(
    ("section", "what", "reckoned", "told", "share"), AGREE, ids=lambda v: "" if callable(v) else str(v)[:40]
)
def test_figures_that_agree(section: str, what: str, reckoned: Callable[[], float], told: float, share: float) -> None:
    found = reckoned()
    assert found == told if share == 0 else abs(found - told) <= share * abs(told), f"{section}: {what}: {found}"


def test_section_15_table() -> None:
    table = {f"{one.warps_m}x{one.warps_n}": one for one in FINAL.layouts()}
    told = {"8x1": (32, 256, 1, 8, 8, 0.89), "2x4": (128, 64, 4, 2, 8, 1.33), "4x2": (64, 128, 2, 4, 8, 1.33)}
    for name, (warp_m, warp_n, a, b, mmas, ratio) in told.items():
        one = table[name]
        assert (one.warp_m, one.warp_n, one.loads_a, one.loads_b, one.accumulators) == (warp_m, warp_n, a, b, mmas)
        assert round(one.ratio, 2) == ratio


def _c13() -> bool:
    return V59.ratio == 2.0 and (V59.accumulators, V59.loads_a + V59.loads_b) == (16, 8)


def _c14() -> bool:
    shapes = [Tile(32 * m, 32 * n, 16, 1, 1) for m, n in ((1, 8), (2, 4), (4, 2), (8, 1))]
    assert {one.accumulators for one in shapes} == {8}
    return sorted({round(one.ratio, 2) for one in shapes}) == [0.89, 1.33]


def _c17() -> bool:
    grid = grid_plan(REBUILT, FULL, 56)
    by_name = {one.order: one for one in grid.orders}
    return grid.all_a == grid.all_b and by_name["n-first"].bytes == by_name["m-first"].bytes


def _c20() -> bool:
    half = Tile(256, 256, 16, 4, 2)
    within = [formula(half, count, 1.6154) for count in range(80, 115)]  # ratios 0.100 to 0.070
    assert 115 < max(within) < 117
    assert min(within) > 42.5 * 1.4
    return round(formula(half, 138, 1.6154), 1) == 42.4 and round(8 / 138, 3) == 0.058


def _wide_on_32_banks() -> bool:
    return strided(32, 4, banks=32).cycles == 32


def _c9() -> bool:
    sizes = {pad: Tile(256, 256, 32, 4, 2, pad_b=pad, buffers=2).shared_bytes for pad in (0, 8)}
    return sizes == {0: 66_560, 8: 74_752}


def _c15() -> bool:
    warp = 2 * 64 * 128 * 16 / ((64 + 128) * 16 * 2)
    return 133.6 < speed.ridge() < 133.8 and FINAL.intensity < speed.ridge() and round(warp, 1) == 42.7


def _c19() -> bool:
    return [round(model(clock.value), 1) for clock in machine.CLOCKS] == [67.7, 72.2, 75.4]


# Number in docs/article-figures.md -> what shows the contradiction.
CONTRADICTIONS: dict[str, Callable[[], bool]] = {
    "C1": lambda: LOOP > 165,
    "C2": lambda: round(16 / 165, 3) == 0.097 and round(16 / LOOP, 3) == 0.072,
    "C3": lambda: 262_144 // (126 * 1024) == 2 and 2 * 37_396 > 73_728,
    "C4": lambda: budget(FINAL, 32) == 256 and budget(FINAL, 8) == 64,
    "C5": lambda: 50 * 12 == 600 and round(800 / 12, 1) == 66.7 and round(100 / 3, 1) == 33.3,
    "C6": lambda: 32 * 32 * 16 == 16_384,
    "C7": lambda: 512 * FINAL.steps * 4 == 4096 == FULL.k // REBUILT.k * REBUILT.steps * REBUILT.accumulators,
    "C8": _wide_on_32_banks,
    "C9": _c9,
    "C10": lambda: 2 * FINAL.shared_bytes == 74_752,
    "C11": lambda: 512 * 16 == 8192,
    "C12": lambda: (256 * 256 * 4 // 512, 256 * 128 * 4 // 512, 256 * 256 * 4 // 256) == (512, 256, 1024),
    "C13": _c13,
    "C14": _c14,
    "C15": _c15,
    "C16": lambda: machine.L2_BYTES < 8192 * 4096 * 2,
    "C17": _c17,
    "C18": lambda: machine.BARRIER.value == 148,
    "C19": _c19,
    "C20": _c20,
    "C21": lambda: round(73.1 / 57.0, 2) == 1.28,
    "C22": lambda: 77.5 < 78.5,
    "C23": lambda: round(350 / 27.2734) == 13,
    "C24": lambda: round(49_000_000 / 67_108_864, 3) == 0.73,
    "C25": lambda: FINAL.line_a == 264,
    "C26": lambda: (V2.bytes_a, V2.bytes_b, V2.shared_bytes) == (8704, 10_240, 18_944),
    "C27": lambda: 1024 * 16 == 16_384 and FINAL.bytes_a == 16_896,
    "C28": lambda: (round(88 / 70 - 1, 3), round(93.12 / 70 - 1, 3)) == (0.257, 0.33),
    "C29": lambda: (round(5 / 55, 3), round(78.5 / 73, 3), round(78.5 / 73.8, 3)) == (0.091, 1.075, 1.064),
    "C30": lambda: round(16 / 160, 2) == 0.1 and round(formula(FINAL, 160, 1.6)) == 146,
}


@pytest.mark.parametrize("number", CONTRADICTIONS)
def test_contradictions(number: str) -> None:
    assert CONTRADICTIONS[number]()


def test_every_contradiction_is_stated(root: Path) -> None:
    text = (root / "docs" / "article-figures.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (C\d+) \|", text, re.MULTILINE) == list(CONTRADICTIONS)


def test_what_the_arithmetic_explains() -> None:
    pads = {pad: Tile(256, 256, 32, 4, 2, pad_b=pad) for pad in (0, 4, 8, 16)}
    assert {pad: fragment_load(tile, "B").slowdown for pad, tile in pads.items()} == {0: 2, 4: 1, 8: 1, 16: 1}
    assert {fragment_load(Tile(256, 256, 32, 4, 2, pad_a=pad), "A").slowdown for pad in (0, 4, 8, 16)} == {1}
    reads = {pad: [one for one in row_reads(tile, "B") if one.width_bytes == 16] for pad, tile in pads.items()}
    assert {pad: [one.slowdown for one in found] for pad, found in reads.items()} == {0: [4], 4: [], 8: [1], 16: [2]}
    shared = [speed.shared_memory_bound(tile, 1.5).tflops for tile in (FINAL, WIDE)]
    assert [round(value or 0, 1) for value in shared] == [72.6, 96.8]
    hidden = speed.latency(FINAL, 1.5)
    assert hidden is not None
    assert (round(hidden.needed, 1), hidden.available, round(hidden.one_in_flight_tflops, 1)) == (14.6, 64, 54.6)
    grid = grid_plan(FINAL, FULL, 56)
    assert (grid.waves, round(100 * grid.last_wave, 1), GROUP) == (19, 96.2, 8)
    strips = {one.order: round(one.strips_a + one.strips_b) for one in grid.orders}
    assert strips == {"n-first": 34, "m-first": 34, "serpentine": 34, "grouped": 16}
