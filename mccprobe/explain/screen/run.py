"""Before the compiler is blamed: is the program itself at fault, or a promise that its user made?

All checks run side by side. A FINDING stops the accusation; a HINT is told. What could not be run says why: it
never counts as clean. Every check is made on the input of the bisection; it says nothing of other inputs.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace

from mccprobe.base.errors import SourceDoesNotCompile, ToolchainError
from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.flag_sets.search import good_runs_needed
from mccprobe.explain.screen.build import Extra, PlainBuilder, plain_options
from mccprobe.explain.screen.fast_math import has_bundle, parts_named
from mccprobe.explain.screen.ir import IrChecks
from mccprobe.explain.screen.promises import NAME as PROMISES
from mccprobe.explain.screen.promises import PromiseCheck
from mccprobe.explain.screen.repeats import EMULATOR_TRAP, RepeatChecks
from mccprobe.explain.screen.runs import ScreenRuns, environment_prefix
from mccprobe.explain.screen.sanitizers import SanitizerChecks
from mccprobe.explain.screen.weigh import PATTERN, STRICT_ALIASING, weighed
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.report.why_record import Screen, ScreenCheck, ScreenOutcome, StepState
from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.llvm.command import is_source, language, split_arguments
from mccprobe.targets.llvm.locate import QUERY_TIMEOUT_S

CLEAN, FINDING, HINT, NOT_RUN = (
    ScreenOutcome.CLEAN, ScreenOutcome.FINDING, ScreenOutcome.HINT, ScreenOutcome.NOT_RUN,
)  # fmt: skip
BAD_RUNS = 5  # of the bad build: how often must one with a switch be GOOD before it counts as right?
SWITCH_CONFIDENCE = 0.95  # 2 GOOD runs where all 5 are BAD; a false finding costs a --skip-screen, no accusation
# what breaks a rule of the language wherever it is run ...
_INVALID = ("unsequenced", "uninitialized", "array-bounds")
# ... and what does so on some paths only, or is mostly wrong
_DOUBTFUL = (
    "sometimes-uninitialized", "conditional-uninitialized", "uninitialized-const-reference", "return-type",
    "return-stack-address", "shift-count-overflow", "shift-count-negative", "division-by-zero", "null-dereference",
    "infinite-recursion", "format", "sizeof-pointer-memaccess", "dangling", "int-to-pointer-cast",
)  # fmt: skip
HEAP = "fresh heap filled"
# glibc fills what malloc gives with the complement of this byte (mallopt(3), M_PERTURB); 0 does nothing
_FILL = "90"
_FILL_CONTROL = "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(99); return p[50] != (char)~90; }\n"
_WARNING = re.compile(r"^.*: (?:warning|error): .*\[(?:-Werror,)?-W([\w+-]+)[^\]]*\]$", re.MULTILINE)


@dataclass(frozen=True)
class Switch:
    """A driver option that takes a licence away from the optimiser. means: what it is if that alone turns it right."""

    option: str
    means: str


NO_FAST_MATH = "-fno-fast-math"
SWITCHES = (
    Switch(STRICT_ALIASING, "the program may access memory as another type than it has (strict aliasing)"),
    Switch("-fwrapv", "the program may rely on signed overflow"),
    Switch("-fno-finite-loops", "the program may rely on a loop without end"),
    Switch("-ffp-contract=off", "the result depends on the contraction of products and sums, which is allowed"),
    Switch(NO_FAST_MATH, "the result depends on -ffast-math, a promise of the user"),
)

Row = tuple[str, str, Callable[[], ScreenCheck]]


def screen(request: BisectRequest, workspace: Workspace, *, tell: Callable[[str], None], deadline: Deadline) -> Screen:
    """All checks of the build under examination. Raises what the toolchain raises when it is gone."""
    checks = ScreenChecks(workspace, deadline)
    return answered(checks, checks.rows(), tell=tell, deadline=deadline)


def answered(
    checks: ScreenChecks, rows: Sequence[Row], *, tell: Callable[[str], None], deadline: Deadline, workers: int = 0
) -> Screen:
    """These rows, run side by side and weighed. workers: threads, 0 for as many as trials run at once."""
    found: dict[int, ScreenCheck] = {}
    pool = ThreadPoolExecutor(max_workers=workers or max(2, checks.workspace.ledger.executor.width))
    try:
        futures = {pool.submit(_within, deadline, row): index for index, row in enumerate(rows)}
        for future in as_completed(futures):
            check = found[futures[future]] = future.result()
            tell(f"screen: {check.name} ({check.part}): {check.outcome}")
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    ordered = weighed([found[index] for index in range(len(rows))], checks.builder)
    spent = any(check.text == _SPENT for check in ordered)
    return Screen(StepState.BUDGET if spent else StepState.DONE, tuple(ordered), _reason(ordered))


_SPENT = "the time budget is used up"


def _within(deadline: Deadline, row: Row) -> ScreenCheck:
    name, part, check = row
    if deadline.passed:
        return ScreenCheck(name, part, NOT_RUN, _SPENT)
    try:
        return check()
    except (SourceDoesNotCompile, ToolchainError) as error:
        return ScreenCheck(name, part, NOT_RUN, error.message)


def _reason(checks: Sequence[ScreenCheck]) -> str:
    """Why the compiler is not yet to blame."""
    findings = [check for check in checks if check.outcome is FINDING]
    if not findings:
        return ""
    told = "; ".join(f"{check.name} ({check.part}): {check.text.splitlines()[0]}" for check in findings)
    return f"the program or a promise may be at fault, not yet the compiler: {told}"


class ScreenChecks:
    """The checks that compare builds, and the list of all."""

    def __init__(self, workspace: Workspace, deadline: Deadline) -> None:
        self.workspace = workspace
        self.request = workspace.request
        self._lock = threading.Lock()
        self._needed: int | None = None
        self.builder = PlainBuilder(workspace)
        self.runs = ScreenRuns(workspace)
        self.promises = PromiseCheck(workspace, self._turns_right, from_ir=self.builder.from_ir)
        self.sanitizers = SanitizerChecks(self.builder, self.runs, deadline, self.promises.module)
        self.repeats = RepeatChecks(workspace, self.runs)
        self.ir = IrChecks(self.promises.module, self._text_at_o0, self.promises.compare)

    def rows(self) -> list[Row]:
        switches: list[Row] = [(switch.option, "program", self._switch(switch)) for switch in SWITCHES]
        return [
            *self.sanitizers.rows(),
            ("warnings", "program", self._warnings),
            ("-O0", "program", self._plain),
            *self._filled(),
            (HEAP, "program", self._heap),
            *switches,
            (PROMISES, "program", self.promises),
            *self.repeats.rows(),
        ]

    def cheap_rows(self) -> list[Row]:
        """Those that cost a compile or two and few runs each.

        No sanitizer of these compilers sees a broken rule of strict aliasing, so that switch is one of them.
        """
        aliasing = [switch for switch in SWITCHES if switch.option == STRICT_ALIASING]
        source = not self.builder.from_ir and not self.workspace.unit.recorded.offload
        return [
            *self.sanitizers.cheap_rows(),
            ("warnings", "program", self._warnings),
            *self._filled(cheap=True),
            *((switch.option, "program", self._switch(switch)) for switch in aliasing if source),
        ]

    def ir_of(self, text: str) -> IrChecks:
        """The same checks of another module of this program."""
        return IrChecks(lambda: text, self._text_at_o0, self.promises.compare)

    def _filled(self, *, cheap: bool = False) -> list[Row]:
        """What has no value in the source: locals of a language, and in IR poison and undef as well."""
        return self.ir.rows(cheap=cheap) if self.builder.from_ir else [(PATTERN, "program", self._pattern)]

    # -- static ---------------------------------------------------------------------------------

    def _warnings(self) -> ScreenCheck:
        """What the compiler itself says against the sources."""
        forced = language(split_arguments(self.request.args))
        sources = [name for name in self.builder.sources if is_source(name, forced)]
        names = [f"-W{name}" for name in (*_INVALID, *_DOUBTFUL)]
        argv = (
            *self.builder.driver,
            *plain_options(self.request.args),
            "-fsyntax-only",
            "-fno-caret-diagnostics",
            "-Wno-everything",
            "-Wno-unknown-warning-option",
            *names,
            *sources,
        )
        if self.builder.from_ir:
            return ScreenCheck("warnings", "program", NOT_RUN, "LLVM IR and assembly have no warnings", argv)
        with self.workspace.ledger.run.scratch("screen") as scratch:
            env = self.request.toolchain.environment(scratch)
            result = run(RunSpec(argv, env=env, timeout_s=self.request.compile_timeout_s))
        warnings = list(dict.fromkeys((match[1], match[0]) for match in _WARNING.finditer(result.stderr_text)))
        if not result.ok and not warnings:
            return ScreenCheck("warnings", "program", NOT_RUN, f"the compiler fails: {result.describe()}", argv)
        text = "\n".join(line for _, line in warnings[:5])
        if any(name in _INVALID for name, _ in warnings):
            return ScreenCheck("warnings", "program", FINDING, text, argv)
        return ScreenCheck("warnings", "program", HINT if warnings else CLEAN, text, argv)

    # -- at -O0 ----------------------------------------------------------------------------------

    def _at_o0(
        self, extra: Extra, ordinal: int = 0, *, fill: bool = False
    ) -> tuple[Outcome | None, str, tuple[str, ...]]:
        """Outcome of the plain build, or why there is none; and how it is built. fill: with fresh heap filled."""
        built = self.builder.build(extra)
        if built.digest is None:
            return None, built.reason, built.command
        program = self.workspace.ledger.run.object_path(built.digest)
        prefix = (*(environment_prefix(MALLOC_PERTURB_=_FILL) if fill else ()), *self.runs.fixed)
        return self.runs.judged(program, built.digest, "-O0", ordinal, prefix=prefix), "", built.command

    def _text_at_o0(self, text: str, ordinal: int) -> tuple[Outcome | None, str]:
        """The same of IR text in place of the source."""
        built = self.builder.build(Extra("-O0"), text)
        if built.digest is None:
            return None, built.reason
        program = self.workspace.ledger.run.object_path(built.digest)
        return self.runs.judged(program, built.digest, "-O0", ordinal, prefix=self.runs.fixed), ""

    def _plain(self) -> ScreenCheck:
        outcome, reason, command = self._at_o0(Extra("-O0"))
        if outcome is None:
            return ScreenCheck("-O0", "program", NOT_RUN, f"the program does not build at -O0: {reason}", command)
        if EMULATOR_TRAP in outcome.reason:
            return ScreenCheck("-O0", "program", FINDING, f"the emulator refuses it at -O0: {outcome.reason}", command)
        if outcome.verdict is Verdict.UNRESOLVED:
            return ScreenCheck("-O0", "program", NOT_RUN, outcome.reason, command)
        if outcome.verdict is Verdict.BAD:
            text = f"wrong without any optimisation too ({outcome.reason}): of the program, or of a required step"
            return ScreenCheck("-O0", "program", HINT, text, command)
        return ScreenCheck("-O0", "program", CLEAN, "right", command)

    def _pattern(self) -> ScreenCheck:
        """Uninitialised stack gets a value: a program that reads none of it prints the same."""
        plain, reason, _ = self._at_o0(Extra("-O0"))
        filled, reason_too, command = self._at_o0(Extra("pattern", (PATTERN,)))
        if plain is None or filled is None:
            return ScreenCheck(PATTERN, "program", NOT_RUN, f"it does not build: {reason or reason_too}", command)
        return self._same_filled(PATTERN, plain, filled, command, "stack")

    def _heap(self) -> ScreenCheck:
        """The same of memory that malloc gives, for programs of any language."""
        control = self.workspace.ledger.run.root / "unit" / "screen-heap.c"
        self.workspace.ledger.run.write_text(f"unit/{control.name}", _FILL_CONTROL)
        proof = self.builder.compile_alone(control, Extra("heap", ("-x", "c")))
        prefix = environment_prefix(MALLOC_PERTURB_=_FILL)
        path = str(self.workspace.ledger.run.object_path(proof.digest)) if proof.digest else ""
        if not path or not prefix or not run(RunSpec([*prefix, path], timeout_s=QUERY_TIMEOUT_S)).ok:
            return ScreenCheck(HEAP, "program", NOT_RUN, "this C library does not fill what malloc gives")
        plain, reason, command = self._at_o0(Extra("-O0"))
        filled, _, _ = self._at_o0(Extra("-O0"), fill=True)
        if plain is None or filled is None:
            return ScreenCheck(HEAP, "program", NOT_RUN, f"it does not build: {reason}", command)
        return self._same_filled(HEAP, plain, filled, (*prefix, "program"), "heap")

    def _same_filled(
        self, name: str, plain: Outcome, filled: Outcome, command: Sequence[str], memory: str
    ) -> ScreenCheck:
        if plain == filled:
            return ScreenCheck(name, "program", CLEAN, "the same as -O0 alone", tuple(command))
        again = [self._at_o0(Extra("-O0"), ordinal)[0] for ordinal in (1, 2)]
        if any(outcome != plain for outcome in again):
            return ScreenCheck(name, "program", HINT, "the -O0 build itself differs from run to run", tuple(command))
        text = (
            f"the program reads {memory} memory that it never wrote: {plain.verdict} ({plain.reason}) at -O0, "
            f"{filled.verdict} ({filled.reason}) with it"
        )
        return ScreenCheck(name, "program", FINDING, text, tuple(command))

    def _good_runs(self) -> int:
        """GOOD runs after which a build with a switch counts as right; 0 where the bad build is never BAD."""
        with self._lock:
            if self._needed is None:
                unit = self.workspace.unit
                judge = Judge(self.workspace.judge.program, self.workspace.oracle, self.workspace.journal)
                verdicts = [judge.run(unit.base[unit.recorded.active]).verdict for _ in range(BAD_RUNS)]
                bad = verdicts.count(Verdict.BAD)
                self._needed = good_runs_needed(bad, BAD_RUNS, SWITCH_CONFIDENCE) if bad else 0
            return self._needed

    # -- the bad setting with one licence less ----------------------------------------------------

    def _switch(self, switch: Switch) -> Callable[[], ScreenCheck]:
        def check() -> ScreenCheck:
            option = switch.option
            if self.builder.from_ir:
                return self.promises.in_ir(option, switch.means)
            flags = (*self.request.flags, CompilerFlag(words=(option,)))
            command = (*self.builder.driver, *self.request.bad_args, option, *self.builder.sources)
            judge = self.workspace.variant(flags, f"screen{option}")
            unit = judge.program.unit
            if unit.base == self.workspace.unit.base:
                return ScreenCheck(option, "program", CLEAN, "changes nothing: the same object", command)
            found = self._turns_right(option, command, judge, unit.base[unit.recorded.active], means=switch.means)
            if option == NO_FAST_MATH and found.outcome is FINDING and has_bundle(self.request.bad_args):
                return replace(found, text=f"{found.text}\n{parts_named(self._without_part)}")
            return found

        return check

    def _without_part(self, option: str) -> Verdict | None:
        """The bad build with this option as well; None where the object is the same."""
        judge = self.workspace.variant((*self.request.flags, CompilerFlag(words=(option,))), f"screen{option}")
        unit = judge.program.unit
        if unit.base == self.workspace.unit.base:
            return None
        judge = Judge(judge.program, judge.oracle, self.workspace.journal)
        verdicts = [judge.run(unit.base[unit.recorded.active]).verdict for _ in range(self._good_runs())]
        return next((verdict for verdict in verdicts if verdict is not Verdict.GOOD), Verdict.GOOD)

    def _turns_right(
        self, name: str, command: Sequence[str], judge: Judge, digest: str, *, means: str, same: str | None = None
    ) -> ScreenCheck:
        """Is the object, made as the bad build but for one thing, right as often as it takes?

        same: the object made the same way without that one thing, where it may be another than the bad build's.
        """
        unit = self.workspace.unit
        judge = Judge(judge.program, judge.oracle, self.workspace.journal)
        if digest == same:
            return ScreenCheck(name, "program", CLEAN, "changes nothing: the same object", tuple(command))
        needed = self._good_runs()
        if not needed:
            return ScreenCheck(name, "program", NOT_RUN, "the bad setting itself was never wrong here", tuple(command))
        elsewhere = same not in (None, unit.base[unit.recorded.active])
        if same and elsewhere and all(judge.run(same).verdict is not Verdict.BAD for _ in range(needed)):
            return ScreenCheck(name, "program", NOT_RUN, "made this way, the build is not wrong", tuple(command))
        for _ in range(needed):
            outcome = judge.run(digest)
            if outcome.verdict is not Verdict.GOOD:
                known = outcome.verdict is Verdict.BAD
                text = f"still {outcome.verdict}: {outcome.reason}"
                return ScreenCheck(name, "program", CLEAN if known else NOT_RUN, text, tuple(command))
        return ScreenCheck(name, "program", FINDING, f"alone turns it right ({needed} runs): {means}", tuple(command))
