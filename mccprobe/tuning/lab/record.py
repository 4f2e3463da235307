"""What the emulator found while it watched a kernel: findings and bank conflicts, with their places.

The runtime writes one JSON document a run (mccprobe/targets/sim/runtime/lab_report.cpp); this reads it. A finding is
an `error` when a rule of the machine was broken, a `doubt` when what happens is not documented.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mccprobe.base.errors import ToolchainError
from mccprobe.oracle.verdict import Verdict

FORMAT = 1  # schema_version of the runtime's document


class LabReportUnreadable(ToolchainError):
    """Raised when the emulator's report is missing or not of this version."""

    code = "lab-report"


@dataclass(frozen=True)
class Place:
    """A place in the source. outer_*: the line of the kernel that it was inlined at, "" and 0 if it was not."""

    file: str
    line: int
    column: int
    function: str
    outer_file: str = ""
    outer_line: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "function": self.function,
            "outer_file": self.outer_file or None,
            "outer_line": self.outer_line or None,
        }


@dataclass(frozen=True)
class LaneGroup:
    """What one part of the lanes did."""

    lanes: str
    what: str
    place: Place | None

    def to_dict(self) -> dict[str, Any]:
        return {"lanes": self.lanes, "what": self.what, "place": _place_dict(self.place)}


@dataclass(frozen=True)
class Finding:
    """One kind of thing at one place in one kernel.

    block, warp, lanes: where it was seen first; warp is None if it concerns the whole block. other: the earlier
    access of a race. count: how often, in all cases; the runtime stops counting a race at 1001. case: of the first.
    """

    kind: str
    severity: str
    kernel: str
    block: tuple[int, int, int]
    warp: int | None
    lanes: str
    count: int
    text: str
    place: Place | None
    other: Place | None
    groups: tuple[LaneGroup, ...]
    case: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        return self.kind, self.kernel, self.place, self.other

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "severity": self.severity,
            "kernel": self.kernel,
            "block": list(self.block),
            "warp": self.warp,
            "lanes": self.lanes or None,
            "count": self.count,
            "text": self.text,
            "case": self.case,
            "place": _place_dict(self.place),
            "other": _place_dict(self.other),
            "groups": [group.to_dict() for group in self.groups],
        }


@dataclass(frozen=True)
class BankUse:
    """Shared-memory accesses at one place: how many serial cycles over 16 banks of 4 bytes.

    groups: of 32 lanes together. cycles: in all; ideal: the least for these words. worst: of one group.
    uncounted: accesses beyond the limit of the record, 0 as a rule. access: load, store, wmma.
    """

    kernel: str
    place: Place
    access: str
    bytes: int
    groups: int
    cycles: int
    ideal: int
    worst: int
    uncounted: int

    @property
    def ways(self) -> float:
        """Serial cycles of a group: the n of an n-way conflict."""
        return self.cycles / self.groups

    @property
    def lost(self) -> int:
        """Cycles above the least."""
        return self.cycles - self.ideal

    def to_dict(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "place": self.place.to_dict(),
            "access": self.access,
            "bytes": self.bytes or None,
            "groups": self.groups,
            "cycles": self.cycles,
            "ideal": self.ideal,
            "ways": round(self.ways, 3),
            "ideal_ways": round(self.ideal / self.groups, 3),
            "worst": self.worst,
            "uncounted": self.uncounted,
        }


@dataclass(frozen=True)
class Launched:
    """A kernel that ran. launches, blocks: in all cases; grid, block: of the last launch."""

    name: str
    launches: int
    blocks: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    static_bytes: int
    dynamic_bytes: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "launches": self.launches,
            "blocks": self.blocks,
            "grid": list(self.grid),
            "block": list(self.block),
            "static_bytes": self.static_bytes,
            "dynamic_bytes": self.dynamic_bytes,
        }


@dataclass(frozen=True)
class Observation:
    """One run. ended: the trap or crash that ended it early, None if it came to its end."""

    findings: tuple[Finding, ...]
    banks: tuple[BankUse, ...]
    kernels: tuple[Launched, ...]
    ended: str | None = None


@dataclass(frozen=True)
class Merged:
    """Several runs as one."""

    findings: tuple[Finding, ...] = ()
    banks: tuple[BankUse, ...] = ()
    kernels: tuple[Launched, ...] = ()

    def verdict(self) -> Verdict:
        """BAD: a rule was broken. UNRESOLVED: something undocumented was done. GOOD: neither."""
        severities = {finding.severity for finding in self.findings}
        if "error" in severities:
            return Verdict.BAD
        return Verdict.UNRESOLVED if severities else Verdict.GOOD


def read_observation(path: Path, case: str) -> Observation:
    """Read the runtime's document; `case` goes into its findings. Raises LabReportUnreadable."""
    try:
        document = json.loads(path.read_bytes().decode("utf-8", "replace"))
        if document["schema_version"] != FORMAT:
            raise LabReportUnreadable(f"{path}: format {document['schema_version']!s:.60}, expected {FORMAT}")
        return Observation(
            tuple(_finding(entry, case) for entry in document["findings"]),
            tuple(_bank_use(entry) for entry in document["banks"]),
            tuple(_launched(entry) for entry in document["kernels"]),
            None if document["ended"] is None else _text(document["ended"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise LabReportUnreadable(f"{path}: no report of the emulator: {str(error)[:200]}") from error


def merge(observations: Iterable[Observation]) -> Merged:
    """Findings by kind and place, the first first; counts and cycles added up."""
    findings: dict[tuple[object, ...], Finding] = {}
    banks: dict[tuple[object, ...], BankUse] = {}
    kernels: dict[str, Launched] = {}
    for observation in observations:
        for finding in observation.findings:
            known = findings.get(finding.key)
            findings[finding.key] = replace(known, count=known.count + finding.count) if known else finding
        for use in observation.banks:
            key = (use.kernel, use.place, use.access, use.bytes)
            banks[key] = _add(banks[key], use) if key in banks else use
        for launched in observation.kernels:
            before = kernels.get(launched.name)
            kernels[launched.name] = (
                launched
                if before is None
                else replace(
                    launched, launches=before.launches + launched.launches, blocks=before.blocks + launched.blocks
                )
            )
    return Merged(tuple(findings.values()), tuple(banks.values()), tuple(kernels.values()))


def _add(one: BankUse, other: BankUse) -> BankUse:
    return replace(
        one,
        groups=one.groups + other.groups,
        cycles=one.cycles + other.cycles,
        ideal=one.ideal + other.ideal,
        worst=max(one.worst, other.worst),
        uncounted=one.uncounted + other.uncounted,
    )


def _place(entry: Mapping[str, Any] | None) -> Place | None:
    """None also for code without a line: nothing true can be said about where it stands."""
    if entry is None or not entry["line"]:
        return None
    return Place(
        _text(entry["file"]),
        _number(entry["line"]),
        _number(entry["column"]),
        _text(entry["function"]),
        _text(entry["outer_file"]),
        _number(entry["outer_line"]),
    )


def _place_dict(place: Place | None) -> dict[str, Any] | None:
    return None if place is None else place.to_dict()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _number(value: Any, low: int = 0) -> int:
    if type(value) is not int or not low <= value < 1 << 64:
        raise TypeError("no count")
    return value


def _triple(values: Sequence[Any]) -> tuple[int, int, int]:
    x, y, z = map(_number, values)
    return x, y, z


def _finding(entry: Mapping[str, Any], case: str) -> Finding:
    groups = tuple(LaneGroup(_text(one["lanes"]), _text(one["what"]), _place(one["site"])) for one in entry["groups"])
    warp = None if entry["warp"] is None else _number(entry["warp"])
    return Finding(
        _text(entry["kind"]),
        _text(entry["severity"]),
        _text(entry["kernel"]),
        _triple(entry["block"]),
        warp,
        _text(entry["lanes"]),
        _number(entry["count"]),
        _text(entry["text"]),
        _place(entry["site"]),
        _place(entry["other"]),
        groups,
        case,
    )


def _bank_use(entry: Mapping[str, Any]) -> BankUse:
    place = _place(entry["site"]) or Place("", 0, 0, _text(entry["site"]["function"]))
    lows = {"groups": 1}  # without a single access there is no entry
    names = ("bytes", "groups", "cycles", "ideal", "worst", "uncounted")
    counts = (_number(entry[name], lows.get(name, 0)) for name in names)
    return BankUse(_text(entry["kernel"]), place, _text(entry["access"]), *counts)


def _launched(entry: Mapping[str, Any]) -> Launched:
    return Launched(
        _text(entry["name"]),
        _number(entry["launches"]),
        _number(entry["blocks"]),
        _triple(entry["grid"]),
        _triple(entry["block"]),
        _number(entry["static_bytes"]),
        _number(entry["dynamic_bytes"]),
    )
