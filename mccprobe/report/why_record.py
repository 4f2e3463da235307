"""What `mccprobe why` says, as plain data: one record a step. Schema: reports/why.schema.json."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from mccprobe.base.errors import ExitCode
from mccprobe.report.record import BisectReport

SCHEMA_VERSION = 2  # as of reports/bisect.schema.json, which it holds


class StepState(StrEnum):
    """How far a step came. A step that did not run says why in its record."""

    DONE = "done"
    SKIPPED = "skipped"
    NOT_RUN = "not run"
    BUDGET = "budget spent"
    FAILED = "failed"


@dataclass(frozen=True)
class FlagSet:
    """One minimal set of flags that gives the wrong result.

    fails, runs: of the build with exactly these flags. needed: for each flag, the verdict with all others
    of the set (GOOD: it is needed). promises: sentences on flags by which the user promises something.
    """

    flags: tuple[str, ...]
    fails: int
    runs: int
    object: str | None
    needed: dict[str, str] = field(default_factory=dict)
    promises: tuple[str, ...] = ()


@dataclass(frozen=True)
class FlagSets:
    """All minimal sets found. tested: builds judged; opened: bundle -> members tried in its place.

    complete: False when a budget ended the search or builds were UNRESOLVED (notes say which).
    """

    state: StepState
    sets: tuple[FlagSet, ...] = ()
    given: tuple[str, ...] = ()
    opened: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tested: int = 0
    complete: bool = True
    notes: tuple[str, ...] = ()


class ScreenOutcome(StrEnum):
    """Of one check. FINDING stops the accusation; HINT does not, it is told."""

    CLEAN = "clean"
    FINDING = "finding"
    HINT = "hint"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class ScreenCheck:
    """One check of the program before the compiler is blamed.

    part: "host", "kernel" or "program". text: the finding's first lines, or why it was not run.
    command: what was run, so that the user can repeat it.
    """

    name: str
    part: str
    outcome: ScreenOutcome
    text: str = ""
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Screen:
    """All checks. reason: why the compiler is not (yet) to blame, "" when nothing was found."""

    state: StepState
    checks: tuple[ScreenCheck, ...] = ()
    reason: str = ""

    @property
    def clean(self) -> bool:
        """True when every check that ran found nothing."""
        return not any(check.outcome is ScreenOutcome.FINDING for check in self.checks)


class Confirmed(StrEnum):
    """How an instruction is confirmed. Without one of these no instruction is named."""

    BOTH_SIDES = "both-sides"  # the good code with it alone is wrong, the bad code without it is right
    ALL_TOGETHER = "all-together"  # several are each sufficient; bad code without all of them is right
    VERIFIER = "verifier"  # the machine verifier names it: the code is invalid there


@dataclass(frozen=True)
class BadInstruction:
    """The first bad instruction for this input, as the compiler's own printing shows it.

    before, after: text in the good and in the bad code ("" where it is absent). sufficient: how many edits were
    each found sufficient alone (1 for both-sides).
    """

    before: str
    after: str
    function: str
    block: str
    confirmed: Confirmed
    sufficient: int = 1

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Where:
    """Where in the pass. kind: "ir", "mir" or "".

    instruction: None with `reason` saying why none is named. diff: unified diff of the function before and
    after. reproducer: one command line that alone turns right into wrong (argv each; inputs lie in the run
    directory), verified when reproducer_verified. verifier: the machine verifier's first complaint.
    files: name -> path of what was written. builds: compiles made by this step.
    """

    state: StepState
    kind: str = ""
    instruction: BadInstruction | None = None
    reason: str = ""
    diff: str = ""
    reproducer: tuple[tuple[str, ...], ...] = ()
    reproducer_verified: bool = False
    verifier: str = ""
    files: dict[str, str] = field(default_factory=dict)
    builds: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PassCell:
    """Flag on/off by pass on/off by function. verdict None: not run, `how` says why."""

    flag: str
    pass_state: str
    function: str
    verdict: str | None
    object: str | None
    fails: int
    runs: int
    how: str


@dataclass(frozen=True)
class OtherKernel:
    """Another kernel tried for the same signature. shows: None when it could not be tried (text says why)."""

    name: str
    shows: bool | None
    text: str


@dataclass(frozen=True)
class Signature:
    """What tells this fault from another: the pass and the shape of its edit; and who else shows it."""

    title: str = ""
    shape: str = ""
    others: tuple[OtherKernel, ...] = ()


@dataclass(frozen=True)
class Workaround:
    """One way around. verdict None: not tried (note says why).

    object: of the active device compile. no_effect: the object is the bad build's, so the change does nothing
    here. speed: median seconds of an honest clock, None where the toolchain has none.
    """

    change: str
    argv: tuple[str, ...]
    verdict: str | None
    max_err: float | None = None
    object: str | None = None
    no_effect: bool = False
    fails: int = 0
    runs: int = 0
    speed_s: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Workarounds:
    """The matrix. untried: what the limit on trials left out."""

    state: StepState
    rows: tuple[Workaround, ...] = ()
    untried: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuildFact:
    """Does it fail with default flags, -O0, -O2, -Od3? verdict None: not tried, text says why."""

    build: str
    verdict: str | None
    text: str = ""


@dataclass(frozen=True)
class WhyReport:
    """Everything of one `why`. bisect is None when the chain stopped before it (stopped says where and why)."""

    toolchain: str
    simulated: bool
    compiler_path: str
    compiler_version: str
    source: str
    flags: tuple[str, ...]
    flag_sets: FlagSets
    screen: Screen
    bisect: BisectReport | None
    where: Where
    table: tuple[PassCell, ...]
    signature: Signature
    workarounds: Workarounds
    facts: tuple[BuildFact, ...] = ()
    reduced: str | None = None
    stopped: str = ""
    exit_code: ExitCode = ExitCode.DONE
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    run_directory: str = ""
    report: str | None = None
    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)

    def to_dict(self, tool_version: str) -> dict[str, Any]:
        """The `--json` document, also kept as result.json of the run."""
        bisect = self.bisect.to_dict(tool_version) if self.bisect else None
        instruction = self.where.instruction
        return {
            "schema_version": SCHEMA_VERSION,
            "tool_version": tool_version,
            "toolchain": self.toolchain,
            "simulated": self.simulated,
            "compiler": {"path": self.compiler_path, "version": self.compiler_version},
            "source": self.source,
            "flags": list(self.flags),
            "minimal_flag_sets": [list(found.flags) for found in self.flag_sets.sets],
            "flag_sets": _plain(self.flag_sets),
            "screen": {**_plain(self.screen), "clean": self.screen.clean if self.screen.checks else None},
            "units": bisect["units"] if bisect else [],
            "axis": bisect["axis"] if bisect else None,
            "arch": bisect["arch"] if bisect else None,
            "status": self.bisect.status.value if self.bisect else None,
            "culprit": bisect["culprit"] if bisect else None,
            "bisect": bisect,
            "first_bad_instruction": instruction.to_dict() if instruction else None,
            "first_bad_instruction_reason": "" if instruction else self.where.reason,
            "where": _plain(self.where),
            "table": [_plain(cell) for cell in self.table],
            "signature": _plain(self.signature),
            "workarounds": [_plain(row) for row in self.workarounds.rows],
            "workarounds_untried": list(self.workarounds.untried),
            "workarounds_state": self.workarounds.state.value,
            "workarounds_notes": list(self.workarounds.notes),
            "facts": [_plain(fact) for fact in self.facts],
            "reduced": self.reduced,
            "stopped": self.stopped,
            "exit_code": int(self.exit_code),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "run_directory": self.run_directory,
            "report": self.report,
            "seconds": round(self.seconds, 3),
            "phases": {name: round(seconds, 3) for name, seconds in self.phases.items()},
        }


def _plain(record: Any) -> Any:
    """A record as JSON types: enums as their value, tuples as lists."""

    def convert(value: Any) -> Any:
        if isinstance(value, StrEnum):
            return value.value
        if isinstance(value, dict):
            return {key: convert(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [convert(item) for item in value]
        return value

    return convert(asdict(record))
