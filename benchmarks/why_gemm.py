"""The whole `mccprobe why` on the shipped GEMM with `sim`: the article's seven flags and the faulty one, no reduction.

One run is one whole chain with a fresh run directory; the stand-in SDK is built before. Told: seconds of each step.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import MCCPROBE, machine, report, timed

from mccprobe.cli.common import cache_directory
from mccprobe.targets.sim.build import sim_sdk

LIMIT_S = 180.0  # on 2 cores
TURNS = 3  # a turn takes half a minute


def turn(folder: Path) -> tuple[float, dict[str, object]]:
    """Seconds of the whole command, and its document."""
    argv = [*MCCPROBE, "--quiet", "why", "--set", "gemm-s4000", "--flag", "internal-regs-ra", "--toolchain", "sim"]
    seconds, done = timed([*argv, "--json", "-o", str(folder / "run")])
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, argv, done.stdout, done.stderr)
    return seconds, json.loads(done.stdout)


def main() -> int:
    sim_sdk(cache_directory())
    print(f"why_gemm: {machine()}")
    whole = []
    for number in range(TURNS):
        with tempfile.TemporaryDirectory() as name:
            seconds, document = turn(Path(name))
        assert document["minimal_flag_sets"] == [["internal-regs-ra"]], "another answer is not a faster one"
        assert document["first_bad_instruction"] and document["screen"]["clean"]  # type: ignore[index]
        assert document["report"], document["warnings"]
        whole.append(seconds)
        print(f"  turn {number}: {seconds:.1f} s, {document['phases']}", flush=True)
    return 0 if report("whole why on the GEMM", statistics.median(whole), LIMIT_S, " s") else 1


if __name__ == "__main__":
    sys.exit(main())
