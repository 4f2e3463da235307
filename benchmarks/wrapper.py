"""The wrapper beside the article's four-line bash wrapper, both before `true`, call by call in turns."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measure import REPEATS, machine, report

from mccprobe.build.wrapper.flagset import WrapperSet, wrapper_sets
from mccprobe.build.wrapper.script import generate

BOUND = 1.5  # of the article's wrapper
CALLS = 150  # of each in one round; one call takes some 2 ms and the machine's noise is of that size
SHELLS = (["bash", "--posix"], ["busybox", "sh"])  # /bin/sh is one of these on some systems
# as a build system writes them: the article's compile, CMake's compile of a large project, its link
SHORT = ["-O3", "--offload-arch=mp_22", "-march=native", "src/team03_gemm_work.mu", "-lmusart", "-o", "test"]
COMPILE = [
    *(f"-Iinclude/part{n}" for n in range(12)), *(f"-DOPTION_{n}={n}" for n in range(12)), "-O3", "-std=c++17", "-Wall",
    "-fno-strict-aliasing", "-x", "musa", "--offload-arch=mp_22", "-MD", "-MT", "k.o", "-MF", "k.d",
    "-o", "k.o", "-c", "k.mu",
]  # fmt: skip
LINK = ["-O3", "-Wl,-rpath,lib", *(f"objects/{n}.o" for n in range(60)), "-o", "app", "-lmusart", "-lm"]


def article(compiler: Path, chosen: WrapperSet) -> str:
    """The script of the article's section 18, with `compiler` in the place of its mcc."""
    flags = " \\\n".join("    " + " ".join(one.words) for one in chosen.additions)
    return f'#!/bin/bash\nREAL_MCC={compiler}\nexec "$REAL_MCC" \\\n{flags} \\\n    "$@"\n'


def in_turns(commands: Sequence[Sequence[str]]) -> list[float]:
    """Seconds of each command's median call; one call of each after the other, so that noise meets all of them."""
    seconds: list[list[float]] = [[] for _ in commands]
    for _ in range(CALLS):
        for command, times in zip(commands, seconds, strict=True):
            start = time.perf_counter()
            subprocess.run(command, check=True)
            times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in seconds]


def main() -> int:
    print(f"wrapper: {machine()}; /bin/sh is {Path('/bin/sh').resolve()}")
    for name in [name for name in os.environ if name.startswith("MCCPROBE_")]:
        del os.environ[name]
    sets = wrapper_sets("gemm-s4000")
    true = Path(shutil.which("true") or "/bin/true")
    good = True
    with tempfile.TemporaryDirectory(prefix="mccprobe-bench-") as folder:
        ours, theirs = Path(folder, "ours"), Path(folder, "article")
        ours.write_bytes(generate(true, sets))
        theirs.write_text(article(true, sets.chosen))
        ours.chmod(0o755)
        theirs.chmod(0o755)
        shells = [("", []), *((f" with {name[0]} as sh", name) for name in SHELLS if shutil.which(name[0]))]
        for told, shell in shells:
            for name, argv in (("article's compile", SHORT), ("CMake's compile", COMPILE), ("link", LINK)):
                rounds = [in_turns([[str(theirs), *argv], [*shell, str(ours), *argv]]) for _ in range(REPEATS)]
                first, second = (statistics.median(times) for times in zip(*rounds, strict=True))
                print(f"  {name}{told}: article's wrapper {first * 1000:.2f} ms, ours {second * 1000:.2f} ms")
                good &= report(f"{name} / the same through four lines of bash{told}", second / first, BOUND)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
