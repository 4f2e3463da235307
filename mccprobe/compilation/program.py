"""The rest of the program, built once, and the link of each distinct object."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.compilation.job import SCRATCH
from mccprobe.compilation.store import RunDirectory
from mccprobe.compilation.unit import Unit
from mccprobe.errors import SourceDoesNotCompile, ToolchainError
from mccprobe.process import RunSpec, run
from mccprobe.toolchain.base import Toolchain
from mccprobe.toolchain.command import is_source
from mccprobe.toolchain.jobs import Job, JobKind


@dataclass(frozen=True)
class LinkFailure:
    """A link that gave no program: an UNRESOLVED trial."""

    reason: str


def build_rest(
    toolchain: Toolchain, run_directory: RunDirectory, inputs: Sequence[str], args: Sequence[str], *, timeout_s: float
) -> list[str]:
    """Compile the further sources once; objects, archives and libraries go through as they are.

    Returns the link inputs in the user's order. Raises SourceDoesNotCompile.
    """
    linkable = []
    for number, name in enumerate(inputs):
        if not is_source(name):
            linkable.append(name)
            continue
        target = run_directory.unit / f"rest-{number}.o"
        if not target.is_file():
            with run_directory.scratch("rest") as scratch:
                output = scratch / "rest.o"
                argv = [*toolchain.driver, *args, "-c", name, "-o", str(output)]
                result = run(RunSpec(argv, env=toolchain.environment(scratch), timeout_s=timeout_s))
                if not result.ok:
                    raise SourceDoesNotCompile(
                        f"{name} does not compile ({result.describe()})", detail=result.stderr_text.strip(),
                        hint="the same command without mccprobe must work first: " + " ".join(argv),
                    )  # fmt: skip
                output.replace(target)
        linkable.append(str(target))
    return linkable


class Program:
    """Links objects of one unit with the rest of the program."""

    def __init__(self, unit: Unit, inputs: Sequence[str], args: Sequence[str], *, timeout_s: float) -> None:
        self.unit = unit
        self.run = unit.ledger.run
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        placeholder = unit.folder / "bisected.o"
        if not placeholder.exists():
            placeholder.symlink_to(unit.linkable(unit.base[unit.active]))
        self.recorded_output = str(unit.folder / "program")
        self.placeholder = str(placeholder)
        command = [*args, self.placeholder, *inputs, "-o", self.recorded_output]
        self.recording = unit.toolchain.record(command, unit.folder)
        links = [job for job in self.recording.jobs if job.kind is JobKind.LINK]
        if not links:
            raise ToolchainError("the driver shows no link job", hint="is -c or -S among the compiler arguments?")
        self.job: Job = links[-1]

    def link(self, digest: str) -> Path | LinkFailure:
        """The program with this object, linked once."""
        target = self.run.programs / f"{self.unit.tag}-{digest}"
        with self._lock:
            if target.is_file():
                return target
            linkable = self.unit.linkable(digest)
            with self.run.scratch("link") as scratch:
                output = scratch / "program"
                job = self.job.substitute({self.placeholder: str(linkable), self.recorded_output: str(output)})
                env = {n: v.replace(SCRATCH, str(scratch)) for n, v in self.unit.env.items()}
                result = run(RunSpec(job.argv, env=env, timeout_s=self.timeout_s))
                if not result.ok or not output.is_file():
                    detail = result.stderr_text.strip().splitlines()
                    return LinkFailure(f"link: {result.describe()}" + (f": {detail[-1]}" if detail else ""))
                output.replace(target)
            return target
