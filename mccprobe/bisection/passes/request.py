"""What a bisection was asked for, with everything resolved: no option is interpreted below this record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mccprobe.base.errors import InputError
from mccprobe.base.paths import is_file, read_file
from mccprobe.build.record import Build, TranslationUnit
from mccprobe.report.record import UnitRecord
from mccprobe.search.procedure import Settings
from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.llvm.inherited import environment_of, sentences
from mccprobe.targets.protocol import Toolchain


@dataclass(frozen=True)
class OracleChoice:
    """How programs are judged.

    kind: "reference" (same output as the reference build), "command", "kernel".
    run_args: arguments of the program for "reference"; run_in: its folder (None: one of its own each time);
    stdin: what it reads from standard input (None: nothing).
    """

    kind: str
    command: tuple[str, ...] = ()
    run_args: tuple[str, ...] = ()
    run_in: Path | None = None
    stdin: Path | None = None
    case: str = ""
    seed: int = 1
    timeout_s: float = 60.0
    bad_if_timeout: bool = False
    bad_if_crash: bool = False
    ignored_files: tuple[str, ...] = ()  # patterns of files that the program writes and that are not compared


@dataclass(frozen=True)
class BisectRequest:
    """One bisection.

    build: the bad build, its bisected unit without the flags; unit: the number of that unit; flags: those under
    examination. reference: the same units as the reference build compiles and links them, None without one.
    only_flags_differ: the reference is the bad build less the flags.
    promises: sentences on flags by which the user promises something to the compiler.
    """

    toolchain: Toolchain
    build: Build
    flags: tuple[CompilerFlag, ...]
    flag_names: tuple[str, ...]
    reference: Build | None
    only_flags_differ: bool
    oracle: OracleChoice
    settings: Settings
    unit: int = 0
    compile_timeout_s: float = 300.0
    arch: str = ""
    fixed_addresses: bool = True
    promises: tuple[str, ...] = ()

    @property
    def record(self) -> TranslationUnit:
        """The unit that is bisected, without the flags."""
        return self.build.units[self.unit]

    def unit_records(self) -> tuple[UnitRecord, ...]:
        """The units of the bad build for a report; the others are compiled as in the reference."""
        return tuple(
            UnitRecord(one.source, one.args, str(one.folder), number == self.unit)
            for number, one in enumerate(self.build.units)
        )

    @property
    def source(self) -> Path:
        """Its source, as messages name it."""
        return self.record.path

    @property
    def args(self) -> tuple[str, ...]:
        """Its compile options without the flags."""
        return self.record.args

    @property
    def place(self) -> int:
        """How many inputs of the link stand before it."""
        return self.build.place_of(self.unit)

    @property
    def rest(self) -> Build:
        """The build that the other units are compiled for: the reference where there is one."""
        return self.build if self.reference is None else self.reference

    @property
    def inputs(self) -> tuple[str, ...]:
        """What else is linked, by name: sources of other units, objects, libraries."""
        units = self.rest.units
        return tuple(
            one if isinstance(one, str) else str(units[one].path) for one in self.build.other_inputs(self.unit)
        )

    @property
    def link_args(self) -> tuple[str, ...]:
        """What only links, in the bad build."""
        return self.build.link.args

    @property
    def reference_args(self) -> tuple[str, ...] | None:
        """Compile options of the unit in the reference build, None without one."""
        return None if self.reference is None else self.reference.units[self.unit].args

    @property
    def reference_link_args(self) -> tuple[str, ...]:
        """What only links, in the reference build."""
        return () if self.reference is None else self.reference.link.args

    def with_source(self, source: Path) -> BisectRequest:
        """The same request for another text of the unit's source."""

        def changed(build: Build) -> Build:
            return build.with_unit(self.unit, replace(build.units[self.unit], source=str(source)))

        reference = None if self.reference is None else changed(self.reference)
        return replace(self, build=changed(self.build), reference=reference)

    @property
    def bad_args(self) -> tuple[str, ...]:
        """Compile options of the bad build."""
        return (*self.args, *(argument for flag in self.flags for argument in flag.argv))

    @property
    def shares_source(self) -> bool:
        """True when bad build and reference differ in LLVM options alone: one front end serves both."""
        return self.only_flags_differ and self.reference_args is not None and all(flag.option for flag in self.flags)

    @property
    def inherited(self) -> dict[str, str]:
        """Variables of the environment that are in every compile."""
        return environment_of(self.toolchain)

    @property
    def told_of_environment(self) -> tuple[str, ...]:
        """Sentences on them, and on a file of options that the compiler reads by itself."""
        return sentences(self.inherited, self.toolchain.identify().configuration)

    def describe(self) -> dict[str, Any]:
        """Everything that must be equal for a run to be resumed (seconds and counts do not matter)."""
        identity = self.toolchain.identify()
        return {
            "toolchain": self.toolchain.name,
            "compiler": str(identity.path),
            "version": identity.version,
            "fingerprint": identity.fingerprint,
            "source": str(self.source.absolute()),
            "unit": self.unit,
            "build": self.build.describe(),
            "reference_build": None if self.reference is None else self.reference.describe(),
            "source_sha256": digest_of(self.source),
            "args": list(self.args),
            "flags": [list(flag.argv) for flag in self.flags],
            "inputs": list(self.inputs),
            "inputs_sha256": _digests(self.inputs),
            "link_args": list(self.link_args),
            "reference_args": None if self.reference_args is None else list(self.reference_args),
            "oracle": [
                self.oracle.kind,
                list(self.oracle.command),
                list(self.oracle.run_args),
                self.oracle.case,
                self.oracle.seed,
            ],
            "ignored_files": list(self.oracle.ignored_files) or None,
            "oracle_sha256": _digests(self.oracle.command),
            "stdin": None if self.oracle.stdin is None else str(self.oracle.stdin),
            "stdin_sha256": None if self.oracle.stdin is None else digest_of(self.oracle.stdin),
            "environment": self.inherited or None,
            "configuration": identity.configuration or None,
            "configuration_sha256": _digests([identity.configuration]) if identity.configuration else None,
        }


def digest_of(path: Path) -> str:
    """SHA-256 of a source. Raises InputError when it cannot be read."""
    try:
        return hashlib.sha256(read_file(path)).hexdigest()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", hint="name a source file that can be read") from error


def _digests(names: Sequence[str]) -> list[str | None]:
    """SHA-256 of those that are files."""
    return [digest_of(path) if is_file(path := Path(name)) else None for name in names]


def changed_keys(old: dict[str, Any], new: dict[str, Any]) -> Sequence[str]:
    """Names of what differs between a recorded request and this one."""
    return [key for key in new if json.dumps(old.get(key)) != json.dumps(new[key])]
