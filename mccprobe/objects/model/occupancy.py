"""How many blocks of a kernel fit on a multiprocessor: one estimate for each model that somebody stands for.

Flow: Demand (what a block needs) -> one `Occupancy` for each model of its target. A model is a set of
limits and the register kinds that it counts, each with its source. No model is averaged with another,
and where a limit is not public the estimate says "at most" or nothing. For mp_22 the public record does
not settle the matter, so `disagreements` puts the contradictions into words.

Laws, tested: blocks never rise with the demand; every known limit gives blocks >= the estimate; what the
next step promises is true of the smaller demand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mccprobe.base.console import number_of
from mccprobe.objects.model.amd import amd_occupancy
from mccprobe.objects.model.estimate import Advice, Demand, Limit, Occupancy, finish, then_limited
from mccprobe.objects.model.limits import AMD_LIMITS, ARTICLE_LIMITS, PUBLIC_LIMITS, Constant, Limits

__all__ = ["Demand", "Limit", "Occupancy", "disagreements", "estimate"]

LLAMA_STATIC_CAP_BYTES = 28 * 1024  # ggml-org/llama.cpp, for mp_21 and mp_22 alike [S]
TEMP_ONLY = ("temp",)
ALL_PER_THREAD = ("temp", "attribute", "internal", "coefficient")  # the article's list; shared registers are not in it


@dataclass(frozen=True)
class Model:
    """Limits of a device and the register kinds of a thread that count against them."""

    name: str
    title: str
    limits: Limits
    kinds: tuple[str, ...]
    notes: tuple[str, ...] = ()


ARTICLE_OPTIMISTIC = Model(
    "article-optimistic", "article, optimistic: temp registers only", ARTICLE_LIMITS, TEMP_ONLY,
)  # fmt: skip
ARTICLE_CONSERVATIVE = Model(
    "article-conservative", "article, conservative: temp + attribute + internal + coefficient registers",
    ARTICLE_LIMITS, ALL_PER_THREAD,
    notes=(
        "the article gives 0 blocks by this model for a kernel that ran, and holds the model too strict; 0 takes more "
        "than 256 registers for each of 1,024 threads, and its counts beside the 126 temp registers are not published",
    ),
)  # fmt: skip


STANDING_NOTES = frozenset(ARTICLE_CONSERVATIVE.notes)  # on a model, the same for every kernel: shown once


def public_model(target: str) -> Model | None:
    """The model of the limits that vendors' and frameworks' own sources give; None for an unknown target."""
    limits = PUBLIC_LIMITS.get(target)
    if limits is None:
        return None
    return Model("public-limits", f"public limits of {target} ({limits.device})", limits, TEMP_ONLY)


def estimate(demand: Demand) -> tuple[Occupancy, ...]:
    """Every model's answer for this demand; one entry that says why not where there is no model."""
    if demand.target in AMD_LIMITS:
        return (amd_occupancy(demand, AMD_LIMITS[demand.target]),)
    models = [ARTICLE_OPTIMISTIC, ARTICLE_CONSERVATIVE] if demand.target == ARTICLE_LIMITS.target else []
    public = public_model(demand.target)
    if public is not None:
        models.append(public)
    if not models:
        what = demand.target or "an unknown target"
        return (Occupancy.none(demand, f"limits of {what} are not in the tables here"),)
    return tuple(_apply(model, demand) for model in models)


def _apply(model: Model, demand: Demand) -> Occupancy:
    limits = model.limits
    if demand.block_size is None:
        return Occupancy.none(demand, "no block size", model=model.name, title=model.title)
    found = [
        _threads(limits, demand.block_size),
        _registers(limits, demand, model.kinds),
        _shared(limits, demand),
    ]
    refused = _refusals(limits, demand, registers=found[1].per_block)
    answer = finish(
        Occupancy(
            model=model.name,
            title=model.title,
            target=demand.target,
            block_size=demand.block_size,
            block_size_source=demand.block_size_source,
            limits=tuple(found),
            notes=(*refused, *model.notes),
        ),
        threads=_whole_warps(limits, demand.block_size),
        threads_per_mp=limits.threads_per_mp,
        refused=bool(refused),
    )
    advice = _advice(model, demand, answer)
    return replace(answer, advice=advice, next_step=_next_step(advice, answer) if advice is not None else "")


def _threads(limits: Limits, block_size: int) -> Limit:
    """Threads of a block in whole warps: a warp that is not full takes the place of a full one."""
    threads = _whole_warps(limits, block_size)
    warps = f"{threads // (limits.warp_threads.value or 1)} warps of {limits.warp_threads.value}"
    what = f"{block_size:,} threads in {warps}" if threads != block_size else ""
    return Limit.of("threads", threads, limits.threads_per_mp, what=what)


def _registers(limits: Limits, demand: Demand, kinds: Sequence[str]) -> Limit:
    """Registers of a block: whole warps, for a warp's registers are given out together."""
    counted = [demand.registers.get(kind) for kind in kinds]
    missing = [kind for kind, count in zip(kinds, counted, strict=True) if count is None]
    if missing or demand.block_size is None:
        return Limit.unknown("registers", limits.registers_per_mp, f"no count of {', '.join(missing)} registers")
    each = sum(count for count in counted if count is not None)
    threads = _whole_warps(limits, demand.block_size)
    what = f"{' + '.join(kinds)} registers: {each} a thread x {threads} threads"
    return Limit.of("registers", each * threads, limits.registers_per_mp, what=what)


def _whole_warps(limits: Limits, block_size: int) -> int:
    """Threads of a block, rounded up to warps."""
    warp = limits.warp_threads.value or 1
    return math.ceil(block_size / warp) * warp


def _shared(limits: Limits, demand: Demand) -> Limit:
    if demand.shared_memory_bytes is None:
        return Limit.unknown("shared memory", limits.shared_per_mp, "no shared memory size")
    return Limit.of("shared memory", demand.shared_memory_bytes, limits.shared_per_mp)


def _refusals(limits: Limits, demand: Demand, *, registers: int | None) -> list[str]:
    """Limits of one block that this kernel breaks: then it does not start at all. registers: of a block."""
    wanted: list[tuple[str, int | None, Constant]] = [
        ("threads", demand.block_size, limits.threads_per_block),
        ("bytes of shared memory", demand.shared_memory_bytes, limits.shared_per_block),
        ("registers", registers, limits.registers_per_block),
    ]
    return [
        f"a block wants {value:,} {what}, the limit is {limit.describe()}: it does not start"
        for what, value, limit in wanted
        if value is not None and limit.value is not None and value > limit.value
    ]


def _advice(model: Model, demand: Demand, answer: Occupancy) -> Advice | None:
    """The largest demand that fits at least one block more, as far as the limiter goes; None where none does."""
    if not answer.blocks_per_mp or answer.limiter is None or demand.block_size is None:
        return None
    limit = next(entry for entry in answer.limits if entry.resource == answer.limiter)
    if limit.per_mp.value is None or limit.per_block is None:
        return None
    wanted = answer.blocks_per_mp + 1
    room = limit.per_mp.value // wanted
    if limit.resource == "threads":
        warp = model.limits.warp_threads.value or 1
        threads = room // warp * warp  # a block of fewer threads than whole warps occupies whole warps
        return Advice(limit.resource, limit.per_mp.value // threads, block_size=threads) if threads else None
    if limit.resource == "registers":
        threads = _whole_warps(model.limits, demand.block_size)
        if not room // threads:
            return None
        each = room // threads
        fits = limit.per_mp.value // (each * threads)
        return Advice(limit.resource, fits, registers_fewer=limit.per_block // threads - each)
    if not room:
        return None
    return Advice(limit.resource, limit.per_mp.value // room, shared_bytes_less=limit.per_block - room)


def _next_step(advice: Advice, answer: Occupancy) -> str:
    """The advice with what it assumes; for the limiter alone, others may follow."""
    limit = next(entry for entry in answer.limits if entry.resource == answer.limiter)
    assert limit.per_block is not None and limit.per_mp.value is not None
    assumed = [
        _ASSUMED[entry.resource].format(_number(entry.per_mp))
        for entry in answer.limits
        if entry is not limit and entry.blocks is not None and entry.resource in _ASSUMED
    ]
    if advice.block_size is not None:
        text = (
            f"threads limit, {limit.per_block:,} of {_number(limit.per_mp)}, "
            f"a block of {advice.block_size:,} would fit {advice.blocks}"
        )
    elif advice.registers_fewer is not None:
        text = (
            f"registers limit, {limit.per_block:,} of {_number(limit.per_mp)} a block, "
            f"{advice.registers_fewer} fewer a thread would fit {advice.blocks}"
        )
    else:
        text = (
            f"shared memory limits, {limit.per_block:,} of {limit.per_mp.value:,} bytes a block, "
            f"{advice.shared_bytes_less:,} bytes less would fit {advice.blocks}"
        )
        if limit.per_mp is ARTICLE_LIMITS.shared_per_mp:
            text += f" (if a multiprocessor has no more than the {limit.per_mp.value:,} bytes of one block [I])"
    text += then_limited(answer.limits, limit, advice.blocks)
    return f"{'; '.join(assumed)}: {text}" if assumed else text


_ASSUMED = {"registers": "if registers per MP are {}", "shared memory": "if shared memory per MP is {}"}


def _number(constant: Constant) -> str:
    if constant is ARTICLE_LIMITS.shared_per_mp:
        return f"the {constant.value:,} bytes of one block [I]"
    source = "article" if constant.source.startswith("article") else constant.source
    return f"{constant.value:,} [{source}]"


def disagreements(demand: Demand, found: Sequence[Occupancy]) -> tuple[str, ...]:
    """Where models or sources contradict each other, or rest on nothing public."""
    if demand.target == "mp_21":
        return ("public sources contradict each other: 262,144 registers for a block, 131,072 for a whole MP [XLA]",)
    if demand.target != ARTICLE_LIMITS.target or demand.block_size is None:
        return ()
    by_name: Mapping[str, Occupancy] = {entry.model: entry for entry in found}
    notes = [
        "threads, registers and shared memory per multiprocessor of mp_22 are in no public source; "
        "6,144 threads and 262,144 registers are the article's alone"
    ]
    first, second = by_name.get("article-optimistic"), by_name.get("article-conservative")
    if first and second and first.blocks_per_mp != second.blocks_per_mp:
        notes.append(
            f"the article's models disagree: {_blocks(first)} against {_blocks(second)}; "
            "by the article's own run the optimistic one is right"
        )
    if first and first.blocks_per_mp is not None and first.limiter == "shared memory":
        registers = first.limit("registers")
        if registers and registers.blocks is not None and registers.blocks > first.blocks_per_mp:
            notes.append(
                f"shared memory limits here, not registers: {registers.per_block:,} of 262,144 registers would let "
                f"{registers.blocks} blocks in, while {first.blocks_per_mp + 1} x {demand.shared_memory_bytes:,} bytes "
                "of shared memory is more than 73,728; the article explains the one block of its kernel by registers "
                "(section 15), against its own figures"
            )
    if (demand.shared_memory_bytes or 0) > LLAMA_STATIC_CAP_BYTES:
        notes.append(
            f"llama.cpp lets no kernel of mp_21 or mp_22 have more than {LLAMA_STATIC_CAP_BYTES:,} bytes of static "
            f"shared memory, this one has {demand.shared_memory_bytes:,}; FlagTree gives a block 73,728, and the "
            "article's kernel ran with 37,396"
        )
    return tuple(notes)


def _blocks(answer: Occupancy) -> str:
    return "unknown" if answer.blocks_per_mp is None else number_of(answer.blocks_per_mp, "block")
