"""`mccprobe flags search` on a program whose best flags are known: the article's order against all points."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from measure import MCCPROBE, ROOT, machine, report, timed

EXAMPLE = ROOT / "tests" / "flag_search"
BEST = ["-fvectorize", "-mavx2"]
MAX_TRIALS_SHARE = 0.6  # of all points: more would be no search


def run(strategy: str, folder: Path) -> tuple[float, int, bool]:
    """Seconds, trials, whether the known best set was found."""
    argv = [
        *MCCPROBE,
        "-q",
        "flags",
        "search",
        str(EXAMPLE / "known.c"),
        "--compiler",
        "clang-14",
        "--space",
        str(EXAMPLE / "known.toml"),
        "--strategy",
        strategy,
        "--journal",
        "",
        "--json",
        "-o",
        str(folder / strategy),
        "--",
        "-O1",
        "-fno-unroll-loops",
        "-lm",
    ]
    seconds, result = timed(argv)
    if result.returncode:
        sys.exit(result.stderr.decode())
    document = json.loads(result.stdout)
    return seconds, len(document["trials"]), document["winner"]["flags"] == BEST


def main() -> int:
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        every_s, every, found_all = run("exhaustive", Path(name))
        article_s, few, found = run("article", Path(name))
    print(f"exhaustive: {every} trials in {every_s:.1f} s; article: {few} trials in {article_s:.1f} s")
    holds = [
        report("trials of the article's order / all points", few / every, MAX_TRIALS_SHARE),
        report("known best sets missed, of 2", 2.0 - found_all - found, 0.0),
    ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
