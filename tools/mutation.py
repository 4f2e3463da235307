#!/usr/bin/env python3
"""Mutation testing of mccprobe/search, binary and isa with mutmut: which changes of the code does no test notice?

  tools/mutation.py [--package P] [--per-package N | --all] [--seed S] [--jobs J] [--work DIR]   draw, run, tabulate
  tools/mutation.py --table [--work DIR]      the table of what ran so far
  tools/mutation.py --survivors [--work DIR]  the difference of every mutant that no test noticed

Works on a copy of the tree (--work, build/mutation unless given); a stopped run goes on where it was. With
--per-package a sample without replacement is drawn from each package's mutants, always the same one for the
same seed and code; the interval is the Wilson interval at 95 % with the correction for a finite population.
How the tests are chosen stands under [tool.mutmut] in pyproject.toml, what came of it in tests/mutation.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("search", "binary", "isa")
MUTMUT = Path(sys.executable).parent / "mutmut"
Z_95 = 1.959964  # two-sided 95 % of the normal distribution
# what mutmut writes for a mutant: the exit status of pytest, or a number of its own
KILLED, SURVIVED, NO_TESTS, TIMEOUTS = {1, 3}, {0}, {5, 33}, {36, -24, 24, 152, 255}
COPIED = ("mccprobe", "tests", "kernels", "wrappers", "bisect", "reports", "tools")
COPIED += ("pyproject.toml", "README.md", "LICENSE")
BATCH = 450  # mutants a run of mutmut; each run begins with one of all tests, which costs about a minute
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")


def copy_tree(work: Path) -> None:
    """Bring what the tests read to `work`; files that are the same keep their time, so mutants of them stay."""
    for name in COPIED:
        source, target = ROOT / name, work / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=IGNORED, dirs_exist_ok=True, copy_function=copy_if_changed)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            copy_if_changed(str(source), str(target))


def copy_if_changed(source: str, target: str) -> None:
    if not Path(target).exists() or Path(source).read_bytes() != Path(target).read_bytes():
        shutil.copy2(source, target)
        Path(target).touch()


def mutmut(work: Path, *arguments: str) -> int:
    return subprocess.run([str(MUTMUT), *arguments], cwd=work, check=False).returncode


def statuses(work: Path, package: str) -> dict[str, int | None]:
    """Every mutant of a package and its exit status, None where it did not run."""
    found: dict[str, int | None] = {}
    for meta in sorted((work / "mutants/mccprobe" / package).rglob("*.meta")):
        found.update(json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"])
    return found


def draw(names: Iterable[str], count: int | None, seed: int) -> list[str]:
    """A sample without replacement; a larger one of the same seed begins with the smaller one."""
    shuffled = sorted(names)
    random.Random(seed).shuffle(shuffled)
    return shuffled[:count]


def interval(hits: int, drawn: int, population: int) -> tuple[float, float]:
    """Wilson interval of a share at 95 %, its sample size scaled up for a finite population."""
    if drawn >= population:
        return hits / drawn, hits / drawn
    size = drawn * (population - 1) / (population - drawn)
    share = hits / drawn
    centre = (share + Z_95**2 / (2 * size)) / (1 + Z_95**2 / size)
    half = Z_95 / (1 + Z_95**2 / size) * math.sqrt(share * (1 - share) / size + Z_95**2 / (4 * size**2))
    return centre - half, centre + half


def table(work: Path, samples: dict[str, list[str]]) -> str:
    lines = ["| package | mutants | drawn | killed | by time limit | no test | survived | score | 95 % |"]
    lines.append("| --- |" + " ---: |" * 8)
    for package, sample in samples.items():
        known = statuses(work, package)
        count = Counter(kind(known.get(name)) for name in sample)
        ran = sum(count.values()) - count["not run"]
        if not ran:
            continue
        noticed = count["killed"] + count["time limit"]
        low, high = interval(noticed, ran, len(known))
        lines.append(
            f"| {package} | {len(known)} | {ran} | {count['killed']} | {count['time limit']} | {count['no test']} "
            f"| {count['survived']} | {noticed / ran:.1%} | {low:.1%} to {high:.1%} |"
        )
        if count["not run"] or count["other"]:
            lines.append(f"\n{package}: {count['not run']} did not run, {count['other']} ended otherwise\n")
    return "\n".join(lines)


def kind(status: int | None) -> str:
    if status is None:
        return "not run"
    for name, those in (("killed", KILLED), ("survived", SURVIVED), ("no test", NO_TESTS), ("time limit", TIMEOUTS)):
        if status in those:
            return name
    return "other"


def survivors(work: Path, samples: dict[str, list[str]]) -> None:
    from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant  # `mutmut show` starts once a mutant

    os.chdir(work)
    for package, sample in samples.items():
        known = statuses(work, package)
        for name in sample:
            if kind(known.get(name)) in {"survived", "no test", "other"}:
                shown = get_diff_for_mutant(name, path=find_mutant(name).path)
                changed = [line for line in shown.splitlines() if re.match(r"[-+@](?![-+])", line)]
                print(f"# {name} ({kind(known.get(name))})", *changed, sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-package", type=int, default=500, help="mutants drawn of each package (500)")
    parser.add_argument("--package", action="append", choices=PACKAGES, help="this one alone; may be repeated")
    parser.add_argument("--all", action="store_true", help="every mutant: hours")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", type=Path, default=ROOT / "build/mutation")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--survivors", action="store_true")
    chosen = parser.parse_args()
    work: Path = chosen.work.resolve()
    if not (chosen.table or chosen.survivors):
        copy_tree(work)
        # mutmut has no command that only makes the mutants: the smallest module is run for that
        kept = work / "mutants/mutation-seconds.json"  # mutmut forgets the tests that the plugin leaves out
        if not kept.exists():
            if status := mutmut(work, "run", "--max-children", str(chosen.jobs), "mccprobe.search.profile.*"):
                return status
            shutil.copy(work / "mutants/mutmut-stats.json", kept)
    samples = {
        package: draw(statuses(work, package), None if chosen.all else chosen.per_package, chosen.seed)
        for package in chosen.package or PACKAGES
    }
    if chosen.survivors:
        survivors(work, samples)
        return 0
    if not chosen.table:
        known = {name: status for package in samples for name, status in statuses(work, package).items()}
        # packages take turns, so that a run that is stopped has seen something of each
        turns = [name for drawn in zip_longest(*samples.values()) for name in drawn if name]
        waiting = [name for name in turns if known[name] is None]
        for start in range(0, len(waiting), BATCH):
            batch = waiting[start : start + BATCH]
            if status := mutmut(work, "run", "--max-children", str(chosen.jobs), *batch):
                return status
            print(table(work, samples), flush=True)
    print(table(work, samples))
    return 0


if __name__ == "__main__":
    sys.exit(main())
