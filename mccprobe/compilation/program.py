"""The rest of the program, built once, and the link of each distinct object."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from mccprobe.compilation.job import SCRATCH
from mccprobe.compilation.ledger import Ledger
from mccprobe.compilation.store import RunDirectory, require_room
from mccprobe.compilation.unit import PLACEHOLDER_IMAGE, Unit
from mccprobe.errors import SourceDoesNotCompile, ToolchainError
from mccprobe.process import RunSpec, run
from mccprobe.toolchain.base import Toolchain
from mccprobe.toolchain.command import is_source, language, split_arguments, without_language
from mccprobe.toolchain.jobs import Job, JobKind


@dataclass(frozen=True)
class LinkFailure:
    """A link that gave no program: an UNRESOLVED trial."""

    reason: str


def _compile_rest(
    toolchain: Toolchain, run_directory: RunDirectory, number: int, name: str, args: Sequence[str], timeout_s: float
) -> str:
    """Compile one further source. Returns its object; raises SourceDoesNotCompile."""
    target = run_directory.unit / f"rest-{number}.o"
    if target.is_file():
        return str(target)
    with run_directory.scratch("rest") as scratch:
        output = scratch / "rest.o"
        argv = [*toolchain.driver, *args, "-c", name, "-o", str(output)]
        result = run(RunSpec(argv, env=toolchain.environment(scratch), timeout_s=timeout_s))
        if not result.ok:
            require_room(scratch, result.stderr)
            raise SourceDoesNotCompile(
                f"{name} does not compile ({result.describe()})", detail=result.stderr_text.strip(),
                hint="the same command without mccprobe must work first: " + " ".join(argv),
            )  # fmt: skip
        output.replace(target)
    return str(target)


class Rest:
    """What is linked beside the bisected object, in the user's order: compiled in the background, once."""

    def __init__(
        self, toolchain: Toolchain, ledger: Ledger, inputs: Sequence[str], args: Sequence[str], *, timeout_s: float
    ) -> None:
        forced = language(split_arguments(args))
        self._parts: list[str | Future[str]] = [
            ledger.executor.submit(_compile_rest, toolchain, ledger.run, number, name, tuple(args), timeout_s)
            if is_source(name, forced)
            else name
            for number, name in enumerate(inputs)
        ]

    def inputs(self) -> list[str]:
        """Files for the linker. Raises SourceDoesNotCompile."""
        return [part if isinstance(part, str) else part.result() for part in self._parts]


class Program:
    """Links objects of one unit with the rest of the program."""

    def __init__(self, unit: Unit, inputs: Sequence[str], args: Sequence[str], *, timeout_s: float) -> None:
        self.unit = unit
        self.run = unit.ledger.run
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        source = unit.recorded
        placeholder = source.folder / f"{unit.tag}.o"
        if not placeholder.exists():
            placeholder.unlink(missing_ok=True)  # a link to what an earlier run had
            first = source.host_half() if source.offload else unit.linkable(unit.base[source.active])
            placeholder.symlink_to(first)
        self.recorded_output = str(source.folder / f"{unit.tag}.program")
        self.placeholder = str(placeholder)
        command = [*without_language(args), self.placeholder, *inputs, "-o", self.recorded_output]
        self.recording = source.toolchain.record(command, source.folder)
        links = [job for job in self.recording.jobs if job.kind is JobKind.LINK]
        if not links:
            raise ToolchainError("the driver shows no link job", hint="is -c or -S among the compiler arguments?")
        self.job: Job = links[-1]
        self._frame: tuple[bytes, bytes] | None = None  # a linked program before and after its image
        if source.offload:
            self._frame = self._linked_frame()

    def _linked_frame(self) -> tuple[bytes, bytes] | None:
        """Link once with the placeholder for the image; None if it does not come out in one piece."""
        with self.run.scratch("frame") as scratch:
            linked = self._link(Path(self.placeholder), scratch)
            if isinstance(linked, LinkFailure):
                return None
            before, found, after = linked.read_bytes().partition(PLACEHOLDER_IMAGE)
        return (before, after) if found and PLACEHOLDER_IMAGE not in after else None

    def _framed(self, digest: str) -> bytes | None:
        """The program with this object's image in the place that was kept for it; None if it has no room."""
        if self._frame is None:
            return None
        image = self.unit.image(digest)
        room = len(PLACEHOLDER_IMAGE) - len(image)
        return self._frame[0] + image + bytes(room) + self._frame[1] if room >= 0 else None

    def link(self, digest: str) -> Path | LinkFailure:
        """The program with this object, linked once. Of an offload program only the image is replaced."""
        target = self.run.programs / f"{self.unit.variant}-{digest}"
        with self._lock:
            if target.is_file():
                return target
            framed = self._framed(digest)
            with self.run.scratch("link") as scratch:
                if framed is not None:
                    output = scratch / "program"
                    output.write_bytes(framed)
                    output.chmod(0o755)
                else:
                    linked = self._link(self.unit.linkable(digest), scratch)
                    if isinstance(linked, LinkFailure):
                        return linked
                    output = linked
                output.replace(target)
            return target

    def _link(self, linkable: Path, scratch: Path) -> Path | LinkFailure:
        """Replay the recorded link with another object in the bisected one's place."""
        output = scratch / "program"
        job = self.job.substitute({self.placeholder: str(linkable), self.recorded_output: str(output)})
        env = {name: value.replace(SCRATCH, str(scratch)) for name, value in self.unit.recorded.env.items()}
        result = run(RunSpec(job.argv, env=env, timeout_s=self.timeout_s))
        if not result.ok or not output.is_file():
            require_room(scratch, result.stderr)
            detail = result.stderr_text.strip().splitlines()
            return LinkFailure(f"link: {result.describe()}" + (f": {detail[-1]}" if detail else ""))
        return output
