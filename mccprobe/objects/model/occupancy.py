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
from mccprobe.objects.model.estimate import Demand, Limit, Occupancy, finish, then_limited
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
            model=model.name, title=model.title, target=demand.target, block_size=demand.block_size,
            block_size_source=demand.block_size_source, limits=tuple(found), notes=(*refused, *model.notes),
        ),
        threads_per_mp=limits.threads_per_mp, refused=bool(refused),
    )  # fmt: skip
    return replace(answer, next_step=_next_step(model, demand, answer))


def _threads(limits: Limits, block_size: int) -> Limit:
    return Limit.of("threads", block_size, limits.threads_per_mp)


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


def _next_step(model: Model, demand: Demand, answer: Occupancy) -> str:
    """What would fit one block more, with what that assumes; for the limiter alone, others may follow."""
    if answer.blocks_per_mp is None or answer.limiter is None:
        return ""
    limit = next(entry for entry in answer.limits if entry.resource == answer.limiter)
    if limit.per_mp.value is None or limit.per_block is None:
        return ""
    wanted = answer.blocks_per_mp + 1
    room = limit.per_mp.value // wanted
    assumed = [_ASSUMED[entry.resource].format(_number(entry.per_mp)) for entry in answer.limits
               if entry is not limit and entry.blocks is not None and entry.resource in _ASSUMED]  # fmt: skip
    if limit.resource == "threads":
        text = f"threads limit, {limit.per_block:,} of {_number(limit.per_mp)}, a block of {room:,} would fit {wanted}"
    elif limit.resource == "registers":
        threads = _whole_warps(model.limits, demand.block_size or 1)
        fewer = limit.per_block // threads - room // threads
        text = (
            f"registers limit, {limit.per_block:,} of {_number(limit.per_mp)} a block, "
            f"{fewer} fewer a thread would fit {wanted}"
        )
    else:
        text = (
            f"shared memory limits, {limit.per_block:,} of {limit.per_mp.value:,} bytes a block, "
            f"{limit.per_block - room:,} bytes less would fit {wanted}"
        )
        if limit.per_mp is ARTICLE_LIMITS.shared_per_mp:
            text += f" (if a multiprocessor has no more than the {limit.per_mp.value:,} bytes of one block [I])"
    text += then_limited(answer.limits, limit, wanted)
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
