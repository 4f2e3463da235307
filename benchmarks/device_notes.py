"""A thousand kernels in one object: `notes` and `report` beside `llvm-readelf-14 --notes`.

The object comes from clang-14 for gfx908. Start-up is subtracted: of each command what it takes on an
object with one kernel. Seconds are of CPU, children included, medians of 5 in one run, so that a busy
machine does not decide; memory is the highest resident size of the process itself.

`report` counts instructions, for which llvm-objdump must run: that is set beside both LLVM tools.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import MCCPROBE, REPEATS, machine, report

KERNELS = 1000
GFX = "-x cl -cl-std=CL2.0 -Xclang -finclude-default-header -target amdgcn-amd-amdhsa -mcpu=gfx908 -nogpulib".split()
TIME_BOUND = 2.0  # of what llvm-readelf takes, issue 3
MEMORY_BOUND = 8.0  # of the file, issue 3
COMMANDS = (
    (["notes"], False), (["notes", "--json"], False), (["report", "--no-instructions"], False),
    (["report", "--no-instructions", "--json"], False), (["report"], True), (["report", "--json"], True),
)  # fmt: skip


def make_object(folder: Path, kernels: int) -> Path:
    """Small kernels, all different."""
    source, made = folder / f"{kernels}.cl", folder / f"{kernels}.o"
    source.write_text(
        "".join(
            f"__kernel void k{k}(__global float *a, __global float *b, int n) "
            f"{{ int i = get_global_id(0); if (i < n) b[i] = a[i] * {k}.5f + b[i + {k}]; }}\n"
            for k in range(kernels)
        )
    )
    subprocess.run(["clang-14", *GFX, "-O2", "-c", str(source), "-o", str(made)], check=True)
    return made


def cost(argv: Sequence[str]) -> tuple[float, float]:
    """(seconds of CPU, highest bytes) of one process, medians. Bytes are those of the largest descendant."""
    found = []
    for _ in range(REPEATS):
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        if status:
            raise SystemExit(f"{' '.join(argv)}: status {status}")
        found.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024))
    seconds, size = zip(*found, strict=True)
    return statistics.median(seconds), statistics.median(size)


def main() -> int:
    print(f"device notes: {machine()}")
    good = True
    with tempfile.TemporaryDirectory() as name:
        one, many = make_object(Path(name), 1), make_object(Path(name), KERNELS)
        size = many.stat().st_size

        def net(command: Sequence[str]) -> tuple[float, float]:
            small, large = cost([*command, str(one)]), cost([*command, str(many)])
            return large[0] - small[0], large[1] - small[1]

        readelf = net(["llvm-readelf-14", "--notes"])[0]
        objdump = net(["llvm-objdump-14", "-d"])[0]
        print(f"  {size:,} bytes; llvm-readelf-14 --notes {readelf:.3f} s, llvm-objdump-14 -d {objdump:.3f} s")
        for command, counts in COMMANDS:
            seconds, memory = net([*MCCPROBE, *command])
            text = " ".join(command)
            name, beside = ("readelf + objdump", readelf + objdump) if counts else ("readelf", readelf)
            good &= report(f"{text}: CPU over {name}", seconds / beside, TIME_BOUND)
            if not counts:  # with a child the larger of the two is seen
                good &= report(f"{text}: memory over the file", memory / size, MEMORY_BOUND)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
