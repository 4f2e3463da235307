"""A flag as it is carried from the command line to the compile, whole: its spelling is put on where a command is made.

A driver's command takes `argv`, a cc1 takes `option` (targets.llvm.jobs.with_mllvm); nothing takes either apart again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mccprobe.base.errors import UsageError


@dataclass(frozen=True)
class CompilerFlag:
    """One flag of a build. option: an option of LLVM, without `-mllvm`; empty for one of the driver, which is words."""

    option: str = ""
    words: tuple[str, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """For the compiler driver."""
        return ("-mllvm", self.option) if self.option else self.words

    @property
    def key(self) -> str:
        """What two flags have in common that clang 14 refuses together: an LLVM option's name, a driver's words."""
        return self.option.lstrip("-").partition("=")[0] if self.option else " ".join(self.words)


def refuse_twice(flags: Iterable[tuple[str, str]], where: str) -> None:
    """Flags as (key, as the user typed it). Raises UsageError for the first key that is there twice.

    clang 14 refuses most options given twice; which of two values is meant cannot be known.
    """
    seen: dict[str, str] = {}
    for key, text in flags:
        if key in seen:
            raise UsageError(f"{where} gives {key.lstrip('-')} twice: {seen[key]} and {text}", hint="give it once")
        seen[key] = text
