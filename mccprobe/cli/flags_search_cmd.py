"""`mccprobe flags search`: options to one record, one library call, the report and its files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console, json_text, visible
from mccprobe.base.errors import JournalUnreadable, UsageError
from mccprobe.cli.common import FiniteRange, cache_directory
from mccprobe.cli.html_option import deliver, finished_run, html_options, page_places
from mccprobe.cli.lazy import AliasedOption
from mccprobe.cli.pace import Pace
from mccprobe.cli.run_session import choose_root, refuse_changes, run_document, run_session
from mccprobe.cli.toolchain_option import toolchain_option
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH

if TYPE_CHECKING:
    from mccprobe.report.pages.blocks import Page
    from mccprobe.tuning.flag_search.options import Planned, SearchOptions
    from mccprobe.tuning.flag_search.report import SearchReport

DEFAULT_BOOK = "mccprobe-out/journal.jsonl"
HELP = """Search for flags that make a kernel or a program better and keep it right.

FILE is a kernel (folder, kernel.toml, shipped name; default: gemm) or an ordinary source; what follows -- goes
to the compiler then. Every candidate passes the gate before it is measured; a wrong one is a finding, with the
command to follow it. What only compiles (amdgcn) is compared and never a winner. In the end each flag's own
share is measured, and useless ones are dropped. Exit 0: found; 1: nothing better; 6: stopped by a budget.

\b
Examples:
  mccprobe flags search gemm --toolchain sim --max-trials 40
  mccprobe flags search gemm --toolchain amdgcn --objective registers
  mccprobe flags search prog.c --compiler clang-14 --strategy exhaustive --space my.toml -- -O2
  mccprobe wrapper install --set mccprobe-out/gemm-20260101-120000/set.toml
"""


@click.command("search", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", required=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--space", type=click.Path(path_type=Path), metavar="FILE", help="what may change (TOML)")
@click.option("--strategy", type=click.Choice(["article", "exhaustive", "tpe"]), default="article", show_default=True)
@click.option(
    "--objective",
    type=click.Choice(["instructions", "code-size", "registers", "spills", "time"]),
    help="what is made smaller  [default: what is honest here]",
)
@click.option("--budget", metavar="TIME", help="stop cleanly after TIME (600, 90s, 10m, 1h)")
@click.option("--max-trials", type=click.IntRange(2), default=200, show_default=True, help="points in all")
@click.option("--bound", type=click.IntRange(2), default=256, show_default=True, help="most points of exhaustive")
@toolchain_option("search")
@click.option("--compiler", metavar="PATH", help="the clang to use")
@click.option("--mcc", metavar="PATH", help="the mcc to use")
@click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to pin")
@click.option("--arch", default=DEFAULT_ARCH, show_default=True, metavar="ARCH", help="device architecture")
@click.option(
    "--case",
    "cases",
    cls=AliasedOption,
    aliases=("--cases",),
    type=click.Choice(["legacy", "full"]),
    default="legacy",
    show_default=True,
)
@click.option(
    "--seed",
    "seeds",
    type=click.IntRange(0),
    multiple=True,
    default=(1, 2, 3),
    show_default=True,
    help="inputs of the gate; several may be given",
)
@click.option("--run-args", metavar="ARGS", help="arguments of an ordinary program")
@click.option("--stdin", metavar="FILE", help="what an ordinary program reads from standard input (default: nothing)")
@click.option("--random-seed", type=click.IntRange(0), default=1, show_default=True, help="of tpe")
@click.option("--storage", metavar="FILE", help="tpe: a study that several searches share (SQLite)")
@click.option("--timeout", type=FiniteRange(0.1), default=300.0, show_default=True, metavar="S", help="of one run")
@click.option("--compile-timeout", type=FiniteRange(1), default=300.0, show_default=True, metavar="S")
@click.option("--jobs", type=click.IntRange(1), help="trials at once (default: CPUs; timed ones always alone)")
@click.option("--scheduler", default="", metavar="tcp://HOST:PORT", help="compile and judge on this Dask cluster")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="a picture as well (.svg, .png)")
@click.option("--why", default="", metavar="TEXT", help="for the journal: why this is tried")
@click.option(
    "--journal",
    "book",
    default=DEFAULT_BOOK,
    show_default=True,
    metavar="FILE",
    help='where it is recorded; "" for nowhere',
)
@click.option("--resume", type=click.Path(path_type=Path), metavar="RUN", help="go on with this run")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/flags-search.schema.json)")
@html_options
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="run directory")
@click.pass_context
def search(
    ctx: click.Context,
    /,
    budget: str | None,
    max_trials: int,
    jobs: int | None,
    scheduler: str,
    plot: Path | None,
    book: str,
    resume: Path | None,
    as_json: bool,
    html: Path | None,
    figures: Path | None,
    out: Path | None,
    **values: Any,
) -> int:
    from mccprobe.explain.options import parse_budget
    from mccprobe.targets.llvm.inherited import environment_of, sentences
    from mccprobe.tuning.flag_search.options import plan_search
    from mccprobe.tuning.flag_search.plot import FORMATS

    console: Console = ctx.obj
    if plot is not None and plot.suffix not in FORMATS:
        raise UsageError(f"--plot {plot}: no picture format that is known", hint=" or ".join(FORMATS))
    budget_s = None if budget is None else parse_budget(budget)
    options = _options(ctx, values, resume)
    places = page_places(html, figures, also_stdout="--json" if as_json else "")
    if resume is not None and places is not None and plot is None:
        from mccprobe.report.pages.search_page import exit_code, search_page

        code = finished_run(console, resume, places, search_page, exit_code, as_json=as_json)
        if code is not None:
            return code
    planned = plan_search(options, cache_directory(), max_trials=max_trials, budget_s=budget_s)
    for sentence in (*planned.told, *sentences(environment_of(planned.request.subject.toolchain))):
        console.always(sentence)
    if planned.request.subject.toolchain.simulated:
        console.always("sim: everything below is SIMULATED: an x86-64 emulation, with faults that mccprobe planted")
    meter = planned.request.meter
    if scheduler and meter.here:
        console.always(f"{meter.objective}: measured on this machine, not on a worker: {meter.here}")
    described = planned.described()
    if resume is not None:
        _check_unchanged(resume, described)
    root = choose_root(resume, out, Path(options.file).stem or "search")
    report = _search(
        console, planned, options, described, root, resume=resume, jobs=jobs, scheduler=scheduler, book=book, plot=plot
    )

    def page() -> Page:
        from mccprobe.report.pages.search_page import search_page

        return search_page(_document(report))

    def show() -> None:
        if as_json:
            console.document(_document(report))
        else:
            from mccprobe.report.text.flag_search import render_search

            console.result(visible(render_search(report)))

    deliver(console, places, page, show, as_json=as_json)
    return int(report.exit_code)


def _options(ctx: click.Context, values: dict[str, Any], resume: Path | None) -> SearchOptions:
    from mccprobe.tuning.flag_search.options import SearchOptions, read_options

    given = {
        name: values[name]
        for name in values
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    if resume is not None:
        refuse_changes(given, "--budget, --max-trials, --jobs, --json, --plot and the like may be given")
        return read_options(run_document(resume), resume / "run.json")
    if given.get("run_args") is not None:
        given["run_args"] = tuple(_words("--run-args", given["run_args"]))
    if given.get("space") is not None:
        given["space"] = str(given["space"])
    for name in ("args", "seeds"):
        if name in given:
            given[name] = tuple(given[name])
    return SearchOptions(**{name: value for name, value in given.items() if value is not None})


def _words(option: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} cannot be split: {error}: {text}") from error


def _check_unchanged(root: Path, described: dict[str, Any]) -> None:
    """The same space, source and compiler, or the journal's answers are of another search."""
    old = run_document(root).get("described")
    changed = sorted(key for key in described if not isinstance(old, dict) or old.get(key) != described[key])
    if changed:
        raise JournalUnreadable(
            f"{root} cannot be resumed: {', '.join(changed)} changed since it was started", hint="start a new run"
        )


def _search(
    console: Console,
    planned: Planned,
    options: SearchOptions,
    described: dict[str, Any],
    root: Path,
    *,
    resume: Path | None,
    jobs: int | None,
    scheduler: str,
    book: str,
    plot: Path | None,
) -> SearchReport:
    from mccprobe.build.store import disk_errors
    from mccprobe.inspection.lines import one_line
    from mccprobe.journal.book import Book
    from mccprobe.journal.commit import kernel_commit
    from mccprobe.tuning.flag_search.record import Recorder
    from mccprobe.tuning.flag_search.run import Hooks, run_search

    request = planned.request
    mark = f"  [{request.subject.heading}]" if request.subject.heading else ""

    pace = Pace()

    def tell(trial: Any) -> None:
        pace.step()
        flags = " ".join(request.space.texts(trial.point)) or "as it is"
        figure = _figure(trial, request.meter.unit)
        most = request.limits.max_trials - trial.ordinal
        left = pace.left(most if most > 0 else None, about="at most ")
        console.progress(
            f"trial {trial.ordinal}: {trial.state} {flags}: {figure}{mark}",
            live=f"trial {trial.ordinal}, {left}, last: {trial.state} {figure}{pace.took()}: {flags}{mark}",
        )

    again = f"mccprobe flags search --resume {shlex.quote(str(root))}"
    with run_session(
        jobs, again, root=root, fresh=resume is None, scheduler=scheduler, tell=console.message
    ) as session:
        run, journal = session.open(root)
        if resume is None:
            asked = {"schema_version": 1, "search": options.to_dict(), "described": described}
            run.write_text("run.json", json_text(asked))
        console.message(one_line(f"run directory: {root}"))
        recorder = Recorder(
            Book(Path(book)) if book else None,
            request.subject,
            request.space,
            request.meter,
            root.absolute(),
            why=options.why,
            commit=kernel_commit(planned.place) if book else None,
        )
        with disk_errors(root, only_full=True):
            report = run_search(
                request, run, journal, session.executor, recorder, dict(planned.refused), Hooks(console.progress, tell)
            )
        recorder.search(report)
        return _write(run.root, report, plot)


def _figure(trial: Any, unit: str) -> str:
    same = f", the object of trial {trial.same_as}" if trial.same_as is not None else ""
    return (f"{trial.value:,.10g} {unit}" if trial.value is not None else str(trial.reason)) + same


def _write(root: Path, report: SearchReport, plot: Path | None) -> SearchReport:
    """result.json, report.txt, the set file of a winner, the picture."""
    from dataclasses import replace

    from mccprobe.build.store import write_text
    from mccprobe.report.text.flag_search import render_search
    from mccprobe.tuning.flag_search.plot import plot_search
    from mccprobe.tuning.flag_search.set_file import set_text

    files: dict[str, str] = {}
    if report.winner is not None:
        files["set"] = str(write_text(root / "set.toml", set_text(report, report.winner)))
    if plot is not None:
        files["plot"] = str(plot_search(report, plot))
    report = replace(report, files=files)
    write_text(root / "result.json", json_text(_document(report)))
    write_text(root / "report.txt", render_search(report))
    return report


def _document(report: SearchReport) -> dict[str, Any]:
    return {"schema_version": 1, "tool_version": __version__, **report.to_dict()}
