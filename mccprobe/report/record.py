"""What one bisection says, as plain data. Schema: reports/bisect.schema.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mccprobe.base.errors import ExitCode
from mccprobe.search.spans import Span

SCHEMA_VERSION = 2  # 2: the build's units, the axis that was searched, the architecture of the examined compile
PASS_EXECUTIONS = "pass executions"  # the kind of axis whose states are limits of one unit


class Status(StrEnum):
    """The answer in one word. FOUND needs a confirmation of the pass itself; EXPOSED has none."""

    FOUND = "found"
    EXPOSED = "exposed"
    WRONG_AT_ZERO = "wrong-at-zero"
    NON_DETERMINISTIC = "non-deterministic"
    NO_DIFFERENCE = "no-difference"
    UNDECIDED = "undecided"
    ERROR = "error"


def exit_code_of(status: Status, *, named: bool) -> ExitCode:
    """Of the command line. named: a pass is."""
    if status in (Status.FOUND, Status.EXPOSED):
        return ExitCode.DONE
    if status is Status.NON_DETERMINISTIC:
        return ExitCode.DONE if named else ExitCode.ORACLE
    return ExitCode.ANSWER_IS_NO


@dataclass(frozen=True)
class Culprit:
    """The pass execution at which GOOD turns into BAD.

    execution: its number in this build (numbers differ between builds); total: executions in all.
    function: demangled; symbol: as in the object. function_from: "log", "inferred" or None.
    """

    title: str
    argument: str | None
    function: str | None
    symbol: str | None
    function_from: str | None
    execution: int
    total: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "pass": self.title,
            "pass_argument": self.argument,
            "function": self.function,
            "function_symbol": self.symbol,
            "function_from": self.function_from,
            "execution": self.execution,
            "total": self.total,
        }


@dataclass(frozen=True)
class EdgeRecord:
    """One change of verdict along the pass axis."""

    execution: int
    from_verdict: str
    to_verdict: str
    title: str | None
    function: str | None
    unresolved: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "execution": self.execution,
            "from": self.from_verdict,
            "to": self.to_verdict,
            "pass": self.title,
            "function": self.function,
            "unresolved": list(self.unresolved),
        }


@dataclass(frozen=True)
class TableCell:
    """Flag on/off by pass on/off. verdict None: not run, and `how` says why."""

    flag: str
    pass_state: str
    verdict: str | None
    object: str | None
    how: str
    reason: str = ""
    max_err: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "flag": self.flag,
            "pass": self.pass_state,
            "verdict": self.verdict,
            "object": self.object,
            "how": self.how,
            "reason": self.reason,
            "max_err": self.max_err,
        }


@dataclass(frozen=True)
class Confirmation:
    """Why the status is what it is: `kind` is "option", "ir-changed" or "none"."""

    kind: str
    text: str
    option: str = ""


class CheckState(StrEnum):
    """How the check of the program itself ended."""

    CLEAN = "clean"
    FINDING = "finding"
    NOT_RUN = "not-run"


@dataclass(frozen=True)
class ProgramCheck:
    """Was the program checked for undefined behaviour? text: what was found, or what was run, or why nothing was."""

    state: CheckState
    text: str

    def to_dict(self) -> dict[str, Any]:
        return {"state": self.state.value, "text": self.text}


@dataclass(frozen=True)
class HangsAnswer:
    """The answer of the same search with programs that do not end as BAD. culprit: None where it gives none."""

    status: Status
    culprit: Culprit | None
    confirmation: Confirmation | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "status": self.status.value,
            "culprit": self.culprit.to_dict() if self.culprit else None,
            "confirmation": _confirmation(self.confirmation),
        }


@dataclass(frozen=True)
class ExecutionRange:
    """Executions of which one begins the fault: the limits between them cannot be judged.

    first, last: with the passes there. unresolved: how many limits gave no verdict. hangs: the other answer.
    """

    first: Culprit
    last: Culprit
    unresolved: int
    hangs: HangsAnswer | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "first": self.first.to_dict(),
            "last": self.last.to_dict(),
            "unresolved": self.unresolved,
            "with_hangs_as_bad": self.hangs.to_dict() if self.hangs else None,
        }


@dataclass(frozen=True)
class Observed:
    """What was compared of both builds. output: printed by the reference, and its end.

    files: that it wrote into its folder, and whether they are compared (not, where they differ from run to run).
    stdin: the file that every run read from standard input, "" for nothing.
    """

    output: str
    files: tuple[tuple[str, bool], ...] = ()
    stdin: str = ""

    def to_dict(self) -> dict[str, Any]:
        files = [{"name": name, "compared": compared} for name, compared in self.files]
        return {"output": self.output, "files": files, "stdin": self.stdin or "empty"}


def _confirmation(found: Confirmation | None) -> dict[str, Any] | None:
    return {"kind": found.kind, "text": found.text, "option": found.option} if found else None


@dataclass(frozen=True)
class UnitRecord:
    """One translation unit of the build. examined: the one whose passes were counted."""

    source: str
    args: tuple[str, ...]
    folder: str
    examined: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "args": list(self.args),
            "folder": self.folder,
            "examined": self.examined,
        }


@dataclass(frozen=True)
class AxisRecord:
    """The line of states that was searched. kind: what a state counts; total: the number of the last state."""

    kind: str
    total: int | None

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "total": self.total}


@dataclass(frozen=True)
class BisectReport:
    """Everything that text, JSON and later issues show of one bisection."""

    status: Status
    toolchain: str
    compiler_path: str
    compiler_version: str
    simulated: bool
    source: str
    flags: tuple[str, ...]
    culprit: Culprit | None = None
    confirmation: Confirmation | None = None
    edges: tuple[EdgeRecord, ...] = ()
    tested: tuple[Span, ...] = ()  # limits that were asked; between them nothing was
    monotone: bool | None = None
    confidence: float | None = None
    failure_rate: tuple[float, float, float] | None = None
    good_end: int | None = None
    total: int | None = None
    good_object: str | None = None
    bad_object: str | None = None
    compiles: int = 0
    runs: int = 0
    replayed: int = 0
    objects: int = 0
    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    verdicts: dict[str, int] = field(default_factory=dict)
    table: tuple[TableCell, ...] = ()
    reproduce_good: tuple[tuple[str, ...], ...] = ()
    reproduce_bad: tuple[tuple[str, ...], ...] = ()
    working_directory: str = "."
    oracle: str = ""
    stdin: str = ""
    good_output: str = ""
    bad_output: str = ""
    reference_object: str | None = None
    reference_output: str = ""
    range: ExecutionRange | None = None
    observed: Observed | None = None
    program_check: ProgramCheck | None = None
    cautions: tuple[str, ...] = ()
    equal_objects: bool = False
    log_lines: tuple[str, ...] = ()
    promises: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    run_directory: str = ""
    units: tuple[UnitRecord, ...] = ()
    axis: str = PASS_EXECUTIONS
    arch: str = ""

    @property
    def exit_code(self) -> ExitCode:
        """Exit code of the command line for this answer."""
        return exit_code_of(self.status, named=self.culprit is not None)

    def to_dict(self, tool_version: str) -> dict[str, Any]:
        """The `--json` document."""
        return {
            "schema_version": SCHEMA_VERSION,
            "tool_version": tool_version,
            "status": self.status.value,
            "toolchain": self.toolchain,
            "compiler": {"path": self.compiler_path, "version": self.compiler_version},
            "simulated": self.simulated,
            "source": self.source,
            "units": [unit.to_dict() for unit in self.units],
            "axis": AxisRecord(self.axis, self.total).to_dict(),
            "arch": self.arch or None,
            "flags": list(self.flags),
            "culprit": self.culprit.to_dict() if self.culprit else None,
            "confirmation": _confirmation(self.confirmation),
            "range": self.range.to_dict() if self.range else None,
            "edges": [edge.to_dict() for edge in self.edges],
            "tested": [{"first": one.first, "last": one.last, "verdict": one.verdict.value} for one in self.tested],
            "monotone": self.monotone,
            "confidence": self.confidence,
            "failure_rate": (
                dict(zip(("low", "estimate", "high"), self.failure_rate, strict=True)) if self.failure_rate else None
            ),
            "good_end": self.good_end,
            "total": self.total,
            "objects": {
                "good": self.good_object,
                "bad": self.bad_object,
                "distinct_tested": self.objects,
                "reference": self.reference_object,
                "equal": self.equal_objects,
            },
            "trials": {"compiles": self.compiles, "runs": self.runs, "replayed": self.replayed},
            "seconds": round(self.seconds, 3),
            "phases": {name: round(seconds, 3) for name, seconds in self.phases.items()},
            "verdicts": dict(self.verdicts),
            "table": [cell.to_dict() for cell in self.table],
            "reproduce": {
                "good": [list(argv) for argv in self.reproduce_good],
                "bad": [list(argv) for argv in self.reproduce_bad],
            },
            "working_directory": self.working_directory,
            "oracle": {
                "text": self.oracle,
                "good": self.good_output,
                "bad": self.bad_output,
                "reference": self.reference_output,
                **({"stdin": self.stdin} if self.stdin else {}),
            },
            "observed": self.observed.to_dict() if self.observed else None,
            "program_check": self.program_check.to_dict() if self.program_check else None,
            "cautions": list(self.cautions),
            "log": list(self.log_lines),
            "promises": list(self.promises),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "run_directory": self.run_directory,
        }
