"""`mccprobe bisect`: options to one record, one library call, the report."""

from __future__ import annotations

import dataclasses
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console, json_text
from mccprobe.base.errors import UsageError
from mccprobe.bisection.passes.options import RUN_VERSION, BisectOptions, read_recipe, read_run_options
from mccprobe.cli.bisect_options import BuildCommand, bisect_options, given_options
from mccprobe.cli.common import cache_directory
from mccprobe.cli.html_option import deliver_result, finished_run, html_options, page_places
from mccprobe.cli.run_session import (
    check_unchanged,
    choose_root,
    refuse_changes,
    run_document,
    run_session,
    tell_plan,
)
from mccprobe.inspection.lines import one_line

if TYPE_CHECKING:
    from mccprobe.report.pages.blocks import Page
    from mccprobe.report.pages.write import Places

HELP = """Find the pass execution that makes a program wrong, and say what is confirmed.

FILE is the source to bisect (C, C++, LLVM IR, .mu, .cu, or a kernel folder); without it the shipped
GEMM is taken. What follows -- goes to the compiler: arguments, further sources, objects and
libraries. Only FILE is bisected; the rest is built once.

\b
Examples:
  mccprobe bisect --flag internal-regs-ra
  mccprobe bisect prog.c --compiler clang-14 --flag -enable-newgvn -- -O3 -lm
  mccprobe bisect prog.c --compiler clang-16 --reference "-O1" -- -O2
  mccprobe bisect prog.c --compiler clang-14 --flag -enable-ipra --oracle './check.sh {exe}' -- -O2
"""


@click.command("bisect", cls=BuildCommand, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@bisect_options
@click.option("--recipe", type=click.Path(path_type=Path), help="take the options from a recipe (FILE or name)")
@click.option("--resume", type=click.Path(path_type=Path), metavar="RUN", help="go on with this run")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/bisect.schema.json)")
@html_options
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="run directory")
@click.pass_context
def bisect(
    ctx: click.Context,
    /,
    recipe: Path | None,
    resume: Path | None,
    as_json: bool,
    html: Path | None,
    figures: Path | None,
    out: Path | None,
    jobs: int | None,
    scheduler: str,
    no_fixed_addresses: bool,
    **values: Any,
) -> int:
    console: Console = ctx.obj
    options = _options(ctx, values, recipe, resume, fixed_addresses=not no_fixed_addresses)
    places = page_places(html, figures, also_stdout="--json" if as_json else "")
    if resume is not None and places is not None:
        from mccprobe.report.pages.bisect_page import bisect_page, exit_code

        code = finished_run(console, resume, places, bisect_page, exit_code, as_json=as_json)
        if code is not None:
            return code
    return _run(
        console, options, resume=resume, out=out, jobs=jobs, scheduler=scheduler, as_json=as_json, places=places
    )


def _options(
    ctx: click.Context, values: dict[str, Any], recipe: Path | None, resume: Path | None, *, fixed_addresses: bool
) -> BisectOptions:
    given = given_options(ctx, values, fixed_addresses=fixed_addresses)
    if recipe is not None and resume is not None:
        raise UsageError("--recipe and --resume do not go together")
    if resume is not None:
        refuse_changes(given, "--jobs, --json and the like may be given")
        return read_run_options(run_document(resume), resume / "run.json")
    base = read_recipe(recipe) if recipe is not None else BisectOptions()
    return dataclasses.replace(base, **given)


def _run(
    console: Console,
    options: BisectOptions,
    *,
    resume: Path | None,
    out: Path | None,
    jobs: int | None,
    scheduler: str,
    as_json: bool,
    places: Places | None,
) -> int:
    from mccprobe.bisection.passes.plan import make_plan
    from mccprobe.bisection.passes.run import Progress, run_bisection
    from mccprobe.build.store import TEMPORARY, disk_errors
    from mccprobe.cli.trial_lines import TrialLines
    from mccprobe.explain.screen.cheap import cheap_screen
    from mccprobe.report.render_text import render_text

    with disk_errors(Path(tempfile.gettempdir()), only_full=True, elsewhere=TEMPORARY):
        plan = make_plan(options, cache_directory())
    request = plan.request
    tell_plan(console, plan)
    described = request.describe()
    if resume is not None:
        check_unchanged(resume, described)
    root = choose_root(resume, out, request.source.stem)
    lines = TrialLines(console, simulated=request.toolchain.simulated)
    again = f"mccprobe bisect --resume {shlex.quote(str(root))}"
    with run_session(
        jobs, again, root=root, fresh=resume is None, scheduler=scheduler, tell=console.message
    ) as session:
        run, journal = session.open(root)
        if resume is None:
            asked = {"schema_version": RUN_VERSION, "options": options.to_dict(), "request": described}
            run.write_text("run.json", json_text(asked))
        console.message(one_line(f"run directory: {root}"))
        with disk_errors(root, only_full=True):
            progress = Progress(lines.stage, lines.trial)
            report = run_bisection(
                request,
                run,
                journal,
                session.executor,
                progress,
                other_draws=True,
                screen=None if request.toolchain.simulated else cheap_screen,
            )
        document = report.to_dict(__version__)
        run.write_text("result.json", json_text(document))
        text = render_text(report)
        run.write_text("report.txt", text)

    def page() -> Page:
        from mccprobe.report.pages.bisect_page import bisect_page

        return bisect_page(document)

    deliver_result(console, places, page, document, text, as_json=as_json)
    return int(report.exit_code)
