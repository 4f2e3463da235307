"""`mccprobe bisect` on the shipped GEMM with `sim`, beside the shell loop that it replaces.

Baseline: serial binary search over 0..total; each limit is one full driver call, a link and a run.
Both in one run, interleaved, medians of 5.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import MCCPROBE, REPEATS, ROOT, machine, report

from mccprobe.cli.common import cache_directory
from mccprobe.targets.sim.build import sim_sdk

FLAG = ["-mllvm", "--mtgpu-enable-internal-regs-ra"]


def baseline(mcc: str, folder: Path) -> tuple[float, int, int]:
    """Seconds, compiles, and the first bad limit of the serial loop."""
    start = time.perf_counter()
    base = [mcc, "--offload-arch=mp_22", "-O3", *FLAG]
    sources = [str(ROOT / "kernels/gemm/gemm.mu")]
    subprocess.run(
        [mcc, "--offload-arch=mp_22", "-O3", "-c", str(ROOT / "kernels/common/gemm_main.mu"), "-o", "main.o"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    compiles = 0

    def bad(limit: int) -> tuple[bool, bytes]:
        nonlocal compiles
        compiles += 1
        text = subprocess.run(
            [*base, "-mllvm", f"-opt-bisect-limit={limit}", "-c", *sources, "-o", "k.o"],
            cwd=folder,
            check=True,
            capture_output=True,
        ).stderr
        subprocess.run([*base, "k.o", "main.o", "-lmusart", "-o", "k"], cwd=folder, check=True, capture_output=True)
        ran = subprocess.run(["./k", "--case", "small"], cwd=folder, capture_output=True, check=False)
        return ran.returncode == 1, text

    wrong, text = bad(-1)
    # device and host compile each number from 1: the device's log comes first
    numbers = [int(n) for n in re.findall(rb"running pass \((\d+)\)", text)]
    total = next((numbers[i] for i in range(len(numbers) - 1) if numbers[i + 1] == 1), numbers[-1])
    right = not bad(0)[0]
    assert wrong and right, "the baseline's ends must be bad and good"
    low, high = 0, total
    while high - low > 1:
        middle = (low + high) // 2
        if bad(middle)[0]:
            high = middle
        else:
            low = middle
    return time.perf_counter() - start, compiles, high


def ours(folder: Path) -> tuple[float, float, dict[str, object]]:
    """Seconds of the whole command, of its search phase, and its document."""
    out = folder / "run"
    start = time.perf_counter()
    result = subprocess.run(
        [*MCCPROBE, "bisect", "--flag", "internal-regs-ra", "--toolchain", "sim", "--json", "-o", str(out)],
        capture_output=True,
        check=True,
    )
    seconds = time.perf_counter() - start
    document = json.loads(result.stdout)
    return seconds, float(document["phases"]["search"]), document


def main() -> int:
    mcc = str(sim_sdk(cache_directory()).mcc)
    print(f"bisect_gemm: {machine()}")
    wholes, searches, bases = [], [], []
    for turn in range(REPEATS):
        with tempfile.TemporaryDirectory() as name:
            seconds, compiles, first_bad = baseline(mcc, Path(name))
            bases.append(seconds)
        with tempfile.TemporaryDirectory() as name:
            whole, search, document = ours(Path(name))
            wholes.append(whole)
            searches.append(search)
        assert document["culprit"]["execution"] == first_bad, "both searches must agree"  # type: ignore[index]
        told = f"baseline {seconds:.2f} s ({compiles} builds), search {search:.2f} s, whole {whole:.2f} s"
        print(f"  turn {turn}: {told}, {document['trials']}", flush=True)
    base = statistics.median(bases)
    good = report("search phase / baseline", statistics.median(searches) / base, 0.30)
    good &= report("whole command / baseline", statistics.median(wholes) / base, 0.45)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
