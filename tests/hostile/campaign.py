"""The long run: `make fuzz`. Each reader in a process of its own, guided by coverage, until N inputs were read.

    python -m tests.hostile.campaign [--inputs N] [--jobs N] [--plain] [READER...]

Prints a row a reader and each distinct fault with the input that shows it (kept below fuzz-out/). Exit 1 with
faults. Where atheris is not installed, or with --plain, inputs are damaged at random and nothing guides them.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "fuzz-out"
INPUTS = 100_000
SEED = 7
MEMORY = Path("/dev/shm")
LINES = 3  # of an input that are grown
MOST_FAULTS = 50  # distinct ones of a reader, before it is given up


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.campaign")
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--inputs", type=int, default=int(os.environ.get("FUZZ_INPUTS", INPUTS)))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        return _one(options.readers[0], options.inputs, options.seed, plain=options.plain)
    return _all(options)


# ---- all of them ----------------------------------------------------------------------------------


def _all(options: argparse.Namespace) -> int:
    from tests.hostile.readers import rows

    names = options.readers or [reader.name for reader in rows()]
    plain = options.plain or not _has_atheris()
    print(f"{len(names)} readers, {options.inputs} inputs each, {'at random' if plain else 'guided by coverage'}")
    print(f"{'reader':<18} {'inputs':>8} {'records':>8} {'in a second':>11} {'peak MiB':>8} {'faults':>6}")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda name: _process(name, options, plain=plain), names):
            print(
                f"{row['reader']:<18} {row['inputs']:>8} {row['records']:>8} {row['rate']:>11.0f} {row['peak_mib']:>8} "
                f"{len(row['faults']):>6}",
                flush=True,
            )
            for key, (path, text) in row["faults"].items():
                print(f"    {key}\n      {text[:300]}\n      {path}", flush=True)
            failed += bool(row["faults"])
    return 1 if failed else 0


def _has_atheris() -> bool:
    found = subprocess.run([sys.executable, "-c", "import atheris"], capture_output=True, check=False)
    return found.returncode == 0


def _process(name: str, options: argparse.Namespace, *, plain: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.hostile.campaign", "--one", "--inputs", str(options.inputs)]
    command += ["--seed", str(options.seed), *(["--plain"] if plain else []), name]
    place = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix="mccprobe-fuzz-", dir=place) as scratch:
        env = {**os.environ, "TMPDIR": scratch, "MCCPROBE_CACHE": scratch, "PYTHONHASHSEED": "0"}
        log = OUT / name / "log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            done = subprocess.run(command, cwd=ROOT, env=env, stdout=file, stderr=subprocess.STDOUT, check=False)
        with contextlib.suppress(OSError, ValueError):
            row: dict[str, Any] = json.loads((Path(scratch) / "row.json").read_text())
            if done.returncode:
                row["faults"][f"the process ended with {done.returncode}"] = [str(log), "before all inputs were read"]
            return row
    faults = {f"the process ended with {done.returncode}": [str(log), "and told nothing"]}
    return {"reader": name, "inputs": 0, "records": 0, "rate": 0.0, "peak_mib": 0, "faults": faults}


# ---- one of them ----------------------------------------------------------------------------------


class Tally:
    """What came of the inputs of one reader."""

    def __init__(self, name: str, scratch: Path) -> None:
        self.name, self.scratch = name, scratch
        self.ends: Counter[str] = Counter()
        self.faults: dict[str, tuple[str, str]] = {}
        self.inputs = 0
        self.began = time.monotonic()

    def count(self, reader: Any, data: bytes, files: Path) -> None:
        from tests.hostile.limits import Fault, ask

        self.inputs += 1
        try:
            self.ends[ask(reader, data, files)] += 1
        except Fault as fault:
            if fault.key not in self.faults and len(self.faults) < MOST_FAULTS:
                path = OUT / self.name / hashlib.sha256(data).hexdigest()[:16]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                self.faults[fault.key] = (str(path.relative_to(ROOT)), str(fault))
        if self.inputs % 1000 == 0:
            self.write()

    def write(self) -> None:
        rate = self.inputs / max(1e-9, time.monotonic() - self.began)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        row = {
            "reader": self.name,
            "inputs": self.inputs,
            "records": self.ends["record"],
            "rate": rate,
            "peak_mib": peak,
            "ends": dict(self.ends),
            "faults": self.faults,
        }
        (self.scratch / "row.json").write_text(json.dumps(row))


def _one(name: str, inputs: int, seed: int, *, plain: bool) -> int:
    scratch = Path(tempfile.gettempdir())
    if plain:
        return _at_random(name, inputs, seed, scratch)
    import atheris

    with atheris.instrument_imports(include=["mccprobe"]):
        # what is imported later, inside functions, is not instrumented: all modules that readers use are imported here
        from tests.hostile import limits, mutate, readers

        reader = next(one for one in readers.rows() if one.name == name)
        seeds = reader.seeds()
        files = _folder(scratch)
        for data in seeds:
            with contextlib.suppress(limits.Fault):
                limits.ask(reader, data, files, seconds=120)
    tally = Tally(name, scratch)
    _grow(reader, tally, files)
    corpus = scratch / "corpus"
    corpus.mkdir()
    for number, data in enumerate(seeds):
        (corpus / str(number)).write_bytes(data)
    rng = random.Random(seed)
    limits.bound_memory()

    def test(data: bytes) -> None:
        tally.count(reader, data, files)
        if tally.inputs >= inputs:
            tally.write()
            os._exit(0)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        if seed % 4 == 0:  # libFuzzer's own: it knows what the reader compared
            return bytes(atheris.Mutate(data, most))
        return mutate.damaged(data, mutate.random_edits(rng, reader.kind), seeds)[:most]

    arguments = [
        sys.argv[0],
        f"-runs={2 * inputs}",
        f"-max_len={mutate.MOST_BYTES}",
        "-rss_limit_mb=0",
        "-timeout=300",
        "-len_control=0",
        f"-seed={seed}",
        "-print_final_stats=1",
        str(corpus),
    ]
    atheris.Setup(arguments, test, custom_mutator=mutated)
    atheris.Fuzz()
    return 0


def _at_random(name: str, inputs: int, seed: int, scratch: Path) -> int:
    from tests.hostile import limits, mutate, readers

    reader = next(one for one in readers.rows() if one.name == name)
    seeds, rng, files = reader.seeds(), random.Random(seed), _folder(scratch)
    tally = Tally(name, scratch)
    for data in seeds:
        tally.count(reader, data, files)
    _grow(reader, tally, files)
    limits.bound_memory()
    while tally.inputs < inputs:
        data = mutate.damaged(rng.choice(seeds), mutate.random_edits(rng, reader.kind), seeds)
        tally.count(reader, data, files)
    tally.write()
    return 0


def _grow(reader: Any, tally: Tally, files: Path) -> None:
    """Every piece in lines of two inputs; these count as inputs too."""
    from tests.hostile.growth import grown

    for data in reader.seeds()[:2]:
        for one in grown(data, reader.kind, lines=LINES):
            tally.count(reader, one, files)


def _folder(scratch: Path) -> Path:
    files = scratch / "files"
    files.mkdir()
    return files


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
