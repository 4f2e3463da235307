"""Runs of programs under the screen: judged as the bisection judges them, but in another environment.

Every run is in the journal under its own name before its answer is used, so that a resumed screen runs nothing twice.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from mccprobe.base.errors import OracleUnusable
from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.build.program import LinkFailure
from mccprobe.build.store import require_space
from mccprobe.oracle.checks import CommandOracle, KernelOracle, Oracle, ReferenceOracle
from mccprobe.oracle.folders import alone_in
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.targets.llvm.locate import fixed_addresses_prefix, which

REPORT = "sanitizer-report"
REPORT_BYTES = 1 << 20  # read of one sanitizer's report
REPORT_LINES = 12  # shown of it, and where an uninitialised value came from
ORIGIN_LINES = 3
MOST_REPORTS = 50  # of one run that does not end at a report
# compiler-rt: what a report begins with; a crash under MSan or TSan may be their own
_FOUND = re.compile(
    r"runtime error: |ERROR: (?:AddressSanitizer|UndefinedBehaviorSanitizer): |WARNING: (?:Memory|Thread)Sanitizer: "
)
_BROKEN = re.compile(r".*(?:FATAL: |ERROR: (?:Memory|Thread)Sanitizer).*")
ORIGIN = "Uninitialized value was created by"
_FRAME_ADDRESS = re.compile(r"0x[0-9a-f]+|==\d+==|origin id: -?\d+")
_NOISE = ("LLVMSymbolizer:", "=====")


@dataclass
class _PrefixedKernelOracle(KernelOracle):
    """The host program behind another program (`env`, `setarch`)."""

    prefix: Sequence[str] = ()

    def command(self, program: str) -> list[str]:
        return [*self.prefix, *super().command(program)]


def behind(oracle: Oracle, prefix: Sequence[str], program: Path) -> tuple[Oracle, Path]:
    """The oracle that judges `program` started through `prefix`, and the file to give to it."""
    if not prefix:
        return oracle, program
    if isinstance(oracle, ReferenceOracle):
        return replace(oracle, args=(*prefix[1:], str(program), *oracle.args)), Path(prefix[0])
    if isinstance(oracle, CommandOracle):
        return replace(oracle, argv=(*prefix, *oracle.argv)), program
    assert isinstance(oracle, KernelOracle)
    settings = {item.name: getattr(oracle, item.name) for item in fields(KernelOracle) if item.init}
    return _PrefixedKernelOracle(**settings, prefix=tuple(prefix)), program


def environment_prefix(**values: str) -> tuple[str, ...]:
    """`env NAME=VALUE`, () where nothing is to be set or there is no `env`."""
    return ("env", *(f"{name}={value}" for name, value in values.items())) if values and which("env") else ()


class ScreenRuns:
    """Journalled runs of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.fixed = fixed_addresses_prefix()

    def judged(
        self,
        program: Path,
        digest: str,
        name: str,
        ordinal: int,
        *,
        prefix: Sequence[str] = (),
        oracle: Oracle | None = None,
    ) -> Outcome:
        """One oracle run of a program. UNRESOLVED where the oracle breaks on it."""

        def once() -> Outcome:
            with self.workspace.ledger.run.scratch("screen") as scratch:
                judge, started = behind(oracle or self.workspace.oracle, prefix, program)
                try:
                    outcome = judge.judge(started, scratch)
                except OracleUnusable as error:
                    outcome = Outcome(Verdict.UNRESOLVED, error.message)
                if outcome.verdict is not Verdict.GOOD:
                    require_space(scratch)
                return outcome

        base = (oracle or self.workspace.oracle).id
        return self._journalled(digest, f"screen {base} {name} {' '.join(prefix)}", ordinal, once)

    def of_object(
        self,
        judge: Judge,
        digest: str,
        name: str,
        ordinal: int,
        *,
        prefix: Sequence[str] = (),
        oracle: Oracle | None = None,
    ) -> Outcome:
        """The same of the program that a unit makes with this object."""
        program = judge.program.replace(digest)
        if isinstance(program, LinkFailure):
            return Outcome(Verdict.UNRESOLVED, program.reason)
        return self.judged(
            program, digest, f"{name} {judge.program.unit.variant}", ordinal, prefix=prefix, oracle=oracle
        )

    def reported(
        self,
        digest: str,
        name: str,
        options: str,
        timeout_s: float,
        *,
        alone: bool = False,
        env: Mapping[str, str],
        most: int = 1,
    ) -> Outcome:
        """Run a sanitizer's program, as the oracle would (alone: by itself).

        options: "ASAN_OPTIONS=halt_on_error=1". BAD: it reported something, and the reason is the report. GOOD: it
        ran to its end without. UNRESOLVED: the sanitizer itself could not work, there was no end in time, or the check
        never started the program: with verbosity=1 each of the four writes when it starts. most: reports in the
        reason, with an empty line between them.
        """
        oracle = self.workspace.oracle

        def once() -> Outcome:
            with self.workspace.ledger.run.scratch("screen") as scratch:
                program = str(self.workspace.ledger.run.object_path(digest))
                variable, _, values = options.partition("=")
                log = {variable: f"{values}:verbosity=1:log_path={scratch / REPORT}"}
                stdin = None if alone else self.workspace.request.oracle.stdin
                folder = getattr(oracle, "run_in", None) or getattr(oracle, "cwd", None)
                spec = RunSpec(
                    [*self.fixed, *([program] if alone else oracle.command(program))],
                    cwd=scratch if alone or folder is None else folder,
                    env={**os.environ, "TMPDIR": str(scratch), **env, **log},
                    timeout_s=timeout_s,
                    stdin=stdin,
                )
                with alone_in(None if alone else folder):
                    result = run(spec)
                report = "".join(
                    path.read_bytes()[:REPORT_BYTES].decode("utf-8", "replace")
                    for path in sorted(scratch.glob(f"{REPORT}.*"))
                )
                if not report:
                    require_space(scratch)
                return _outcome_of_report(report.replace(program, "program"), result, most)

        return self._journalled(digest, f"screen {name} {'' if alone else oracle.id}", 0, once)

    def _journalled(self, digest: str, name: str, ordinal: int, once: Callable[[], Outcome]) -> Outcome:
        journal = self.workspace.journal
        with journal.asking((digest, name, ordinal)) as entry:  # checks run side by side and may ask the same
            if entry is not None:
                return Outcome(Verdict(entry["verdict"]), entry["reason"], entry["max_err"])
            started = time.monotonic()
            outcome = once()
            seconds = round(time.monotonic() - started, 4)
            journal.append(
                {
                    "t": "run",
                    "object": digest,
                    "oracle": name,
                    "ordinal": ordinal,
                    "verdict": outcome.verdict.value,
                    "reason": outcome.reason,
                    "max_err": outcome.max_err,
                    "seconds": seconds,
                }
            )
            return outcome


def _shown(lines: Sequence[str]) -> str:
    """The first lines of one report and its origin."""
    text = list(lines[:REPORT_LINES])
    created = next((index for index, line in enumerate(lines) if ORIGIN in line), len(lines))
    text += lines[max(created, REPORT_LINES) : created + 1 + ORIGIN_LINES]
    return "\n".join(text)


def _outcome_of_report(report: str, result: RunResult, most: int = 1) -> Outcome:
    """most: reports taken, each once by its last line."""
    lines = [line for line in report.splitlines() if line.strip() and not line.startswith(_NOISE)]
    starts = [index for index, line in enumerate(lines) if _FOUND.search(line)]
    if starts and most == 1:
        return Outcome(Verdict.BAD, _shown(lines[starts[0] :]))
    if starts:
        each = [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
        distinct = {tuple(_FRAME_ADDRESS.sub("", line) for line in one[1:]): one for one in reversed(each)}
        return Outcome(Verdict.BAD, "\n\n".join(_shown(one) for one in list(distinct.values())[::-1][:most]))
    broken = next((line for line in lines if _BROKEN.fullmatch(line)), "")
    if broken:
        return Outcome(Verdict.UNRESOLVED, broken.strip())
    if result.returncode is None or result.timed_out:
        return Outcome(Verdict.UNRESOLVED, result.describe())
    if not report:
        return Outcome(Verdict.UNRESOLVED, "the check does not start the program, or not in its environment")
    return Outcome(Verdict.GOOD, result.describe())
