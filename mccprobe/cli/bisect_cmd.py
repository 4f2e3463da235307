"""`mccprobe bisect`: options to one record, one library call, the report."""

from __future__ import annotations

import dataclasses
import json
import shlex
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from mccprobe import __version__
from mccprobe.bisect_run.options import BisectOptions, read_recipe, read_run_options
from mccprobe.cli.common import cache_directory
from mccprobe.console import Console, json_text
from mccprobe.errors import Interrupted, JournalUnreadable, UsageError

DEFAULT_OUT = "mccprobe-out"

HELP = """Find the pass execution that makes a program wrong, and say what is confirmed.

FILE is the source to bisect (C, C++, LLVM IR, .mu, or a kernel folder); without it the shipped
GEMM is taken. What follows -- goes to the compiler: arguments, further sources, objects and
libraries. Only FILE is bisected; the rest is built once.

\b
Examples:
  mccprobe bisect --flag internal-regs-ra
  mccprobe bisect prog.c --compiler clang-14 --flag -enable-newgvn -- -O3 -lm
  mccprobe bisect prog.c --compiler clang-16 --reference "-O1" -- -O2
  mccprobe bisect prog.c --compiler clang-14 --flag -enable-ipra --oracle './check.sh {exe}' -- -O2
"""


@click.command("bisect", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", required=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--flag", "flags", multiple=True, metavar="NAME", help="catalogue name, NAME=VALUE, or as it stands")
@click.option("--toolchain", type=click.Choice(["auto", "mcc", "sim", "clang"]), default="auto", show_default=True)
@click.option("--compiler", metavar="PATH", help="the clang to use")
@click.option("--mcc", metavar="PATH", help="the mcc to use")
@click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to pin")
@click.option("--reference", metavar="ARGS", help="compile arguments of the right build (-l -L -Wl, -I -D stay)")
@click.option("--reference-exact", is_flag=True, help="--reference replaces all arguments")
@click.option("--oracle", metavar="CMD", help="judge by CMD ({exe}, or appended): 0 good, 1-124 bad, 125 skip")
@click.option("--run-args", metavar="ARGS", help="arguments of the program")
@click.option("--run-in", metavar="DIR", help="folder that programs run in (default: an empty one for each run)")
@click.option("--case", metavar="NAME|MxNxK", help="case of a kernel's own host program")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="inputs and spot checks")
@click.option("--arch", default="", metavar="ARCH", help="device architecture to bisect, of several")
@click.option("--count", type=click.IntRange(2), default=2, show_default=True, help="runs of each end")
@click.option("--spot-checks", type=click.IntRange(0), default=4, show_default=True, help="extra objects to test")
@click.option("--confidence", type=click.FloatRange(0.5, 0.999999), default=0.99, show_default=True)
@click.option("--max-runs", type=click.IntRange(1), help="budget of oracle runs")
@click.option("--profile", is_flag=True, help="test every distinct object and list every edge")
@click.option("--jobs", type=click.IntRange(1), help="compiles at once (default: CPUs)")
@click.option("--timeout", type=click.FloatRange(0.1), default=60.0, show_default=True, metavar="S", help="of one run")
@click.option("--compile-timeout", type=click.FloatRange(1), default=300.0, show_default=True, metavar="S")
@click.option("--bad-if", multiple=True, type=click.Choice(["timeout", "crash"]), help="BAD, not UNRESOLVED")
@click.option("--no-fixed-addresses", is_flag=True, help="leave address randomisation on for compiles")
@click.option("--recipe", type=click.Path(path_type=Path), help="take the options from a recipe (bisect/*.toml)")
@click.option("--resume", type=click.Path(path_type=Path), metavar="RUN", help="go on with this run")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/bisect.schema.json)")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="run directory")
@click.pass_context
def bisect(
    ctx: click.Context, /, recipe: Path | None, resume: Path | None, as_json: bool, out: Path | None, jobs: int | None,
    no_fixed_addresses: bool, **values: Any,
) -> int:  # fmt: skip
    console: Console = ctx.obj
    options = _options(ctx, values, recipe, resume, fixed_addresses=not no_fixed_addresses)
    return _run(console, options, resume=resume, out=out, jobs=jobs, as_json=as_json)


def _options(
    ctx: click.Context, values: dict[str, Any], recipe: Path | None, resume: Path | None, *, fixed_addresses: bool
) -> BisectOptions:
    given = {
        name: value for name, value in values.items()
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }  # fmt: skip
    if values["file"] is not None and values["file"].startswith("-"):
        # everything stood behind --: there is no FILE, the shipped kernel takes the arguments
        given["args"] = (values["file"], *values["args"])
        given.pop("file", None)
    given = {name: tuple(value) if isinstance(value, list | tuple) else value for name, value in given.items()}
    if not fixed_addresses:
        given["fixed_addresses"] = False
    if recipe is not None and resume is not None:
        raise UsageError("--recipe and --resume do not go together")
    if resume is not None:
        if given:
            raise UsageError(
                "--resume takes every option from the run: " + ", ".join(sorted(given)) + " cannot be changed",
                hint="--jobs, --json and the like may be given",
            )
        return read_run_options(_run_document(resume), resume / "run.json")
    base = read_recipe(recipe) if recipe is not None else BisectOptions()
    return dataclasses.replace(base, **given)


def _run_document(root: Path) -> Any:
    path = root / "run.json"
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise JournalUnreadable(
            f"{path}: {error.strerror or error}", hint="--resume takes the run directory that the first run named"
        ) from error
    except ValueError as error:
        raise JournalUnreadable(f"{path}: not JSON: {error}") from error


def _run(
    console: Console, options: BisectOptions, *, resume: Path | None, out: Path | None, jobs: int | None, as_json: bool
) -> int:
    from mccprobe import process
    from mccprobe.bisect_run.plan import make_plan
    from mccprobe.bisect_run.run import Progress, run_bisection
    from mccprobe.cli.trial_lines import TrialLines
    from mccprobe.compilation.executor import LocalExecutor
    from mccprobe.compilation.journal import Journal
    from mccprobe.compilation.store import RunDirectory, disk_errors, new_run_root
    from mccprobe.report.render_text import render_text

    with disk_errors(Path(tempfile.gettempdir()), only_full=True):
        plan = make_plan(options, cache_directory())
    request = plan.request
    for sentence in plan.told:
        console.always(sentence)
    if request.toolchain.simulated:
        console.always("sim: everything below is SIMULATED; the fault is planted by mccprobe, not found in mcc")
    described = request.describe()
    if resume is not None:
        _check_unchanged(resume, described)
        root = resume
    elif out is not None:
        _check_free(out)
        root = out
    else:
        root = new_run_root(Path(DEFAULT_OUT), request.source.stem, time.strftime("%Y%m%d-%H%M%S"))
    run = RunDirectory(root)
    journal = Journal(run.journal)
    run.clear_trials()
    if resume is None:
        asked = {"schema_version": 1, "options": options.to_dict(), "request": described}
        run.write_text("run.json", json_text(asked))
    executor = LocalExecutor(jobs)
    lines = TrialLines(console, simulated=request.toolchain.simulated)
    console.message(f"run directory: {root}")
    try:
        with disk_errors(root, only_full=True):
            report = run_bisection(request, run, journal, executor, Progress(lines.stage, lines.trial))
    except (KeyboardInterrupt, Interrupted) as error:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a second one must not cut the clean-up short
        again = f"mccprobe bisect --resume {shlex.quote(str(root))}"
        raise Interrupted("interrupted", hint=f"go on with: {again}") from error
    finally:
        process.stop_all()  # compiles that were started ahead of need
        executor.shutdown(cancel=True)
        run.clear_trials()
        journal.close()
        process.allow_starts()
    document = report.to_dict(__version__)
    run.write_text("result.json", json_text(document))
    text = render_text(report)
    run.write_text("report.txt", text)
    if as_json:
        console.document(document)
    else:
        from mccprobe.console import visible

        console.result(visible(text))
    return int(report.exit_code)


def _check_free(out: Path) -> None:
    """A run gets a folder of its own: what lies in it would be mixed with the user's files."""
    from mccprobe.compilation.store import disk_errors

    with disk_errors(out):
        if (out / "journal.jsonl").exists():
            raise UsageError(
                f"{out} holds a run already",
                hint=f"go on with it: --resume {shlex.quote(str(out))}, or choose another -o",
            )
        if out.is_dir() and any(out.iterdir()):
            raise UsageError(f"{out} is not empty", hint="-o takes a folder that is new or empty")


def _check_unchanged(root: Path, described: dict[str, Any]) -> None:
    from mccprobe.bisect_run.request import changed_keys

    if not (root / "journal.jsonl").is_file():
        raise JournalUnreadable(f"{root} holds no journal.jsonl", hint="nothing is left to go on with; start a new run")
    old = _run_document(root).get("request")
    if not isinstance(old, dict):
        raise JournalUnreadable(f"{root / 'run.json'}: holds no request of a bisection", hint="start a new run")
    changed = changed_keys(old, described)
    if changed:
        raise JournalUnreadable(
            f"{root} cannot be resumed: {', '.join(changed)} changed since it was started",
            hint="its journal holds answers of another build; start a new run",
        )
