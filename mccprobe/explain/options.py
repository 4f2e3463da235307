"""The options of `mccprobe why`: those of a bisection and its own. Also what run.json holds."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mccprobe.base.errors import BadDataFile, JournalUnreadable, UsageError
from mccprobe.bisection.passes.options import BisectOptions, require_run_version
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.flags.datafile import shorten

STEPS = ("flags", "screen", "bisect", "where", "table", "signature", "workarounds", "facts", "report")
NEED_A_CULPRIT = frozenset(("where", "table", "signature", "workarounds", "report"))
_UNIT_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_BUDGET = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smh]?)")


@dataclass(frozen=True)
class WhyOptions:
    """As the user gave them.

    sets: names of flag sets of the catalogue; their flags stand before `bisect.flags`. budget_s: None for no
    limit. steps: the steps asked for, empty for all. also: further kernels to look for the same fault in.
    """

    bisect: BisectOptions = field(default_factory=BisectOptions)
    sets: tuple[str, ...] = ()
    budget_s: float | None = None
    skip_screen: bool = False
    reduce: bool = False
    steps: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """Every flag as text: those of the sets, then the single ones. Raises UnknownFlag."""
        catalogue = load_catalogue()
        named = [flag.text for name in self.sets for flag in catalogue.resolve_set(name)]
        return (*named, *self.bisect.flags)

    def wants(self, step: str) -> bool:
        """True if this step was asked for, or one that needs its answer."""
        if not self.steps or step in self.steps:
            return step != "screen" or not self.skip_screen
        return step == "bisect" and not NEED_A_CULPRIT.isdisjoint(self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for run.json."""
        own = {item.name: getattr(self, item.name) for item in dataclasses.fields(self) if item.name != "bisect"}
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in own.items()}
        return {**plain, "bisect": self.bisect.to_dict()}


def read_why_options(document: Any, where: Path) -> WhyOptions:
    """The options kept in run.json. Raises JournalUnreadable."""
    options = document.get("options") if isinstance(document, dict) else None
    if not isinstance(options, dict) or not isinstance(options.get("bisect"), dict):
        raise JournalUnreadable(f"{where}: holds no options of `why`", hint="is this a run directory of mccprobe why?")
    require_run_version(document, where)
    values = dict(options)
    try:
        bisect = BisectOptions.from_dict(values.pop("bisect"), str(where))
        return WhyOptions(bisect=bisect, **_checked(values, where))
    except BadDataFile as error:
        raise JournalUnreadable(error.message, hint="it was written by another version of mccprobe") from error


def _checked(values: dict[str, Any], where: Path) -> dict[str, Any]:
    kinds: dict[str, tuple[type, ...]] = {
        "sets": (list,),
        "steps": (list,),
        "also": (list,),
        "skip_screen": (bool,),
        "reduce": (bool,),
        "budget_s": (int, float, type(None)),
    }
    for name, value in values.items():
        texts = not isinstance(value, list) or all(isinstance(item, str) for item in value)
        if name not in kinds or not isinstance(value, kinds[name]) or not texts:
            raise BadDataFile(f"{where}: options.{shorten(name)} is not what `why` writes: {shorten(repr(value))}")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def parse_budget(text: str) -> float:
    """Seconds of "600", "90s", "10m" or "1.5h". Raises UsageError."""
    found = _BUDGET.fullmatch(text.strip())
    if not found or float(found[1]) <= 0:
        raise UsageError(f"--budget {shorten(text)} is no time", hint="for example --budget 10m, 90s or 1h")
    return float(found[1]) * _UNIT_S[found[2]]
