"""`mccprobe doctor`: what is here, what a missing part costs, and whether the public facts hold on this SDK."""

from __future__ import annotations

import click

from mccprobe import __version__
from mccprobe.base.console import Console
from mccprobe.base.errors import UsageError
from mccprobe.cli.common import FiniteRange, cache_directory
from mccprobe.cli.pace import Pace
from mccprobe.cli.toolchain_option import toolchain_option

HELP = """What is here, what each missing part costs, and whether this SDK is as mccprobe takes it to be.

The self-test asks the installed mcc every public fact that the code relies on (which jobs it shows, what
its objects and texts look like, which flags it takes, what the device says of itself). Each is confirmed,
contradicted or not checkable here, with the evidence. Without mcc the stand-in is asked, and marked as
such. Exit code 0: nothing is contradicted; 1: something is; 3: there is no SDK to ask.

\b
Examples:
  mccprobe doctor
  mccprobe doctor --mcc /usr/local/musa/bin/mcc --markdown
"""


@click.command("doctor", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@toolchain_option("doctor", "the SDK that the self-test asks")
@click.option("--mcc", metavar="PATH", help="the mcc to use")
@click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to pin")
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteRange(min=1),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="for the whole self-test; what is not asked by then is not checked",
)
@click.option("--markdown", is_flag=True, help="a list to paste into an issue, without private names")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/doctor.schema.json)")
@click.pass_obj
def doctor(
    console: Console,
    /,
    toolchain: str,
    mcc: str | None,
    musa_path: str | None,
    timeout_s: float,
    markdown: bool,
    as_json: bool,
) -> int:
    from mccprobe.doctor.examine import Request, examine
    from mccprobe.report.text.doctor import render, render_markdown
    from mccprobe.targets.mcc.toolchain import MccPaths

    pace = Pace()

    def tell(done: int, of: int, what: str) -> None:
        if done:
            pace.step()
        else:
            pace.begin()
        console.progress("", live=f"self-test {done + 1} of {of}, {pace.left(of - done, about='')}: {what}")

    if as_json and markdown:
        raise UsageError("--json does not go with --markdown", hint="choose one of the two")
    cache = cache_directory()
    found = examine(Request(toolchain, MccPaths(mcc, musa_path), cache, timeout_s), __version__, tell=tell)
    if as_json:
        console.document(found.to_dict())
    elif markdown:
        from mccprobe.explain.bundle.making import names_here
        from mccprobe.report.scrub import Scrubber

        console.result(Scrubber(names_here({"CACHE": cache})).text(render_markdown(found)))
    else:
        console.report(render(found))
        console.message("mccprobe doctor --markdown prints the self-test as a list to paste into an issue")
    return int(found.exit_code)
