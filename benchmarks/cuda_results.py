"""What the kernels say on this machine's NVIDIA GPU, kept with the command that made it.

    python benchmarks/cuda_results.py [--rounds N] [KERNEL...]

Each kernel is checked with all its cases (`mccprobe check --cases full`); those that pass are timed (`mccprobe
bench`, device events). Files: kernels/NAME/results/GPU.json. The figures are the named GPU's and say nothing
about an S4000; nothing here is set beside its figures.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time

from measure import MCCPROBE, ROOT

from mccprobe.oracle.kernel.spec import find_shipped_kernels, load_kernel
from mccprobe.targets.nvidia.toolchain import cuda_toolchain

TIMEOUT_S = 900


def run(*arguments: str) -> dict[str, object]:
    """One command with --json: its exit code and its document."""
    command = [*MCCPROBE, *arguments, "--toolchain", "cuda", "--journal", "", "--json"]
    start = time.perf_counter()
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    try:
        document = json.loads(result.stdout)
    except ValueError:
        document = {"status": "no document", "stderr": result.stderr[-2000:]}
    for key in ("folder", "run_directory"):
        document.pop(key, None)
    shown = ["mccprobe", *arguments, "--toolchain", "cuda", "--json"]
    seconds = round(time.perf_counter() - start, 1)
    return {"command": shown, "exit_code": result.returncode, "seconds": seconds, "document": document}


def without_places(text: str) -> str:
    """Paths from the repository's root on; temporary folders as BUILD."""
    text = text.replace(f"{ROOT}/", "")
    return re.sub(re.escape(tempfile.gettempdir()) + r"/[^/\"\s]+/(?:build-[^/\"\s]+/)?", "BUILD/", text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--no-bench", action="store_true")
    parser.add_argument("kernels", nargs="*")
    options = parser.parse_args()
    toolchain = cuda_toolchain()
    gpu, _ = toolchain.gpu
    if not gpu:
        print("no NVIDIA GPU here", file=sys.stderr)
        return 1
    seeds = [word for seed in options.seed or [1] for word in ("--seed", str(seed))]
    for folder in sorted(find_shipped_kernels()):
        kernel = load_kernel(folder)
        if options.kernels and kernel.name not in options.kernels:
            continue
        # the kernels lie behind a link in the package
        place = (ROOT / "kernels" / folder.name / "results") / (re.sub(r"\W+", "-", gpu).strip("-").lower() + ".json")
        check = run("check", f"kernels/{folder.name}", "--cases", "full", *seeds)
        entry: dict[str, object] = {"gpu": gpu, "compiler": toolchain.identify().version, "check": check}
        if check["exit_code"] == 0 and not options.no_bench:
            entry["bench"] = run("bench", f"kernels/{folder.name}", "--rounds", str(options.rounds))
        place.parent.mkdir(exist_ok=True)
        place.write_text(without_places(json.dumps(entry, indent=1, ensure_ascii=False)) + "\n", encoding="utf-8")
        bench = entry.get("bench")
        told = f", bench exit {bench['exit_code']}, {bench['seconds']} s" if isinstance(bench, dict) else ""
        print(f"{kernel.name}: check exit {check['exit_code']}, {check['seconds']} s{told}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
