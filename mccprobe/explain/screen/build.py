"""The whole program once more, as plainly as its compiler can build it: at -O0, without LLVM options and flags.

At -O0, because a sanitizer build at -O1 can be miscompiled itself. What is built here is compiled in parts (so that
they go side by side) and goes through the ledger: nothing is built twice, and a resumed run builds nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.build.job import OUTPUT, CompileJob, CompileOutcome
from mccprobe.build.store import RunDirectory
from mccprobe.targets.flags.levels import is_any_level
from mccprobe.targets.llvm.command import (
    is_source,
    language,
    mllvm_value,
    split_arguments,
    without_language,
)

# besides levels: sanitizers of the user's own, and what makes a warning an error
_NOT_PLAIN = re.compile(r"-f(?:no-)?sanitize.*|-Werror.*|-W(?:no-)?error.*")
_IR_SUFFIXES = frozenset((".ll", ".bc", ".s", ".S"))


@dataclass(frozen=True)
class Extra:
    """What one plain build is built with beside the user's arguments.

    compile_args, link_args: of every part. objects: linked as well. name: for labels.
    """

    name: str
    compile_args: tuple[str, ...] = ()
    link_args: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Built:
    """A program, or why there is none. command: one line that builds it. digest: in the store of objects."""

    digest: str | None
    reason: str
    command: tuple[str, ...]


class PlainBuilder:
    """Builds the program of one workspace at -O0. driver: of another compiler than the workspace's."""

    def __init__(self, workspace: Workspace, driver: Sequence[str] = ()) -> None:
        request = workspace.request
        self.workspace = workspace
        self.driver = tuple(driver or request.toolchain.driver)
        self.sources = (str(request.source), *request.inputs)
        self.args = (*plain_options(request.args), "-O0", "-w")
        self.link_args = (*plain_options(without_language(request.args)), *request.link_args)

    @property
    def run(self) -> RunDirectory:
        return self.workspace.ledger.run

    @property
    def from_ir(self) -> bool:
        """True when the source is no language that a front end reads: nothing of it can be instrumented."""
        return Path(self.sources[0]).suffix in _IR_SUFFIXES

    @property
    def foreign(self) -> tuple[str, ...]:
        """Inputs that are linked as they are, so that no instrumentation reaches them."""
        forced = language(split_arguments(self.workspace.request.args))
        return tuple(name for name in self.sources if not is_source(name, forced))

    def start(self, extra: Extra) -> list[Future[CompileOutcome] | str]:
        """Start the compiles of all parts: futures for sources, names for the others."""
        return [
            name if name in self.foreign else self.workspace.ledger.submit(self._compile_job(name, extra))
            for name in self.sources
        ]

    def texts(self, extra: Extra) -> list[str]:
        """The IR of the sources that compile, as text."""
        jobs = [
            self._job(
                (*self.args, *extra.compile_args, "-S", "-emit-llvm", name, "-o", OUTPUT),
                f"{extra.name} {Path(name).name}",
                suffix=".ll",
            )
            for name in self.sources
            if name not in self.foreign
        ]
        made = [future.result().object for future in [self.workspace.ledger.submit(job) for job in jobs]]
        return [self.run.object_path(digest).read_text("utf-8", "replace") for digest in made if digest]

    def build(self, extra: Extra, text: str | None = None) -> Built:
        """Compile and link. text: IR in place of the source under examination."""
        if text is not None:
            data = text.encode("utf-8", "surrogateescape")
            name = f"unit/screen-{hashlib.sha256(data).hexdigest()[:16]}.ll"
            path = self.run.root / name
            if not path.is_file():
                self.run.write_text(name, text)
            changed = PlainBuilder(self.workspace, self.driver)
            changed.sources = (str(path), *self.sources[1:])
            return changed.build(extra)
        inputs = []
        for part in self.start(extra):
            if isinstance(part, str):
                inputs.append(part)
                continue
            outcome = part.result()
            if outcome.object is None:
                return Built(None, _why(outcome), self.command(extra))
            inputs.append(str(self.run.object_path(outcome.object)))
        job = self._job(
            (*inputs, *extra.objects, *self.link_args, *extra.link_args, "-o", OUTPUT), f"{extra.name} link", suffix=""
        )
        outcome = self.workspace.ledger.compile(job)
        return Built(outcome.object, "" if outcome.object else _why(outcome), self.command(extra))

    def compile_alone(self, source: Path, extra: Extra) -> Built:
        """A program of one C source of our own."""
        args = ("-O0", "-w", *extra.compile_args, *extra.link_args, str(source), *extra.objects, "-o", OUTPUT)
        outcome = self.workspace.ledger.compile(self._job(args, f"{extra.name} control", suffix=""))
        return Built(outcome.object, "" if outcome.object else _why(outcome), (*self.driver, *args))

    def command(self, extra: Extra) -> tuple[str, ...]:
        """The build in one driver call, for people."""
        parts = (*self.args, *extra.compile_args, *self.sources, *extra.objects, *self.link_args, *extra.link_args)
        return (*self.driver, *parts, "-o", "program")

    def _compile_job(self, name: str, extra: Extra) -> CompileJob:
        args = (*self.args, *extra.compile_args, "-c", name, "-o", OUTPUT)
        return self._job(args, f"{extra.name} {Path(name).name}")

    def _job(self, args: Sequence[str], label: str, suffix: str = ".o") -> CompileJob:
        recorded = self.workspace.unit.recorded
        return CompileJob(
            argv=(*self.driver, *args),
            env=recorded.env,
            objects=self.run.objects,
            trials=self.run.root / "trials",
            timeout_s=self.workspace.request.compile_timeout_s,
            label=f"screen: {label}",
            suffix=suffix,
        )


def plain_options(args: Sequence[str]) -> tuple[str, ...]:
    """The options less optimisation levels, sanitizers and LLVM options."""
    groups = split_arguments(args).options
    return tuple(a for group in groups if not mllvm_value(group) and not _is_not_plain(group[0]) for a in group)


def _is_not_plain(option: str) -> bool:
    return is_any_level(option) or _NOT_PLAIN.fullmatch(option) is not None


def _why(outcome: CompileOutcome) -> str:
    """How a compile failed, with its first error line."""
    lines = outcome.diagnostics.splitlines()
    first = next((line for line in lines if "error" in line), lines[0] if lines else "")
    return f"{outcome.reason}: {first.strip()}" if first else outcome.reason
