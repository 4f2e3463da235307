"""Old bug reports tried on another compiler: still there, gone, changed, or cannot tell.

A report is built again from its own files. One that is still wrong is bisected again, so that "still
there" means the same pass on the same function; another pass, or another kind of failure, is "changed".
Whatever cannot be built, or whose reference is not right any more, is "cannot tell": never "gone".
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from mccprobe.base.errors import BadDataFile, BadReport, BudgetSpent, MccprobeError
from mccprobe.base.files import file_digest
from mccprobe.base.paths import is_file, is_folder, read_file, resolved
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.bisection.passes.run import Progress, run_bisection
from mccprobe.bisection.passes.workspace import Workspace, open_workspace
from mccprobe.build.executor import Executor
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.store import RunDirectory
from mccprobe.explain.bundle.archive import MAX_BYTES, unpack
from mccprobe.explain.bundle.make import HERE
from mccprobe.explain.bundle.make import SCHEMA_VERSION as BUNDLE_VERSION
from mccprobe.explain.deadline import Deadline
from mccprobe.oracle.checks import ReferenceOracle
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.report.record import BisectReport, Culprit, Status
from mccprobe.targets import registry
from mccprobe.targets.flags.datafile import shorten
from mccprobe.targets.llvm.inherited import VARIABLES

SCHEMA_VERSION = 1
RUNS = 2  # of the bad build: one lucky run is not "gone"
MISS = 0.01  # chance of calling a flaky fault gone
# what a report from outside may ask for: times in seconds
MOST_ASKED = {"count": 1000, "spot_checks": 1000, "timeout": 86_400.0, "compile_timeout": 86_400.0}
MOST_RUNS = 200


class Recurrence(StrEnum):
    """Of one report on one compiler."""

    STILL_THERE = "still there"
    GONE = "gone"
    CHANGED = "changed"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class OldReport:
    """A report as it lies unpacked. folder: its files; name: as the user gave it.

    environment: variables that are in every compile (toolchain.inherited), with the folders of these files.
    configuration: file among them for a compiler that reads none by itself, "" for none.
    """

    name: str
    folder: Path
    title: str
    toolchain: str
    simulated: bool
    compiler: str
    status: str
    culprit: dict[str, Any] | None
    bad: dict[str, Any]
    expected: dict[str, Any]
    options: BisectOptions
    runs: int = RUNS
    environment: dict[str, str] = field(default_factory=dict)
    configuration: str = ""


@dataclass(frozen=True)
class Recheck:
    """One row of the table. culprit_pass, function, execution: where it turns wrong now, None when it does not."""

    report: str
    title: str
    compiler: str
    version: str
    simulated: bool
    answer: Recurrence
    text: str
    culprit_pass: str | None = None
    function: str | None = None
    execution: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "answer": self.answer.value}


def read_report(path: Path, scratch: Path) -> OldReport:
    """A report's folder, or its archive unpacked below `scratch`. Raises BadReport."""
    folder = path
    if not is_folder(path):
        if not is_file(path):
            raise BadReport(f"{path}: no such report")
        folder = unpack(path, Path(tempfile.mkdtemp(dir=scratch)))
    try:
        document = json.loads(read_file(folder / "bundle.json", MAX_BYTES).decode("utf-8"))
        if document["schema_version"] != BUNDLE_VERSION:
            version = document["schema_version"]
            raise BadReport(f"{path}: report version {shorten(repr(version))}, this mccprobe reads {BUNDLE_VERSION}")
        _require_whole(path, folder, document["files"])
        here = str(folder.absolute())
        options = dict(document["options"])
        oracle = options.pop("oracle", None)  # a command line: the folder's name may hold what a shell would take apart
        text = json.dumps(options).replace(HERE, json.dumps(here)[1:-1])
        options = json.loads(text)
        options["oracle"] = oracle and shlex.join(word.replace(HERE, here) for word in shlex.split(oracle))
        environment = {
            str(name): str(value).replace(HERE, here) for name, value in document.get("environment", {}).items()
        }
        if not environment.keys() <= set(VARIABLES):
            raise BadReport(f"{path}: environment: expected no other variables than {', '.join(VARIABLES)}")
        asked = BisectOptions.from_dict(options, str(path))
        _require_bounded(path, asked)
        return OldReport(
            name=str(path),
            folder=folder,
            title=str(document["title"]),
            toolchain=str(document["toolchain"]),
            simulated=bool(document["simulated"]),
            compiler=str(document["compiler"]["version"]),
            status=str(document["status"]),
            culprit=document["culprit"] and dict(document["culprit"]),
            bad=dict(document["bad"]),
            expected=dict(document["expected"]),
            options=asked,
            runs=_runs_needed(document.get("failure_rate")),
            environment=environment,
            configuration=str(document.get("configuration", "")),
        )
    except OSError as error:
        raise BadReport(f"{path}: holds no bundle.json: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, BadDataFile) as error:
        raise BadReport(f"{path}: bundle.json is not what mccprobe writes: {shorten(str(error), 200)}") from error


def _require_bounded(path: Path, options: BisectOptions) -> None:
    """An archive from outside does not decide that it is tried for ever. Raises BadReport."""
    for name, most in MOST_ASKED.items():
        value = getattr(options, name)
        if value > most:
            raise BadReport(f"{path}: options.{name} is {shorten(str(value))}, expected at most {most}")


def _runs_needed(rate: dict[str, float] | None) -> int:
    """Right runs in a row before a fault that is not seen each time is called gone."""
    low = float(rate["low"]) if rate else 1.0
    if low >= 1.0:
        return RUNS
    return MOST_RUNS if low <= 0.0 else min(MOST_RUNS, max(RUNS, math.ceil(math.log(MISS) / math.log(1.0 - low))))


def _require_whole(path: Path, folder: Path, files: dict[str, str]) -> None:
    """Every file is there as it was written. Raises BadReport."""
    for name, digest in files.items():
        file = folder / name
        if not resolved(file).is_relative_to(resolved(folder)) or not is_file(file):
            raise BadReport(f"{path}: {shorten(name)} is missing")
        if file_digest(file) != digest:
            raise BadReport(f"{path}: {name} was changed after the report was written")


def recheck(
    report: OldReport,
    compiler: str,
    *,
    cache: Path,
    scratch: Path,
    executor: Executor,
    tell: Callable[[str], None],
    deadline: Deadline | None = None,
) -> Recheck:
    """Try one report on one compiler (a path, or "sim" for the stand-in). Never raises for what that compiler does.

    deadline: what is not known by then is "cannot tell".
    """
    deadline = deadline or Deadline()
    row = Recheck(report.name, report.title, compiler, "", report.simulated, Recurrence.CANNOT_TELL, "")
    try:
        options = _within(_with_compiler(report, compiler), deadline)
        request = make_plan(options, cache, report.environment).request
        identity = request.toolchain.identify()
        if report.configuration and not identity.configuration:
            options = replace(options, args=("--config", str(report.folder / report.configuration), *options.args))
            request = make_plan(options, cache, report.environment).request
        row = replace(row, version=identity.version, simulated=request.toolchain.simulated)
        tell(f"{report.title}: {identity.version}")
        run = RunDirectory(Path(tempfile.mkdtemp(prefix="recheck-", dir=scratch)))
        journal = Journal(run.journal)
        try:
            return _answer(report, row, request, run, journal, executor, deadline)
        finally:
            journal.close()
    except MccprobeError as error:
        return replace(row, text=error.message)
    except FileNotFoundError as error:
        if not str(error.filename or "").startswith(str(scratch)):
            raise
        return replace(row, text=f"{error.filename}: removed while it was used: by the program or the oracle")


def _within(options: BisectOptions, deadline: Deadline) -> BisectOptions:
    """No run and no compile takes longer than what is left."""
    left_s = max(1.0, deadline.left_s)
    return replace(options, timeout=min(options.timeout, left_s), compile_timeout=min(options.compile_timeout, left_s))


def _with_compiler(report: OldReport, compiler: str) -> BisectOptions:
    named, own = registry.find(compiler), registry.find(report.toolchain)
    if named is not None and not named.path_option:  # it brings its own compiler
        return replace(report.options, toolchain=named.name)
    changed: dict[str, Any] = {"compiler": compiler}
    if own is not None and own.path_option:
        changed = {"toolchain": own.name, own.path_option: compiler}
    return replace(report.options, **changed)


def _answer(
    report: OldReport,
    row: Recheck,
    request: BisectRequest,
    run: RunDirectory,
    journal: Journal,
    executor: Executor,
    deadline: Deadline,
) -> Recheck:
    workspace = open_workspace(request, Ledger(run, journal, executor), journal)
    other = _other_reference(report, workspace)
    if other:
        return replace(row, text=other)
    key = workspace.unit.base[workspace.unit.recorded.active]
    outcomes = []
    for _ in range(report.runs):
        deadline.require()
        outcomes.append(workspace.judge.run(key))
    unresolved = [outcome for outcome in outcomes if outcome.verdict is Verdict.UNRESOLVED]
    if unresolved:
        return replace(row, text=unresolved[0].reason)
    wrong = [outcome for outcome in outcomes if outcome.verdict is Verdict.BAD]
    if not wrong:
        return replace(row, answer=Recurrence.GONE, text=f"right in {report.runs} of {report.runs} runs")
    try:
        found = run_bisection(request, run, journal, executor, deadline.bounding(Progress()))
    except BudgetSpent as error:
        return replace(row, text=f"wrong, but no pass was found: {error.message}")
    return compared(report, row, wrong[0], found)


def _other_reference(report: OldReport, workspace: Workspace) -> str:
    """Why the reference of this compiler is not that of the report, "" if it is."""
    oracle, expected = workspace.oracle, report.expected
    if not isinstance(oracle, ReferenceOracle) or not expected.get("sha256"):
        return ""
    seen = oracle.expected
    same = hashlib.sha256(seen.stdout).hexdigest() == expected["sha256"] and seen.returncode == expected["status"]
    return "" if same else f"the reference build gives another answer than in the report: {seen.describe()}"


def _crash(text: str) -> bool:
    return "signal SIG" in text


def compared(report: OldReport, row: Recheck, wrong: Outcome, found: BisectReport) -> Recheck:
    """What is wrong now against what was wrong then."""
    culprit = found.culprit
    if culprit is not None:
        row = replace(row, culprit_pass=culprit.title, function=culprit.function, execution=culprit.execution)
    then, now = report.culprit, _place(culprit)
    if _crash(str(report.bad.get("text", ""))) != _crash(wrong.reason):
        return replace(row, answer=Recurrence.CHANGED, text=f"wrong in another way: {wrong.reason}")
    if then is None:
        same = found.status.value == report.status
        text = f"{found.status.value}, as in the report" if same else f"was {report.status}, now {found.status.value}"
        return replace(row, answer=Recurrence.STILL_THERE if same else Recurrence.CHANGED, text=text)
    if culprit is None:
        if found.status is Status.UNDECIDED:
            return replace(row, text="wrong, but no pass could be found")
        return replace(row, answer=Recurrence.CHANGED, text=f"wrong, and no pass is at fault: {found.status.value}")
    function = then.get("function_symbol") or then.get("function")
    if _same_pass(then, culprit) and function in (culprit.symbol, culprit.function):
        return replace(row, answer=Recurrence.STILL_THERE, text=f"{now}: {wrong.reason}")
    return replace(row, answer=Recurrence.CHANGED, text=f"turns wrong at another place: {now}")


def _same_pass(then: dict[str, Any], now: Culprit) -> bool:
    """By argument where both have one: titles change from release to release."""
    if then.get("pass_argument") and now.argument:
        return bool(then["pass_argument"] == now.argument)
    return bool(then.get("pass") == now.title)


def _place(culprit: Culprit | None) -> str:
    return "" if culprit is None else f"{culprit.title} on {culprit.function or 'an unnamed function'}"
