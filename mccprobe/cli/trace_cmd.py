"""`mccprobe trace`: run a program under the launch recorder."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from mccprobe.base.console import Console, visible
from mccprobe.base.errors import UsageError
from mccprobe.cli.common import FiniteRange, cache_directory

HELP = """Run a program and record its kernel launches and the modules that it loads.

The program's input, output and exit status stay its own; the summary goes to standard error, the record to DIR:
launches.jsonl, and the bytes of each module for `mccprobe report`. With --json the document takes standard output,
and what the program prints there goes to DIR/stdout.

\b
Examples:
  mccprobe trace -o trace -- ./app --size 8192
  mccprobe trace --sim-link
"""


@click.command("trace", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="folder of the record [default: a new one below mccprobe-out]",
)
@click.option("--timeout", type=FiniteRange(0), default=0.0, metavar="S", help="of the program; 0 for none")
@click.option("--sim-link", is_flag=True, help="only print the link arguments for a traceable program of the stand-in")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/trace.schema.json)")
@click.pass_obj
def trace(
    console: Console, command: tuple[str, ...], out: Path | None, timeout: float, sim_link: bool, as_json: bool
) -> int:
    from mccprobe.base.paths import exists
    from mccprobe.build.store import disk_errors
    from mccprobe.report.text.trace import render_trace
    from mccprobe.targets.llvm.locate import demangle
    from mccprobe.targets.sim.build import SHARED_RUNTIME
    from mccprobe.targets.sim.toolchain import sim_toolchain
    from mccprobe.tuning.trace.read import RECORD_FILE
    from mccprobe.tuning.trace.run import TraceRequest, sim_link_arguments
    from mccprobe.tuning.trace.run import trace as run_trace

    if sim_link:
        if command:
            raise UsageError("--sim-link prints link arguments and runs nothing", hint="leave the program out")
        sdk = sim_toolchain(cache_directory()).sdk
        assert sdk is not None  # a toolchain that was built has one
        console.result(" ".join(sim_link_arguments(sdk.root, SHARED_RUNTIME)))
        return 0
    if not command:
        raise UsageError("no program to run", hint="mccprobe trace -- ./app ARGUMENTS")
    folder = out
    with disk_errors(out or Path("mccprobe-out")):
        if folder is None:
            Path("mccprobe-out").mkdir(exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix="trace-", dir="mccprobe-out"))
    if exists(folder / RECORD_FILE):
        raise UsageError(f"{folder} holds a record already", hint="choose another folder with -o DIR")
    sys.stdout.flush()
    traced = run_trace(TraceRequest(command, folder, cache_directory(), as_json, timeout))
    if traced.simulated:
        console.always("sim: the launches below are of mccprobe's stand-in, an x86-64 emulation")
    if as_json:
        console.document(traced.to_dict())
    else:
        console.message(visible(render_trace(traced, demangle)).rstrip("\n"))
    return traced.status
