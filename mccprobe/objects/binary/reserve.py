"""What mcc adds to every kernel, by architecture: shared memory for itself, a base address for spills.

Measured on public objects with their sources (mtgpu.md 3.4): a kernel without shared memory has the reserve alone; with
some, the reserve is rounded up to the alignment of what is declared (100 doubles on mp_21: 824 = 24 + 800; on mp_31:
816 = 16 + 800).
"""

from __future__ import annotations

MCC_RESERVE_BYTES = 20  # of mp_21 and mp_22
RESERVES = {"mp_21": MCC_RESERVE_BYTES, "mp_22": MCC_RESERVE_BYTES, "mp_31": 12}  # bytes
# Whether every kernel has the argument "Global Spill Base" (kind 19), spilling or not: 156 of 156 kernels of mp_21 and
# mp_22, 0 of 78 of mp_31
SPILL_BASE = {"mp_21": True, "mp_22": True, "mp_31": False}
LARGEST_ALIGNMENT = 128  # bytes; a tile's shared memory is aligned to at most this
_ALIGNMENTS = (4, 8, 16, 32, 64, LARGEST_ALIGNMENT)


def reserve_of(target: str) -> int | None:
    """The reserve of an architecture, None where it is not public."""
    return RESERVES.get(target)


def reserves_of(target: str) -> frozenset[int]:
    """What mcc may add to declared shared memory, for every alignment; empty where it is not public."""
    reserve = reserve_of(target)
    return frozenset() if reserve is None else frozenset(-(-reserve // step) * step for step in _ALIGNMENTS)
