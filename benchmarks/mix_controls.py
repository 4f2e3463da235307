"""Are mixes of a correct pass ever wrong? The evidence behind mccprobe/targets/llvm/data/mixes.toml.

    python benchmarks/mix_controls.py [--file F.c] [--compiler CLANG] [--mixes 24] [--level -O3] [-m=OPTION]... PASS...

Without a file the shipped GEMM is taken, with the stand-in SDK and a flag that has no effect there. Each PASS
(PASS,N for one that runs more than once) is run on every function and skipped on every function; random
mixes of the two are built and judged by the program's own check. A WRONG one would accuse a pass that did
nothing wrong. -m: a further LLVM option, such as -misched-postra for passes that are off by default.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.workspace import open_workspace
from mccprobe.build.executor import LocalExecutor
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.store import RunDirectory
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.locate.judge import ObjectJudge
from mccprobe.explain.locate.mir import SWITCHED_OFF, open_stages
from mccprobe.explain.locate.mir_mix import HunkKind, Mixes
from mccprobe.explain.locate.mir_stage import StageFailed, Stages
from mccprobe.explain.locate.mir_text import parse_mir
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.record import BisectReport, Status

SMALL = 4  # every second mix takes at most so many units, the others any number
NO_EFFECT = {"clang": "-enable-newgvn=false", "sim": "-mtgpu-enable-cse"}  # the program stays right with it


def random_mixes(mixes: Mixes, count: int, rng: random.Random) -> Iterator[str]:
    """Different texts of random mixes; an order that is taken stops anywhere on its path."""
    units = range(len(mixes.units))
    seen = set()
    for number in range(count):
        most = len(units) if number % 2 else min(SMALL, len(units))
        chosen = frozenset(rng.sample(units, rng.randint(1, most)))
        orders = {}
        for unit in chosen:
            first = mixes.units[unit][0]
            if first.kind is HunkKind.ORDER and number % 3:
                path = mixes.swap_path(first.block)
                orders[first.block] = path.order(rng.randint(0, path.length))
        text = mixes.text(chosen, orders)
        if text not in seen:
            seen.add(text)
            yield text


def control(stages: Stages, judge: ObjectJudge, cut: str, count: int) -> str:
    """One line on one pass."""
    pre = stages.before(cut)
    bad = stages.through(cut, pre, stages.options, "on").read_text()
    good = stages.through(cut, pre, [*stages.options, SWITCHED_OFF], "off").read_text()
    outcomes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    for name in re.findall(r"^name: +'?([^'\s]+)", bad, re.MULTILINE):
        sides = parse_mir(good, name), parse_mir(bad, name)
        if sides[0] is None or sides[1] is None or sides[0] == sides[1]:
            continue
        mixes = Mixes(sides[0], sides[1])
        if mixes.refusal:
            refusals[mixes.refusal.partition(" (")[0]] += 1
            continue
        kinds.update(hunk.kind.value for hunk in mixes.hunks)
        for text in random_mixes(mixes, count, random.Random(1)):
            outcomes[judge.verdict(stages.mix_object(cut, text, ()))] += 1
        stages.forget_mixes()
    told = f"right {outcomes[Verdict.GOOD]}, WRONG {outcomes[Verdict.BAD]}, unbuilt {outcomes[Verdict.UNRESOLVED]}"
    return f"{cut:<24} {told}; {dict(kinds)} {dict(refusals) or ''}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("passes", nargs="+")
    parser.add_argument("--file")
    parser.add_argument("--compiler", default="clang-14")
    parser.add_argument("--level", default="-O3")
    parser.add_argument("--mixes", type=int, default=24)
    parser.add_argument("-m", dest="llvm", action="append", default=[])
    options = parser.parse_args()
    args = tuple(part for option in options.llvm for part in ("-mllvm", option))
    given = BisectOptions(flags=(NO_EFFECT["sim"],), args=args)
    if options.file:
        given = BisectOptions(
            file=options.file,
            toolchain="clang",
            compiler=options.compiler,
            flags=(NO_EFFECT["clang"],),
            args=(options.level, *args),
        )
    cache = Path(os.environ.get("MCCPROBE_CACHE") or Path.home() / ".cache" / "mccprobe")
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder))
        journal, executor = Journal(run.journal), LocalExecutor()
        workspace = open_workspace(make_plan(given, cache).request, Ledger(run, journal, executor), journal)
        report = BisectReport(Status.FOUND, "", "", "", False, "", ())
        stages, judge = open_stages(workspace), ObjectJudge(workspace, report, Deadline())
        for cut in options.passes:
            try:
                print(control(stages, judge, cut, options.mixes), flush=True)
            except StageFailed as error:
                print(f"{cut:<24} cannot be staged: {str(error)[:120]}", flush=True)
        executor.shutdown(cancel=True)
        journal.close()


if __name__ == "__main__":
    main()
