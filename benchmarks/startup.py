"""Start-up: `mccprobe --version`, and an answer to TAB, beside the import of the command-line library alone."""

from __future__ import annotations

import os
import sys

from measure import MCCPROBE, REPEATS, machine, median, report, timed


def main() -> int:
    print(f"startup: {machine()}")
    both = []
    for _ in range(REPEATS):
        click = median(lambda: timed([sys.executable, "-c", "import click"])[0])
        version = median(lambda: timed([*MCCPROBE, "--version"])[0])
        both.append(version / click)
    print(f"  import click {click * 1000:.0f} ms, --version {version * 1000:.0f} ms")
    fast = report("--version / import click", sorted(both)[len(both) // 2], 1.5)
    os.environ |= {"COMP_WORDS": "mccprobe bisect --flag inter", "COMP_CWORD": "3"}
    os.environ["_MCCPROBE_COMPLETE"] = "bash_complete"
    offered = median(lambda: timed([*MCCPROBE])[0])
    print(f"  completion of a flag's name {offered * 1000:.0f} ms")
    return 0 if report("completion of a flag / import click", offered / click, 3.5) and fast else 1


if __name__ == "__main__":
    sys.exit(main())
