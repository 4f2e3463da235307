"""Mutants of the final kernel: how many are noticed by the numbers, how many by the laboratory, which by neither.

Each mutant is one edit of kernels/gemm or of the small kernel that it falls back to; it is run on the cases
that the laboratory watches.
Bound: at most 10 % survive both. A survivor is printed with the reason that stands beside it here; one without a
reason counts as unexplained and fails.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measure import machine, report

from mccprobe.cli.common import cache_directory
from mccprobe.errors import SourceDoesNotCompile
from mccprobe.kernel.spec import kernels_folder, load_kernel
from mccprobe.lab.session import LabReport, lab_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.toolchain.sim import SimToolchain, sim_toolchain

SURVIVORS_BOUND = 0.1  # share


@dataclass(frozen=True)
class Mutant:
    """One edit. equivalent: why it may survive, "" if it must not. file: below kernels/."""

    name: str
    old: str
    new: str
    equivalent: str = ""
    file: str = "gemm/gemm.mu"


SMALL = "common/wmma_16.h"
SYNC = "__syncthreads();"
BEFORE_READ_BACK = f"major);\n      {SYNC}\n      half *to"
NEXT_TILE = f"    {SYNC}\n    if (more) {{"
READ_BACK = "tile[column * GEMM_EPILOGUE_STRIDE + row + r]"
SERPENTINE = "bx & 1 ? (int)gridDim.x - 1 -"
SHARED = "shared[kSharedBytes / sizeof(float4)"
MUTANTS = (
    # barriers
    Mutant("no barrier after the first tile", "next_b;\n  __syncthreads();", "next_b;"),
    Mutant("no barrier before the next tile", NEXT_TILE, "    if (more) {"),
    Mutant("no barrier after the next tile", "prefetch_b;\n      __syncthreads();", "prefetch_b;"),
    Mutant("no barrier before the read-back", BEFORE_READ_BACK, "major);\n      half *to"),
    Mutant(
        "no barrier after the read-back", "row + r]);\n      __syncthreads();\n    }", "row + r]);\n    }",
        "the tile is one warp's own, and its next WMMA store waits for all of its lanes",
    ),
    Mutant("a barrier for one warp only", f"next_b;\n  {SYNC}", f"next_b;\n  if (warp == 0)\n    {SYNC}"),
    Mutant(
        "__syncwarp before the read-back", BEFORE_READ_BACK, BEFORE_READ_BACK.replace(SYNC, "__syncwarp();"),
        "the tile is one warp's own: __syncwarp is enough",
    ),
    Mutant("__syncwarp before the next tile", NEXT_TILE, NEXT_TILE.replace(SYNC, "__syncwarp();")),
    # warps
    Mutant("warp number by 32", "const int warp = tid / kWarp,", "const int warp = tid / 32 % 8,"),
    Mutant("lanes of 64", "lane = tid % kWarp;", "lane = tid % 64;"),
    Mutant("warps laid the other way", "warp % GEMM_WARPS_M * kWarpM", "warp / GEMM_WARPS_N * kWarpM"),
    Mutant("wrong warp row", "warp_n = warp / GEMM_WARPS_M", "warp_n = warp % GEMM_WARPS_M"),
    # strides and paddings
    Mutant("stride of the A operand", "kLineA);\n#pragma", "kLineA - 8);\n#pragma"),
    Mutant("stride of the B operand", "kLineB);\n#pragma", "kLineB + 8);\n#pragma"),
    Mutant("stride of the store", "tile, acc[i][j], GEMM_EPILOGUE_STRIDE", "tile, acc[i][j], 32"),
    Mutant("stride in bytes", "tile, acc[i][j], GEMM_EPILOGUE_STRIDE", "tile, acc[i][j], GEMM_EPILOGUE_STRIDE * 4"),
    Mutant("stride of the read-back", "column * GEMM_EPILOGUE_STRIDE + row", "column * 32 + row"),
    Mutant("row-major store", "mem_col_major);\n      __sync", "mem_row_major);\n      __sync"),
    # indices
    Mutant("rows of the read-back", "row = lane / 32 * 8;", "row = lane / 32 * 4;"),
    Mutant("column of the read-back", "column = lane % 32,", "column = lane % 16,"),
    Mutant("row and column swapped", READ_BACK, "tile[(row + r) * GEMM_EPILOGUE_STRIDE + column]"),
    Mutant("second row of A", "&sA[kk][warp_m + 32 * i]", "&sA[kk][warp_m + 16 * i]"),
    Mutant("second column of B", "&sB[warp_n + 32 * j][kk]", "&sB[warp_n + 32 * j][0]"),
    Mutant("operands swapped in the sum", "acc[i][j], a[i], b[j], acc[i][j]", "acc[i][j], a[0], b[j], acc[i][j]"),
    Mutant("sum into another accumulator", "acc[i][j], a[i], b[j], acc[i][j]", "acc[i][j], a[i], b[j], acc[i][0]"),
    Mutant("block indices swapped", "const int bx = (int)blockIdx.y;", "const int bx = (int)blockIdx.x;"),
    Mutant(
        "no serpentine", SERPENTINE, SERPENTINE.replace("bx & 1", "false"),
        "the order of the blocks alone: a matter of the cache",
    ),
    Mutant("serpentine off by one", SERPENTINE, SERPENTINE.replace(" - 1", "")),
    Mutant("rows of A by the wrong size", "(long)a_k * M + (long)by", "(long)a_k * K + (long)by"),
    Mutant("rows of B by the wrong size", "+ b_n) * K + b_k", "+ b_n) * M + b_k"),
    Mutant("next tile of A too near", "next_a += (long)GEMM_BK * M;", "next_a += (long)GEMM_BK / 2 * M;"),
    Mutant("next tile of B too far", "next_b += GEMM_BK;", "next_b += GEMM_BK + 8;"),
    Mutant("one tile too many", "more = k0 + GEMM_BK < K;", "more = k0 < K;"),
    Mutant("one tile too few", "more = k0 + GEMM_BK < K;", "more = k0 + 2 * GEMM_BK < K;"),
    Mutant("half of K left out", "kk < GEMM_BK; kk += 16", "kk < GEMM_BK / 2; kk += 16"),
    Mutant("accumulators start at one", "fill_fragment(acc[i][j], 0.0f);", "fill_fragment(acc[i][j], 1.0f);"),
    Mutant("rows left out at the end", "r < 8; r++", "r < 7; r++"),
    Mutant("one row too many", "r < 8; r++", "r < 9; r++"),
    Mutant("tile of B over that of A", "(half *)shared + kHalfsA);", "(half *)shared + kHalfsA - 8);"),
    Mutant("too little shared memory", SHARED, f"{SHARED} - 8"),
    Mutant("epilogue tiles overlap", "warp * kEpilogueFloats;", "warp * 32;"),
    # the small kernel
    Mutant("small: no barrier", f"major);\n  {SYNC}", "major);", file=SMALL),
    Mutant("small: stride of A", "m0, M);", "m0, K);", file=SMALL),
    Mutant("small: a part of the tile", "i < 16 * 16; i += 32", "i < 16 * 15; i += 32", file=SMALL),
    Mutant("small: beyond the tile", "i < 16 * 16; i += 32", "i < 16 * 17; i += 32", file=SMALL),
    Mutant("small: block indices swapped", "m0 = (long)blockIdx.x * 16", "m0 = (long)blockIdx.y * 16", file=SMALL),
)  # fmt: skip


def watched(sim: SimToolchain, scratch: Path) -> Iterator[tuple[Mutant, LabReport | None]]:
    """Each mutant with what the laboratory says; None if it does not compile."""
    for number, mutant in enumerate(MUTANTS):
        home = scratch / str(number)
        shutil.copytree(kernels_folder() / "gemm", home / "gemm")
        shutil.copytree(kernels_folder() / "common", home / "common")
        source = home / mutant.file
        text = source.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            sys.exit(f"{mutant.name}: the text to change stands {text.count(mutant.old)} times in {mutant.file}")
        source.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        try:
            yield mutant, lab_kernel(load_kernel(home / "gemm"), sim, folder=home / "out")
        except SourceDoesNotCompile:
            yield mutant, None
        shutil.rmtree(home)


def main() -> int:
    print(machine())
    counted = by_numbers = by_lab = lab_alone = 0
    survivors: list[Mutant] = []
    with tempfile.TemporaryDirectory() as scratch:
        for mutant, seen in watched(sim_toolchain(cache_directory()), Path(scratch)):
            if seen is None:
                print(f"  {mutant.name}: does not compile, not counted")
                continue
            counted += 1
            wrong = any(one.verdict is not Verdict.GOOD for case in seen.cases for one in case.models)
            kinds = sorted({finding.kind for finding in seen.merged.findings})
            by_numbers += wrong
            by_lab += bool(kinds)
            lab_alone += bool(kinds) and not wrong
            if not wrong and not kinds:
                survivors.append(mutant)
            print(f"  {mutant.name}: {'numbers wrong' if wrong else 'numbers right'}; {', '.join(kinds) or 'nothing'}")
    print(f"{counted} mutants: {by_numbers} by wrong numbers, {by_lab} by the laboratory, {lab_alone} by it alone")
    for mutant in survivors:
        print(f"  survives: {mutant.name}: {mutant.equivalent or 'UNEXPLAINED'}")
    good = report("share that survives", len(survivors) / counted, SURVIVORS_BOUND)
    return 0 if good and all(mutant.equivalent for mutant in survivors) and counted >= 30 else 1


if __name__ == "__main__":
    sys.exit(main())
