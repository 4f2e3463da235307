"""What tells this fault from another, and which other kernels show the same: the pass and the shape of its edit.

A kernel that the user names is bisected, and the shapes are compared. Of the shipped ones the first few are built:
right with the flags is a no; wrong, and right with the option that switches the pass off, is a yes. Where no such
option is known, they are bisected too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mccprobe.base.errors import MccprobeError, NoRoom
from mccprobe.bisection.passes.confirm import neutralised_job
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.run import Progress, run_bisection
from mccprobe.bisection.passes.workspace import Workspace, open_workspace
from mccprobe.build.ledger import Ledger
from mccprobe.build.session import Session
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.judged import Judging
from mccprobe.explain.locate.hunk_shape import diff_shape, edit_shape
from mccprobe.oracle.kernel.lookup import find_kernel
from mccprobe.oracle.kernel.records import Case, KernelSpec
from mccprobe.oracle.kernel.shipped import FILE_NAME, find_shipped_kernels
from mccprobe.oracle.kernel.spec import load_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.record import BisectReport, Status
from mccprobe.report.why_record import OtherKernel, Signature, Where
from mccprobe.targets import registry
from mccprobe.targets.llvm.command import split_arguments

MOST_SHIPPED = 8  # kernels tried unasked: each costs two compiles of a device and a host half
Locate = Callable[[Workspace, BisectReport, Path], Where]


def shape_of(where: Where) -> str:
    """The instruction's own edit where one is confirmed, else the pass's whole diff; "" where nothing is known."""
    if where.instruction is not None:
        return edit_shape(where.instruction.before, where.instruction.after)
    return diff_shape(where.diff)


def signature(
    report: BisectReport,
    where: Where,
    options: BisectOptions,
    also: Sequence[str],
    session: Session,
    folder: Path,
    cache: Path,
    locate: Locate,
    *,
    tell: Callable[[str], None],
    deadline: Deadline,
) -> Signature:
    """Pass and shape, and each other kernel with the same flags. options: of the bisection that found the pass.

    locate: finds the place in the pass, to compare shapes. folder: gets a run directory for each kernel.
    """
    assert report.culprit is not None
    title, shape = report.culprit.title, shape_of(where)
    option = report.confirmation.option if report.confirmation else ""
    others: list[OtherKernel] = []
    tried = 0
    for number, other in enumerate(_others(report, also)):
        name, named = other.path.name, other.named
        if other.why_not:
            others.append(OtherKernel(name, None, f"not tried: {other.why_not}"))
            continue
        if not named and tried >= MOST_SHIPPED:
            others.append(OtherKernel(name, None, f"not tried: only {MOST_SHIPPED} are; --also KERNEL asks for it"))
            continue
        if deadline.passed:
            others.append(OtherKernel(name, None, "not tried: no time left"))
            continue
        tried += not named
        tell(f"other kernel: {name}")
        plan_options = _options_for(options, other, report.toolchain)
        run = folder / f"{number}-{name}"
        try:
            found = None if named or not option else _by_switch(name, option, plan_options, session, run, cache)
            if found is None:
                found = _other(name, title, shape, plan_options, session, run, cache, locate, deadline)
            others.append(found)
        except NoRoom:
            raise
        except MccprobeError as error:
            others.append(OtherKernel(name, None, f"cannot be tried: {error.message}"))
    return Signature(title, shape, tuple(others))


@dataclass(frozen=True)
class _Other:
    """A kernel to try. named: by the user. case: its shape, None for a source. why_not: "" if it can be tried."""

    path: Path
    named: bool
    case: str | None = None
    size: int = 0
    alike: bool = False
    why_not: str = ""


def _others(report: BisectReport, also: Sequence[str]) -> list[_Other]:
    """The kernels given, and the shipped ones where the toolchain compiles kernels; without the one examined.

    Of the shipped ones only those with a case that is known to be right on this toolchain: first those that compute
    the same (their host program calls the same function), then the smallest.
    """
    source = Path(report.source).resolve()
    named = [_named(Path(name)) for name in also]
    known = {other.path.resolve() for other in named}
    shipped = find_shipped_kernels() if registry.target(report.toolchain).device else []
    entry = next((spec.entry for spec in map(_spec, shipped) if spec and source.is_relative_to(spec.folder)), "")
    found = [
        _shipped(path, report.toolchain, entry)
        for path in shipped
        if not source.is_relative_to(path.resolve()) and path.resolve() not in known
    ]
    found.sort(key=lambda other: (bool(other.why_not), not other.alike, other.size, other.path.name))
    return [*named, *found]


def _spec(path: Path) -> KernelSpec | None:
    try:
        return load_kernel(path)
    except MccprobeError:
        return None


def _named(path: Path) -> _Other:
    folder = path.parent if path.name == FILE_NAME else path
    try:
        kernel = None if folder.is_file() else find_kernel(folder)
    except MccprobeError as error:
        return _Other(folder, True, why_not=error.message)
    return _Other(folder, True, _shape(kernel.case(kernel.default_case)) if kernel is not None else None)


def _shipped(path: Path, toolchain: str, entry: str) -> _Other:
    kernel = _spec(path)
    if kernel is None:
        return _Other(path, False, why_not="its kernel.toml cannot be read")
    plain = [(one.case, out) for one in kernel.expected for out in one.for_toolchain(toolchain) if out.plain]
    cases = [kernel.case(name) for name, outcome in plain if outcome.verdict is Verdict.GOOD]
    cases = [case for case in cases if case.runs_on(toolchain)]
    if not cases:
        return _Other(path, False, why_not=f"no case of it is known to be right on {toolchain}")
    case = min(cases, key=lambda case: case.m * case.n * case.k)
    return _Other(path, False, _shape(case), case.m * case.n * case.k, kernel.entry == entry)


def _shape(case: Case) -> str:
    """As every host program takes it: not each of them knows the names of kernel.toml."""
    return f"{case.m}x{case.n}x{case.k}"


def _options_for(options: BisectOptions, other: _Other, toolchain: str) -> BisectOptions:
    """The same question about another kernel: its own cases, host program and inputs."""
    args = split_arguments(options.args).flat
    chosen = options.toolchain if other.named else toolchain  # a stand-in is not chosen silently for a user's kernel
    return replace(
        options,
        file=str(other.path),
        args=args,
        toolchain=chosen,
        case=other.case,
        run_args=None,
        run_in=None,
        stdin=None,
        oracle=options.oracle if other.named else None,
        profile=False,
    )


def _by_switch(
    name: str, option: str, options: BisectOptions, session: Session, root: Path, cache: Path
) -> OtherKernel | None:
    """Two builds instead of a bisection; None where they leave the question open."""
    plan = make_plan(options, cache)
    run, journal = session.open(root)
    workspace = open_workspace(plan.request, Ledger(run, journal, session.executor), journal)
    unit, judging = workspace.unit, Judging(workspace, needed=plan.request.settings.endpoint_repeats)
    bad = judging.of(unit.base[unit.recorded.active])
    if bad.verdict is Verdict.GOOD:
        return OtherKernel(name, False, f"right with these flags ({bad.runs} runs)")
    without = judging.compiled(workspace.ledger.compile(neutralised_job(unit, option)))
    if (bad.verdict, without.verdict) != (Verdict.BAD, Verdict.GOOD):
        return None
    return OtherKernel(
        name,
        True,
        f"wrong with these flags ({bad.fails} of {bad.runs} runs), right with {option}; the shape of the "
        f"edit was not compared (--also KERNEL does)",
    )


def _other(
    name: str,
    title: str,
    shape: str,
    options: BisectOptions,
    session: Session,
    root: Path,
    cache: Path,
    locate: Locate,
    deadline: Deadline,
) -> OtherKernel:
    plan = make_plan(options, cache)
    run, journal = session.open(root)
    report = run_bisection(plan.request, run, journal, session.executor, deadline.bounding(Progress()))
    if report.status is Status.NO_DIFFERENCE:
        return OtherKernel(name, False, "right with these flags")
    if report.culprit is None:
        return OtherKernel(name, None, f"wrong as well, but no pass is named: {report.status.value}")
    culprit = report.culprit
    if culprit.title != title:
        return OtherKernel(name, False, f"wrong as well, by another pass: {culprit.title} on {culprit.function or '?'}")
    text = f"wrong by the same pass, on {culprit.function or 'a function that the log does not name'}"
    if not shape or deadline.passed:
        return OtherKernel(name, True, f"{text}; the shape of the edit was not compared")
    workspace = open_workspace(plan.request, Ledger(run, journal, session.executor), journal)
    theirs = shape_of(locate(workspace, report, root / "where"))
    same = theirs == shape
    told = "the same shape of edit" if same else f"another shape of edit: {theirs or 'not known'}"
    return OtherKernel(name, same if theirs else None, f"{text}; {told}")
