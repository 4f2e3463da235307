"""One bisection from request to report."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mccprobe.base.console import number_of
from mccprobe.base.errors import Interrupted, MccprobeError, NoRoom, OracleUnusable, ToolchainError
from mccprobe.bisection.axis import ends, require_answer, search_axis
from mccprobe.bisection.passes.confirm import Judgement, identify, invalid_before, judge_edge
from mccprobe.bisection.passes.determinism import (
    LAYOUT_VARIABLE,
    OTHER_DRAWS,
    Determinism,
    RepeatedCompiles,
    one_sample,
    repeat_command,
    repeat_side,
    repeatable_with_fixed_addresses,
)
from mccprobe.bisection.passes.edge_watch import EdgeWatch
from mccprobe.bisection.passes.ends_again import ask_ends_again
from mccprobe.bisection.passes.equal_builds import equal_builds_report
from mccprobe.bisection.passes.inputs_watch import InputsWatch
from mccprobe.bisection.passes.limit_effect import require_effect
from mccprobe.bisection.passes.pass_axis import PassAxis
from mccprobe.bisection.passes.program_check import BackgroundCheck, CheapScreen, check_of
from mccprobe.bisection.passes.range_answer import all_hang, is_range, with_hangs_as_bad
from mccprobe.bisection.passes.reference import Reference
from mccprobe.bisection.passes.reproduce import reproduce_commands
from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.bisection.passes.table import truth_table
from mccprobe.bisection.passes.withhold import dependences, moved_by, reason_to_withhold, withheld
from mccprobe.bisection.passes.workspace import EqualBuilds, Workspace, open_workspace
from mccprobe.build.executor import Executor
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.store import RunDirectory
from mccprobe.build.unit import UNLIMITED, Unit
from mccprobe.oracle.checks import Oracle, ReferenceOracle
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.record import (
    BisectReport,
    Confirmation,
    Culprit,
    EdgeRecord,
    ExecutionRange,
    HangsAnswer,
    Observed,
    ProgramCheck,
    Status,
)
from mccprobe.report.why_record import Screen
from mccprobe.search.procedure import SearchResult
from mccprobe.search.procedure import Status as SearchStatus
from mccprobe.search.spans import verdict_spans
from mccprobe.search.trial import Trial
from mccprobe.targets.llvm.locate import require_unchanged, which
from mccprobe.targets.passes.table import PassTable, load_pass_table


@dataclass
class Progress:
    """Where a bisection tells what it does. Every hook may be left out."""

    stage: Callable[[str], None] = lambda text: None
    trial: Callable[[Trial], None] = lambda trial: None


@dataclass
class _State:
    """What is known so far; turned into the report at the end."""

    request: BisectRequest
    run: RunDirectory
    journal: Journal
    ledger: Ledger
    started: float
    table: PassTable
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    watch: InputsWatch | None = None
    screen: CheapScreen | None = None
    screened: Screen | None = None  # by the caller, before this run
    draw: tuple[str, ...] = ()  # a command in front of the compiles that gives them another memory layout
    hidden: bool = False  # the compiler is a lottery, and this draw of it showed no wrong object

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a part of the work, in seconds under its name."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - start


def run_bisection(
    request: BisectRequest,
    run: RunDirectory,
    journal: Journal,
    executor: Executor,
    progress: Progress,
    *,
    other_draws: bool = False,
    screen: CheapScreen | None = None,
    screened: Screen | None = None,
) -> BisectReport:
    """Do the whole bisection. Raises MccprobeError for what the user must mend.

    other_draws: where the compiler is non-deterministic and fixed addresses happen to hide the fault, search with
    other memory layouts too, until one shows it. screen: a cheap check of the program itself, run beside the search;
    screened: what the caller found of the program already. Raises InputsChanged for a file that changes meanwhile.
    """
    first = _State(
        request, run, journal, Ledger(run, journal, executor), time.monotonic(), load_pass_table(request.toolchain.name)
    )
    watch = first.watch = InputsWatch(request, executor)
    first.screen, first.screened = screen, screened
    try:
        report = _all_draws(first, progress, other_draws=other_draws)
    except (Interrupted, NoRoom):
        raise
    except MccprobeError:
        watch.require_unchanged()  # then that is the reason, whatever it looked like
        raise
    watch.require_unchanged()
    require_unchanged(request.toolchain)
    return report


def _all_draws(first: _State, progress: Progress, *, other_draws: bool) -> BisectReport:
    report = _bisected(first, progress)
    if first.hidden and other_draws:
        for draw in OTHER_DRAWS:
            state = replace(first, notes=[], warnings=[], draw=draw, hidden=False)
            shown = _bisected(state, progress)
            if shown.culprit is not None:
                report = shown
                break
        else:
            told = f"{len(OTHER_DRAWS)} other memory layouts ({LAYOUT_VARIABLE}) show no edge either"
            report = replace(report, warnings=(*report.warnings, told))
    return report


def _bisected(state: _State, progress: Progress) -> BisectReport:
    try:
        return _bisect(state, progress, prove_later=True)
    except EqualBuilds as found:
        return equal_builds_report(state.request, state.run, state.ledger, found.digest, started=state.started)
    except _BitcodeDiffers:
        if state.watch is not None:
            state.watch.require_unchanged()
        # the ledger and the journal keep what still holds; only the compiles are made from the source now
        state.notes.clear()
        state.warnings.clear()
        return _bisect(state, progress, prove_later=False)


class _BitcodeDiffers(Exception):
    """The bitcode route was relied on and did not hold."""


def _bisect(state: _State, progress: Progress, *, prove_later: bool) -> BisectReport:
    request, journal = state.request, state.journal
    progress.stage("compiling the bad build and the reference")
    with state.phase("prepare"):
        workspace = open_workspace(
            request, state.ledger, journal, prove_later=prove_later, draw=state.draw, refuse_equal=True
        )
    if state.watch is not None:
        state.watch.add_linked(workspace.linker.job.argv, state.run.root)
    if not workspace.prefix:
        state.warnings.append(
            "address-space randomisation is not fixed here (setarch -R does not work or was switched off): a compiler "
            "that orders by pointer can give other objects from compile to compile"
        )
    state.notes += [*request.told_of_environment, *workspace.notes]
    unit, reference, judge = workspace.unit, workspace.reference, workspace.judge
    counter = unit.recorded.counter
    unlimited = counter.spelled(UNLIMITED)
    first = state.ledger.compile(unit.job(UNLIMITED))
    if first.object is None:
        raise ToolchainError(
            f"{request.source}: with {unlimited} the compiler gives no object ({first.reason})",
            detail=first.diagnostics,
            hint=f"does this compiler know {' '.join(counter.driver_arguments(UNLIMITED))}?",
        )
    if first.log.total == 0:
        raise ToolchainError(
            f"{request.toolchain.driver[0]} logs no pass for {unlimited}",
            hint="this compiler cannot count pass executions, or a compile cache answers in its place",
        )
    if first.object != unit.base[unit.recorded.active]:
        state.warnings.append(f"with {unlimited} the object differs from the plain build's object")
    known = {}
    if reference is not None and workspace.same_link:
        known[reference.object] = Verdict.GOOD
    axis = PassAxis(unit, judge, first.log.total, workspace.short)
    repeats = repeat_command(unit, executions=axis.total)  # done while the search leaves a core idle
    progress.stage(f"searching {number_of(first.log.total, 'pass execution')}")
    settings = replace(request.settings, width=state.ledger.executor.width)
    with state.phase("search"):
        checked = BackgroundCheck(workspace, state.screen)
        watch = EdgeWatch(unit, axis, reference, state.table, both(progress.trial, checked))
        prefer = workspace.short.last_of_mid_end if workspace.short is not None else None
        result = search_axis(axis, settings, known=known, on_trial=watch, prefer=prefer)
    if not unit.bitcode_holds():
        raise _BitcodeDiffers
    state.warnings += require_effect(unit, axis)
    sides = _repeat_sides(unit, axis, result)
    if not all(side.result().same for side in sides) and not axis.holds_in_full((result.good, result.bad)):
        state.warnings.append(
            "the code generator alone gave another object than the full compile; searched again without it"
        )
        with state.phase("search"):
            result = search_axis(axis, settings, known=known, on_trial=progress.trial)
        sides = _repeat_sides(unit, axis, result)
    with state.phase("determinism"):
        compiled = [one_sample(unit), *(repeated.result() for repeated in (repeats, *sides))]
        unstable = [finding for finding in compiled if not finding.same]
    if unstable and state.watch is not None:
        state.watch.require_unchanged()
    return _report(state, workspace, axis, unstable, result, checked, progress)


_STATUS = {
    SearchStatus.WRONG_AT_ZERO: Status.WRONG_AT_ZERO,
    SearchStatus.NO_DIFFERENCE: Status.NO_DIFFERENCE,
    SearchStatus.UNDECIDED: Status.UNDECIDED,
}


def _report(
    state: _State,
    workspace: Workspace,
    axis: PassAxis,
    unstable: Sequence[Determinism],
    result: SearchResult,
    checked: BackgroundCheck,
    progress: Progress,
) -> BisectReport:
    request, unit, judge = state.request, workspace.unit, workspace.judge
    oracle, reference = workspace.oracle, workspace.reference
    require_answer(result, unstable=bool(unstable))
    if not unstable:
        with state.phase("ends again"):
            ask_ends_again(result, axis, judge, reference, command=request.oracle.kind == "command")
    judgement: Judgement | None = None
    edge = result.status is SearchStatus.EDGE and result.good is not None and result.bad is not None
    ranged = is_range(result)
    if edge and not ranged:
        progress.stage("confirming the pass")
        with state.phase("confirm"):
            judgement = _judged(state, workspace, axis, result)
    program_check: ProgramCheck | None = None
    found = dependences(workspace)
    if edge:
        with state.phase("program check"):
            program_check = check_of(state.screened) if state.screened is not None else checked.result()
            found = moved_by(workspace, axis, result, found) if not unstable else found
    weighed = state.screened is not None and state.screened.checks  # the whole screen weighs promises, too
    promises = () if weighed else request.promises
    found_or_promised = (*found, *promises)
    if judgement is not None:
        judgement = withheld(judgement, program_check, found_or_promised)
    executions = _range(state, workspace, axis, result, progress) if ranged else None
    if executions is not None and executions.hangs is not None:
        executions = replace(executions, hangs=_withheld_hangs(executions.hangs, program_check, found_or_promised))
    status = judgement.status if judgement else _STATUS.get(result.status, Status.UNDECIDED)
    if edge and ranged:
        status = Status.EXPOSED
    keep = edge
    if unstable:
        status = Status.NON_DETERMINISTIC
        state.warnings += [f"the compiler is non-deterministic: {finding.describe()}" for finding in unstable]
        fixed = bool(unit.recorded.prefix)
        limits = [limit for limit in (result.good, result.bad) if limit is not None]
        keep = keep and fixed and repeatable_with_fixed_addresses(unit, limits)
        state.hidden = fixed and result.status is SearchStatus.NO_DIFFERENCE
        if keep and state.draw:
            told = (
                f"with fixed addresses alone every object is right; the search ran with {state.draw[-1]} as well, "
                "another fixed draw of the compiler's choices"
            )
        elif keep:
            told = "the search ran with fixed addresses, which is one fixed draw of the compiler's choices"
        elif fixed:
            told = "fixed addresses do not make it repeatable or give no edge, so no pass is named"
        else:
            told = "addresses could not be fixed here, so no pass is named"
        state.warnings.append(told)
    confidence = result.confidence if edge else None
    notes = [*state.notes, *unit.recorded.notes, *(reference.notes if reference else []), *result.notes]
    notes += judgement.notes if judgement and keep else []
    if result.status is SearchStatus.NO_DIFFERENCE and request.oracle.kind == "command":
        require_that_it_can_fail(oracle, state.run)
        notes.append("the check called every build GOOD; it does call a program BAD that only fails")
    good, bad = ends(axis, result)
    table = truth_table(request, state.ledger, unit, axis, judge, reference, result, judgement if keep else None)
    verdicts = judge.verdicts + (reference.judge.verdicts if reference else Counter())
    return BisectReport(
        status=status,
        toolchain=request.toolchain.name,
        compiler_path=str(request.toolchain.identify().path),
        compiler_version=request.toolchain.identify().version,
        simulated=request.toolchain.simulated,
        source=str(request.source),
        axis=axis.kind,
        units=request.unit_records(),
        arch=unit.recorded.jobs[unit.recorded.active].arch,
        flags=request.flag_names,
        culprit=judgement.culprit if judgement and keep else None,
        confirmation=judgement.confirmation if judgement and keep else None,
        edges=_edges(state, unit, axis, result, judgement) if keep else (),
        tested=verdict_spans(result.log),
        monotone=result.monotone,
        confidence=confidence if keep else None,
        failure_rate=_rate(result),
        good_end=result.good_end,
        total=axis.total,
        good_object=good,
        bad_object=bad,
        compiles=state.ledger.compiles,
        runs=judge.runs + (reference.judge.runs if reference else 0),
        replayed=state.journal.replayed + judge.replayed,
        objects=result.objects_tested,
        verdicts=dict(verdicts),
        table=table,
        reproduce_good=reproduce_commands(request, unit, oracle, result.good, axis.total, "good") if keep else (),
        reproduce_bad=reproduce_commands(request, unit, oracle, result.bad, axis.total, "bad") if keep else (),
        working_directory=str(Path.cwd()),
        oracle=" ".join(oracle.command("PROGRAM")),
        stdin="" if request.oracle.stdin is None else str(request.oracle.stdin),
        good_output=judge.first[good].reason if good in judge.first else "",
        bad_output=judge.first[bad].reason if bad in judge.first else "",
        reference_object=reference.object if reference is not None else None,
        reference_output=_reference_output(oracle, reference),
        range=executions if keep else None,
        observed=observed(oracle),
        program_check=program_check,
        cautions=found,
        log_lines=judgement.log.around if judgement and keep else (),
        promises=request.promises,
        notes=tuple(dict.fromkeys(notes)),
        warnings=tuple(state.warnings),
        run_directory=str(state.run.root),
        seconds=time.monotonic() - state.started,
        phases=state.phases,
    )


def both(tell: Callable[[Trial], None], also: Callable[[Trial], None]) -> Callable[[Trial], None]:
    """One listener for two."""

    def heard(trial: Trial) -> None:
        tell(trial)
        also(trial)

    return heard


def _judged(state: _State, workspace: Workspace, axis: PassAxis, result: SearchResult) -> Judgement:
    reference = workspace.reference
    assert result.good is not None and result.bad is not None
    return judge_edge(
        workspace.unit,
        axis,
        workspace.judge,
        result.good,
        result.bad,
        state.table,
        verify_reference=lambda: reference is not None and bool(_reference_invalid(reference)),
    )


def _range(
    state: _State, workspace: Workspace, axis: PassAxis, result: SearchResult, progress: Progress
) -> ExecutionRange:
    """The executions of which one begins the fault, and what the search says if a program without an end is BAD."""
    assert result.good is not None and result.bad is not None
    unit, judge = workspace.unit, workspace.judge
    first, last = (identify(unit, limit, axis.total, state.table)[0] for limit in (result.good + 1, result.bad))
    hangs: HangsAnswer | None = None
    if all_hang(result, judge):
        progress.stage("searching again, with programs that do not end as BAD")
        settings = replace(state.request.settings, width=state.ledger.executor.width)
        with state.phase("search"):
            again = with_hangs_as_bad(axis, result, settings, progress.trial)
        if again.status is SearchStatus.EDGE and not is_range(again):
            judgement = _judged(state, workspace, axis, again)
            hangs = HangsAnswer(judgement.status, judgement.culprit, judgement.confirmation)
        else:
            hangs = HangsAnswer(_STATUS.get(again.status, Status.UNDECIDED), None, None)
    return ExecutionRange(first, last, result.bad - result.good - 1, hangs)


def _withheld_hangs(answer: HangsAnswer, check: ProgramCheck | None, found: Sequence[str]) -> HangsAnswer:
    """The same reasons withhold the word here."""
    if answer.status is Status.FOUND and (reason := reason_to_withhold(check, found)):
        return replace(answer, status=Status.EXPOSED, confirmation=Confirmation("none", reason))
    return answer


def _reference_output(oracle: Oracle, reference: Reference | None) -> str:
    if reference is None:
        return ""
    if isinstance(oracle, ReferenceOracle):
        return f"prints {oracle.expected.describe()}"
    outcome = reference.judge.first.get(reference.object)
    return outcome.reason if outcome is not None else ""


def observed(oracle: Oracle) -> Observed | None:
    """What is compared of both builds; None where another check decides."""
    if not isinstance(oracle, ReferenceOracle):
        return None
    expected = oracle.expected
    compared = [(one.name, True) for one in expected.files or ()]
    files = (*compared, *((name, False) for name in expected.unstable))
    return Observed(expected.describe(), files, "" if oracle.stdin is None else str(oracle.stdin))


def require_that_it_can_fail(oracle: Oracle, run: RunDirectory) -> None:
    """A check that calls everything GOOD proves nothing. Raises OracleUnusable if it accepts `false`."""
    failing = which("false")
    if failing is None:
        return
    with run.scratch("check") as scratch:
        outcome = oracle.judge(failing, scratch)
    if outcome.verdict is Verdict.GOOD:
        raise OracleUnusable(
            "the check cannot fail: it says GOOD of both ends, and of a program that does nothing but exit 1",
            hint="`cmd || echo FAIL` always exits 0; let the check exit 1 when the result is wrong",
        )


def _repeat_sides(unit: Unit, axis: PassAxis, result: SearchResult) -> list[RepeatedCompiles]:
    """Both sides of the edge once more: in full, without fixed addresses."""
    started = []
    for limit in (result.good, result.bad):
        key = axis.object_at(limit) if limit is not None and result.status is SearchStatus.EDGE else None
        if limit is not None and isinstance(key, str) and limit < axis.total:
            started.append(repeat_side(unit, limit, key, executions=axis.total))
    return started


def _reference_invalid(reference: Reference) -> str:
    return invalid_before(reference.unit, UNLIMITED)


def _rate(result: SearchResult) -> tuple[float, float, float] | None:
    rate = result.failure_rate
    return (rate.low, rate.estimate, rate.high) if rate is not None else None


def _edges(
    state: _State, unit: Unit, axis: PassAxis, result: SearchResult, judgement: Judgement | None
) -> tuple[EdgeRecord, ...]:
    records = []
    for edge in result.edges:
        culprit: Culprit
        if judgement and judgement.culprit.execution == edge.execution:
            culprit = judgement.culprit
        else:
            culprit, _, _ = identify(unit, edge.execution, axis.total, state.table)
        verdicts = edge.from_verdict.value, edge.to_verdict.value
        records.append(EdgeRecord(edge.execution, *verdicts, culprit.title, culprit.function, edge.unresolved))
    return tuple(records)
