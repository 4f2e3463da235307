"""The records of an occupancy estimate, and the arithmetic that all models share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mccprobe.objects.model.limits import Constant

EXACT, AT_MOST, UNKNOWN = "exact", "at most", "unknown"


@dataclass(frozen=True)
class Demand:
    """What one block of a kernel needs. registers: kind -> a thread, None where the metadata is silent."""

    target: str
    registers: Mapping[str, int | None]
    shared_memory_bytes: int | None
    block_size: int | None
    block_size_source: str = ""


@dataclass(frozen=True)
class Limit:
    """One resource: what a block takes, what a multiprocessor has, how many blocks that is.

    blocks: None where either number is unknown; a block that takes nothing is no limit, also None.
    """

    resource: str
    per_block: int | None
    per_mp: Constant
    blocks: int | None
    what: str = ""

    @classmethod
    def of(cls, resource: str, per_block: int, per_mp: Constant, *, what: str = "") -> Limit:
        blocks = per_mp.value // per_block if per_mp.value is not None and per_block > 0 else None
        return cls(resource, per_block, per_mp, blocks, what)

    @classmethod
    def unknown(cls, resource: str, per_mp: Constant, why: str) -> Limit:
        return cls(resource, None, per_mp, None, why)

    @property
    def is_open(self) -> bool:
        """True if it may limit but a number is missing; a block that takes nothing of it cannot be limited."""
        return self.blocks is None and self.per_block != 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "resource": self.resource,
            "per_block": self.per_block,
            "per_mp": self.per_mp.value,
            "unit": self.per_mp.unit,
            "blocks": self.blocks,
            "source": self.per_mp.source,
            "what": self.what,
        }


@dataclass(frozen=True)
class Advice:
    """The smaller demand that the next step names: the limiter would then let `blocks` in.

    resource: the limiter. block_size: threads, registers_fewer: a thread, shared_bytes_less: a block; None: unchanged.
    """

    resource: str
    blocks: int
    block_size: int | None = None
    registers_fewer: int | None = None
    shared_bytes_less: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "resource": self.resource,
            "blocks": self.blocks,
            "block_size": self.block_size,
            "registers_fewer": self.registers_fewer,
            "shared_bytes_less": self.shared_bytes_less,
        }


@dataclass(frozen=True)
class Occupancy:
    """One model's answer.

    bound: "exact" under the model's own numbers, "at most" where some limit is unknown, "unknown".
    percent: threads of the resident blocks against what a multiprocessor can have.
    reason: why there is no answer, "" if there is one.
    """

    model: str
    title: str
    target: str
    block_size: int | None
    block_size_source: str = ""
    blocks_per_mp: int | None = None
    percent: float | None = None
    bound: str = UNKNOWN
    limiter: str | None = None
    limits: tuple[Limit, ...] = ()
    next_step: str = ""
    notes: tuple[str, ...] = field(default=())
    reason: str = ""
    advice: Advice | None = None

    @classmethod
    def none(cls, demand: Demand, reason: str, *, model: str = "none", title: str = "no model") -> Occupancy:
        return cls(model, title, demand.target, demand.block_size, demand.block_size_source, reason=reason)

    def limit(self, resource: str) -> Limit | None:
        return next((entry for entry in self.limits if entry.resource == resource), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "title": self.title,
            "block_size": self.block_size,
            "block_size_source": self.block_size_source,
            "blocks_per_mp": self.blocks_per_mp,
            "percent": self.percent,
            "bound": self.bound,
            "limiter": self.limiter,
            "limits": [entry.to_dict() for entry in self.limits],
            "next_step": self.next_step,
            "notes": list(self.notes),
            "reason": self.reason,
            "advice": None if self.advice is None else self.advice.to_dict(),
        }


def finish(answer: Occupancy, *, threads: int | None, threads_per_mp: Constant, refused: bool) -> Occupancy:
    """Blocks, limiter, bound and percent from the limits. On a tie the first limit in the list is named.

    threads: of a block in whole warps, which is what it occupies.
    """
    known = [entry for entry in answer.limits if entry.blocks is not None]
    still_open = [entry for entry in answer.limits if entry.is_open]
    if refused:
        return replace(answer, blocks_per_mp=0, percent=0.0, bound=EXACT, limiter=None)
    if not known:
        missing = ", ".join(entry.resource for entry in still_open) or "all limits"
        return replace(answer, reason=f"unknown per multiprocessor: {missing}")
    tightest = min(known, key=lambda entry: entry.blocks if entry.blocks is not None else 0)
    blocks = tightest.blocks or 0
    percent = None
    if threads_per_mp.value and threads:
        percent = round(100.0 * blocks * threads / threads_per_mp.value, 1)
    notes = answer.notes
    if still_open and blocks:
        notes = (*notes, "unknown per multiprocessor: " + ", ".join(entry.resource for entry in still_open))
    return replace(
        answer,
        blocks_per_mp=blocks,
        percent=percent,
        limiter=tightest.resource,
        bound=AT_MOST if still_open and blocks else EXACT,
        notes=notes,
    )


def then_limited(limits: Sequence[Limit], limiter: Limit, wanted: int) -> str:
    """What would still keep `wanted` blocks out when the limiter no longer did; "" if nothing known."""
    others = [entry for entry in limits if entry is not limiter and entry.blocks is not None]
    blocking = [entry for entry in others if entry.blocks is not None and entry.blocks < wanted]
    if not blocking:
        return ""
    return "; but " + " and ".join(f"{entry.resource} would then limit to {entry.blocks}" for entry in blocking)
