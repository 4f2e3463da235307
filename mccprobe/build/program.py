"""The rest of the program, built once, and the link of each distinct object."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import SourceDoesNotCompile, ToolchainError
from mccprobe.base.process import RunSpec, run
from mccprobe.build.job import SCRATCH
from mccprobe.build.ledger import Ledger
from mccprobe.build.store import RunDirectory, require_room
from mccprobe.build.unit import PLACEHOLDER_IMAGE, RecordedSource, Unit
from mccprobe.targets.llvm.command import is_source, language, split_arguments, without_language
from mccprobe.targets.llvm.jobs import Job, JobKind
from mccprobe.targets.protocol import Toolchain


@dataclass(frozen=True)
class LinkFailure:
    """A link that gave no program: an UNRESOLVED trial."""

    reason: str


def _compile_rest(
    toolchain: Toolchain, run_directory: RunDirectory, number: int, name: str, args: Sequence[str], timeout_s: float
) -> str:
    """Compile one further source. Returns its object; raises SourceDoesNotCompile."""
    target = run_directory.unit / f"rest-{number}.o"
    if run_directory.kept.usable(target):
        return str(target)
    with run_directory.scratch("rest") as scratch:
        output = scratch / "rest.o"
        argv = [*toolchain.driver, *args, "-c", name, "-o", str(output)]
        result = run(RunSpec(argv, env=toolchain.environment(scratch), timeout_s=timeout_s))
        if not result.ok:
            require_room(scratch, result.stderr, result.returncode)
            raise SourceDoesNotCompile(
                f"{name} does not compile ({result.describe()})", detail=result.stderr_text.strip(),
                hint="the same command without mccprobe must work first: " + " ".join(argv),
            )  # fmt: skip
        run_directory.kept.keep(output, target)
    return str(target)


class Rest:
    """What is linked beside the bisected object, in the user's order: compiled in the background, once."""

    def __init__(
        self, toolchain: Toolchain, ledger: Ledger, inputs: Sequence[str], args: Sequence[str], *, timeout_s: float
    ) -> None:
        forced = language(split_arguments(args))
        self._names = tuple(inputs)
        self._parts: list[str | Future[str]] = [
            ledger.executor.submit(_compile_rest, toolchain, ledger.run, number, name, tuple(args), timeout_s)
            if is_source(name, forced)
            else name
            for number, name in enumerate(inputs)
        ]

    def named(self) -> list[tuple[int, tuple[str, bool]]]:
        """Each input's number, its name as given, and whether it is compiled here."""
        return list(enumerate((name, is_source(name)) for name in self._names))

    def inputs(self) -> list[str]:
        """Files for the linker. Raises SourceDoesNotCompile."""
        return [part if isinstance(part, str) else part.result() for part in self._parts]


class Linker:
    """The link of one program, recorded once, replayed with any object in the bisected one's place.

    It is recorded with empty files for names that do not exist yet, while the compiles still run.
    """

    def __init__(self, source: RecordedSource, rest: Rest, args: Sequence[str], *, name: str, timeout_s: float) -> None:
        self.source = source
        self.run = source.ledger.run
        self.timeout_s = timeout_s
        self._rest = rest
        folder = source.folder / f"link-{name}"
        folder.mkdir(exist_ok=True)
        self.placeholder = str(folder / "bisected.o")
        self.recorded_output = str(folder / "program")
        self._recorded_rest = [str(folder / f"rest-{n}.o") if made else name for n, (name, made) in rest.named()]
        for path in (self.placeholder, *self._recorded_rest):
            if path.startswith(str(folder)):
                Path(path).touch()
        command = [*without_language(args), self.placeholder, *self._recorded_rest, "-o", self.recorded_output]
        links = [job for job in source.toolchain.record(command, source.folder).jobs if job.kind is JobKind.LINK]
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
        paths = {self.placeholder: str(linkable), self.recorded_output: str(output)}
        job = self.job.substitute(paths | dict(zip(self._recorded_rest, self._rest.inputs(), strict=True)))
        env = {name: value.replace(SCRATCH, str(scratch)) for name, value in self.source.env.items()}
        result = run(RunSpec(job.argv, env=env, timeout_s=self.timeout_s))
        if not result.ok or not output.is_file():
            require_room(scratch, result.stderr, result.returncode)
            detail = result.stderr_text.strip().splitlines()
            return LinkFailure(f"link: {result.describe()}" + (f": {detail[-1]}" if detail else ""))
        return output


class Program:
    """The program of one unit with any of its objects, each linked once."""

    def __init__(self, unit: Unit, linker: Linker) -> None:
        self.unit = unit
        self.linker = linker
        self.run = linker.run
        self._lock = threading.Lock()

    def link(self, digest: str) -> Path | LinkFailure:
        """The program with this object. Of an offload program only the image is replaced."""
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
