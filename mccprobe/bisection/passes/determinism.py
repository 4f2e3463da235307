"""Does one command line give one object? A compiler that orders by pointer may not (llvm issue 66484).

The check runs one command line several times with address-space randomisation as the machine
has it, most of them with another memory layout from the C library (a low mmap threshold), which
only moves allocations. Measured on case 14 with clang 14: plain repeats show the second object in
0 to 30 % of the compiles, depending on the environment; with a threshold of 4,096 bytes in 60 %, with
1,024, 12,000 and 32,768 in 20 to 28 %, each of 40.

The search itself runs with fixed addresses where the machine permits. That makes such a compiler
repeatable, but it is one fixed draw, which can hide the fault: then the other layouts are searched too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mccprobe.base.console import number_of
from mccprobe.build.executor import Urgency
from mccprobe.build.job import CompileJob
from mccprobe.build.unit import Unit

LAYOUT_VARIABLE = "MALLOC_MMAP_THRESHOLD_"  # glibc: mallopt(3), M_MMAP_THRESHOLD; ignored elsewhere
LAYOUTS_BYTES = (4096, 12000, None, 1024, 32768)
OTHER_DRAWS = tuple(("env", f"{LAYOUT_VARIABLE}={layout}") for layout in LAYOUTS_BYTES if layout)
# A compile with up to so many pass executions (some 0.1 s) is repeated MOST_COMPILES times, a longer one
# LEAST_COMPILES. By executions and not by seconds, so that a busy machine checks no less.
CHEAP_EXECUTIONS = 1000
MOST_COMPILES = 24
LEAST_COMPILES = 2
CHEAP_SIDE_COMPILES = 6
_LISTED = 4  # objects that are spelt out


@dataclass(frozen=True)
class Determinism:
    """What repeated compiles of one command line gave: how often each object, most frequent first.

    limit: None for the user's command as it stands.
    """

    limit: int | None
    objects: tuple[tuple[str, int], ...]
    failed: int = 0
    spelled: str = ""  # the limit as the compiler takes it

    @property
    def same(self) -> bool:
        """True when there was one object, every time."""
        return len(self.objects) <= 1 and self.failed == 0

    def describe(self) -> str:
        where = "one command line" if self.limit is None else f"one command line with {self.spelled}"
        total = sum(count for _, count in self.objects) + self.failed
        counts = ", ".join(f"{digest[:12]} {number_of(count, 'time')}" for digest, count in self.objects[:_LISTED])
        if len(self.objects) > _LISTED:
            counts += f" and {len(self.objects) - _LISTED} more"
        failed = f", no object {number_of(self.failed, 'time')}" if self.failed else ""
        gave = number_of(len(self.objects), "object")
        return f"{number_of(total, 'compile')} of {where} gave {gave}: {counts}{failed}"


def repeated_job(unit: Unit, limit: int | None, number: int) -> CompileJob:
    """The number-th repeat (from 1) of one limit."""
    layout = LAYOUTS_BYTES[(number - 1) % len(LAYOUTS_BYTES)]
    return unit.repeat_job(limit, ordinal=number, env={LAYOUT_VARIABLE: str(layout)} if layout else {})


class RepeatedCompiles:
    """Repeats of one command line, compiled when nothing more urgent waits. known: objects it gave already."""

    def __init__(self, unit: Unit, limit: int | None, count: int, known: Sequence[str]) -> None:
        self.limit = limit
        self._spelled = "" if limit is None else unit.recorded.counter.spelled(limit)
        self._known = known
        self._executor = unit.ledger.executor
        jobs = [repeated_job(unit, limit, number) for number in range(1, count + 1)]
        self._futures = [unit.ledger.submit(job, urgency=Urgency.LATER) for job in jobs]

    def result(self) -> Determinism:
        """Wait, and compare."""
        for future in self._futures:
            self._executor.promote(future)
        outcomes = [future.result() for future in self._futures]
        objects = Counter([*self._known, *(outcome.object for outcome in outcomes if outcome.object is not None)])
        failed = sum(outcome.object is None for outcome in outcomes)
        return Determinism(self.limit, tuple(objects.most_common()), failed, self._spelled)


def repeat_command(unit: Unit, *, executions: int) -> RepeatedCompiles:
    """Repeat the bad end's compile. executions: of one compile."""
    source = unit.recorded
    # an offload compile repeats the very job; a plain one goes through the driver, which is another process
    known = [unit.base[source.active]] if source.offload else []
    least = LEAST_COMPILES - len(known)
    return RepeatedCompiles(unit, None, MOST_COMPILES if executions <= CHEAP_EXECUTIONS else least, known)


def one_object_in_every_layout(unit: Unit) -> bool:
    """Compile the user's command once in each memory layout: a fixed draw of addresses can hide a difference."""
    known = [unit.base[unit.recorded.active]] if unit.recorded.offload else []
    return RepeatedCompiles(unit, None, len(LAYOUTS_BYTES), known).result().same


def repeatable_with_fixed_addresses(unit: Unit, limits: Sequence[int]) -> bool:
    """True when fixing addresses makes the compiler repeat itself: only then does a search of it mean anything."""
    for limit in limits:
        first = unit.ledger.submit(unit.job(limit))
        again = unit.ledger.submit(unit.job(limit, ordinal=1))
        if first.result().object != again.result().object:
            return False
    return True


def one_sample(unit: Unit) -> Determinism:
    """The direct compile, which ran without fixed addresses, beside the object that the search took."""
    active = unit.recorded.active
    objects = Counter([unit.base[active], *(unit.samples[active : active + 1])])
    return Determinism(None, tuple(objects.most_common()))


def repeat_side(unit: Unit, limit: int, judged: str, *, executions: int) -> RepeatedCompiles:
    """Compile one side of the edge again, in full, and compare with the object that the search judged."""
    return RepeatedCompiles(unit, limit, CHEAP_SIDE_COMPILES if executions <= CHEAP_EXECUTIONS else 1, [judged])
