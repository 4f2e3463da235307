"""What a search found, as frozen records and as the document of `--json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mccprobe.base.errors import ExitCode
from mccprobe.tuning.flag_search.ablation import Part
from mccprobe.tuning.flag_search.evaluate import Counters
from mccprobe.tuning.flag_search.shares import Share
from mccprobe.tuning.flag_search.space import Space
from mccprobe.tuning.flag_search.trials import Trial

FOUND, NOTHING, COMPILED_STATUS, BUDGET = "found", "nothing-better", "compiled-only", "budget"
EXITS = {FOUND: ExitCode.DONE, NOTHING: ExitCode.ANSWER_IS_NO, COMPILED_STATUS: ExitCode.DONE,
         BUDGET: ExitCode.BUDGET}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """Flags that make the result wrong. why: the command to follow it. told: what is known of these flags."""

    trial: Trial
    flags: tuple[str, ...]
    why: tuple[str, ...]
    told: tuple[str, ...]


@dataclass(frozen=True)
class Best:
    """The best point after ablation. share: to the build without flags. confirmed: built and judged once more."""

    trial: Trial
    flags: tuple[str, ...]
    share: Share
    parts: tuple[Part, ...]
    confirmed: bool


@dataclass(frozen=True)
class Objective:
    name: str
    unit: str
    label: str
    exact: bool


@dataclass(frozen=True)
class SearchReport:
    """winner: None unless it was right; lowest: the same of a toolchain that only compiles. stopped: by a budget."""

    subject: str
    toolchain: str
    simulated: bool
    heading: str
    strategy: str
    space: Space
    objective: Objective
    baseline: Trial
    winner: Best | None
    lowest: Best | None
    findings: tuple[Finding, ...]
    refused: Mapping[str, str]
    trials: tuple[Trial, ...]
    counters: Counters
    stopped: str = ""
    notes: tuple[str, ...] = ()
    run_directory: str = ""
    files: Mapping[str, str] = field(default_factory=dict)  # "set", "plot" -> path

    @property
    def status(self) -> str:
        if self.stopped:
            return BUDGET
        if self.lowest is not None:
            return COMPILED_STATUS
        return FOUND if self.winner is not None else NOTHING

    @property
    def exit_code(self) -> ExitCode:
        return EXITS[self.status]

    def to_dict(self) -> dict[str, Any]:
        space, objective = self.space, self.objective
        return {
            "status": self.status,
            "subject": self.subject,
            "toolchain": self.toolchain,
            "simulated": self.simulated,
            "heading": self.heading or None,
            "strategy": self.strategy,
            "space": {
                "source": space.source,
                "size": space.size,
                "dimensions": [
                    {"name": one.name, "group": one.group, "choices": [choice.text for choice in one.choices[1:]]}
                    for one in space.dimensions
                ],
            },
            "objective": {
                "name": objective.name,
                "unit": objective.unit,
                "label": objective.label,
                "exact": objective.exact,
            },
            "baseline": self._trial(self.baseline),
            "winner": self._best(self.winner),
            "lowest": self._best(self.lowest),
            "findings": [
                {
                    "flags": list(one.flags),
                    "reason": one.trial.reason,
                    "max_err": one.trial.max_err,
                    "ordinal": one.trial.ordinal,
                    "why": list(one.why),
                    "told": list(one.told),
                }
                for one in self.findings
            ],
            "refused": dict(self.refused),
            "trials": [self._trial(trial) for trial in self.trials],
            "counters": vars(self.counters),
            "stopped": self.stopped or None,
            "notes": list(self.notes),
            "run_directory": self.run_directory,
            "files": dict(self.files),
        }

    def _trial(self, trial: Trial) -> dict[str, Any]:
        return {
            "ordinal": trial.ordinal,
            "flags": list(self.space.texts(trial.point)),
            "state": trial.state,
            "verdict": trial.verdict.value,
            "reason": trial.reason,
            "max_err": trial.max_err,
            "object": trial.object or None,
            "value": trial.value,
            "samples": list(trial.samples),
            "same_as": trial.same_as,
            "seconds": round(trial.seconds, 4),
        }

    def _best(self, best: Best | None) -> dict[str, Any] | None:
        if best is None:
            return None
        return {
            "flags": list(best.flags),
            "ordinal": best.trial.ordinal,
            "value": best.trial.value,
            "state": best.trial.state,
            "share": share_dict(best.share),
            "confirmed": best.confirmed,
            "parts": [
                {
                    "flag": part.text,
                    "share": None if part.share is None else share_dict(part.share),
                    "needed": part.needed or None,
                    "dropped": part.dropped,
                }
                for part in best.parts
            ],
        }


def share_dict(share: Share) -> dict[str, Any]:
    """A ratio, with its interval or the reason that there is none."""
    interval = share.interval
    why = share.reason or ("noise-free: no interval" if share.exact else "" if interval else "too few pairs")
    return {
        "ratio": share.ratio,
        "interval": None if interval is None else [interval.low, interval.high],
        "confidence": None if interval is None else interval.confidence,
        "exact": share.exact,
        "no_interval": why or None,
    }


def shown_share(share: Share) -> str:
    """`-3.20 % (exact)`, `-3.2 % [-4.0, -2.1]`."""
    if share.ratio is None:
        return f"unknown: {share.reason}"
    percent = f"{100 * (share.ratio - 1):+.2f} %"
    if share.interval is not None:
        low, high = (100 * (end - 1) for end in (share.interval.low, share.interval.high))
        return f"{percent} [{low:+.2f}, {high:+.2f}] at {share.interval.confidence:.0%}"
    return f"{percent} (noise-free)" if share.exact else f"{percent} (no interval)"
