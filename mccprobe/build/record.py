"""A build as it was recorded: translation units, and the link that makes a program of them.

    Build(units, link)      link.inputs names each input in its order: a unit by its number, any other file by its name
    unit.argv(toolchain, output)                one compile, as its build ran it
    link.argv(toolchain, build, objects, output)

Every compile and every link of mccprobe starts from these records: those of one command line (`of_command`), of a
kernel folder, or of a whole build. What a record holds is what the build did; nothing in it is invented.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mccprobe.targets.llvm.command import is_source, language, split_arguments, without_language
from mccprobe.targets.protocol import Toolchain


@dataclass(frozen=True)
class TranslationUnit:
    """One recorded compile.

    source: as its command names it, relative to `folder`. args: its compile options, without the source, -c and -o.
    folder: where the compiler ran. environment: variables that the build set for this compile.
    output: the object as the build names it, "" where it named none. architectures: of its device compiles, where
    the recording shows them.
    """

    source: str
    args: tuple[str, ...] = ()
    folder: Path = field(default_factory=Path.cwd)
    environment: Mapping[str, str] = field(default_factory=dict)
    output: str = ""
    architectures: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The source: as named where the compile ran in the current folder, else absolute."""
        return Path(self.source) if self.folder == Path.cwd() else self.folder / self.source

    @property
    def working_directory(self) -> Path | None:
        """The folder for a process, None for the current one (so that a compile can be repeated from elsewhere)."""
        return None if self.folder == Path.cwd() else self.folder

    def with_args(self, args: Sequence[str]) -> TranslationUnit:
        """The same source with other compile options."""
        return replace(self, args=tuple(args))

    def arguments(self, output: str) -> tuple[str, ...]:
        """Driver arguments of the compile, without the driver."""
        return (*self.args, "-c", self.source, "-o", output)

    def argv(self, toolchain: Toolchain, output: str) -> tuple[str, ...]:
        """The plain command for its object."""
        return toolchain.compile_argv(self.args, self.source, output)

    def describe(self) -> dict[str, Any]:
        """For documents: what must be equal for a unit to be the same unit."""
        return {
            "source": self.source,
            "args": list(self.args),
            "folder": os.fspath(self.folder),
            "environment": dict(self.environment),
            "output": self.output or None,
            "architectures": list(self.architectures),
        }


@dataclass(frozen=True)
class Link:
    """The recorded link.

    inputs: in the order of the command: the number of a unit, or the name of another object, archive or library.
    args: options of the link. joined: the link was one command with the compiles, so that a unit's compile options
    are in it as well; otherwise `args` are all of its options.
    """

    inputs: tuple[int | str, ...]
    args: tuple[str, ...] = ()
    folder: Path = field(default_factory=Path.cwd)
    joined: bool = True
    output: str = ""

    @property
    def working_directory(self) -> Path | None:
        """The folder for a process, None for the current one."""
        return None if self.folder == Path.cwd() else self.folder

    def options(self, unit_args: Sequence[str]) -> tuple[str, ...]:
        """All options of the link of a program whose bisected unit has these compile options."""
        return (*without_language(unit_args), *self.args) if self.joined else self.args

    def describe(self) -> dict[str, Any]:
        return {
            "inputs": list(self.inputs),
            "args": list(self.args),
            "folder": os.fspath(self.folder),
            "joined": self.joined,
            "output": self.output or None,
        }


@dataclass(frozen=True)
class Build:
    """Translation units and their link."""

    units: tuple[TranslationUnit, ...]
    link: Link

    def other_inputs(self, unit: int) -> tuple[int | str, ...]:
        """The inputs of the link without this unit, in order."""
        return tuple(one for one in self.link.inputs if one != unit)

    def place_of(self, unit: int) -> int:
        """How many inputs stand before this unit in the link."""
        return self.link.inputs.index(unit)

    def with_unit(self, number: int, unit: TranslationUnit) -> Build:
        """The same build with another record in this unit's place."""
        return replace(self, units=(*self.units[:number], unit, *self.units[number + 1 :]))

    def link_arguments(self, objects: Mapping[int, str], unit_args: Sequence[str], program: str) -> tuple[str, ...]:
        """Driver arguments of the link, without the driver, as a person would type them.

        objects: the name of each unit's object. unit_args: compile options of the bisected unit.
        """
        linked = [one if isinstance(one, str) else objects[one] for one in self.link.inputs]
        first = without_language(unit_args) if self.link.joined else ()
        return (*first, *linked, *self.link.args, "-o", program)

    def describe(self) -> dict[str, Any]:
        return {"units": [unit.describe() for unit in self.units], "link": self.link.describe()}


def of_command(
    source: Path,
    args: Sequence[str],
    inputs: Sequence[str],
    link_args: Sequence[str],
    *,
    rest_args: Sequence[str] | None = None,
) -> Build:
    """The build of one command line: a source, further sources, objects and libraries, all with the same options.

    args: compile options; link_args: what only links; rest_args: compile options of the further sources, where they
    are others.
    """
    others = tuple(args if rest_args is None else rest_args)
    forced = language(split_arguments(others))
    units = [TranslationUnit(os.fspath(source), tuple(args))]
    linked: list[int | str] = [0]
    for name in inputs:
        if is_source(name, forced):
            linked.append(len(units))
            units.append(TranslationUnit(name, others))
        else:
            linked.append(name)
    return Build(tuple(units), Link(tuple(linked), tuple(link_args)))
