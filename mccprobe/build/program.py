"""The program of a build with any object in its bisected unit's place: the rest built once, each object linked once."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import SourceDoesNotCompile, ToolchainError
from mccprobe.base.process import RunSpec, run
from mccprobe.build.job import SCRATCH
from mccprobe.build.ledger import Ledger
from mccprobe.build.link_errors import link_error
from mccprobe.build.record import Build, Link, TranslationUnit
from mccprobe.build.step import compile_unit
from mccprobe.build.store import RunDirectory, require_room
from mccprobe.build.unit import PLACEHOLDER_IMAGE, RecordedSource, Unit
from mccprobe.targets.llvm.jobs import Job, JobKind
from mccprobe.targets.protocol import Toolchain


@dataclass(frozen=True)
class LinkFailure:
    """A link that gave no program: an UNRESOLVED trial. hint: what to do, "" where only the linker's words help."""

    reason: str
    hint: str = ""


def _compile_rest(
    toolchain: Toolchain, run_directory: RunDirectory, number: int, unit: TranslationUnit, timeout_s: float
) -> str:
    """Compile one further unit. Returns its object; raises SourceDoesNotCompile."""
    target = run_directory.unit / f"rest-{number}.o"
    if run_directory.kept.usable(target):
        return str(target)
    with run_directory.scratch("rest") as scratch:
        output = scratch / "rest.o"
        done = compile_unit(toolchain, unit, output, scratch=scratch, timeout_s=timeout_s)
        if done.failure:
            raise SourceDoesNotCompile(
                f"{unit.path} does not compile ({done.failure})",
                detail=done.detail,
                hint="the same command without mccprobe must work first: " + " ".join(done.command),
            )
        run_directory.kept.keep(output, target)
    return str(target)


class Rest:
    """The other inputs of the link, in its order: units are compiled in the background, once."""

    def __init__(self, toolchain: Toolchain, ledger: Ledger, build: Build, unit: int, *, timeout_s: float) -> None:
        self._inputs = build.other_inputs(unit)
        self.names = tuple(one if isinstance(one, str) else build.units[one].source for one in self._inputs)
        self._parts: list[str | Future[str]] = [
            name
            if isinstance(name, str)
            else ledger.executor.submit(_compile_rest, toolchain, ledger.run, number, build.units[name], timeout_s)
            for number, name in enumerate(self._inputs)
        ]

    def named(self, folder: Path) -> list[str]:
        """Each input by a name: that of the file, or for a unit one below `folder` that its object will have."""
        return [
            one if isinstance(one, str) else str(folder / f"rest-{number}.o") for number, one in enumerate(self._inputs)
        ]

    def inputs(self) -> list[str]:
        """Files for the linker. Raises SourceDoesNotCompile."""
        return [part if isinstance(part, str) else part.result() for part in self._parts]


class Linker:
    """The link of one program, recorded once, replayed with any object in the bisected one's place.

    It is recorded with empty files for names that do not exist yet, while the compiles still run.
    """

    def __init__(
        self, source: RecordedSource, rest: Rest, link: Link, place: int, *, name: str, timeout_s: float
    ) -> None:
        """place: how many inputs of the link stand before the bisected object."""
        self.source = source
        self.run = source.ledger.run
        self.timeout_s = timeout_s
        self._rest = rest
        self._folder = link.working_directory
        folder = source.folder / f"link-{name}"
        folder.mkdir(exist_ok=True)
        self.placeholder = str(folder / "bisected.o")
        self.recorded_output = str(folder / "program")
        self._recorded_rest = rest.named(folder)
        inputs = [*self._recorded_rest[:place], self.placeholder, *self._recorded_rest[place:]]
        for path in inputs:
            if path.startswith(str(folder)):
                Path(path).touch()
        command = source.toolchain.link_argv(inputs, link.options(source.args), self.recorded_output)
        recorded = source.toolchain.record(
            command[len(source.toolchain.driver) :], source.folder, cwd=link.working_directory
        )
        links = [job for job in recorded.jobs if job.kind is JobKind.LINK]
        if not links:
            raise ToolchainError("the driver shows no link job", hint="is -c or -S among the compiler arguments?")
        self.job: Job = links[-1]
        self._frame: tuple[bytes, bytes] | None = None  # a linked program before and after its image
        self._framing = source.offload

    def described(self) -> tuple[str, ...]:
        """The link without this recording's own names: equal for two that differ in nothing else."""
        names = {self.placeholder: "OBJECT", self.recorded_output: "PROGRAM"}
        names |= {path: f"REST-{number}" for number, path in enumerate(self._recorded_rest)}
        return self.job.substitute(names).argv

    def frame(self) -> tuple[bytes, bytes] | None:
        """The program linked with a placeholder for its image, cut there; None if that does not work out."""
        if self._framing:
            self._framing = False
            with self.run.scratch("frame") as scratch:
                linked = self.link(self.source.host_half(), scratch)
                if isinstance(linked, Path):
                    before, found, after = linked.read_bytes().partition(PLACEHOLDER_IMAGE)
                    self._frame = (before, after) if found and PLACEHOLDER_IMAGE not in after else None
        return self._frame

    def link(self, linkable: Path, scratch: Path) -> Path | LinkFailure:
        """Link with this object; the program lies in `scratch`."""
        output = scratch / "program"
        rest = dict(zip(self._recorded_rest, self._rest.inputs(), strict=True))
        paths = {self.placeholder: str(linkable), self.recorded_output: str(output), **rest}
        job = self.job.substitute(paths)
        env = {name: value.replace(SCRATCH, str(scratch)) for name, value in self.source.env.items()}
        result = run(RunSpec(job.argv, cwd=self._folder, env=env, timeout_s=self.timeout_s))
        if not result.ok or not output.is_file():
            require_room(scratch, result.stderr, result.returncode)
            detail = result.stderr_text.strip().splitlines()
            named = dict(zip(rest.values(), self._rest.names, strict=True))
            error = link_error(result.stderr_text, str(self.source.source), str(linkable), named)
            told = error.what or (detail[-1] if detail else "")
            return LinkFailure(f"link: {result.describe()}" + (f": {told}" if told else ""), error.hint)
        return output


class Program:
    """The program of one unit with any of its objects, each linked once."""

    def __init__(self, unit: Unit, linker: Linker) -> None:
        self.unit = unit
        self.linker = linker
        self.run = linker.run
        self._lock = threading.Lock()

    def replace(self, digest: str) -> Path | LinkFailure:
        """The program with this object in the unit's place. Of an offload program only the image is replaced."""
        target = self.run.programs / f"{self.unit.variant}-{digest}"
        with self._lock:
            if self.run.kept.usable(target):
                return target
            framed = self._framed(digest)
            with self.run.scratch("link") as scratch:
                if framed is not None:
                    output = scratch / "program"
                    output.write_bytes(framed)
                    output.chmod(0o755)
                else:
                    linked = self.linker.link(self.unit.linkable(digest), scratch)
                    if isinstance(linked, LinkFailure):
                        return linked
                    output = linked
                self.run.kept.keep(output, target)
            return target

    def _framed(self, digest: str) -> bytes | None:
        """The program with this object's image in the place that was kept for it; None if it has no room."""
        frame = self.linker.frame()
        if frame is None:
            return None
        image = self.unit.image(digest)
        room = len(PLACEHOLDER_IMAGE) - len(image)
        return frame[0] + image + bytes(room) + frame[1] if room >= 0 else None
