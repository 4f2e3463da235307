"""One entry of the journal across runs, and its JSON form (reports/journal.schema.json, `entry`).

An entry is written once and never changed; what is not known is None, never left out and never a guess.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast, get_args

from mccprobe.oracle.checks import finite_number
from mccprobe.oracle.verdict import Verdict

Kind = Literal["trial", "check", "bench", "search", "bisect", "why", "note"]
Scalar: TypeAlias = str | int | float | bool | None

KINDS: tuple[Kind, ...] = get_args(Kind)
MAX_TEXT = 64 << 10  # characters of `text` and `why`: a page, not a log


@dataclass(frozen=True)
class Figure:
    """A measured number. value: None where it was not measured or is no finite number. unit: "" for a ratio."""

    value: float | None
    unit: str


@dataclass(frozen=True)
class Entry:
    """What was done and what came of it.

    text: what was done, or the note. why: the reason that it was tried. kernel: name or source.
    kernel_commit: git commit, "-dirty" behind it with changes on top, None where it is not known.
    simulated: from the stand-in, so its figures say nothing of a GPU. verdict: None where none was asked for.
    health: device health as measured before, None where it was not. dead_end: nobody need try it again.
    about: id of the entry that this one speaks of. time (UTC, ISO 8601) and id are given by Book.append.
    """

    kind: Kind
    text: str = ""
    why: str = ""
    kernel: str | None = None
    kernel_commit: str | None = None
    toolchain: str | None = None
    simulated: bool = False
    flags: tuple[str, ...] = ()
    verdict: Verdict | None = None
    figures: Mapping[str, Figure] = field(default_factory=dict)
    health: Mapping[str, Scalar] | None = None
    run_directory: str | None = None
    dead_end: bool = False
    about: str | None = None
    time: str = ""
    id: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Every key, in a fixed order; numbers that JSON cannot hold become null."""
        return {
            "t": self.kind,
            "id": self.id,
            "time": self.time,
            "text": self.text,
            "why": self.why,
            "kernel": self.kernel,
            "kernel_commit": self.kernel_commit,
            "toolchain": self.toolchain,
            "simulated": self.simulated,
            "flags": list(self.flags),
            "verdict": None if self.verdict is None else str(self.verdict),
            "figures": {name: {"value": _finite(one.value), "unit": one.unit} for name, one in self.figures.items()},
            "health": None if self.health is None else {name: _finite(value) for name, value in self.health.items()},
            "run_directory": self.run_directory,
            "dead_end": self.dead_end,
            "about": self.about,
        }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_entry(data: object) -> Entry:
    """The entry of one parsed line. Keys of a later mccprobe are ignored. Raises ValueError for what is none."""
    if not isinstance(data, dict) or data.get("t") not in KINDS:
        raise ValueError("no entry")
    verdict = _get(data, "verdict", str | None)
    flags = _get(data, "flags", list)
    figures, health = _get(data, "figures", dict), _get(data, "health", dict | None)
    if not all(isinstance(flag, str) for flag in flags):
        raise ValueError("flags")
    if health is not None and not all(isinstance(value, Scalar) for value in health.values()):
        raise ValueError("health")
    return Entry(
        kind=cast(Kind, data["t"]),
        text=_get(data, "text", str),
        why=_get(data, "why", str),
        kernel=_get(data, "kernel", str | None),
        kernel_commit=_get(data, "kernel_commit", str | None),
        toolchain=_get(data, "toolchain", str | None),
        simulated=_get(data, "simulated", bool),
        flags=tuple(flags),
        verdict=None if verdict is None else Verdict(verdict),
        figures={str(name): _figure(value) for name, value in figures.items()},
        health=health,
        run_directory=_get(data, "run_directory", str | None),
        dead_end=_get(data, "dead_end", bool),
        about=_get(data, "about", str | None),
        time=_get(data, "time", str),
        id=_get(data, "id", str),
    )


def _figure(value: object) -> Figure:
    if not isinstance(value, dict):
        raise ValueError("figures")
    number = value.get("value")
    if number is not None and finite_number(number) is None:
        raise ValueError("figures")
    return Figure(number, _get(value, "unit", str))


def _get(data: Mapping[str, Any], key: str, kind: Any) -> Any:
    value = data.get(key)
    if not isinstance(value, kind):
        raise ValueError(key)
    return value
