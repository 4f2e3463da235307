"""Tests that the set search needs, beside Go's bisect; and what sets and screen of the shipped GEMM take with `sim`.

    python benchmarks/flag_sets.py [--searches 30] [--no-gemm]

Simulated, deterministic, tests of both ends and of every confirmation included. The bounds are the figures of Go's
bisect in the same setting (reference on algorithms, section 3.3). With 100,000 items a tenth of the searches.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import machine, report

from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.workspace import Workspace, open_workspace
from mccprobe.build.ledger import Ledger
from mccprobe.build.session import Session
from mccprobe.cli.common import cache_directory
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.flag_sets.search import smallest_flag_sets
from mccprobe.explain.screen.run import screen
from mccprobe.oracle.verdict import Verdict
from mccprobe.search.subsets import minimal_sets
from mccprobe.targets.flags.catalogue import load_catalogue

# sizes of the sets: bound at 1,000 and at 100,000 items
BOUNDS = {
    "single": ([1], 20, 29),
    "pair": ([2], 34, 54),
    "triple": ([3], 47, 77),
    "2 independent": ([1, 1], 36, 60),
    "3 independent": ([1, 1, 1], 53, 84),
}
SCREEN_S = 40.0
SETS_S = 20.0
SET, FAULT = "gemm-s4000", "internal-regs-ra"


def needed(items: int, sizes: list[int], searches: int) -> list[int]:
    """Tests of each search."""
    tests = []
    for seed in range(searches):
        chosen = random.Random(f"culprits {items} {sizes} {seed}").sample(range(items), sum(sizes))
        sets = [frozenset(chosen.pop() for _ in range(size)) for size in sizes]

        def test(subset: frozenset[int], sets: list[frozenset[int]] = sets) -> Verdict:
            return Verdict.BAD if any(each <= subset for each in sets) else Verdict.GOOD

        result = minimal_sets(range(items), test, seed=seed)
        if {frozenset(each.items) for each in result.sets} != set(sets):
            raise SystemExit(f"wrong sets for {sets}: {result.sets}")
        tests.append(result.tests)
    return tests


def counts(searches: int) -> bool:
    holds = True
    for items, share in ((1_000, 1), (100_000, 10)):
        for name, (sizes, *bounds) in BOUNDS.items():
            tests = needed(items, sizes, max(3, searches // share))
            bound = bounds[items > 1_000]
            holds &= report(f"{name} of {items}: tests (mean; most {max(tests)})", statistics.mean(tests), bound)
    return holds


def gemm() -> bool:
    """Seconds of both steps on the shipped kernel, each in a fresh run directory."""
    texts = (*(flag.text for flag in load_catalogue().resolve_set(SET)), FAULT)
    resolved = [load_catalogue().resolve(text) for text in texts]

    def sets(workspace: Workspace) -> None:
        found = smallest_flag_sets(workspace, resolved, tell=lambda text: None, deadline=Deadline())
        if [each.flags for each in found.sets] != [(FAULT,)]:
            raise SystemExit(f"wrong sets: {found.sets}")

    def clean(workspace: Workspace) -> None:
        if not screen(workspace.request, workspace, tell=lambda text: None, deadline=Deadline()).clean:
            raise SystemExit("the screen finds something")

    return all(
        [
            report(f"smallest set of {len(texts)} flags, shipped GEMM", on_gemm(texts, sets), SETS_S, " s"),
            report("screen, shipped GEMM", on_gemm((FAULT,), clean), SCREEN_S, " s"),
        ]
    )


def on_gemm(flags: tuple[str, ...], step: Callable[[Workspace], None]) -> float:
    session = Session()
    with tempfile.TemporaryDirectory() as folder:
        request = make_plan(BisectOptions(flags=flags), cache_directory()).request
        run, journal = session.open(Path(folder) / "run")
        workspace = open_workspace(request, Ledger(run, journal, session.executor), journal)
        start = time.perf_counter()
        step(workspace)
        taken = time.perf_counter() - start
        session.close()
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=30)
    parser.add_argument("--no-gemm", action="store_true")
    options = parser.parse_args()
    print(machine())
    holds = counts(options.searches)
    if not options.no_gemm:
        holds &= gemm()
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
