"""Emulation of the final kernel: CPU time of its four small cases together, and what watching every access costs.

Bounds: under 1 s on one core; watched at most 3 times as long. Beside it the same emulation with one
multiply-add at a time instead of packed ones (MCCSIM_SCALAR). Kernel time alone: the launches as the emulator
reports them, in CPU time, so that a busy machine does not count. It says nothing about a GPU.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import machine, median, report

from mccprobe.cli.common import cache_directory
from mccprobe.oracle.kernel.spec import shipped_kernel
from mccprobe.targets.sim.toolchain import SimToolchain, sim_toolchain
from mccprobe.tuning.check.build import BuildFailure, build_kernel
from mccprobe.tuning.lab.session import lab_flags

CASES = ("small", "medium", "large", "non_square")  # the article's four, all of which the final kernel takes
SECONDS_BOUND = 1.0
WATCHED_BOUND = 3.0
SCALAR = ("-DMCCSIM_SCALAR=1", "-fno-vectorize", "-fno-slp-vectorize")
_CPU = re.compile(r"launch gemm_wmma_256 .*\(([0-9.]+) ms of CPU\)")


def build(sim: SimToolchain, folder: Path, flags: Sequence[tuple[str, ...]]) -> Path:
    """The program with these flags."""
    built = build_kernel(shipped_kernel("gemm"), sim, folder=folder, flags=flags)
    if isinstance(built, BuildFailure):
        sys.exit(f"{built.reason}\n{built.detail}")
    return built.program


def seconds(program: Path, lab: Path | None = None) -> float:
    """CPU seconds of the kernel in the four cases."""
    env = {**os.environ, "MCCSIM_VERBOSE": "1", **({"MCCSIM_LAB": str(lab)} if lab else {})}
    total = 0.0
    for case in CASES:
        done = subprocess.run([str(program), "--case", case], env=env, capture_output=True, text=True, check=True)
        found = _CPU.search(done.stderr)
        if found is None:
            sys.exit(f"{case}: no launch of the final kernel\n{done.stderr}")
        total += float(found[1]) / 1000
    return total


def main() -> int:
    print(machine())
    sim = sim_toolchain(cache_directory())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        plain = build(sim, folder, ())
        scalar = build(sim, folder, [("-Xarch_device", flag) for flag in SCALAR])
        watched = build(sim, folder, lab_flags(sim))
        packed_s = median(lambda: seconds(plain))
        scalar_s = median(lambda: seconds(scalar))
        watched_s = median(lambda: seconds(watched, folder / "lab.json"))
    print(f"  scalar emulation of the same kernel: {scalar_s:.3f} s, {scalar_s / packed_s:.1f} times as long")
    good = report("four small cases of the final kernel, kernel CPU time", packed_s, SECONDS_BOUND, " s")
    good &= report("the same with every access watched, times as long", watched_s / packed_s, WATCHED_BOUND)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
