"""Run a program under the recorder: what it prints, reads and returns stays its own.

Flow: TraceRequest -> checks that the program can be traced at all -> the program with LD_PRELOAD -> `Traced`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe import __version__
from mccprobe.base.console import number_of
from mccprobe.base.errors import BadElf, CannotTrace, CompilerNotFound
from mccprobe.base.process import RunResult
from mccprobe.base.streams import run_on_own_streams
from mccprobe.build.store import disk_errors
from mccprobe.objects.binary.elf import SHN_UNDEF, is_elf, iter_symbols, parse_elf
from mccprobe.targets.llvm import locate
from mccprobe.tuning.trace.library import recorder_library
from mccprobe.tuning.trace.read import MODULE_FOLDER, RECORD_FILE, Record, read_record

PT_INTERP = 3  # program header of the loader: without it LD_PRELOAD means nothing
SIM_MARK = "__mccsim_syncthreads"  # a function of the stand-in's runtime
STDOUT_FILE = "stdout"
NOTHING = (
    "nothing was recorded: no kernel ran, the runtime is linked statically, or it was loaded with dlopen and its "
    "functions fetched with dlsym"
)


@dataclass(frozen=True)
class TraceRequest:
    """argv: program and arguments. folder: a new one for the record. keep_output: standard output to a file there
    instead of ours. timeout_s: 0 for no limit."""

    argv: Sequence[str]
    folder: Path
    cache: Path
    keep_output: bool = False
    timeout_s: float = 0.0


@dataclass(frozen=True)
class Traced:
    """One traced run."""

    request: TraceRequest
    result: RunResult
    record: Record

    @property
    def simulated(self) -> bool:
        """True if the stand-in's runtime took a launch."""
        return any(launch.simulated for launch in self.record.launches)

    @property
    def status(self) -> int:
        """The program's own, as a shell gives it."""
        code = self.result.returncode if self.result.returncode is not None else 127
        return code if code >= 0 else 128 - code

    @property
    def warnings(self) -> list[str]:
        found = [] if self.record.launches else [NOTHING]
        if self.record.unreadable:
            found.append(f"{self.record.unreadable} damaged lines in {RECORD_FILE}")
        unknown = sum(module.file is None and module.path is None for module in self.record.modules)
        if unknown:
            found.append(f"{number_of(unknown, 'module')} not saved: the first bytes do not say how long the file is")
        if self.result.timed_out:
            found.append(f"ended after {self.result.seconds:.1f} s (--timeout)")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The document of `--json` (reports/trace.schema.json)."""
        return {
            "schema_version": 1,
            "tool_version": __version__,
            "status": "ok",
            "command": list(self.request.argv),
            "exit_status": self.status,
            "timed_out": self.result.timed_out,
            "simulated": self.simulated,
            "folder": str(self.request.folder),
            "record": RECORD_FILE,
            "stdout": STDOUT_FILE if self.request.keep_output else None,
            "launches": len(self.record.launches),
            "processes": len(self.record.processes),
            "kernels": [
                {
                    "kernel": one.kernel,
                    "grid": list(one.grid),
                    "block": list(one.block),
                    "dynamic_shared_bytes": one.dynamic_shared_bytes,
                    "launches": one.launches,
                    "refused": one.refused,
                }
                for one in self.record.kernels()
            ],
            "modules": [
                {
                    "api": one.api,
                    "file": one.file,
                    "path": one.path,
                    "bytes": one.bytes or None,
                    "sha256": one.sha256,
                    "loads": one.loads,
                }
                for one in self.record.modules
            ],
            "warnings": self.warnings,
        }


def trace(request: TraceRequest) -> Traced:
    """Run it. Raises CannotTrace, CompilerNotFound, ToolchainError, RunDirectoryUnusable."""
    program = locate.which(request.argv[0])
    if program is None:
        raise CompilerNotFound(f"command {request.argv[0]}", [], hint="what follows -- is a program and its arguments")
    require_traceable(program)
    library = recorder_library(request.cache)
    if any(separator in str(library) for separator in " :"):
        raise CannotTrace(
            str(library),
            "has a blank or a colon in its path, where LD_PRELOAD ends a name",
            "MCCPROBE_CACHE names another cache folder",
        )
    folder = request.folder.absolute()
    with disk_errors(folder):
        (folder / MODULE_FOLDER).mkdir(parents=True, exist_ok=True)
    preload = ":".join(filter(None, (str(library), os.environ.get("LD_PRELOAD", ""))))
    env = {**os.environ, "MCCPROBE_TRACE_DIR": str(folder)}
    stdout = folder / STDOUT_FILE if request.keep_output else None
    result = run_on_own_streams(request.argv, preload=preload, env=env, timeout_s=request.timeout_s, stdout=stdout)
    return Traced(request, result, read_record(folder))


def require_traceable(program: Path) -> None:
    """Raise CannotTrace for a program that LD_PRELOAD cannot reach."""
    try:
        data = program.read_bytes()
    except OSError as error:
        raise CannotTrace(str(program), f"cannot be read: {error.strerror or error}", "check the file") from error
    if not is_elf(data):
        return  # a script: its interpreter and its children are traced
    try:
        elf = parse_elf(data, str(program))
        inside = any(one.name == SIM_MARK and one.section != SHN_UNDEF for one in iter_symbols(elf))
    except BadElf:
        return
    if not any(segment.type == PT_INTERP for segment in elf.segments):
        raise CannotTrace(str(program), "is linked statically: LD_PRELOAD has no effect on it", "link it dynamically")
    if inside:
        raise CannotTrace(
            str(program),
            "has the stand-in's runtime inside it (libmusart.a): its launches never leave the program",
            "link it with the shared one: mcc ... $(mccprobe trace --sim-link) -lmusart",
        )


def sim_link_arguments(sdk: Path, shared_runtime: str) -> list[str]:
    """Link arguments for a program of the stand-in that can be traced."""
    place = (sdk / shared_runtime).parent
    return [f"-L{place}", f"-Wl,-rpath,{place}"]
