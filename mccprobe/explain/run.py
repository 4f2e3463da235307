"""The chain of `mccprobe why`: from all the flags of a wrong build to what a compiler team can act on.

    all flags --flags--> smallest set --screen--> program is clean --bisect--> pass
                                       finding: stop                 |
              workarounds, table, signature, other builds <--where---+  (the place in the pass)

Each step works in a run directory with a journal (flags/, bisect/), so that a chain that was interrupted or
stopped by its budget goes on by replay. A step that fails or finds no time says so in its record; what the
earlier ones found stays.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mccprobe import __version__
from mccprobe.base.console import json_text, number_of
from mccprobe.base.errors import BudgetSpent, ExitCode, Interrupted, MccprobeError, NoRoom
from mccprobe.base.files import remove_dead_drafts
from mccprobe.bisection.passes.options import RUN_VERSION, BisectOptions
from mccprobe.bisection.passes.plan import Plan, make_plan
from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.bisection.passes.run import Progress, run_bisection
from mccprobe.bisection.passes.workspace import Workspace, open_workspace
from mccprobe.build.ledger import Ledger
from mccprobe.build.session import Session
from mccprobe.build.store import RunDirectory
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.facts import build_facts
from mccprobe.explain.flag_sets.pass_table import flag_pass_table
from mccprobe.explain.flag_sets.search import smallest_flag_sets
from mccprobe.explain.judged import Judging, runs_needed
from mccprobe.explain.locate.find import where_in_pass
from mccprobe.explain.options import WhyOptions
from mccprobe.explain.reduce.signature import signature
from mccprobe.explain.screen.before import doubts_of_ir
from mccprobe.explain.screen.run import screen
from mccprobe.explain.workarounds import workarounds
from mccprobe.report.record import BisectReport, Confirmation, Culprit, Status
from mccprobe.report.render_text import render_text
from mccprobe.report.why_record import (
    BuildFact,
    FlagSets,
    PassCell,
    Screen,
    Signature,
    StepState,
    Where,
    WhyReport,
    Workarounds,
)
from mccprobe.targets.flags.catalogue import ResolvedFlag, load_catalogue
from mccprobe.targets.llvm.locate import require_unchanged

if TYPE_CHECKING:
    from mccprobe.report.scrub import Removed

NOT_ASKED = "not asked for"
NO_FLAGS = "the bad build has no flags of its own: its arguments differ from the reference"
ONE_BUILD = "the bad build has no flags of its own, and no other build is compared with it"
NO_CULPRIT = "no pass is named, so there is nothing to look into"
_NO_CULPRIT_BECAUSE = {
    Status.WRONG_AT_ZERO: "the result is wrong already with every optional pass left out: no pass can be blamed",
    Status.NO_DIFFERENCE: "the build with the flags is as right as the reference",
}


@dataclass
class _Chain:
    """What the steps found so far. stopped: why the chain ended early; budget: that something was cut off by it."""

    options: WhyOptions
    root: Path
    session: Session
    cache: Path
    progress: Progress
    deadline: Deadline
    stopped: str = ""
    budget: bool = False
    failure: ExitCode | None = None  # of a bisection that could not be done
    reduced: str | None = None
    flag_sets: FlagSets = field(default_factory=lambda: FlagSets(StepState.NOT_RUN))
    screen: Screen = field(default_factory=lambda: Screen(StepState.NOT_RUN))
    bisect: BisectReport | None = None
    where: Where = field(default_factory=lambda: Where(StepState.NOT_RUN, reason=NO_CULPRIT))
    table: tuple[PassCell, ...] = ()
    signature: Signature = field(default_factory=Signature)
    workarounds: Workarounds = field(default_factory=lambda: Workarounds(StepState.NOT_RUN))
    facts: tuple[BuildFact, ...] = ()
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)

    def tell(self, text: str) -> None:
        self.progress.stage(text)

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step; a failure of it is told and does not take away what the others found.

        The budget ends it like any other failure, and is remembered.
        """
        start = time.monotonic()
        try:
            yield
        except (Interrupted, NoRoom):  # nothing that follows could be written either
            raise
        except BudgetSpent as error:
            self.budget = True
            self.stopped = self.stopped or f"{name}: {error.message}"
        except MccprobeError as error:
            self.warnings.append(f"{name} failed: {error.message}")
            if name == "bisect":
                self.failure = error.exit_code
        finally:
            self.phases[name] = round(time.monotonic() - start, 3)


def run_why(
    options: WhyOptions, plan: Plan, root: Path, session: Session, cache: Path, progress: Progress
) -> WhyReport:
    """The whole chain. plan: of the build with all flags. root: the run's folder.

    Raises MccprobeError for what the user must mend before anything can be said (the build does not compile,
    the reference is wrong).
    """
    started = time.monotonic()
    chain = _Chain(options, root, session, cache, progress, Deadline(options.budget_s))
    chosen = _flags(chain, plan)
    if not chain.stopped:
        request = plan.request if chosen is None else make_plan(_with_flags(options, chosen), cache).request
        flags = chosen if chosen is not None else options.flags
        _examine(chain, request, flags)
    require_unchanged(plan.request.toolchain)
    identity = plan.request.toolchain.identify()
    return WhyReport(
        toolchain=plan.request.toolchain.name,
        simulated=plan.request.toolchain.simulated,
        compiler_path=str(identity.path),
        compiler_version=identity.version,
        source=str(plan.request.source),
        flags=plan.request.flag_names,
        flag_sets=chain.flag_sets,
        screen=chain.screen,
        bisect=chain.bisect,
        where=chain.where,
        table=chain.table,
        signature=chain.signature,
        workarounds=chain.workarounds,
        facts=chain.facts,
        reduced=chain.reduced,
        stopped=chain.stopped,
        exit_code=_exit_code(chain),
        notes=tuple(dict.fromkeys(chain.notes)),
        warnings=tuple(dict.fromkeys(chain.warnings)),
        run_directory=str(root),
        seconds=time.monotonic() - started,
        phases=chain.phases,
    )


def _exit_code(chain: _Chain) -> ExitCode:
    """As bisect's; a finding of the screen is a "no", a budget that cut something off is BUDGET."""
    if chain.budget:
        return ExitCode.BUDGET
    if chain.failure is not None:
        return chain.failure
    if chain.bisect is not None:
        return chain.bisect.exit_code
    return ExitCode.ANSWER_IS_NO if chain.stopped else ExitCode.DONE


def with_bug_report(report: WhyReport, root: Path, cache: Path, tell: Callable[[str], None]) -> WhyReport:
    """Write root/bug-report from the result.json that lies there; a report that cannot be written is a warning."""
    if report.bisect is None or report.bisect.status is Status.NO_DIFFERENCE:
        return report
    from mccprobe.explain.bundle.make import BundleChoices, write_bug_report

    def told(text: str) -> None:
        tell(f"report: {text}")

    def show(removed: Sequence[Removed]) -> None:
        for item in removed:
            told(f"removed {item.describe()}")

    start = time.monotonic()
    try:
        written = write_bug_report(
            root,
            root / "bug-report",
            BundleChoices(),
            cache=cache,
            tell=lambda text: tell(f"report: {text}"),
            show=show,
        )
    except (Interrupted, NoRoom):
        raise
    except MccprobeError as error:
        return dataclasses.replace(report, warnings=(*report.warnings, f"no bug report: {error.message}"))
    phases = {**report.phases, "report": round(time.monotonic() - start, 3)}
    seconds = report.seconds + phases["report"]
    return dataclasses.replace(report, report=str(written.folder / "report.md"), phases=phases, seconds=seconds)


def _with_flags(options: WhyOptions, flags: Sequence[str]) -> BisectOptions:
    return dataclasses.replace(options.bisect, flags=tuple(flags))


def plan_of(options: WhyOptions, cache: Path) -> Plan:
    """The build with all flags, of the sets as well. Raises what make_plan raises."""
    return make_plan(_with_flags(options, options.flags), cache)


def _resolved(flags: Sequence[str]) -> list[ResolvedFlag]:
    catalogue = load_catalogue()
    return [catalogue.resolve(text) for text in flags]


# -- the smallest set ---------------------------------------------------------------------------------


def _flags(chain: _Chain, plan: Plan) -> tuple[str, ...] | None:
    """The flags of the first minimal set; None to go on with all flags as they were given."""
    options = chain.options
    if not options.flags:
        chain.flag_sets = FlagSets(
            StepState.SKIPPED, notes=(NO_FLAGS if options.bisect.reference is not None else ONE_BUILD,)
        )
        return None
    if not options.wants("flags"):
        chain.flag_sets = FlagSets(StepState.SKIPPED, given=options.flags, notes=(NOT_ASKED,))
        return None
    chain.tell(f"smallest flag set: {number_of(len(options.flags), 'flag')}")
    start = time.monotonic()
    # what is raised while the builds are opened is the user's to mend: nothing is known yet
    run, journal = chain.session.open(chain.root / "flags")
    workspace = open_workspace(plan.request, Ledger(run, journal, chain.session.executor), journal)
    with chain.step("flags"):
        chain.flag_sets = smallest_flag_sets(
            workspace, _resolved(options.flags), tell=chain.tell, deadline=chain.deadline
        )
    chain.phases["flags"] = round(time.monotonic() - start, 3)
    found = chain.flag_sets
    chain.budget |= found.state is StepState.BUDGET
    if found.sets:
        for other in found.sets[1:]:
            chain.notes.append(f"a second, independent set: {', '.join(other.flags)}; run why with these flags alone")
        return found.sets[0].flags
    if found.state is StepState.DONE and found.complete:
        chain.stopped = "no set of the flags gives a wrong result"
        if plan.request.inputs and not plan.request.toolchain.simulated:
            name = plan.request.source.name
            chain.stopped += f" (they reach {name} alone; another source as FILE, if the fault may lie there)"
    elif chain.deadline.passed:
        chain.stopped = chain.stopped or "the time budget was used up before a smallest set was found"
    else:
        chain.warnings.append("no smallest set was found; the rest was done with all flags")
    return None


# -- one set ------------------------------------------------------------------------------------------


def _examine(chain: _Chain, request: BisectRequest, flags: Sequence[str]) -> None:
    run, journal = chain.session.open(chain.root / "bisect")
    executor = chain.session.executor
    options = chain.options
    # a run directory of bisect like any other: `bisect --resume` and `bug-report` take it
    asked = {"options": _with_flags(options, flags).to_dict(), "request": request.describe()}
    run.write_text("run.json", json_text({"schema_version": RUN_VERSION, **asked}))
    workspace = open_workspace(request, Ledger(run, journal, executor), journal)
    chain.notes += workspace.notes
    if options.wants("screen"):
        with chain.step("screen"):
            chain.tell("screen: is the program itself at fault?")
            chain.screen = screen(request, workspace, tell=chain.tell, deadline=chain.deadline)
        chain.budget |= chain.screen.state is StepState.BUDGET
        if not chain.screen.clean:
            chain.stopped = chain.screen.reason
            return
    else:
        chain.screen = Screen(StepState.SKIPPED, reason="--skip-screen" if options.skip_screen else NOT_ASKED)
    if options.wants("bisect"):
        with chain.step("bisect"):
            chain.deadline.require()
            chain.bisect = run_bisection(
                request, run, journal, executor, chain.deadline.bounding(chain.progress), screened=chain.screen
            )
            _write_bisect(run, chain.bisect)
    _look_closer(chain, workspace, flags)


def _look_closer(chain: _Chain, workspace: Workspace, flags: Sequence[str]) -> None:
    """What comes behind the pass's name; without a culprit only what needs none."""
    report, options = chain.bisect, chain.options
    culprit = report.culprit if report else None
    needed = runs_needed(
        report, least=workspace.request.settings.endpoint_repeats, confidence=workspace.request.settings.confidence
    )
    judging = Judging(workspace, needed=needed)
    if culprit is not None and report is not None:
        _place(chain, workspace, report)
        report = chain.bisect or report
        if options.wants("table"):
            with chain.step("table"):
                chain.table = flag_pass_table(workspace, report, judging, tell=chain.tell, deadline=chain.deadline)
                chain.budget |= chain.deadline.passed and any("no time left" in cell.how for cell in chain.table)
    elif report is not None:
        reason = _NO_CULPRIT_BECAUSE.get(report.status, NO_CULPRIT)
        chain.where = dataclasses.replace(chain.where, reason=reason)
    if report is not None and report.status is Status.NO_DIFFERENCE:
        return
    _ways_around(chain, workspace, flags, culprit, judging)
    if options.wants("facts"):
        with chain.step("facts"):
            chain.facts = build_facts(workspace, judging, tell=chain.tell, deadline=chain.deadline)
            chain.budget |= chain.deadline.passed and any("no time left" in fact.text for fact in chain.facts)
    if culprit is not None and report is not None and options.wants("signature"):
        with chain.step("signature"):
            chain.signature = signature(
                report,
                chain.where,
                _with_flags(options, flags),
                options.also,
                chain.session,
                chain.root / "also",
                chain.cache,
                _locator(chain),
                tell=chain.tell,
                deadline=chain.deadline,
            )
    if culprit is not None and options.reduce:
        _reduce(chain, workspace.request, culprit)


def _reduce(chain: _Chain, request: BisectRequest, culprit: Culprit) -> None:
    from mccprobe.explain.reduce.run import reduce_source  # it needs C-Vise, and most runs do not

    with chain.step("reduce"):
        chain.deadline.require()
        folder = chain.root / "reduced"
        folder.mkdir(exist_ok=True)
        remove_dead_drafts(folder)
        made = reduce_source(
            request, culprit, folder=folder, jobs=chain.session.executor.width, tell=chain.tell, deadline=chain.deadline
        )
        chain.reduced = made.file or None
        chain.budget |= made.state is StepState.BUDGET
        chain.notes += made.notes


def _place(chain: _Chain, workspace: Workspace, report: BisectReport) -> None:
    if not chain.options.wants("where"):
        chain.where = Where(StepState.SKIPPED, reason=NOT_ASKED)
        return
    if chain.deadline.passed:
        chain.where, chain.budget = Where(StepState.BUDGET, reason="no time left"), True
        return
    chain.where = Where(StepState.FAILED, reason="this step came to no end; the warnings say why")
    with chain.step("where"):
        chain.tell("where in the pass")
        chain.where = _locator(chain)(workspace, report, chain.root / "where")
        chain.budget |= chain.where.state is StepState.BUDGET
        before = chain.where.files.get("before.ll")
        if chain.where.kind == "ir" and before and not chain.deadline.passed:
            doubts = doubts_of_ir(workspace, Path(before).read_text("utf-8", "surrogateescape"))
            chain.where = dataclasses.replace(chain.where, notes=(*doubts, *chain.where.notes))
            if doubts and report.status is Status.FOUND:
                chain.bisect = dataclasses.replace(
                    report, status=Status.EXPOSED, confirmation=Confirmation("none", doubts[0])
                )
                _write_bisect(workspace.ledger.run, chain.bisect)


def _write_bisect(run: RunDirectory, report: BisectReport) -> None:
    run.write_text("result.json", json_text(report.to_dict(__version__)))
    run.write_text("report.txt", render_text(report))


def _locator(chain: _Chain) -> Callable[[Workspace, BisectReport, Path], Where]:
    def locate(workspace: Workspace, report: BisectReport, folder: Path) -> Where:
        folder.mkdir(parents=True, exist_ok=True)
        return where_in_pass(workspace, report, tell=chain.tell, deadline=chain.deadline, folder=folder)

    return locate


def _ways_around(
    chain: _Chain, workspace: Workspace, flags: Sequence[str], culprit: Culprit | None, judging: Judging
) -> None:
    if not chain.options.wants("workarounds"):
        chain.workarounds = Workarounds(StepState.SKIPPED, notes=(NOT_ASKED,))
        return
    with chain.step("workarounds"):
        chain.workarounds = workarounds(
            workspace, _resolved(flags), culprit, judging, tell=chain.tell, deadline=chain.deadline
        )
        chain.budget |= chain.workarounds.state is StepState.BUDGET
