"""One compile as data, and the function that runs it: picklable, so that it may run on another machine."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mccprobe.base.process import RunSpec, run
from mccprobe.build.store import disk_errors, keep_object, require_room
from mccprobe.targets.llvm.counter import CC1
from mccprobe.targets.protocol import LogSummary, PassCounter

OUTPUT = "\0output"  # stands in an argv for the trial's own output file
SCRATCH = "\0scratch"  # stands in the environment for the trial's own folder
DIAGNOSTIC_BYTES = 64 << 10


@dataclass(frozen=True)
class CompileJob:
    """One compile: the whole argv with OUTPUT in place of the output file.

    limit: the pass limit in it (UNLIMITED: every pass, None: no limit option at all); counter: reads its log.
    ordinal: tells repeats of one command line apart. around: execution to look at in the log.
    label: for people. env values may hold SCRATCH.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(hash=False)
    objects: Path
    trials: Path
    timeout_s: float
    limit: int | None = None
    ordinal: int = 0
    around: int = 0
    label: str = ""
    cwd: Path | None = None
    suffix: str = ".o"
    counter: PassCounter = CC1

    @property
    def id(self) -> str:
        """The same for the same command line and ordinal, in every process."""
        text = json.dumps([self.argv, self.ordinal, self.around, str(self.cwd)])
        return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class CompileOutcome:
    """What one compile gave. object is None when there is none, and reason says why."""

    object: str | None
    reason: str
    seconds: float
    log: LogSummary
    diagnostics: str = ""
    replayed: bool = False


def compile_once(job: CompileJob) -> CompileOutcome:
    """Run one compile in a folder and a process group of its own."""
    with disk_errors(job.trials):
        scratch = Path(tempfile.mkdtemp(prefix="compile-", dir=job.trials))
    try:
        output = scratch / f"output{job.suffix}"
        argv = [argument.replace(OUTPUT, str(output)) for argument in job.argv]
        env = {name: value.replace(SCRATCH, str(scratch)) for name, value in job.env.items()}
        reader = job.counter.reader(job.around)
        result = run(
            RunSpec(
                argv,
                cwd=job.cwd,
                env=env,
                timeout_s=job.timeout_s,
                capture_bytes=DIAGNOSTIC_BYTES,
                on_stderr=reader.feed,
            )
        )
        log, rest = reader.finish()
        diagnostics = (result.stderr + rest).decode("utf-8", "replace").strip()
        if not result.ok:
            require_room(job.trials, diagnostics.encode(), result.returncode)
            return CompileOutcome(None, f"compile: {result.describe()}", result.seconds, log, diagnostics)
        if not output.is_file() or output.stat().st_size == 0:
            return CompileOutcome(None, "compile: exit 0 but no output was written", result.seconds, log, diagnostics)
        with disk_errors(job.objects):
            digest = keep_object(output, job.objects)
        return CompileOutcome(digest, "", result.seconds, log, diagnostics)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
