"""What check, bench, cycle and edit share: the options that say what is built, and the line in the journal."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mccprobe.base.console import Console
from mccprobe.base.errors import MccprobeError, SourceDoesNotCompile, ToolchainError
from mccprobe.cli.common import FiniteRange, cache_directory
from mccprobe.cli.lazy import AliasedOption
from mccprobe.cli.pace import Pace
from mccprobe.cli.toolchain_option import toolchain_option
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH

if TYPE_CHECKING:
    from mccprobe.oracle.kernel.records import Case
    from mccprobe.oracle.kernel.spec import KernelSpec
    from mccprobe.targets.protocol import Toolchain
    from mccprobe.tuning.check.check import CheckedCase, GateReport

CONTEXT = {"help_option_names": ["-h", "--help"]}
DEFAULT_BOOK = "mccprobe-out/journal.jsonl"
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class KernelChoice:
    """What is built, with what."""

    kernel: KernelSpec
    toolchain: Toolchain
    flags: tuple[tuple[str, ...], ...]
    defines: Mapping[str, str]


def kernel_options(command: Command) -> Command:
    """The options of `choose_kernel` and of the gate. `--case` is `--cases` where a command times one case."""
    times_one = any("--case" in parameter.opts for parameter in getattr(command, "__click_params__", ()))
    case, alias = ("--cases", ()) if times_one else ("--case", ("--cases",))
    for option in reversed(
        (
            click.option("--flag", "flags", multiple=True, metavar="NAME", help="catalogue name, NAME=VALUE, or as is"),
            click.option(
                "--set", "sets", multiple=True, metavar="NAME", help="a flag set of the catalogue: gemm-s4000"
            ),
            click.option("-D", "defines", multiple=True, metavar="NAME=VALUE", help="a parameter of kernel.toml"),
            toolchain_option("check"),
            click.option("--compiler", metavar="PATH", help="the clang to use"),
            click.option("--mcc", metavar="PATH", help="the mcc to use"),
            click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to pin"),
            click.option("--arch", default=DEFAULT_ARCH, show_default=True, metavar="ARCH", help="device architecture"),
            click.option(
                case,
                "cases",
                cls=AliasedOption,
                aliases=alias,
                type=click.Choice(["legacy", "full"]),
                default="legacy",
                show_default=True,
                help="full adds 8192x8192x16384 and its like",
            ),
            click.option(
                "--seed",
                "seeds",
                type=click.IntRange(0),
                multiple=True,
                default=(1, 2, 3),
                show_default=True,
                help="inputs; several may be given",
            ),
            click.option(
                "--timeout", type=FiniteRange(0.1), default=300.0, show_default=True, metavar="S", help="of one run"
            ),
            click.option("--compile-timeout", type=FiniteRange(1), default=300.0, show_default=True, metavar="S"),
            click.option("--why", default="", metavar="TEXT", help="for the journal: why this is tried"),
            click.option(
                "--journal",
                "book",
                default=DEFAULT_BOOK,
                show_default=True,
                metavar="FILE",
                help='where it is recorded; "" for nowhere',
            ),
        )
    ):
        command = option(command)
    return command


def choose_kernel(console: Console, text: str, values: Mapping[str, Any]) -> KernelChoice:
    """Resolve the options and tell what is used. Raises what the pieces raise."""
    from mccprobe.targets.llvm.inherited import environment_of, sentences
    from mccprobe.tuning.check.subject import kernel_toolchain, parse_defines, resolve_flags, runnable_kernel

    kernel = runnable_kernel(text)
    flags = resolve_flags(values["flags"], values["sets"])
    defines = parse_defines(kernel, values["defines"])
    choice = kernel_toolchain(
        kernel,
        values["toolchain"],
        mcc=values["mcc"],
        musa_path=values["musa_path"],
        cache=cache_directory(),
        compiler=values["compiler"],
    )
    for told in (choice.told, *sentences(environment_of(choice.toolchain))):
        if told:
            console.always(told)
    if choice.toolchain.simulated:
        console.always("sim: everything below is SIMULATED: an x86-64 emulation, with faults that mccprobe planted")
    return KernelChoice(kernel, choice.toolchain, flags, defines)


def gate_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those keyword arguments of `check_kernel` that the options give."""
    return {
        "cases": values["cases"],
        "seeds": tuple(values["seeds"]),
        "timeout_s": values["timeout"],
        "compile_timeout_s": values["compile_timeout"],
        "arch": values["arch"],
    }


@contextlib.contextmanager
def build_folder(out: Path | None, name: str) -> Iterator[Path]:
    """A new folder below `out` that stays, or a temporary one."""
    from mccprobe.build.store import TEMPORARY, disk_errors

    if out is not None:
        with folder_below(out, lambda: tempfile.mkdtemp(prefix=f"{name}-", dir=out)) as folder:
            yield folder
        return
    with disk_errors(Path(tempfile.gettempdir()), elsewhere=TEMPORARY):
        folder = Path(tempfile.mkdtemp(prefix=f"mccprobe-{name}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def folder_below(parent: Path, make: Callable[[], Path | str]) -> Iterator[Path]:
    """The folder that `make` makes below `parent`, which is made if need be; absolute, for it becomes TMPDIR of
    compilers that run in other folders.

    An error in the work inside leaves nothing behind, but for one whose hint names a command that ran there.
    """
    from mccprobe.base.paths import exists
    from mccprobe.build.store import disk_errors

    missing = [path for path in (parent, *parent.parents) if not exists(path)]
    folder: Path | None = None
    try:
        with disk_errors(parent):
            parent.mkdir(parents=True, exist_ok=True)
            folder = Path(make()).absolute()
        yield folder
    except BaseException as error:
        if folder is not None and not isinstance(error, SourceDoesNotCompile | ToolchainError):
            shutil.rmtree(folder, ignore_errors=True)
        for path in (*([folder] if folder is not None else []), *missing):
            with contextlib.suppress(OSError):  # it is not empty, or was not made
                path.rmdir()
        raise


def case_teller(
    console: Console, *, simulated: bool, runs: Sequence[Case] | None = None
) -> Callable[[CheckedCase], None]:
    """Says each case as it is done. runs: those that are to come, if none is refused; None where that is not known."""
    mark = "  [sim]" if simulated else ""
    pace = Pace(started=False)  # the build comes first
    waiting = list(runs or ())

    def tell(case: CheckedCase) -> None:
        now = case.planned.case
        pace.step(_work(now))
        verdict = "refused" if case.refused_as_described else str(case.result.verdict)
        plain = f"{verdict} {now.name} seed {case.result.seed}: {case.result.reason}{mark}"
        if runs is None:
            console.progress(plain)
            return
        if case.result.refused:  # then its other seeds are left out
            waiting[:] = [one for one in waiting if one != now]
        elif now in waiting:
            waiting.remove(now)
        left = pace.left(len(waiting), about="at most ", works=[_work(one) for one in waiting])
        console.progress(plain, live=f"{left}, last: {verdict} {now.name}{pace.took()}{mark}")

    return tell


def _work(case: Case) -> float:
    return float(case.m) * case.n * case.k


def planned_runs(choice: KernelChoice, values: Mapping[str, Any]) -> list[Case]:
    """The runs that the gate makes of the chosen cases and seeds, in its order, if it refuses none."""
    from mccprobe.tuning.check.cases import plan_cases

    planned, _ = plan_cases(choice.kernel, choice.toolchain.name, values["cases"])
    return [entry.case for entry in planned for _ in (values["seeds"][:1] if entry.once else values["seeds"])]


def require_built(report: GateReport) -> None:
    """Raise SourceDoesNotCompile if nothing was built."""
    if report.failure is not None:
        raise SourceDoesNotCompile(
            f"{report.kernel.name}: {report.failure.reason}",
            detail=report.failure.detail,
            hint="ran: " + " ".join(report.failure.command),
        )


@contextlib.contextmanager
def answered(show: Callable[[], None], *, as_json: bool) -> Iterator[None]:
    """Around `record`: shows the answer. A journal that cannot be written takes none away; one document stays one."""
    try:
        yield
    except MccprobeError:
        if not as_json:
            show()
        raise
    show()


def record(
    values: Mapping[str, Any],
    kind: Any,
    choice: KernelChoice,
    *,
    text: str,
    verdict: Any = None,
    figures: Mapping[str, tuple[float | None, str]] | None = None,
    health: Mapping[str, Any] | None = None,
    run_directory: Path | None = None,
) -> None:
    """One line in the journal across runs, unless it was switched off. Raises RunDirectoryUnusable."""
    if not values["book"]:
        return
    from mccprobe.journal.book import Book
    from mccprobe.journal.commit import kernel_commit
    from mccprobe.journal.entry import Entry, Figure

    Book(Path(values["book"])).append(
        Entry(
            kind=kind,
            text=text,
            why=values["why"],
            kernel=choice.kernel.name,
            kernel_commit=kernel_commit(choice.kernel.folder),
            toolchain=choice.toolchain.name,
            simulated=choice.toolchain.simulated,
            flags=(*(" ".join(flag) for flag in choice.flags), *(f"-D{n}={v}" for n, v in choice.defines.items())),
            verdict=verdict,
            health=health,
            run_directory=str(run_directory) if run_directory else None,
            figures={name: Figure(value, unit) for name, (value, unit) in (figures or {}).items()},
        )
    )
