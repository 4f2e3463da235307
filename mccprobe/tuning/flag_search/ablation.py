"""What each flag of a winner is worth: the winner without it, measured; what is not shown to help is dropped."""

from __future__ import annotations

from dataclasses import dataclass

from mccprobe.tuning.flag_search.evaluate import Evaluator
from mccprobe.tuning.flag_search.shares import Share
from mccprobe.tuning.flag_search.space import Point
from mccprobe.tuning.flag_search.trials import Trial


@dataclass(frozen=True)
class Part:
    """One flag of the winner. share: of the winner to the winner without it, below 1 if it helps.

    needed: without it nothing counts (wrong, not built), and why. dropped: not shown to help.
    """

    text: str
    share: Share | None
    needed: str = ""
    dropped: bool = False


def ablate(evaluator: Evaluator, point: Point) -> tuple[Point, tuple[Part, ...]]:
    """Drop what is useless, the least useful first, until every flag that is left is shown to help.

    One at a time: two flags may do the same, and then one of them is needed.
    Where there is noise each share is measured anew, not taken from the search that chose this point.
    Returns what is left and all parts, the dropped ones first, in the order in which they went.
    """
    space = evaluator.space
    dropped: list[Part] = []
    while True:
        parts: list[tuple[int, Part]] = []
        places = space.set_at(point)
        without = {at: space.with_choice(point, at, 0) for at in places}
        evaluator.many(list(without.values()))
        for at in places:
            text = space.dimensions[at].choices[point[at]].text
            trial = evaluator.trials[without[at]]
            if not trial.counts:
                parts.append((at, Part(text, None, needed=_needed(trial))))
            else:
                parts.append((at, Part(text, evaluator.compare(point, without[at], again=True))))
        useless = [
            (part.share.ratio if part.share.ratio is not None else 1.0, at, part)
            for at, part in parts
            if part.share is not None and not part.share.better
        ]
        if not useless:
            return point, (*dropped, *(part for _, part in parts))
        _, at, part = max(useless, key=lambda entry: entry[:2])
        dropped.append(Part(part.text, part.share, dropped=True))
        point = without[at]


def _needed(trial: Trial) -> str:
    return f"without it {trial.state}: {trial.reason}"
