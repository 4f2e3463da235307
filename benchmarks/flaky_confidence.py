"""Does the stated confidence hold? Simulated searches with a check that fails with probability p.

    python benchmarks/flaky_confidence.py [--searches 2000] [--limits 1000] [--rates 0.1,0.5,0.9]

Each search gets a random program: its object changes at every limit (--density 1) or at a share of
them, and it is bad from a random change on. Printed for each p: how the searches ended, wrong edges among those named,
and oracle runs. "no diff." is the honest end where the fault did not show in the runs of the bad end.
--drift 0.5 breaks the model on purpose: the rate at the first bad limit is half of that at the bad end.
Everything happens in memory; the seed is fixed.
"""

from __future__ import annotations

import argparse
import random
import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.search.procedure import Purpose, SearchResult, Settings, Status, bisect


class Program:
    """Bad from `first_bad` on; shows it with `rate`, which falls to `rate * drift` at `first_bad`."""

    def __init__(self, total: int, changes: Sequence[int], rate: float, drift: float, rng: random.Random) -> None:
        self.total = total
        self.first_bad = rng.choice(changes)
        self._changes = changes
        self._rate = rate
        self._drift = drift
        self._rng = rng

    def prefetch(self, limits: Sequence[int]) -> None:
        pass

    def object_at(self, limit: int) -> str:
        index = bisect_right(self._changes, limit)
        return str(self._changes[index - 1] if index else 0)

    def run(self, key: str) -> Outcome:
        start = int(key)
        if start < self.first_bad:
            return Outcome(Verdict.GOOD)
        share = (start - self.first_bad) / max(1, self.total - self.first_bad)
        shown = self._rng.random() < self._rate * (self._drift + (1.0 - self._drift) * share)
        return Outcome(Verdict.BAD if shown else Verdict.GOOD)


def one_search(options: argparse.Namespace, rate: float, rng: random.Random) -> tuple[SearchResult, int]:
    count = max(1, round(options.limits * options.density))
    changes = sorted(rng.sample(range(1, options.limits + 1), count))
    program = Program(options.limits, changes, rate, options.drift, rng)
    settings = Settings(
        endpoint_repeats=options.endpoint_repeats, confidence=options.confidence, seed=rng.randrange(1 << 30)
    )
    return bisect(program, settings), program.first_bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=2000)
    parser.add_argument("--limits", type=int, default=64)
    parser.add_argument("--density", type=float, default=1.0)
    parser.add_argument("--rates", default="0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.0")
    parser.add_argument("--endpoint-repeats", type=int, default=2)
    parser.add_argument("--confidence", type=float, default=0.99)
    parser.add_argument("--drift", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("   p  edges  wrong      %  no diff.  budget  runs (mean, 90 %)  in the flaky search  limits built")
    for rate in map(float, options.rates.split(",")):
        rng = random.Random(f"{options.seed} {rate}")
        ends: Counter[Status] = Counter()
        wrong = 0
        runs, asked, built = [], [], []
        for _ in range(options.searches):
            result, first_bad = one_search(options, rate, rng)
            ends[result.status] += 1
            if result.status is Status.EDGE:
                wrong += result.bad != first_bad
                runs.append(result.runs)
                built.append(result.limits_built)
                asked.append(sum(t.ran and t.purpose is Purpose.FLAKY_SEARCH for t in result.log))
        edges = ends[Status.EDGE]
        if not edges:
            print(f"{rate:4.1f}  no edge named: {dict(ends)}")
            continue
        print(
            f"{rate:4.1f}  {edges:5}  {wrong:5}  {wrong / edges:5.2%}  {ends[Status.NO_DIFFERENCE]:8}"
            f"  {ends[Status.BUDGET]:6}  {statistics.mean(runs):8.1f} {sorted(runs)[edges * 9 // 10]:8}"
            f"  {statistics.mean(asked):19.1f}  {statistics.mean(built):12.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
