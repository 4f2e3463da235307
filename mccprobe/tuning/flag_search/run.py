"""One search, wired together: subject, space, objective, strategy, ablation, report."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from mccprobe.base.errors import BudgetSpent, InputError, OracleUnusable, SourceDoesNotCompile
from mccprobe.build.executor import Executor
from mccprobe.build.journal import Journal
from mccprobe.build.store import RunDirectory
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.llvm.locate import require_unchanged
from mccprobe.tuning.check.build import BuildFailure
from mccprobe.tuning.flag_search.ablation import Part, ablate
from mccprobe.tuning.flag_search.evaluate import Evaluator, SearchLimits
from mccprobe.tuning.flag_search.objectives import Instructions
from mccprobe.tuning.flag_search.record import Recorder
from mccprobe.tuning.flag_search.report import Best, Finding, Objective, SearchReport
from mccprobe.tuning.flag_search.shares import Meter
from mccprobe.tuning.flag_search.space import AS_IT_IS, Dimension, Point, Space
from mccprobe.tuning.flag_search.strategies import article, best_of, exhaustive, smallest_wrong
from mccprobe.tuning.flag_search.subjects import OrdinaryProgram, Subject
from mccprobe.tuning.flag_search.trials import COMPILED, NOT_BUILT, RIGHT, Trial

LAST_RUNS = 10  # of a winner that is an ordinary program: one wrong in every second run passes 1 of 1024


@dataclass(frozen=True)
class SearchRequest:
    """What is searched. bound: most points of an exhaustive search. storage: of tpe."""

    subject: Subject
    space: Space
    meter: Meter
    strategy: str = "article"
    bound: int = 256
    seed: int = 1
    storage: Path | None = None
    limits: SearchLimits = field(default_factory=SearchLimits)


@dataclass
class Hooks:
    """Where progress is told."""

    stage: Callable[[str], None] = lambda text: None
    trial: Callable[[Trial], None] = lambda trial: None


def taken_choices(subject: Subject, space: Space) -> tuple[Space, dict[str, str]]:
    """The space without what this compiler does not take, and what it says of that. Raises InputError for an empty one.

    -D parameters are the source's, so they stay.
    """
    refused: dict[str, str] = {}
    kept: list[Dimension] = []
    with tempfile.TemporaryDirectory(prefix="mccprobe-flags-") as scratch:
        for dimension in space.dimensions:
            choices = []
            for choice in dimension.choices[1:]:
                said = subject.toolchain.refusal(choice.argv, Path(scratch)) if choice.argv else ""
                if said:
                    refused[choice.text] = next((line for line in said.splitlines() if line.strip()), said)[:200]
                else:
                    choices.append(choice)
            if choices:
                kept.append(replace(dimension, choices=(AS_IT_IS, *choices)))
    if not kept:
        raise InputError(
            f"{subject.toolchain.driver[0]} takes none of the flags of this space",
            hint="; ".join(refused.values())[:500],
        )
    return Space(tuple(kept), space.source), refused


def run_search(
    request: SearchRequest,
    run: RunDirectory,
    journal: Journal,
    executor: Executor,
    recorder: Recorder,
    refused: dict[str, str],
    hooks: Hooks,
) -> SearchReport:
    """Search, then ablate. Raises SourceDoesNotCompile and OracleUnusable if the build without flags is no measure."""
    subject, space, meter = request.subject, request.space, request.meter

    def tell(trial: Trial) -> None:
        recorder.trial(trial)
        hooks.trial(trial)

    evaluator = Evaluator(space, subject, meter, journal, executor, run.root / "trials", request.limits, tell)
    recorder.catch_up(evaluator.trials.values())
    try:
        hooks.stage("the build without flags")
        _settle(request, evaluator)
        base = evaluator.one(space.baseline)
        _require_measure(subject, base)
        stopped, best = "", space.baseline
        try:
            hooks.stage(f"searching {space.size} points, {request.strategy}")
            best = _strategy(request, evaluator, run)
        except BudgetSpent as error:
            stopped = error.message
            best = best_of(evaluator, list(evaluator.trials), space.baseline)
        parts: tuple[Part, ...] = ()
        if best != space.baseline:
            try:
                hooks.stage("what each flag is worth")
                # as many trials as flags: of use in any case, so only the time can end it
                evaluator.limits = replace(request.limits, max_trials=sys.maxsize)
                best, parts = ablate(evaluator, best)
            except BudgetSpent as error:
                stopped = stopped or error.message
        found, doubt = _best(evaluator, best, parts, hooks) if best != space.baseline else (None, "")
    finally:
        evaluator.close()
    require_unchanged(subject.toolchain)
    trials = tuple(sorted(evaluator.trials.values(), key=lambda trial: trial.ordinal))
    return SearchReport(
        subject.name,
        subject.toolchain.name,
        subject.toolchain.simulated,
        subject.heading,
        request.strategy,
        space,
        Objective(meter.objective, meter.unit, meter.label, meter.exact),
        base,
        found if found is not None and not subject.compile_only else None,
        found if found is not None and subject.compile_only else None,
        tuple(_findings(evaluator)),
        refused,
        trials,
        evaluator.counters,
        stopped,
        (doubt,) if doubt else (),
        str(run.root),
    )


def _settle(request: SearchRequest, evaluator: Evaluator) -> None:
    """What is found out on the build without flags: what right is, and whether there is noise."""
    program, meter = request.subject, request.meter
    if not isinstance(program, OrdinaryProgram) and not isinstance(meter, Instructions):
        return
    made = program.build((), (), evaluator.folder, evaluator.executor)
    if isinstance(made, BuildFailure):
        return  # told by `_require_measure`
    try:
        if isinstance(program, OrdinaryProgram):
            program.expect(made, evaluator.executor)
        if isinstance(meter, Instructions):
            meter.settle(made)
    finally:
        made.remove()


def _require_measure(subject: Subject, base: Trial) -> None:
    if base.state == NOT_BUILT:
        raise SourceDoesNotCompile(f"{subject.name} without flags does not build", detail=base.reason)
    if base.state not in (RIGHT, COMPILED):
        raise OracleUnusable(
            f"{subject.name} without flags is {base.state}: {base.reason}",
            hint="a search starts from what is right and can be measured; mccprobe check tells more",
        )


def _strategy(request: SearchRequest, evaluator: Evaluator, run: RunDirectory) -> Point:
    if request.strategy == "article":
        return article(evaluator)
    if request.strategy == "exhaustive":
        return exhaustive(evaluator, request.bound)
    from mccprobe.tuning.flag_search.tpe import tpe

    storage = request.storage or run.root / "study.sqlite"
    return tpe(evaluator, storage, trials=request.limits.max_trials - 1, seed=request.seed)


def _best(evaluator: Evaluator, point: Point, parts: tuple[Part, ...], hooks: Hooks) -> tuple[Best | None, str]:
    """The winner with its share, or None and why it is none.

    Measured anew, built and judged once more: what was taken from an equal object is seen here for itself.
    """
    hooks.stage("the best once more")
    trial, space = evaluator.trials[point], evaluator.space
    share = evaluator.compare(point, space.baseline, again=True)
    texts = space.texts(point)
    if not share.better:
        return None, f"{' '.join(texts)}: measured once more, it is not shown to be better: no winner"
    if not evaluator.subject.compile_only:
        doubt = _once_more(evaluator, point)
        if doubt:
            return None, f"{' '.join(texts)}: built once more, {doubt}: no winner"
    return Best(trial, texts, share, parts, confirmed=not evaluator.subject.compile_only), ""


def _once_more(evaluator: Evaluator, point: Point) -> str:
    """Why a new build of this point is not right, "" if it is."""
    subject, space = evaluator.subject, evaluator.space
    made = subject.build(space.flags(point), space.defines(point), evaluator.folder, evaluator.executor)
    if isinstance(made, BuildFailure):
        return f"it does not build ({made.reason})"
    try:
        if made.object != evaluator.trials[point].object:
            return "it gives another object"
        for _ in range(LAST_RUNS if isinstance(subject, OrdinaryProgram) else 1):  # a gate has many cases and seeds
            outcome = subject.judge(made, evaluator.executor)
            if outcome.verdict is not Verdict.GOOD:
                return f"it is {outcome.verdict} ({outcome.reason})"
    finally:
        made.remove()
    return ""


def _findings(evaluator: Evaluator) -> list[Finding]:
    space, catalogue = evaluator.space, load_catalogue()
    found = []
    for point in smallest_wrong(evaluator):
        told = []
        for at in space.set_at(point):
            flag = catalogue.find(space.dimensions[at].key)
            if flag is not None:
                value = space.dimensions[at].choices[point[at]].text.partition("=")[2] or None
                told += [
                    f"{flag.name}: {risk.kind}: {risk.note}"
                    for risk in flag.risks_of(value)
                    if risk.kind != "ineffective"
                ]
        why = evaluator.subject.why(space.flags(point), space.defines(point))
        found.append(Finding(evaluator.trials[point], space.texts(point), why, tuple(told)))
    return found
