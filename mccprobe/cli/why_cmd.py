"""`mccprobe why`: options to one record, one library call, the report."""

from __future__ import annotations

import dataclasses
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console, json_text
from mccprobe.bisection.passes.options import RUN_VERSION, BisectOptions, read_recipe
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
from mccprobe.explain.options import STEPS, WhyOptions, parse_budget, read_why_options
from mccprobe.inspection.lines import one_line

if TYPE_CHECKING:
    from mccprobe.report.pages.blocks import Page
    from mccprobe.report.pages.write import Places

HELP = """From a wrong result to what a compiler team can act on, in one run.

Finds the smallest set of flags that gives the wrong result, screens the program for undefined
behaviour and races, names the pass, looks for the first bad instruction, fills the table flag by
pass by function, and tries ways around. FILE and what follows -- are as for bisect.

\b
Examples:
  mccprobe why --set gemm-s4000 --flag internal-regs-ra
  mccprobe why prog.c --compiler clang-14 --flag -enable-newgvn --budget 10m -- -O3 -lm
  mccprobe why --resume mccprobe-out/gemm-20260101-120000
"""


@click.command("why", cls=BuildCommand, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@bisect_options
@click.option("--set", "sets", multiple=True, metavar="NAME", help="flag set of the catalogue; its flags come first")
@click.option("--budget", metavar="TIME", help="stop cleanly after TIME (600, 90s, 10m, 1h) with what is known")
@click.option("--skip-screen", is_flag=True, help="blame the compiler without a look at the program")
@click.option("--step", "steps", multiple=True, type=click.Choice(STEPS), help="only this step and what it needs")
@click.option("--also", multiple=True, metavar="KERNEL", help="look for the same fault in this kernel or source too")
@click.option("--reduce", is_flag=True, help="reduce the source at the end (C-Vise; takes minutes)")
@click.option("--recipe", type=click.Path(path_type=Path), help="take bisect's options from a recipe (FILE or name)")
@click.option("--resume", type=click.Path(path_type=Path), metavar="RUN", help="go on with this run")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/why.schema.json)")
@html_options
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="run directory")
@click.pass_context
def why(
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
    skipping = False
    given = given_options(ctx, values, fixed_addresses=not no_fixed_addresses)
    own = {name: values[name] for name in ("sets", "steps", "also", "skip_screen", "reduce") if values[name]}
    budget_s = None if values["budget"] is None else parse_budget(values["budget"])
    if resume is not None:
        changed = [*given, *(name for name in own if name != "skip_screen"), *(["recipe"] if recipe else [])]
        refuse_changes(changed, "--budget, --skip-screen, --jobs, --json and the like may be given")
        options = read_why_options(run_document(resume), resume / "run.json")
        skipping = "skip_screen" in own and not options.skip_screen
        options = dataclasses.replace(options, skip_screen=options.skip_screen or skipping)
    else:
        base = read_recipe(recipe) if recipe is not None else BisectOptions()
        options = dataclasses.replace(WhyOptions(dataclasses.replace(base, **given)), **own)
    # the time is this command's: what an earlier one had is used up
    options = dataclasses.replace(options, budget_s=budget_s)
    places = page_places(html, figures, also_stdout="--json" if as_json else "")
    if resume is not None and places is not None and not skipping:
        from mccprobe.report.pages.why_page import exit_code, why_page

        code = finished_run(console, resume, places, why_page, exit_code, as_json=as_json)
        if code is not None:
            return code
    return _run(
        console, options, resume=resume, out=out, jobs=jobs, scheduler=scheduler, as_json=as_json, places=places
    )


def _run(
    console: Console,
    options: WhyOptions,
    *,
    resume: Path | None,
    out: Path | None,
    jobs: int | None,
    scheduler: str,
    as_json: bool,
    places: Places | None,
) -> int:
    from mccprobe.base.files import remove_dead_drafts
    from mccprobe.bisection.passes.run import Progress
    from mccprobe.build.store import TEMPORARY, disk_errors, write_text
    from mccprobe.cli.trial_lines import TrialLines
    from mccprobe.explain.run import plan_of, run_why, with_bug_report
    from mccprobe.report.render_why import render_why

    with disk_errors(Path(tempfile.gettempdir()), only_full=True, elsewhere=TEMPORARY):
        plan = plan_of(options, cache_directory())
    request = plan.request
    tell_plan(console, plan)
    described = request.describe()
    if resume is not None:
        check_unchanged(resume, described, journal=None)
    root = choose_root(resume, out, request.source.stem)
    lines = TrialLines(console, simulated=request.toolchain.simulated)

    def tell(text: str) -> None:
        lines.stage(lines.mark + text)

    again = f"mccprobe why --resume {shlex.quote(str(root))}"
    with run_session(
        jobs, again, root=root, fresh=resume is None, scheduler=scheduler, tell=console.message
    ) as session:
        remove_dead_drafts(root)
        if resume is None or options.skip_screen:  # a later --resume need not be asked to skip it again
            asked = {"schema_version": RUN_VERSION, "options": options.to_dict(), "request": described}
            write_text(root / "run.json", json_text(asked))
        console.message(one_line(f"run directory: {root}"))
        with disk_errors(root, only_full=True):
            report = run_why(options, plan, root.absolute(), session, cache_directory(), Progress(tell, lines.trial))
        write_text(root / "result.json", json_text(report.to_dict(__version__)))
        if options.wants("report"):
            # it is made from the result that lies there
            report = with_bug_report(report, root.absolute(), cache_directory(), tell)
        document = report.to_dict(__version__)
        write_text(root / "result.json", json_text(document))
        text = render_why(report)
        write_text(root / "report.txt", text)

    def page() -> Page:
        from mccprobe.report.pages.why_page import why_page

        return why_page(document)

    deliver_result(console, places, page, document, text, as_json=as_json)
    return int(report.exit_code)
