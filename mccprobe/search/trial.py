"""Trial: one question put to a limit and its answer; the log of a search is a list of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mccprobe.oracle.verdict import Outcome, Verdict


class Purpose(StrEnum):
    """Why a trial was made."""

    GOOD_END = "good end"
    BAD_END = "bad end"
    SEARCH = "search"
    SPOT_CHECK = "spot check"
    CONFIRM_GOOD = "confirm good side"
    CONFIRM_BAD = "confirm bad side"
    PROFILE = "profile"
    ESTIMATE_RATE = "estimate rate"
    FLAKY_SEARCH = "flaky search"


@dataclass(frozen=True)
class Trial:
    """One probe of one limit.

    ordinal: 1, 2, 3... in the order made. key: the object, None for a limit that gives none.
    ran: True for a fresh oracle run; False where the verdict of the same object was reused or the
    limit could not be built.
    """

    ordinal: int
    purpose: Purpose
    limit: int
    key: str | None
    outcome: Outcome
    ran: bool

    @property
    def verdict(self) -> Verdict:
        return self.outcome.verdict
