"""Occupancy of AMD targets by LLVM's own public limits; blocks of a compute unit.

A compute unit has four SIMDs, a block's waves are spread over them. LLVM's "; Occupancy:" comment is the
waves of a SIMD by registers and LDS; `waves_by_registers` is that number for registers, and a test
compares it with what clang-14 prints.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace

from mccprobe.objects.model.estimate import AT_MOST, EXACT, Demand, Limit, Occupancy, then_limited
from mccprobe.objects.model.limits import LLVM_SOURCE, AmdLimits, Constant


def waves_by_registers(kind: str, count: int, limits: AmdLimits) -> int:
    """Waves that a SIMD can hold by this kind of register ("vector", "accumulation" or "scalar")."""
    if kind == "scalar":
        total, granule = limits.scalar_registers, limits.scalar_granule
    else:
        total, granule = limits.vector_registers, limits.vector_granule
    taken = max(1, math.ceil(count / granule)) * granule
    return min(limits.waves_per_simd, total // taken)


def amd_occupancy(demand: Demand, limits: AmdLimits) -> Occupancy:
    """Blocks of a compute unit (LLVM's model), percent of its waves."""
    answer = Occupancy(
        "llvm",
        f"LLVM's limits of {demand.target}, for a compute unit",
        demand.target,
        demand.block_size,
        demand.block_size_source,
    )
    if demand.block_size is None:
        return replace(answer, reason="no block size")
    if demand.block_size > limits.threads_per_block:
        refused = f"a block wants {demand.block_size:,} threads, the limit is {limits.threads_per_block:,}"
        return replace(answer, blocks_per_mp=0, percent=0.0, bound=EXACT, notes=(f"{refused}: it does not start",))
    waves = math.ceil(demand.block_size / limits.wave_threads)
    found = [_waves(waves, limits)]
    if waves > 1:
        found.append(Limit.of("barriers", 1, Constant(limits.blocks_of_several_waves, "blocks", LLVM_SOURCE)))
    found += [
        _registers(kind, demand.registers.get(kind), waves, limits) for kind in ("vector", "accumulation", "scalar")
    ]
    lds = Constant(limits.lds_bytes, "bytes", LLVM_SOURCE)
    if demand.shared_memory_bytes is None:
        found.append(Limit.unknown("shared memory", lds, "no shared memory size"))
    else:
        found.append(Limit.of("shared memory", demand.shared_memory_bytes, lds))
    found = [limit for limit in found if limit is not _NO_LIMIT]
    known = [limit for limit in found if limit.blocks is not None]
    tightest = min(known, key=lambda limit: limit.blocks if limit.blocks is not None else 0)
    blocks = tightest.blocks or 0
    still_open = [limit.resource for limit in found if limit.is_open]
    full = limits.waves_per_simd * limits.simds_per_cu
    step = _next_step(tightest, blocks, waves, limits)
    step += then_limited(found, tightest, blocks + 1) if step else ""
    return replace(
        answer,
        blocks_per_mp=blocks,
        percent=round(100.0 * blocks * waves / full, 1),
        limiter=tightest.resource,
        bound=AT_MOST if still_open else EXACT,
        limits=tuple(found),
        next_step=step,
        notes=tuple(f"unknown: {name}" for name in still_open),
    )


_NO_LIMIT = Limit("none", 0, Constant(None, "", ""), None)


def _waves(waves: int, limits: AmdLimits) -> Limit:
    total = Constant(limits.waves_per_simd * limits.simds_per_cu, "waves", LLVM_SOURCE)
    return Limit.of("waves", waves, total, what=f"waves of {limits.wave_threads} threads")


@functools.lru_cache(maxsize=4096)  # a library has thousands of kernels and few different counts
def _registers(kind: str, count: int | None, waves: int, limits: AmdLimits) -> Limit:
    total = limits.scalar_registers if kind == "scalar" else limits.vector_registers
    constant = Constant(total, "registers of a SIMD", LLVM_SOURCE)
    if count is None:
        # targets without accumulation registers have no such key
        return _NO_LIMIT if kind == "accumulation" else Limit.unknown(f"{kind} registers", constant, "no count")
    if count == 0 and kind == "accumulation":
        return _NO_LIMIT
    fit = waves_by_registers(kind, count, limits)
    blocks = fit * limits.simds_per_cu // waves
    return Limit(f"{kind} registers", count, constant, blocks, f"{count} a thread, waves on a SIMD: {fit}")


@functools.lru_cache(maxsize=4096)
def _next_step(limit: Limit, blocks: int, waves: int, limits: AmdLimits) -> str:
    """What would fit one block more by this limit alone."""
    wanted = blocks + 1
    if limit.resource == "shared memory" and limit.per_block is not None:
        room = limits.lds_bytes // wanted
        return (
            f"shared memory limits, {limit.per_block:,} of {limits.lds_bytes:,} bytes a block, "
            f"{limit.per_block - room:,} bytes less would fit {wanted}"
        )
    if limit.resource.endswith(" registers") and limit.per_block is not None:
        kind = limit.resource.removesuffix(" registers")
        for count in range(limit.per_block - 1, -1, -1):
            if waves_by_registers(kind, count, limits) * limits.simds_per_cu // waves >= wanted:
                return (
                    f"{limit.resource} limit, {limit.per_block} of {limit.per_mp.value} a thread, "
                    f"{limit.per_block - count} fewer would fit {wanted}"
                )
    return ""
