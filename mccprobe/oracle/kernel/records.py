"""The records of kernel.toml: cases, tolerance, dispatch, parameters, published figures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import UsageError
from mccprobe.oracle.kernel.expression import Expression
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets.flags.datafile import nearest, shorten

MAX_SIZE = 1 << 20  # of M, N, K: beyond any device's memory

SHAPE = re.compile(r"([1-9][0-9]{0,6})x([1-9][0-9]{0,6})x([1-9][0-9]{0,6})")

Scalar = int | float | str


@dataclass(frozen=True)
class Tolerance:
    """Largest allowed error. kind: "absolute" or "relative". formula: over M, N, K."""

    kind: str
    formula: str
    reason: str

    def limit(self, case: Case) -> float:
        """The bound for one case. Raises ExpressionError."""
        return float(Expression(self.formula).evaluate(case.shape))


@dataclass(frozen=True)
class Case:
    """One shape. legacy: one of the article's. toolchains: where it runs, () for everywhere.

    reduced_for: the case in whose place it stands where that one is too large, "" otherwise.
    """

    name: str
    m: int
    n: int
    k: int
    legacy: bool = False
    toolchains: tuple[str, ...] = ()
    reduced_for: str = ""

    @property
    def shape(self) -> dict[str, int]:
        return {"M": self.m, "N": self.n, "K": self.k}

    def runs_on(self, toolchain: str) -> bool:
        """False where the kernel says that this case is not for that toolchain."""
        return not self.toolchains or toolchain in self.toolchains


@dataclass(frozen=True)
class Dispatch:
    """A device kernel and the condition under which the host program launches it."""

    kernel: str
    condition: str

    def holds(self, case: Case) -> bool:
        """True if the condition holds for the case. Raises ExpressionError."""
        return bool(Expression(self.condition).evaluate(case.shape))


@dataclass(frozen=True)
class Define:
    """A -D parameter that may be tuned, and the values that make sense."""

    name: str
    default: Scalar
    values: tuple[Scalar, ...]
    reason: str


@dataclass(frozen=True)
class Published:
    """A figure that somebody published; `source` says where. Never our measurement."""

    metric: str
    value: Scalar
    subject: str
    unit: str
    source: str
    approximate: bool = False


@dataclass(frozen=True)
class Outcome:
    """What one toolchain gives. settings: of the emulator; defines: -D parameters; both empty for a plain run.

    wrong_share: least and largest share of wrong elements. told: a part of the reason.
    """

    toolchain: str
    verdict: Verdict
    settings: tuple[tuple[str, str], ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    wrong_share: tuple[float, float] = (0.0, 1.0)
    told: str = ""

    @property
    def plain(self) -> bool:
        return not self.settings and not self.defines


@dataclass(frozen=True)
class Expected:
    """What a device kernel gives on the hardware that it is for, and why. case: one that launches it."""

    kernel: str
    case: str
    verdict: Verdict
    reason: str
    on: tuple[Outcome, ...] = ()

    def for_toolchain(self, name: str) -> tuple[Outcome, ...]:
        """Without an entry for its plain run a toolchain gives what the hardware gives."""
        own = tuple(entry for entry in self.on if entry.toolchain == name)
        return own if any(entry.plain for entry in own) else (Outcome(name, self.verdict), *own)


@dataclass(frozen=True)
class KernelSpec:
    """One kernel.toml. All paths are absolute and existed when it was read."""

    path: Path
    name: str
    summary: str
    origin: str
    licence: str
    sources: tuple[Path, ...]
    host_sources: tuple[Path, ...]
    entry: str
    compile_args: tuple[str, ...]
    link_args: tuple[str, ...]
    default_case: str
    tolerance: Tolerance | None
    cases: tuple[Case, ...]
    dispatch: tuple[Dispatch, ...]
    defines: tuple[Define, ...]
    published: tuple[Published, ...]
    expected: tuple[Expected, ...] = ()

    @property
    def folder(self) -> Path:
        return self.path.parent

    def case(self, text: str) -> Case:
        """The case of `NAME` or `MxNxK`. Raises UsageError."""
        for case in self.cases:
            if case.name == text:
                return case
        shape = parse_shape(text)
        if shape is not None:
            return Case(text, *shape)
        names = [case.name for case in self.cases]
        near = nearest(text, names, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(
            f"kernel {self.name} has no case {shorten(text)}{meant}",
            hint=f"one of {', '.join(names)}, or a shape such as 256x256x512 (each up to {MAX_SIZE})",
        )


def parse_shape(text: str) -> tuple[int, int, int] | None:
    """MxNxK with each from 1 to MAX_SIZE; None for any other text."""
    found = SHAPE.fullmatch(text)
    if found is None:
        return None
    m, n, k = (int(number) for number in found.groups())
    return (m, n, k) if max(m, n, k) <= MAX_SIZE else None
