"""What a bisection was asked for, with everything resolved: no option is interpreted below this record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mccprobe.base.errors import InputError
from mccprobe.search.procedure import Settings
from mccprobe.targets.llvm.command import mllvm_value
from mccprobe.targets.llvm.inherited import environment_of, sentences
from mccprobe.targets.protocol import Toolchain


@dataclass(frozen=True)
class OracleChoice:
    """How programs are judged.

    kind: "reference" (same output as the reference build), "command", "kernel".
    run_args: arguments of the program for "reference"; run_in: its folder (None: one of its own each time).
    """

    kind: str
    command: tuple[str, ...] = ()
    run_args: tuple[str, ...] = ()
    run_in: Path | None = None
    case: str = ""
    seed: int = 1
    timeout_s: float = 60.0
    bad_if_timeout: bool = False
    bad_if_crash: bool = False
    ignored_files: tuple[str, ...] = ()  # patterns of files that the program writes and that are not compared


@dataclass(frozen=True)
class BisectRequest:
    """One bisection.

    args: compile options of the bad build without the flags; flags: driver argv of each flag.
    inputs: further sources, objects, libraries (in the user's order); link_args: what only links.
    reference_args: compile options of the reference build, None when there is no reference.
    only_flags_differ: the reference is the bad build less the flags.
    promises: sentences on flags by which the user promises something to the compiler.
    """

    toolchain: Toolchain
    source: Path
    args: tuple[str, ...]
    flags: tuple[tuple[str, ...], ...]
    flag_names: tuple[str, ...]
    inputs: tuple[str, ...]
    link_args: tuple[str, ...]
    reference_args: tuple[str, ...] | None
    reference_link_args: tuple[str, ...]
    only_flags_differ: bool
    oracle: OracleChoice
    settings: Settings
    compile_timeout_s: float = 300.0
    arch: str = ""
    fixed_addresses: bool = True
    promises: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def bad_args(self) -> tuple[str, ...]:
        """Compile options of the bad build."""
        return (*self.args, *(argument for flag in self.flags for argument in flag))

    @property
    def llvm_flags(self) -> tuple[str, ...]:
        """The flags that are LLVM options, as a cc1 takes them behind -mllvm."""
        return tuple(value for value in map(mllvm_value, self.flags) if value)

    @property
    def shares_source(self) -> bool:
        """True when bad build and reference differ in LLVM options alone: one front end serves both."""
        return self.only_flags_differ and self.reference_args is not None and len(self.llvm_flags) == len(self.flags)

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
            "source_sha256": digest_of(self.source),
            "args": list(self.args),
            "flags": [list(flag) for flag in self.flags],
            "inputs": list(self.inputs),
            "inputs_sha256": _digests(self.inputs),
            "link_args": list(self.link_args),
            "reference_args": None if self.reference_args is None else list(self.reference_args),
            "oracle": [self.oracle.kind, list(self.oracle.command), list(self.oracle.run_args), self.oracle.case,
                       self.oracle.seed],
            "ignored_files": list(self.oracle.ignored_files) or None,
            "oracle_sha256": _digests(self.oracle.command),
            "environment": self.inherited or None,
            "configuration": identity.configuration or None,
            "configuration_sha256": _digests([identity.configuration]) if identity.configuration else None,
        }  # fmt: skip


def digest_of(path: Path) -> str:
    """SHA-256 of a source. Raises InputError when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", hint="name a source file that can be read") from error


def _digests(names: Sequence[str]) -> list[str | None]:
    """SHA-256 of those that are files."""
    return [digest_of(path) if (path := Path(name)).is_file() else None for name in names]


def changed_keys(old: dict[str, Any], new: dict[str, Any]) -> Sequence[str]:
    """Names of what differs between a recorded request and this one."""
    return [key for key in new if json.dumps(old.get(key)) != json.dumps(new[key])]
