"""What the journal says: selections, dead ends, two entries side by side. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mccprobe.journal.entry import Entry
from mccprobe.oracle.verdict import Verdict


@dataclass(frozen=True)
class Selection:
    """Which entries are wanted; what is empty selects all. since: beginning of a time, as 2026-11-30."""

    kinds: frozenset[str] = frozenset()
    kernel: str = ""
    flag: str = ""
    verdicts: frozenset[str] = frozenset()
    since: str = ""
    text: str = ""

    def takes(self, entry: Entry) -> bool:
        """Kernel, flag and text match as parts, without regard to case."""
        return (
            (not self.kinds or entry.kind in self.kinds)
            and (not self.verdicts or (entry.verdict or "none") in self.verdicts)
            and _within(self.kernel, entry.kernel or "")
            and _within(self.flag, " ".join(entry.flags))
            and _within(self.text, f"{entry.text}\n{entry.why}")
            and entry.time >= self.since
        )


def _within(part: str, whole: str) -> bool:
    return part.casefold() in whole.casefold()


@dataclass(frozen=True)
class DeadEnd:
    """Something that nobody need try again.

    entries: all that say so, oldest first. contradicted: GOOD entries of the same kernel, commit,
    toolchain and flags, if it is not marked: then it is flaky rather than dead. reason: in the words of the newest.
    """

    kernel: str | None
    toolchain: str | None
    simulated: bool
    flags: tuple[str, ...]
    entries: tuple[Entry, ...]
    contradicted: tuple[Entry, ...]
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "kernel": self.kernel,
            "toolchain": self.toolchain,
            "simulated": self.simulated,
            "flags": list(self.flags),
            "ids": [one.id for one in self.entries],
            "last": self.entries[-1].time,
            "kernel_commit": self.entries[-1].kernel_commit,
            "contradicted_by": [one.id for one in self.contradicted],
            "reason": self.reason,
        }


def dead_ends(entries: Iterable[Entry]) -> list[DeadEnd]:
    """What is marked as a dead end, and what came out BAD and was not GOOD later; in the order of their ends.

    UNRESOLVED and entries without a verdict or without flags say nothing. A mark stays, whatever the verdict:
    it may be on something right and slow; a marked entry without flags stands for itself. A bisection's
    verdicts are of its limits, not of its flags: `bisect` and `why` count only if marked.
    """
    groups: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries:
        judged = entry.flags and entry.verdict in (Verdict.GOOD, Verdict.BAD) and entry.kind in _OF_FLAGS
        if judged or entry.dead_end:
            alone = "" if entry.flags else entry.id
            key = (entry.kernel, entry.toolchain, entry.simulated, tuple(sorted(entry.flags)), alone)
            groups.setdefault(key, []).append(entry)
    found = [end for group in groups.values() if (end := _dead_end(group)) is not None]
    return sorted(found, key=lambda one: one.entries[-1].time)


_OF_FLAGS = ("trial", "check", "bench", "search")


def _dead_end(group: Sequence[Entry]) -> DeadEnd | None:
    marked = [one for one in group if one.dead_end]
    if not marked and group[-1].verdict is not Verdict.BAD:
        return None
    dead = marked or [one for one in group if one.verdict is Verdict.BAD]
    last = dead[-1]
    same = [one for one in group if last.kernel_commit and one.kernel_commit == last.kernel_commit]
    return DeadEnd(
        last.kernel,
        last.toolchain,
        last.simulated,
        last.flags,
        tuple(dead),
        () if marked else tuple(one for one in same if one.verdict is Verdict.GOOD),
        last.text or last.why or str(last.verdict or "no reason told"),
    )


@dataclass(frozen=True)
class Row:
    """One figure of two entries. ratio: second by first, None where it has no meaning, and `problem` says why."""

    name: str
    first: float | None
    second: float | None
    unit: str
    ratio: float | None
    problem: str = ""


@dataclass(frozen=True)
class Comparison:
    """Two entries side by side. caveats: what speaks against comparing them."""

    first: Entry
    second: Entry
    rows: tuple[Row, ...]
    caveats: tuple[str, ...]
    flags_added: tuple[str, ...]
    flags_removed: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "rows": [vars(row) for row in self.rows],
            "caveats": list(self.caveats),
            "flags_added": list(self.flags_added),
            "flags_removed": list(self.flags_removed),
        }


def compare(first: Entry, second: Entry) -> Comparison:
    """Figures by name; each ratio is of two single figures and has no interval (`mccprobe bench` gives one)."""
    names = list(dict.fromkeys([*first.figures, *second.figures]))
    rows = tuple(_row(name, first, second) for name in names)
    return Comparison(
        first,
        second,
        rows,
        tuple(_caveats(first, second)),
        tuple(flag for flag in second.flags if flag not in first.flags),
        tuple(flag for flag in first.flags if flag not in second.flags),
    )


def _row(name: str, first: Entry, second: Entry) -> Row:
    one, other = first.figures.get(name), second.figures.get(name)
    if one is None or other is None:
        there = one or other
        which = "first" if one is None else "second"
        unit = there.unit if there else ""
        return Row(name, one.value if one else None, other.value if other else None, unit, None, f"not in the {which}")
    if one.unit != other.unit:
        return Row(name, one.value, other.value, one.unit, None, f"units differ: {one.unit} and {other.unit}")
    if one.value is None or other.value is None:
        return Row(name, one.value, other.value, one.unit, None, "not measured")
    if one.value == 0:
        return Row(name, one.value, other.value, one.unit, None, "the first is 0")
    return Row(name, one.value, other.value, one.unit, other.value / one.value)


def _caveats(first: Entry, second: Entry) -> list[str]:
    caveats = []
    for what in ("kernel", "kernel_commit", "toolchain"):
        one, other = getattr(first, what), getattr(second, what)
        if one != other:
            caveats.append(f"{what.replace('_', ' ')} differs: {one or 'unknown'} and {other or 'unknown'}")
    if first.kernel_commit == second.kernel_commit is None:
        caveats.append("the commit of the kernel is not known")
    elif first.kernel_commit == second.kernel_commit and str(first.kernel_commit).endswith("-dirty"):
        caveats.append("the kernel had uncommitted changes: it need not be the same")
    for which, entry in (("first", first), ("second", second)):
        if entry.simulated:
            caveats.append(f"the {which} is SIMULATED: its figures say nothing of a GPU")
        if entry.verdict is None and entry.figures:
            caveats.append(f"the {which} was not checked")
        elif entry.verdict not in (None, Verdict.GOOD):
            caveats.append(f"the {which} is {entry.verdict}: its figures do not count")
    if first.health is None or second.health is None:
        caveats.append("device health was not recorded for both")
    elif first.health != second.health:
        caveats.append(f"device health differs: {_health(first.health)} and {_health(second.health)}")
    return caveats


def _health(health: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in health.items()) or "nothing"


def newest(entries: Sequence[Entry], count: int) -> Sequence[Entry]:
    """The last `count`; all for 0."""
    return entries[-count:] if count else entries
