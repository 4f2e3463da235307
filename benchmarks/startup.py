"""Start-up: `mccprobe --version` beside the import of the command-line library alone."""

from __future__ import annotations

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
    return 0 if report("--version / import click", sorted(both)[len(both) // 2], 1.5) else 1


if __name__ == "__main__":
    sys.exit(main())
