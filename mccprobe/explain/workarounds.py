"""The workaround matrix: one change of the bad build at a time, judged as the bad build was.

    bad build (BAD) ─┬─ without each flag of the set
                     └─ with one change (changes.py) ── object ── verdict, max_err, does it change anything?

The first rows are the two that a reader compares with: the bad build itself, and the same without its flags.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mccprobe.base.errors import BudgetSpent, MccprobeError, NoRoom, ToolchainError
from mccprobe.base.process import RunSpec, run
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.build.job import CompileJob
from mccprobe.build.unit import UNLIMITED
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.judged import Judged, Judging
from mccprobe.explain.locate.changes import Change, possible_changes
from mccprobe.explain.optnone import optnone_job, optnone_options
from mccprobe.oracle.checks import KernelOracle
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.record import Culprit
from mccprobe.report.why_record import StepState, Workaround, Workarounds
from mccprobe.targets.flags.ask import ask_options
from mccprobe.targets.flags.catalogue import ResolvedFlag, load_catalogue
from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.flags.harvest import Harvest
from mccprobe.targets.llvm.jobs import option_key
from mccprobe.targets.passes.table import guess_kind, load_pass_table

MOST_TRIED = 30  # changes; the rest is listed
AHEAD = 4  # compiles started before their turn
BASELINE = "the bad build as it is"
COMPILE_FACTOR, COMPILE_LEAST_S = 20.0, 20.0  # of the bad build's own compile; a loaded machine starts late
TIMED_RUNS = 11  # of a program on a device with an honest clock; the first warms up


def workarounds(
    workspace: Workspace,
    flags: Sequence[ResolvedFlag],
    culprit: Culprit | None,
    judging: Judging,
    *,
    tell: Callable[[str], None],
    deadline: Deadline,
) -> Workarounds:
    """Try everything that may get around the fault. flags: those of the bad build, resolved."""
    notes: list[str] = []
    harvest = _harvest(workspace, notes)
    changes = _changes(flags, culprit, harvest, workspace)
    usable = [change for change in changes if _known_here(change, harvest)]
    untried = [f"{_text(change)} (this compiler has no such option)" for change in changes if change not in usable]
    rows = [_baseline(workspace, judging)]
    bad = rows[0].object
    state, tried = StepState.DONE, 0
    try:
        for text, argv, judge in _without_flags(workspace, flags):
            deadline.require()
            tell(f"workaround: {text}")
            rows.append(_row(workspace, text, argv, judging.of(_active(judge), judge), bad, judge))
        timeout_s = _compile_limit(workspace)
        jobs = [replace(_job(workspace, change), timeout_s=timeout_s) for change in usable[:MOST_TRIED]]
        for number, (change, job) in enumerate(zip(usable, jobs, strict=False)):
            deadline.require()
            for ahead in jobs[number : number + AHEAD]:
                workspace.ledger.submit(ahead)
            tell(f"workaround {number + 1} of {len(jobs)}: {_text(change)}")
            judged = judging.compiled(workspace.ledger.compile(job))
            made = _row(workspace, _text(change), _argv(change), judged, bad, workspace.judge)
            rows.append(replace(made, note="; ".join(filter(None, (change.source, made.note)))))
            tried = number + 1
    except BudgetSpent:
        state = StepState.BUDGET
        workspace.ledger.cancel({_job(workspace, change).id for change in usable[tried : tried + AHEAD]})
        untried += [f"{_text(change)} (no time left)" for change in usable[tried:MOST_TRIED]]
    untried += [f"{_text(change)} (only {MOST_TRIED} are tried)" for change in usable[MOST_TRIED:]]
    if culprit is not None and culprit.symbol is None:
        untried.append("optnone on the function (the log names no function)")
    return Workarounds(state, tuple(rows), tuple(untried), tuple(notes))


def _harvest(workspace: Workspace, notes: list[str]) -> Harvest | None:
    try:
        return ask_options(workspace.request.toolchain)
    except ToolchainError as error:
        notes.append(f"the compiler's own options are not known: {error.message}")
        return None


def _changes(
    flags: Sequence[ResolvedFlag], culprit: Culprit | None, harvest: Harvest | None, workspace: Workspace
) -> list[Change]:
    info = load_pass_table(workspace.request.toolchain.name).find(culprit.title) if culprit else None
    kind = info.kind if info else guess_kind(culprit.title) if culprit else "ir"
    return possible_changes(
        info,
        [flag.flag for flag in flags if flag.flag is not None],
        load_catalogue(),
        harvest,
        given=[flag.option_key for flag in flags],
        symbol=culprit.symbol if culprit else None,
        in_code_generator=kind != "ir",
    )


def _known_here(change: Change, harvest: Harvest | None) -> bool:
    """False for an option that the compiler's own help does not have; without a help it is just tried."""
    return harvest is None or all(harvest.find(option_key(option)) is not None for option in change.options)


def _without_flags(workspace: Workspace, flags: Sequence[ResolvedFlag]) -> list[tuple[str, tuple[str, ...], Judge]]:
    """The build without all flags, and, of several, without each one. Also a reference with other arguments."""
    request, found = workspace.request, []
    if workspace.reference is not None:
        text = "without " + " and ".join(request.flag_names)
        if not request.only_flags_differ:
            text = "the reference build: " + " ".join(request.reference_args or ())
        found.append((text, request.reference_args or (), workspace.reference.judge))
    if len(request.flags) > 1:
        for index, name in enumerate(request.flag_names):
            kept = (*request.flags[:index], *request.flags[index + 1 :])
            try:
                judge = workspace.variant(kept, f"without-{index}")
            except NoRoom:
                raise
            except MccprobeError:
                continue  # one flag may need another
            found.append((f"without {name}", tuple(a for flag in kept for a in flag.argv), judge))
    return found


def _active(judge: Judge) -> str:
    unit = judge.program.unit
    return unit.base[unit.recorded.active]


def _baseline(workspace: Workspace, judging: Judging) -> Workaround:
    argv = tuple(argument for flag in workspace.request.flags for argument in flag.argv)
    made = _row(workspace, BASELINE, argv, judging.of(_active(workspace.judge)), None, workspace.judge)
    return replace(made, note="no change: what the others are compared with")


def _job(workspace: Workspace, change: Change) -> CompileJob:
    if change.function:
        return optnone_job(workspace.unit, change.function, change.options)
    label = f"{workspace.unit.tag} with {' '.join(change.options)}"
    return workspace.unit.job(UNLIMITED, options=change.options, label=label)


def _compile_limit(workspace: Workspace) -> float:
    """Seconds for one compile: a scheduler made for another target may never end."""
    usual = workspace.ledger.compile(workspace.unit.job(UNLIMITED)).seconds
    return min(workspace.request.compile_timeout_s, max(COMPILE_LEAST_S, COMPILE_FACTOR * usual))


def _argv(change: Change) -> tuple[str, ...]:
    options = (*change.options, *(optnone_options(change.function) if change.function else ()))
    return tuple(argument for option in options for argument in CompilerFlag(option).argv)


def _text(change: Change) -> str:
    return " ".join(change.options) if not change.function else f"optnone on {change.function}"


def _row(
    workspace: Workspace, text: str, argv: Sequence[str], judged: Judged, bad: str | None, judge: Judge
) -> Workaround:
    same = bad is not None and judged.object == bad and judge is workspace.judge
    note = judged.reason if judged.verdict is Verdict.UNRESOLVED else ""
    if same:
        where = "in sim" if workspace.request.toolchain.simulated else "here"
        note = f"no effect {where}"
    return Workaround(
        change=text,
        argv=tuple(argv),
        verdict=judged.verdict.value,
        max_err=judged.max_err,
        object=judged.object,
        no_effect=same,
        fails=judged.fails,
        runs=judged.runs,
        speed_s=device_seconds(workspace, judge, judged.object),
        note=note,
    )


def device_seconds(workspace: Workspace, judge: Judge, digest: str | None) -> float | None:
    """Median seconds of the kernel by the device's own events; None where no honest clock is.

    Honest is only a toolchain whose programs were seen to run on its device (capability `timing`, never sim), and a
    host program that speaks kernel.toml's protocol and times its launches itself.
    """
    oracle, toolchain = workspace.oracle, workspace.request.toolchain
    if digest is None or not isinstance(oracle, KernelOracle) or toolchain.simulated:
        return None
    if toolchain.capabilities().timing is not True:
        return None
    program = judge.program.replace(digest)
    if not isinstance(program, Path):
        return None
    argv = [*oracle.command(str(program)), "--repeat", str(TIMED_RUNS), "--check", "last"]
    with workspace.ledger.run.scratch("timing") as scratch:
        result = run(RunSpec(argv, cwd=scratch, timeout_s=oracle.timeout_s * TIMED_RUNS))
    try:
        samples = json.loads(result.stdout)["milliseconds"][1:]
        return statistics.median(float(sample) for sample in samples) / 1000.0
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, statistics.StatisticsError):
        return None
