"""`mccprobe reduce`: the source of a finished run made small, with the same pass still at fault."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mccprobe import __version__
from mccprobe.base.console import Console, number_of, visible
from mccprobe.base.errors import CannotReduce, ExitCode, Interrupted
from mccprobe.cli.common import cache_directory
from mccprobe.cli.pace import duration

if TYPE_CHECKING:
    from mccprobe.explain.bundle.run import FinishedRun
    from mccprobe.explain.deadline import Deadline
    from mccprobe.report.record import Culprit

HELP = """A smaller source with the same fault, from the run directory of `mccprobe why` or `bisect`.

C-Vise (Debian: cvise) for source, llvm-reduce for IR. Every variant must still be wrong by the same pass on
the same function, right in the reference, and clean under the sanitizers and warnings that the untouched
source passes. What is found so far is kept: the same command goes on from there.

\b
Examples:
  mccprobe reduce mccprobe-out/test-20261130-020000 --budget 15m
  mccprobe bug-report mccprobe-out/test-20261130-020000
"""


@click.command("reduce", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--budget", metavar="TIME", help="stop after this long with the best so far (90s, 15m, 1h)")
@click.option("--jobs", type=click.IntRange(1), help="variants at once (default: CPUs)")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/reduce.schema.json)")
@click.pass_obj
def reduce(console: Console, /, run: Path, budget: str | None, jobs: int | None, as_json: bool) -> int:
    from mccprobe.explain.bundle.run import open_run
    from mccprobe.explain.deadline import Deadline
    from mccprobe.explain.options import parse_budget
    from mccprobe.report.record import Culprit

    finished = open_run(run)
    finished.require_same_source()
    found = finished.culprit
    if not found:
        raise CannotReduce(f"{run}: no pass is at fault, so there is nothing that must stay", hint="see its report.txt")
    culprit = Culprit(
        found["pass"],
        found["pass_argument"],
        found["function"],
        found["function_symbol"],
        found["function_from"],
        found["execution"],
        found["total"],
    )
    deadline = Deadline(parse_budget(budget) if budget else None)
    with contextlib.chdir(finished.where if finished.where.is_dir() else Path.cwd()):
        # the options hold names as the user gave them, there
        return _reduce(console, finished, culprit, deadline, jobs=jobs, again=run, as_json=as_json)


def _reduce(
    console: Console,
    finished: FinishedRun,
    culprit: Culprit,
    deadline: Deadline,
    *,
    jobs: int | None,
    again: Path,
    as_json: bool,
) -> int:
    from mccprobe.base import process
    from mccprobe.bisection.passes.plan import make_plan
    from mccprobe.explain.bundle.run import REDUCED
    from mccprobe.explain.reduce.run import reduce_source
    from mccprobe.report.why_record import StepState

    request = make_plan(finished.rebuilt_options(), cache_directory(), finished.inherited).request
    if request.toolchain.simulated:
        console.always("sim: everything below is SIMULATED; the fault is planted by mccprobe, not found in mcc")

    def tell(text: str) -> None:
        left = deadline.left_s
        console.progress(text, live=text if left == math.inf else f"{text}, at most {duration(left)} left")

    try:
        made = reduce_source(
            request,
            culprit,
            folder=finished.root / REDUCED,
            jobs=jobs or len(os.sched_getaffinity(0)),
            tell=tell,
            deadline=deadline,
        )
    except (KeyboardInterrupt, Interrupted) as error:
        command = f"mccprobe reduce {shlex.quote(str(again))}"
        raise Interrupted("interrupted; the best so far is kept", hint=f"go on with: {command}") from error
    finally:
        process.stop_all()
        process.allow_starts()
    if as_json:
        console.document({**made.to_dict(__version__), "simulated": request.toolchain.simulated})
    else:
        mark = "  [sim]" if request.toolchain.simulated else ""
        lines = [
            f"{number_of(made.lines_before, 'line')}, {made.bytes_before} bytes -> "
            f"{number_of(made.lines_after, 'line')}, {made.bytes_after} bytes ({made.state.value}){mark}",
            f"  file      {made.file or 'nothing smaller was found'}",
            f"  culprit   {made.title} on {made.function or 'a function that no log names'}: "
            + (f"execution {made.execution} of the result" if made.verified else "not found again")
            + mark,
            f"  screened  {', '.join(made.screens) or 'nothing'}",
            *(f"  note      {note}" for note in made.notes),
        ]
        console.result(visible("\n".join(lines)))
    if made.state is StepState.BUDGET:
        return ExitCode.BUDGET
    return ExitCode.DONE if made.verified and made.file else ExitCode.ANSWER_IS_NO
