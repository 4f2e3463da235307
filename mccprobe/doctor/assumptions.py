"""The table of what the code takes for granted of mcc and of MTGPU (`targets/mcc/data/assumptions.toml`)."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from mccprobe.targets.mcc.target import DATA

MCC_TABLE = DATA / "assumptions.toml"


@dataclass(frozen=True)
class Assumption:
    """One line of the table.

    standing: "S" seen, "I" inferred, "A" the article alone. where: `module:name` of the code that relies on it.
    probe: the function that asks; "" where `unchecked` says why none can. stand_in: whether `sim` can answer.
    """

    id: str
    statement: str
    source: str
    standing: str
    where: tuple[str, ...]
    breaks: str
    probe: str = ""
    unchecked: str = ""
    stand_in: bool = False


@functools.cache
def assumptions(path: Path = MCC_TABLE) -> tuple[Assumption, ...]:
    """The whole table of one target, in its order."""
    text = path.read_text(encoding="utf-8")
    return tuple(Assumption(**{**entry, "where": tuple(entry["where"])}) for entry in tomllib.loads(text)["assumption"])
