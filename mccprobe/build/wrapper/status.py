"""Does the wrapper work: is it what `mcc` finds, do its flags reach the device compile, do they change the object?

Nothing is concluded from the file alone. The wrapper is run as a build would run it, with the caller's environment:
its own log says what it added, the driver's `-###` says what the device compile gets, and the object with the flags is
compared with the object of MCCPROBE_WRAPPER=off (made twice: a compiler that does not repeat itself proves nothing).
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mccprobe.base.errors import MccprobeError, NotOurWrapper
from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.build.wrapper.flagset import llvm_key
from mccprobe.build.wrapper.install import COMMAND, found_in_path, is_launcher, read_installed, wrapper_path
from mccprobe.build.wrapper.script import Stamp, digest_of
from mccprobe.targets.llvm import locate
from mccprobe.targets.llvm.driver import ClangDriver
from mccprobe.targets.llvm.inherited import OVERRIDE
from mccprobe.targets.llvm.jobs import JobKind, mllvm_options, parse_jobs
from mccprobe.targets.llvm.probe import ARCHITECTURES, PROBE_TIMEOUT_S
from mccprobe.targets.sim.toolchain import SIMULATED_MARK

_CONFIGURATION = "Configuration file: "  # clang/lib/Driver/Driver.cpp, PrintVersion, which -### runs
_SAYS = "mccprobe wrapper: "  # how the wrapper's own lines begin
VARIABLES = ("MCCPROBE_WRAPPER", "MCCPROBE_SET", "MCCPROBE_FLAGS", "MCCPROBE_LOG")
# Loads, a loop-carried sum and a branch, so that schedulers have a choice; no header (they differ from SDK to SDK).
KERNEL = """__attribute__((global)) void mccprobe_probe(float *out, const float *in, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) {
    const float x = in[i], y = in[i + n];
    sum = sum * x + y;
    if (sum > 4.0f) sum -= out[i];
    out[i] = sum;
  }
}
"""


@dataclass(frozen=True)
class Reach:
    """One added option. times: how often it stands in the device compile's argv; None: not to be seen there."""

    option: str
    times: int | None


@dataclass
class Status:
    """Everything that was found; None where it could not be found out, with the reason in `problems` or `notes`."""

    wrapper: Path
    command: str = COMMAND
    stamp: Stamp | None = None
    in_path: Path | None = None
    compiler_version: str | None = None
    simulated: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    added: tuple[Reach, ...] = ()
    kept: tuple[str, ...] = ()
    reaches: bool | None = None
    changes_object: bool | None = None
    objects: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def finds_it(self) -> bool:
        """True if `command -v mcc` gives the wrapper."""
        found = self.in_path
        return self.stamp is not None and found is not None and found.resolve() == self.wrapper.resolve()

    @property
    def works(self) -> bool:
        return self.finds_it and self.reaches is True and self.changes_object is True and not self.problems

    def to_dict(self) -> dict[str, Any]:
        stamp = self.stamp
        return {
            "status": "works" if self.works else "does not work",
            "wrapper": str(self.wrapper),
            "installed": stamp is not None,
            "set": stamp.set if stamp else None,
            "flags": list(stamp.flags) if stamp else [],
            "compiler": {"path": stamp.compiler, "version": self.compiler_version, "simulated": self.simulated}
            if stamp
            else None,
            "command_v": str(self.in_path) if self.in_path else None,
            "found_by_command_v": self.finds_it,
            "environment": self.environment,
            "reaches_device_compile": self.reaches,
            "added": [{"option": one.option, "times": one.times} for one in self.added],
            "kept": list(self.kept),
            "changes_object": self.changes_object,
            "objects": self.objects or None,
            "problems": self.problems,
            "notes": self.notes,
        }


def wrapper_status(prefix: Path, source: Path | None = None, command: str = COMMAND) -> Status:
    """Look, then run. command: the compiler's name.

    source: a file to prove it on, instead of a small kernel of our own.
    """
    status = Status(wrapper_path(prefix, command), in_path=found_in_path(command), command=command)
    status.environment = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    try:
        status.stamp = read_installed(status.wrapper)
    except NotOurWrapper as error:
        status.problems.append(error.message)
        return status
    if status.stamp is None:
        status.problems.append(f"not installed: there is no {status.wrapper}")
        return status
    _look_at_path(status)
    compiler = Path(status.stamp.compiler)
    try:
        identity = locate.identify([str(compiler)])
    except MccprobeError as error:
        status.problems.append(f"the compiler recorded at install does not run any more: {error.message}")
        return status
    status.compiler_version = identity.version
    _look_at_compiler(status, status.stamp, identity.version)
    status.simulated = SIMULATED_MARK in identity.version
    if os.environ.get("MCCPROBE_WRAPPER") == "off":
        status.problems.append("MCCPROBE_WRAPPER=off is set: nothing is added")
        return status
    with tempfile.TemporaryDirectory(prefix="mccprobe-wrapper-") as folder:
        _Proof(status, Path(folder), source).run()
    return status


def _look_at_compiler(status: Status, stamp: Stamp, version: str) -> None:
    """Whether it is still the compiler that the wrapper was put in front of."""
    if stamp.compiler_version and stamp.compiler_version != version:
        changed = f"it was {stamp.compiler_version} and is {version}"
    elif stamp.compiler_digest and stamp.compiler_digest != digest_of(Path(stamp.compiler)):
        changed = "its file has other content"
    else:
        return
    status.problems.append(
        f"the compiler {stamp.compiler} was replaced since install: {changed}; "
        "run mccprobe wrapper install to accept it"
    )


def _look_at_path(status: Status) -> None:
    if status.finds_it:
        return
    folder = status.wrapper.parent
    if status.in_path is None:
        status.problems.append(f"no {status.command} in PATH: export PATH={folder}:$PATH")
    elif is_launcher(status.in_path):
        status.notes.append(
            f"{status.in_path} is a launcher: it must find {status.wrapper} next in PATH, and it does not see a change "
            "of MCCPROBE_SET or MCCPROBE_FLAGS; install --set changes the file that ccache looks at"
        )
        status.problems.append(f"{status.command} is {status.in_path}, not the wrapper")
    else:
        status.problems.append(f"{status.command} is {status.in_path}, not the wrapper: export PATH={folder}:$PATH")


class _Wrapped(ClangDriver):
    """The wrapper in the compiler's place, with further environment variables."""

    def __init__(self, wrapper: Path, extra: Mapping[str, str]) -> None:
        super().__init__([str(wrapper)])
        self._extra = dict(extra)

    def environment(self, scratch: Path) -> dict[str, str]:
        return {**super().environment(scratch), **self._extra}


class _Proof:
    """The runs behind reaches_device_compile and changes_object."""

    def __init__(self, status: Status, folder: Path, source: Path | None) -> None:
        self.status = status
        self.folder = folder
        self.output = folder / "probe.o"
        self.log = folder / "log.jsonl"
        self.on = _Wrapped(status.wrapper, {"MCCPROBE_LOG": str(self.log)})
        self.off = _Wrapped(status.wrapper, {"MCCPROBE_WRAPPER": "off"})
        self.device = status.command == COMMAND
        self.source = source.absolute() if source else folder / ("probe.mu" if self.device else "probe.c")
        if source is None:
            self.source.write_text(KERNEL, encoding="utf-8")

    def run(self) -> None:
        status = self.status
        first = self._first_object()
        if first is None:
            return
        before, after = self._logged()
        if before is None:
            status.problems.append("the wrapper wrote no log line, so what it adds is not known")
            return
        with_flags = self._compile(self.on)
        result = self._call(self.on, ["-###", *self.arguments])
        self._look_behind(result.stderr_text)
        self._reach(after[: len(after) - len(before)], parse_jobs(os.fsdecode(result.stderr)))
        if isinstance(with_flags, RunResult):
            complaint = with_flags.stderr_text.strip().splitlines()
            status.problems.append(f"with the flags the compile fails: {complaint[0] if complaint else 'no message'}")
            return
        self._compare(first, with_flags)

    def _call(self, driver: ClangDriver, args: Sequence[str]) -> RunResult:
        scratch = Path(tempfile.mkdtemp(dir=self.folder))
        return run(
            RunSpec(
                [*driver.driver, *args], cwd=self.folder, env=driver.environment(scratch), timeout_s=PROBE_TIMEOUT_S
            )
        )

    def _compile(self, driver: ClangDriver) -> bytes | RunResult:
        """The object's bytes, or how the compile failed. Always the same output name: it may stand in the object."""
        self.output.unlink(missing_ok=True)
        result = self._call(driver, self.arguments)
        if result.ok and self.output.is_file():
            return self.output.read_bytes()
        return result

    def _first_object(self) -> bytes | None:
        """The object without flags, for the first architecture that this compiler takes."""
        complaint = ""
        for arch in (*ARCHITECTURES, "") if self.device else ("",):
            named = (f"--offload-arch={arch}",) if arch else ()
            kind = ("--musa-device-only", "-x", "musa") if self.device else ()
            given = ("-O2", *kind, "-c", str(self.source), "-o", str(self.output))
            self.arguments = (*named, *given)
            made = self._compile(self.off)
            if isinstance(made, bytes):
                return made
            complaint = complaint or (made.stderr_text.strip() or made.describe())
        self.status.problems.append(f"{self.source.name} does not compile even without flags: {complaint[:500]}")
        return None

    def _logged(self) -> tuple[list[str] | None, list[str]]:
        """argv before and after of one call through the wrapper that runs nothing (`-###`)."""
        self._call(self.on, ["-###", *self.arguments])
        try:
            line = json.loads(self.log.read_text(encoding="utf-8").splitlines()[0])
            kept, before, after = ([str(word) for word in line[key]] for key in ("kept", "before", "after"))
        except (OSError, ValueError, IndexError, KeyError, TypeError, RecursionError):
            return None, []
        self.status.kept = tuple(kept)
        return before[1:], after[1:]

    def _look_behind(self, told: str) -> None:
        """Options that come from elsewhere than the command line: the wrapper cannot compare them with its own."""
        status = self.status
        lines = told.splitlines()
        status.problems += [line.removeprefix(_SAYS) for line in lines if line.startswith(_SAYS)]
        if os.environ.get(OVERRIDE):  # clang's driver edits its command line by it
            status.notes.append(f"{OVERRIDE}={os.environ[OVERRIDE]} changes each command line behind the wrapper")
        for line in lines:
            if line.startswith(_CONFIGURATION):
                file = line.removeprefix(_CONFIGURATION).strip()
                status.notes.append(f"the compiler reads {file} by itself; what it gives, the wrapper does not see")

    def _reach(self, added: Sequence[str], jobs: Sequence[Any]) -> None:
        """Count each added option in the argv of every device compile; the least of them counts."""
        status = self.status
        wanted = JobKind.DEVICE_COMPILE if self.device else JobKind.COMPILE
        device = [job for job in jobs if job.kind is wanted]
        if not device:
            status.problems.append(f"-### shows no {wanted}, so it is not known what reaches it")
            return
        found = []
        words = iter(added)
        for word in words:
            if word == "-mllvm":
                option = next(words, "")
                counts = [sum(llvm_key(o) == llvm_key(option) for o in mllvm_options(job.argv)) for job in device]
                there = all(option in mllvm_options(job.argv) for job in device)
                found.append(Reach(f"-mllvm {option}", max(counts) if there else 0))
            else:
                # the driver translates its own options, so one that is not there by name may still have an effect
                times = min(job.argv.count(word) for job in device)
                found.append(Reach(word, times or None))
        status.added = tuple(found)
        for one in found:
            if one.times == 0:
                status.problems.append(f"{one.option} does not reach the {wanted}")
            elif one.times is None:
                status.notes.append(f"{one.option}: the driver translates it; whether it has effect, the object says")
            elif one.times > 1:
                status.problems.append(f"{one.option} reaches the {wanted} {one.times} times: who else adds it?")
        if not found:
            status.problems.append("the wrapper adds nothing here (no set, or the command line has it all)")
        status.reaches = bool(found) and all(one.times is None or one.times == 1 for one in found)

    def _compare(self, first: bytes, with_flags: bytes) -> None:
        status = self.status
        again = self._compile(self.off)
        digests = [hashlib.sha256(data).hexdigest() for data in (first, with_flags)]
        status.objects = {"without": digests[0], "with": digests[1]}
        if again != first:
            status.notes.append("the compiler gives another object at each call, so a difference proves nothing")
        elif first != with_flags:
            status.changes_object = True
        else:
            status.changes_object = False
            if status.simulated:
                status.notes.append(
                    "SIMULATED: the stand-in takes mcc's flags, and most do nothing in it; this says nothing of mcc"
                )
            else:
                status.notes.append("try it on your own kernel: mccprobe wrapper status --source KERNEL.mu")
