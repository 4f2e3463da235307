"""All benchmarks, one after the other; exits 1 if a bound is missed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = (
    "startup.py", "large_unit.py", "bisect_gemm.py", "listings.py", "flaky_confidence.py", "wrapper.py", "flag_sets.py",
    "why_gemm.py", "device_notes.py", "lab_speed.py", "flag_search.py",
)  # fmt: skip


def main() -> int:
    missed = []
    for name in SCRIPTS:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, str(HERE / name)], check=False).returncode:
            missed.append(name)
    print("missed: " + ", ".join(missed) if missed else "every bound holds")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
