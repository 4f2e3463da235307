"""Does one command line give one object? A compiler that orders by pointer may not (llvm issue 66484).

The check runs one command line several times with address-space randomisation as the machine
has it, most of them with another memory layout from the C library (a low mmap threshold), which
only moves allocations. Measured on case 14 with clang 14: plain repeats show the second object in
2 to 30 % of the compiles, depending on the environment; replayed from bitcode in none of 40; with
thresholds of 1,024 to 8,192 bytes in 25 to 37 %.

The search itself runs with fixed addresses where the machine permits. That makes such a compiler
repeatable, but it is one fixed draw: it can also hide the fault.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mccprobe.compilation.unit import Unit

LAYOUT_VARIABLE = "MALLOC_MMAP_THRESHOLD_"  # glibc: mallopt(3), M_MMAP_THRESHOLD; ignored elsewhere
LAYOUTS_BYTES = (1024, None, 4096, 8192, 3000)
LEAST_COMPILES = 3
MOST_COMPILES = 24
BUDGET_S = 1.5  # compile time for repeats beyond the least; cheap compiles are repeated more often
EDGE_BUDGET_S = 0.5


@dataclass(frozen=True)
class Determinism:
    """What repeated compiles of one command line gave: how often each object, most frequent first.

    limit: None for the user's command as it stands.
    """

    limit: int | None
    objects: tuple[tuple[str, int], ...]
    failed: int = 0

    @property
    def same(self) -> bool:
        """True when there was one object, every time."""
        return len(self.objects) <= 1 and self.failed == 0

    def describe(self) -> str:
        where = "one command line" if self.limit is None else f"one command line with -opt-bisect-limit={self.limit}"
        total = sum(count for _, count in self.objects) + self.failed
        counts = ", ".join(f"{digest[:12]} {count} times" for digest, count in self.objects)
        failed = f", no object {self.failed} times" if self.failed else ""
        return f"{total} compiles of {where} gave {len(self.objects)} objects: {counts}{failed}"


class RepeatedCompiles:
    """Repeats of one command line, compiled when the machine has nothing more urgent to do."""

    def __init__(self, unit: Unit, limit: int | None, count: int, expected: str | None) -> None:
        self.limit = limit
        self._expected = expected
        layouts = [LAYOUTS_BYTES[number % len(LAYOUTS_BYTES)] for number in range(count)]
        self._futures = [
            unit.ledger.submit(
                unit.repeat_job(limit, ordinal=number, env={LAYOUT_VARIABLE: str(layout)} if layout else {}), idle=True
            )
            for number, layout in enumerate(layouts, 1)
        ]

    def result(self) -> Determinism:
        """Wait, and compare."""
        outcomes = [future.result() for future in self._futures]
        objects = Counter(outcome.object for outcome in outcomes if outcome.object is not None)
        if self._expected is not None:
            objects[self._expected] += 1
        failed = sum(outcome.object is None for outcome in outcomes)
        return Determinism(self.limit, tuple(objects.most_common()), failed)


def repeat_command(unit: Unit, *, seconds: float) -> RepeatedCompiles:
    """Repeat the bad end's compile. seconds: what one took."""
    count = max(LEAST_COMPILES, min(MOST_COMPILES, int(BUDGET_S / max(seconds, 1e-3))))
    return RepeatedCompiles(unit, None, count, None)


def repeat_side(unit: Unit, limit: int, expected: str, *, seconds: float) -> RepeatedCompiles:
    """Compile one side of the edge again, and compare with the object that the search judged."""
    count = max(1, min(MOST_COMPILES // 2, int(EDGE_BUDGET_S / max(seconds, 1e-3))))
    return RepeatedCompiles(unit, limit, count, expected)
