"""The one interface behind which every compiler stands, and the records that cross it.

A toolchain knows commands and runs only short queries (version, `-###`, probes). Compiling,
caching and linking trials is `mccprobe.build`'s work, with the commands from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mccprobe.targets.llvm.jobs import Job

NOT_PROBED = "not probed"


@dataclass(frozen=True)
class Identity:
    """Which compiler it is.

    path: as found; resolved: with links followed. version: its own first version line.
    clang_major: 14 for "clang version 14.0.6", None where it does not say.
    fingerprint: changes when the installed compiler changes (path, version text, size, time).
    configuration: the file whose options it reads by itself, "" for none.
    """

    path: Path
    resolved: Path
    version: str
    clang_major: int | None
    fingerprint: str
    configuration: str = ""

    @property
    def is_mcc(self) -> bool:
        """True for mcc and its stand-in, by the line of their own that they print below clang's."""
        return self.version.startswith(("mcc version", "mccprobe-sim version"))


@dataclass(frozen=True)
class Capabilities:
    """What was found by running it: True, False, or "not probed"."""

    compile: bool | str = NOT_PROBED
    run: bool | str = NOT_PROBED
    bisect: bool | str = NOT_PROBED
    resources: bool | str = NOT_PROBED
    timing: bool | str = NOT_PROBED
    bundle: bool | str = NOT_PROBED
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recording:
    """The jobs of one driver command, in the driver's order, as `-###` shows them."""

    command: tuple[str, ...]
    jobs: tuple[Job, ...]
    env: Mapping[str, str] = field(default_factory=dict)


class Toolchain(Protocol):
    """One compiler installation."""

    name: str
    simulated: bool
    driver: tuple[str, ...]

    def identify(self) -> Identity:
        """Version and fingerprint. Raises ToolchainError when it cannot be run."""

    def capabilities(self) -> Capabilities:
        """Probed by running it; cheap answers are kept."""

    def environment(self, scratch: Path) -> dict[str, str]:
        """The environment of every compile: temporary files and compile caches under `scratch`."""

    def refusal(self, argv: Sequence[str], scratch: Path) -> str:
        """What the compiler says against these arguments; empty if it takes them."""

    def record(self, args: Sequence[str], scratch: Path) -> Recording:
        """Ask the driver for its jobs without running them.

        Raises SourceDoesNotCompile or ToolchainError with the driver's own message.
        """

    def compile_argv(self, options: Sequence[str], source: str, output: str) -> tuple[str, ...]:
        """The plain command for one object. options: as mcc or clang takes them."""

    def link_argv(self, inputs: Sequence[str], options: Sequence[str], output: str) -> tuple[str, ...]:
        """The plain command for the program; inputs are objects and libraries."""

    def check_fresh(self, ran: int, limit: int, what: str) -> None:
        """Raise StaleCompileCache when a compile's log shows another limit than was asked for."""
