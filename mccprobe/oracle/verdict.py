"""Verdict, Outcome: the vocabulary that oracle, search, journal and reports share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What one trial says. UNRESOLVED is never counted as GOOD nor as BAD."""

    GOOD = "GOOD"
    BAD = "BAD"
    UNRESOLVED = "UNRESOLVED"


@dataclass(frozen=True)
class Outcome:
    """One oracle run of one object.

    reason: short text for people ("exit 1", "timeout after 30 s", "invalid program: ...").
    max_err: largest absolute error that the program reported, None where it reports none.
    timed_out: the program ran into its time limit, whatever verdict that gives.
    """

    verdict: Verdict
    reason: str = ""
    max_err: float | None = None
    timed_out: bool = False


@dataclass(frozen=True)
class Unbuildable:
    """A limit that gives no object (compiler crash, time limit): an UNRESOLVED trial, not a BAD one."""

    reason: str
