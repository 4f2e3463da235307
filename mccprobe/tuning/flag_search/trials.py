"""One trial of a search, and the lines of the run's journal that hold them.

Lines: {"t": "trial", "ordinal", "named", "state", "verdict", "reason", "max_err", "object", "value", "samples",
"same_as", "seconds"}, written before the trial is used; {"t": "share", ...} for each measured comparison, "again" for
one that was measured anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mccprobe.base.errors import JournalUnreadable
from mccprobe.oracle.verdict import Verdict
from mccprobe.tuning.bench.statistics import Interval
from mccprobe.tuning.flag_search.shares import Share
from mccprobe.tuning.flag_search.space import Point, Space

Shares = dict[tuple[Point, Point, bool], Share]  # point, against, measured anew

RIGHT, WRONG, UNDECIDED = "right", "wrong", "undecided"
COMPILED, NOT_BUILT, NOT_MEASURED = "compiled only", "not built", "not measured"
STATES = (RIGHT, WRONG, UNDECIDED, COMPILED, NOT_BUILT, NOT_MEASURED)


@dataclass(frozen=True)
class Trial:
    """state: one of STATES. value: of the objective, None where it was not measured.

    object: equal for equal builds, "" if nothing was built. same_as: ordinal of the trial whose verdict and value
    these are, because their objects are equal; None if it was judged itself.
    """

    ordinal: int
    point: Point
    state: str
    verdict: Verdict
    reason: str
    object: str = ""
    value: float | None = None
    samples: tuple[float, ...] = ()
    max_err: float | None = None
    same_as: int | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def counts(self) -> bool:
        """Right, or compiled where nothing can be run; and measured."""
        return self.state in (RIGHT, COMPILED) and self.value is not None

    def line(self, space: Space) -> dict[str, Any]:
        """For the journal."""
        return {
            "t": "trial",
            "ordinal": self.ordinal,
            "named": space.named(self.point),
            "state": self.state,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "max_err": self.max_err,
            "object": self.object,
            "value": self.value,
            "samples": list(self.samples),
            "same_as": self.same_as,
            "seconds": round(self.seconds, 4),
        }


def read_trials(path: Path, space: Space) -> tuple[dict[Point, Trial], Shares]:
    """What a journal that `Journal` has opened holds. Raises JournalUnreadable."""
    trials: dict[Point, Trial] = {}
    shares: Shares = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            entry = json.loads(line)
            if entry["t"] == "trial":
                trial = _trial(entry, space)
                trials[trial.point] = trial
            elif entry["t"] == "share":
                pair = space.point_of(entry["point"]), space.point_of(entry["against"]), bool(entry.get("again"))
                interval = None if entry["interval"] is None else Interval(*map(float, entry["interval"]))
                shares[pair] = Share(_number(entry["ratio"]), interval, entry["exact"] is True, str(entry["reason"]))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise JournalUnreadable(
                f"{path}: line {number} is no trial of this space", hint="start a new run"
            ) from error
    return trials, shares


def _number(value: Any) -> float | None:
    """Raises TypeError for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise TypeError("no number")
    return None if value is None else float(value)


def _trial(entry: dict[str, Any], space: Space) -> Trial:
    if entry["state"] not in STATES:
        raise ValueError("state")
    return Trial(
        int(entry["ordinal"]),
        space.point_of(entry["named"]),
        entry["state"],
        Verdict(entry["verdict"]),
        str(entry["reason"]),
        str(entry["object"]),
        _number(entry["value"]),
        tuple(map(float, entry["samples"])),
        _number(entry["max_err"]),
        None if entry["same_as"] is None else int(entry["same_as"]),
        float(entry["seconds"]),
    )


def share_line(space: Space, point: Point, against: Point, share: Share, *, again: bool) -> dict[str, Any]:
    """For the journal."""
    interval = share.interval
    return {
        "t": "share",
        "point": space.named(point),
        "against": space.named(against),
        "ratio": share.ratio,
        "interval": None if interval is None else [interval.low, interval.high, interval.confidence],
        "exact": share.exact,
        "reason": share.reason,
        "again": again,
    }
