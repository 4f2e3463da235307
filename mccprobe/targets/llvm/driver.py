"""What every clang-style driver shares: version, probing of flags, recording of jobs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mccprobe.base.errors import SourceDoesNotCompile, StaleCompileCache, ToolchainError
from mccprobe.base.process import RunSpec, run
from mccprobe.targets.llvm import locate
from mccprobe.targets.llvm.counter import CC1
from mccprobe.targets.llvm.inherited import SIDE_OUTPUTS, VARIABLES
from mccprobe.targets.llvm.jobs import parse_jobs, with_stable_cuid
from mccprobe.targets.protocol import Capabilities, Identity, PassCounter, Recording

# Compile caches that answer for the compiler: switched off, or moved into the trial's own folder.
_CACHE_OFF = {"CCACHE_DISABLE": "1", "SCCACHE_RECACHE": "1"}
_UNUSED = ("argument unused", "unknown argument", "unknown warning option", "unknown remark option", "linker' input")
_CACHE_FOLDERS = ("MUSA_CACHE_PATH",)  # named in the article only; harmless where it means nothing


class ClangDriver:
    """A clang-style driver on the user's machine."""

    name = "clang"
    simulated = False
    root: Path | None = None
    counter: PassCounter | None = CC1

    def __init__(self, driver: Sequence[str]) -> None:
        self.driver = tuple(driver)
        self.inherited: dict[str, str] | None = None  # in the place of what this process has (inherited.VARIABLES)
        self._identity: Identity | None = None

    @property
    def incomplete(self) -> str:
        return ""

    @property
    def takes_catalogue(self) -> bool:
        return False

    @property
    def heading(self) -> str:
        return ""

    def check_driver(self) -> None:
        self.identify()

    def identify(self) -> Identity:
        if self._identity is None:
            self._identity = locate.identify(self.driver)
        return self._identity

    def capabilities(self) -> Capabilities:
        return Capabilities(compile=True, run=True, bisect=True, resources=False, timing=False, bundle=False)

    def environment(self, scratch: Path) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if name not in SIDE_OUTPUTS}
        if self.inherited is not None:
            env = {name: value for name, value in env.items() if name not in VARIABLES} | self.inherited
        env |= {"TMPDIR": str(scratch), "LC_ALL": "C", **_CACHE_OFF}
        for name in _CACHE_FOLDERS:
            env[name] = str(scratch / "compile-cache")
        return env

    def refusal(self, argv: Sequence[str], scratch: Path) -> str:
        spec = RunSpec(
            [*self.driver, *self._probe_arguments(), *argv, "-c", os.devnull, "-o", str(scratch / "probe.o")],
            env=self.environment(scratch),
            timeout_s=locate.QUERY_TIMEOUT_S,
        )
        result = run(spec)
        if result.ok:
            # clang only warns about a driver option that it does not use; for a probe that is a no.
            text = result.stderr_text
            return text.strip() if any(words in text for words in _UNUSED) else ""
        return result.stderr_text.strip() or result.describe()

    def _probe_arguments(self) -> tuple[str, ...]:
        return ("-x", "c++")

    def record(self, args: Sequence[str], scratch: Path, *, cwd: Path | None = None) -> Recording:
        env = self.environment(scratch)
        command = (*self.driver, *args)
        result = run(RunSpec([*self.driver, "-###", *args], cwd=cwd, env=env, timeout_s=locate.QUERY_TIMEOUT_S))
        jobs = parse_jobs(os.fsdecode(result.stderr))  # file names need not be UTF-8
        if not result.ok:
            raise SourceDoesNotCompile(
                f"{self.driver[0]} refuses the command line: {result.describe()}",
                detail=_errors_only(result.stderr_text),
                hint="run the command by hand: " + " ".join(command),
            )
        if not jobs:
            raise ToolchainError(
                f"{self.driver[0]} -### shows no jobs, so its compiles cannot be replayed",
                detail=result.stderr_text[-2000:],
                hint="is this a clang-style driver?",
            )
        if not any(argument.startswith(("-cuid=", "-fuse-cuid=")) for argument in args):
            jobs = with_stable_cuid(jobs, "\0".join(_without_output(args)))
        return Recording(command, jobs, env)

    def compile_argv(self, options: Sequence[str], source: str, output: str) -> tuple[str, ...]:
        return (*self.driver, *options, "-c", source, "-o", output)

    def link_argv(self, inputs: Sequence[str], options: Sequence[str], output: str) -> tuple[str, ...]:
        return (*self.driver, *inputs, *options, "-o", output)

    def check_fresh(self, ran: int, limit: int, what: str) -> None:
        if ran == limit:
            return
        raise StaleCompileCache(
            f"{what}: asked for -opt-bisect-limit={limit}, but the compiler's log shows {ran} executions",
            hint="a compile cache or a wrapper answers in the compiler's place; remove it "
            "(for mcc: rm -r /tmp/mcc_cache, unset MUSA_CACHE_PATH) and run again",
        )


def _without_output(args: Sequence[str]) -> list[str]:
    """The arguments less `-o FILE`: that names the run directory."""
    return [argument for before, argument in zip(("", *args), args, strict=False) if "-o" not in (before, argument)]


def _errors_only(text: str) -> str:
    """Diagnostics without the job lines."""
    return "\n".join(line for line in text.splitlines() if not line.startswith(' "'))[-4000:].strip()
