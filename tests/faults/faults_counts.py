"""How much is run: a bounded share in the suite, all of it by `make soak` (SOAK_...=N in the environment)."""

from __future__ import annotations

import os

SOAKING = bool(os.environ.get("SOAK"))


def count(name: str, share: int, soak: int) -> int:
    """SOAK_<name> from the environment, else `soak` under `make soak`, else `share`."""
    given = os.environ.get(f"SOAK_{name}", "")
    return int(given) if given else soak if SOAKING else share


KILLS = count("KILLS", 2, 100)  # of each kind of run
LIVES = 5 if SOAKING else 2  # at most so many deaths one after the other in one run
SHARDS = count("SHARDS", 1, 4)  # tests that a kind's kills are spread over, for pytest-xdist
SIGNALS = count("SIGNALS", 1, 12)  # moments for each signal and kind of run
DISKS = count("DISKS", 1, 12)  # full disks of random size for each kind of run
PAIRS = count("PAIRS", 1, 10)  # two runs at once in one folder, of each kind of run
SEARCHES = count("SEARCHES", 20, 2000)  # simulated flaky searches at each failure rate
