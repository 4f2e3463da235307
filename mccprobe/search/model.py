"""What a search is asked and what it answers; plain records without behaviour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from mccprobe.base.errors import UsageError
from mccprobe.oracle.verdict import Outcome, Unbuildable, Verdict
from mccprobe.search.trial import Trial


class Target(Protocol):
    """The program under search. Limit N runs the first N of `total` pass executions."""

    @property
    def total(self) -> int:
        """P: pass executions of the unlimited bad build. Limits are 0..P."""
        ...

    def prefetch(self, limits: Sequence[int]) -> None:
        """Hint: compile these soon, in this order of need. Hints not started yet may be dropped."""
        ...

    def object_at(self, limit: int) -> str | Unbuildable:
        """Key of the object at `limit`; blocks; the same answer whenever it is asked again."""
        ...

    def run(self, key: str) -> Outcome:
        """One oracle run of that object; never answered from a cache."""
        ...


class Status(StrEnum):
    """How a search ended. Only EDGE names a culprit."""

    EDGE = "edge"
    WRONG_AT_ZERO = "wrong-at-zero"
    NO_DIFFERENCE = "no-difference"
    UNDECIDED = "undecided"
    ORACLE_UNUSABLE = "oracle-unusable"
    BUDGET = "budget"


@dataclass(frozen=True)
class Settings:
    """How much to ask.

    endpoint_repeats: runs of each end.
    confirm_repeats: reruns of each side of the edge; None: as many as `confidence` asks for.
    spot_checks: at most so many extra limits are built, and their objects tested, after the edge was found.
    confidence: wanted probability that the named edge is one, between 0 and 1.
    max_runs: oracle runs in all, None for no limit (the flaky search has its own, flaky.RUN_LIMIT).
    seed: of the spot checks; the only chance in a search.
    profile: test every `profile_stride`-th limit and name every edge, instead of a binary search.
    width: how many objects can be compiled at once; sets the depth of the prefetch hints.
    """

    endpoint_repeats: int = 2
    confirm_repeats: int | None = None
    spot_checks: int = 8
    confidence: float = 0.99
    max_runs: int | None = None
    seed: int = 0
    profile: bool = False
    profile_stride: int = 1
    width: int = 2

    def __post_init__(self) -> None:
        smallest = {"endpoint_repeats": 1, "spot_checks": 0, "profile_stride": 1, "width": 1}
        if self.confirm_repeats is not None:
            smallest["confirm_repeats"] = 0
        if self.max_runs is not None:
            smallest["max_runs"] = 1
        for name, least in smallest.items():
            value: int = getattr(self, name)
            if value < least:
                raise UsageError(f"{name.replace('_', ' ')} is {value}, it must be at least {least}")
        if not 0.0 < self.confidence < 1.0:
            raise UsageError(
                f"confidence is {self.confidence:g}, it must lie between 0 and 1",
                hint="write 0.99 for 99 %",
            )


@dataclass(frozen=True)
class Edge:
    """Two neighbouring limits with different verdicts.

    execution: the first limit with `to_verdict`. The limit before it that has `from_verdict` is
    execution - 1, or lies just below the `unresolved` limits, which gave no verdict.
    """

    execution: int
    from_verdict: Verdict
    to_verdict: Verdict
    unresolved: tuple[int, ...] = ()


@dataclass(frozen=True)
class FailureRate:
    """How often an object known to be wrong shows it: `bad` of `runs`, with the 95 % interval."""

    estimate: float
    low: float
    high: float
    bad: int
    runs: int


@dataclass(frozen=True)
class SearchResult:
    """The answer of a search.

    good, bad: neighbouring limits, GOOD and BAD (bad == good + 1, or only unresolved limits between
    them). Set for EDGE, and for UNDECIDED as the range that could not be narrowed; else None.
    edges: of EDGE only; in a profile all of them, in order of limit.
    monotone: True or False only if every limit was built and every distinct object tested, else None.
    confidence: of the edge; 0.0 where none is claimed.
    failure_rate: None unless the check was seen to be flaky.
    good_end: lowest limit found that builds and is GOOD; None if there is none, or none was needed.
    runs: oracle runs. objects_tested: distinct objects among them. limits_built: limits asked that gave
    an object. notes: facts for people. max_err_bad: largest error that a BAD run reported.
    """

    status: Status
    good: int | None
    bad: int | None
    edges: tuple[Edge, ...]
    monotone: bool | None
    confidence: float
    failure_rate: FailureRate | None
    good_end: int | None
    runs: int
    objects_tested: int
    limits_built: int
    notes: tuple[str, ...]
    log: tuple[Trial, ...]
    max_err_bad: float | None
