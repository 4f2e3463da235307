"""Which points are tried: the article's order, all of them, or Optuna's choice (tpe.py).

Nothing here builds or measures: an Evaluator does. Each returns the best point that it found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from mccprobe.tuning.flag_search.evaluate import Evaluator
from mccprobe.tuning.flag_search.shares import Share
from mccprobe.tuning.flag_search.space import GROUPS, Point, require_bounded
from mccprobe.tuning.flag_search.trials import WRONG

MAX_PAIRED = 8  # dimensions that help, of which every pair is tried: 28 trials
BATCH = 64


def best_of(evaluator: Evaluator, points: Iterator[Point] | list[Point], start: Point) -> Point:
    """The best that counts, beginning with `start`; of equals the one with fewer flags."""
    best = start
    for point in points:
        trial = evaluator.trials.get(point)
        if trial is None or trial.value is None or not trial.counts:
            continue
        known = evaluator.trials[best].value
        if not evaluator.meter.exact and known is not None and trial.value >= known:
            continue  # not worth a comparison in turn
        fewer = len(evaluator.space.set_at(point)) < len(evaluator.space.set_at(best))
        same = evaluator.meter.exact and trial.value == evaluator.trials[best].value
        if (same and fewer) or evaluator.better(point, best):
            best = point
    return best


def article(evaluator: Evaluator) -> Point:
    """Singles by priority (scheduling, memory and fences, IR level, parameters), then combinations of what helped.

    Section 16: two flags that give 10 and 9 % alone gave 18 % together, so singles only say what is worth combining.
    Section 18: four that are hardly worth it alone were, together; so those that do no harm are tried as well, and
    those that change nothing alone: they may need another one (wider vectors need vectors).
    """
    space, base = evaluator.space, evaluator.space.baseline
    helped: dict[int, list[Point]] = {}
    harmless: dict[int, list[Point]] = {}
    idle: dict[int, list[Point]] = {}  # the very object of the build as it is
    for group in GROUPS:
        singles = [
            space.with_choice(base, at, index)
            for at, dimension in enumerate(space.dimensions)
            if dimension.group == group
            for index in range(1, len(dimension.choices))
        ]
        for trial in evaluator.many(singles):
            if not trial.counts:
                continue
            (at,) = space.set_at(trial.point)
            if trial.object == evaluator.trials[base].object:
                idle.setdefault(at, []).append(trial.point)
                continue
            share = evaluator.compare(trial.point, base)
            if share.better:
                helped.setdefault(at, []).append(trial.point)
            elif share.ratio is not None and (share.ratio <= 1 if share.exact else not _worse(share)):
                harmless.setdefault(at, []).append(trial.point)
    chosen = {at: best_of(evaluator, points, points[0])[at] for at, points in helped.items()}
    order = sorted(chosen, key=lambda at: _ratio(evaluator, at, chosen[at]))
    tried: list[Point] = [space.with_choice(base, at, chosen[at]) for at in order]
    best = best_of(evaluator, list(tried), base)
    together = _set(base, chosen)
    pairs = [
        _set(base, {one: chosen[one], other: chosen[other]})
        for one, other in itertools.combinations(order[:MAX_PAIRED], 2)
    ]
    for batch in ([together], pairs):
        evaluator.many(batch)
        best = best_of(evaluator, batch, best)
    best = _greedy(evaluator, order, chosen, best)
    others = {at: points[0][at] for at, points in (idle | harmless).items() if at not in chosen}
    if others:
        everything = _set(best, {at: index for at, index in others.items() if not best[at]})
        evaluator.many([everything])
        best = best_of(evaluator, [everything], best)
        if best == base:  # nothing to add to: alone they were tried
            others = {at: index for at, index in others.items() if at in harmless}
        best = _greedy(evaluator, sorted(others), others, best)
    return best


def _greedy(evaluator: Evaluator, order: list[int], chosen: dict[int, int], start: Point) -> Point:
    """Add one after the other to the best so far, and keep what makes it better."""
    best = start
    for at in order:
        if best[at]:
            continue
        point = evaluator.space.with_choice(best, at, chosen[at])
        evaluator.many([point])
        best = best_of(evaluator, [point], best)
    return best


def _ratio(evaluator: Evaluator, at: int, index: int) -> float:
    base = evaluator.space.baseline
    ratio = evaluator.compare(evaluator.space.with_choice(base, at, index), base).ratio
    return 1.0 if ratio is None else ratio


def _worse(share: Share) -> bool:
    """Shown to be larger."""
    return share.interval is not None and share.interval.low > 1


def _set(point: Point, values: dict[int, int]) -> Point:
    return tuple(values.get(at, index) for at, index in enumerate(point))


def exhaustive(evaluator: Evaluator, bound: int) -> Point:
    """Every point. Raises UsageError if they are more than `bound`."""
    space = evaluator.space
    require_bounded(space, bound)
    best = space.baseline
    every = itertools.product(*(range(len(one.choices)) for one in space.dimensions))
    while batch := list(itertools.islice(every, BATCH)):
        evaluator.many(batch)
        best = best_of(evaluator, batch, best)
    return best


def smallest_wrong(evaluator: Evaluator) -> list[Point]:
    """The wrong points none of whose parts (with fewer settings) is known to be wrong: the findings."""
    wrong = sorted(
        (trial.point for trial in evaluator.trials.values() if trial.state == WRONG),
        key=lambda point: (len(evaluator.space.set_at(point)), point),
    )
    kept: list[Point] = []
    for point in wrong:
        if not any(all(not b or b == a for a, b in zip(point, less, strict=True)) for less in kept):
            kept.append(point)
    return kept
