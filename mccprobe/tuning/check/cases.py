"""Which cases the gate runs, and which it does not and why. Pure.

Besides what kernel.toml declares: one case for each dispatch branch, and shapes beside the multiples of
the tiles, where a kernel reads past an edge or another branch takes over. Both are found by trying shapes
made from the numbers in the dispatch conditions, smallest first.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mccprobe.oracle.kernel.expression import Expression, ExpressionError
from mccprobe.oracle.kernel.spec import Case, Dispatch, KernelSpec

MAX_SIDE = 4096  # of a shape that is tried for a branch: beyond it the emulator needs minutes
MAX_SIDES = 40  # 64,000 shapes, less than a second
FRAGMENT = 16  # smallest side of a WMMA fragment
MAX_STEP = 64  # beside a tile is less than this
MAX_REDUCED_OPERATIONS = 4e9  # of a reduced case: about a second on the emulator
_NUMBER = re.compile(r"\b\d{1,4}\b")
_COMMON_SIDES = (1, 16, 17, 32, 33, 64, 128, 256)


@dataclass(frozen=True)
class PlannedCase:
    """A case to run. why: "declared", "branch", "beside". expected: the kernel that kernel.toml says runs, None
    where it says that none takes the shape; described: kernel.toml says anything at all about it."""

    case: Case
    why: str
    expected: str | None
    described: bool
    once: bool = False  # one seed only: its reference takes minutes of CPU


@dataclass(frozen=True)
class NotRun:
    """A case or a branch that is not run."""

    name: str
    reason: str


def plan_cases(kernel: KernelSpec, toolchain: str, cases: str) -> tuple[list[PlannedCase], list[NotRun]]:
    """The cases by rising work, so that a wrong kernel is found early, and what is left out.

    toolchain: its name. cases: "legacy" for those that run everywhere, "full" for all.
    """
    table = DispatchTable(kernel)
    planned: list[PlannedCase] = []
    left_out: list[NotRun] = []

    def plan(case: Case, why: str, *, once: bool = False) -> None:
        entry = table.taking(case)
        planned.append(PlannedCase(case, why, entry.kernel if entry else None, bool(kernel.dispatch), once))

    for case in kernel.cases:
        if not case.runs_on(toolchain):
            left_out.append(NotRun(case.name, _why_not(kernel, case, toolchain)))
        elif case.toolchains and cases == "legacy":
            left_out.append(NotRun(case.name, "only with --cases full"))
        else:
            plan(case, "declared", once=bool(case.toolchains))
    bases = [] if kernel.dispatch else [kernel.case(kernel.default_case)]
    for entry in kernel.dispatch:
        found = table.shape_for(entry)
        if found is None:
            left_out.append(NotRun(entry.kernel, f"no shape up to {MAX_SIDE} makes its condition the first that holds"))
        else:
            plan(found, "branch")
            bases.append(found)
    for base in bases:
        for case in table.beside(base):
            plan(case, "beside")
    return sorted(_distinct(planned), key=lambda entry: entry.case.m * entry.case.n * entry.case.k), left_out


def _why_not(kernel: KernelSpec, case: Case, toolchain: str) -> str:
    reason = f"not for {toolchain}: kernel.toml runs it on {', '.join(case.toolchains)}"
    instead = [other.name for other in kernel.cases if other.reduced_for == case.name]
    instead += ["a reduced case for each dispatch branch"] if kernel.dispatch else []
    return f"{reason}; in its place: {' and '.join(instead)}" if instead else reason


def _distinct(planned: Iterable[PlannedCase]) -> Iterator[PlannedCase]:
    seen: set[tuple[int, int, int]] = set()
    for entry in planned:
        shape = (entry.case.m, entry.case.n, entry.case.k)
        if shape not in seen:
            seen.add(shape)
            yield entry


class DispatchTable:
    """The [[dispatch]] of a kernel with its conditions read once, for many shapes."""

    def __init__(self, kernel: KernelSpec) -> None:
        self._entries = [(entry, Expression(entry.condition)) for entry in kernel.dispatch]
        found = {int(text) for entry in kernel.dispatch for text in _NUMBER.findall(entry.condition)}
        self.numbers = sorted(number for number in found if 0 < number <= MAX_SIDE)

    def taking(self, case: Case) -> Dispatch | None:
        """The first whose condition holds: that kernel runs; one without a value does not hold."""
        for entry, condition in self._entries:
            with contextlib.suppress(ExpressionError):
                if condition.evaluate(case.shape):
                    return entry
        return None

    def shape_for(self, entry: Dispatch) -> Case | None:
        """A small shape that `entry` takes, two of its tiles along each side where that is not too much work.

        Sides below a fragment's 16 come last: a branch is tried on what it is made for.
        """
        near = {n + d for n in self.numbers for d in (-1, 1, 16)} | {2 * n for n in self.numbers}
        sides = [side for side in sorted({*_COMMON_SIDES, *self.numbers, *near}) if 0 < side <= MAX_SIDE][:MAX_SIDES]
        shapes = itertools.product(sides, repeat=3)
        for m, n, k in sorted(shapes, key=lambda shape: (min(shape) < FRAGMENT, shape[0] * shape[1] * shape[2])):
            if self.taking(_case(m, n, k)) is entry:
                larger = _case(2 * m, 2 * n, 2 * k)
                small_enough = 16.0 * m * n * k <= MAX_REDUCED_OPERATIONS
                return larger if small_enough and self.taking(larger) is entry else _case(m, n, k)
        return None

    def beside(self, base: Case) -> list[Case]:
        """Shapes beside this one: each side a little longer, once for each branch that takes such a shape and once
        for one that none takes (a kernel that should refuse it must); and all sides by one."""
        steps = sorted({1, *(number for number in self.numbers if number <= MAX_STEP)})
        found: list[Case] = []
        for m, n, k in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
            by_taker: dict[str | None, Case] = {}
            for step in steps:
                case = _case(base.m + m * step, base.n + n * step, base.k + k * step)
                taker = self.taking(case)
                by_taker.setdefault(taker.kernel if taker is not None else None, case)
            found += by_taker.values()
        return [*found, _case(base.m + 1, base.n + 1, base.k + 1)]


def _case(m: int, n: int, k: int) -> Case:
    return Case(f"{m}x{n}x{k}", m, n, k)
