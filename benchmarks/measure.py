"""Shared by the benchmarks: medians of 5 in one run, and the machine that they are of."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

REPEATS = 5
ROOT = Path(__file__).resolve().parent.parent
MCCPROBE = [sys.executable, "-m", "mccprobe"]


def machine() -> str:
    """CPU and core count."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), platform.processor())
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"


def timed(argv: Sequence[str]) -> tuple[float, subprocess.CompletedProcess[bytes]]:
    """Seconds of one process, and how it ended."""
    start = time.perf_counter()
    result = subprocess.run(list(argv), capture_output=True, check=False)
    return time.perf_counter() - start, result


def median(measure: Callable[[], float], repeats: int = REPEATS) -> float:
    """Median of several calls."""
    return statistics.median(measure() for _ in range(repeats))


def report(name: str, value: float, bound: float, unit: str = "") -> bool:
    """Print one figure beside its bound; True if it holds."""
    holds = value <= bound
    print(f"{name:<58} {value:10.3f}{unit}  (at most {bound:g}{unit})  {'ok' if holds else 'MISSED'}")
    return holds
