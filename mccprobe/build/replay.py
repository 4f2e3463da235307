"""A driver's command taken apart, so that its compiles can run on another machine.

    driver command --###--> jobs --each cc1: a CompileJob--> where compiles run --object--> the job's own output
                                 --links, bundles----------> here

What comes out is what the driver would have made. A compile that fails elsewhere is made here by the driver
itself: what is said against a candidate is then the driver's own word, as without a cluster, and a machine in
trouble is not taken for it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from mccprobe.base.process import TIMED_OUT, RunResult, RunSpec, run
from mccprobe.build.job import OUTPUT, SCRATCH, CompileJob, CompileOutcome
from mccprobe.build.store import disk_errors
from mccprobe.build.travel import compiler_of
from mccprobe.targets.llvm.jobs import Job, back_end_argv, parse_jobs, value_after, with_stable_cuid

SHOW_JOBS = "-###"


def is_compile(argv: Sequence[str]) -> bool:
    """True for a driver command that compiles and names its output."""
    return "-c" in argv and bool(value_after(argv, "-o")) and SHOW_JOBS not in argv


def replay(spec: RunSpec, compile_one: Callable[[CompileJob], CompileOutcome]) -> RunResult:
    """Run the driver command `spec`, its compiles by `compile_one`.

    The result is as of the driver itself; its time is that of the parts. A driver that shows no jobs runs here.
    """
    output = (spec.cwd or Path.cwd()) / value_after(spec.argv, "-o")
    with disk_errors(output.parent), tempfile.TemporaryDirectory(prefix="replay-", dir=output.parent) as folder:
        return _Replay(spec, compile_one, Path(folder)).run()


class _Replay:
    """One command in progress. folder: for what lies between its jobs."""

    def __init__(self, spec: RunSpec, compile_one: Callable[[CompileJob], CompileOutcome], folder: Path) -> None:
        self.spec, self.compile_one, self.folder = spec, compile_one, folder
        self.given = dict(os.environ if spec.env is None else spec.env)
        self.seconds = 0.0

    def run(self) -> RunResult:
        result = run(self.spec_of([self.spec.argv[0], SHOW_JOBS, *self.spec.argv[1:]]))
        jobs = with_stable_cuid(parse_jobs(os.fsdecode(result.stderr)), "\0".join(self._words()))
        if not result.ok or not any(compiler_of(job.argv) for job in jobs):
            return run(self.spec)
        for job in jobs:
            failed = self._compile(job) if compiler_of(job.argv) and job.output else self._here(job)
            if failed is not None:
                return failed
        return RunResult(0, b"", b"", self.seconds)

    def spec_of(self, argv: Sequence[str]) -> RunSpec:
        """A process of this command's own; what the driver calls temporary lies in `folder`."""
        env = {**self.given, "TMPDIR": str(self.folder)}
        return RunSpec(argv, cwd=self.spec.cwd, env=env, timeout_s=self.spec.timeout_s)

    def _words(self) -> list[str]:
        """The command without its output, whose folder is another one at each build."""
        words, output = list(self.spec.argv), value_after(self.spec.argv, "-o")
        return [word for word in words if word != output]

    def _compile(self, job: Job) -> RunResult | None:
        """One cc1 where compiles run; None if it gave its object."""
        home = self.given.get("TMPDIR", "")
        env = {name: value.replace(home, SCRATCH) if home else value for name, value in self.given.items()}
        asked = CompileJob(
            back_end_argv(job, "", OUTPUT, language=""),
            env,
            self.folder,
            self.folder,
            self.spec.timeout_s,
            label="build",
            cwd=self.spec.cwd,
            suffix=Path(job.output).suffix,
        )
        outcome = self.compile_one(asked)
        self.seconds += outcome.seconds
        if outcome.object is not None:
            place = (self.spec.cwd or Path.cwd()) / job.output
            with disk_errors(place):
                (self.folder / outcome.object).replace(place)
            return None
        if outcome.reason.removeprefix("compile: ").startswith(TIMED_OUT):
            said = outcome.diagnostics.encode()
            return RunResult(-15, b"", said, outcome.seconds, timed_out=True, stderr_bytes=len(said))
        return run(self.spec)

    def _here(self, job: Job) -> RunResult | None:
        """A job that is no compile of one process; None if it works."""
        result = run(self.spec_of(job.argv))
        self.seconds += result.seconds
        return None if result.ok else run(self.spec)
