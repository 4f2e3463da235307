"""`mccprobe bug-report`: a finished run to a folder and an archive that can be sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mccprobe import __version__
from mccprobe.base.console import Console
from mccprobe.cli.common import cache_directory
from mccprobe.inspection.lines import joined, one_line

if TYPE_CHECKING:
    from mccprobe.report.scrub import Removed

HELP = """A report that stands alone, from the run directory of `mccprobe why` or `bisect`.

A folder and a .tar.gz: the text, repro.sh (the whole program in one script; exit 0: bug present, 1: gone,
2: cannot tell), the source, bitcode before the first optimisation, every command, the journal. Home
folders, users, hosts and values of the environment are taken out; the list is shown before anything is
written.

\b
Examples:
  mccprobe bug-report mccprobe-out/gemm-20261130-015300 --style vendor --lang zh
  mccprobe bug-report mccprobe-out/test-20261130-020000 -o report --dry-run
"""


@click.command("bug-report", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--style",
    type=click.Choice(["llvm", "gcc", "vendor"]),
    default="llvm",
    show_default=True,
    help="LLVM's tracker, mail in plain text, or a vendor's desk",
)
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="of the text")
@click.option("--no-scrub", is_flag=True, help="leave private names in")
@click.option("--dry-run", is_flag=True, help="show what would be removed; write nothing")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="folder [default: RUN/bug-report]")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/bug-report.schema.json)")
@click.pass_obj
def bug_report(
    console: Console,
    /,
    run: Path,
    style: str,
    lang: str,
    no_scrub: bool,
    dry_run: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    from mccprobe.explain.bundle.make import BundleChoices, write_bug_report

    def show(removed: Sequence[Removed]) -> None:
        if no_scrub:
            console.always("--no-scrub: private names stay in the report")
        elif not removed:
            console.message("nothing private was found")
        else:
            console.always("removed before writing (this list is not part of the report):")
            for item in removed:
                console.always(one_line(f"  {item.describe()}"))

    written = write_bug_report(
        run,
        out or run / "bug-report",
        BundleChoices(style, lang, not no_scrub, dry_run),
        cache=cache_directory(),
        tell=lambda text: console.message(one_line(text)),
        show=show,
    )
    for name in written.left_out:
        console.always(one_line(f"left out, because private names stand in it: {name}"))
    if as_json:
        console.document(written.to_dict(__version__))
        return 0
    mark = "SIMULATED FAULT (sim): " if written.simulated else ""
    verified = {0: "shows the bug here", 1: "says that the bug is gone", None: "was not run"}
    lines = [
        f"{mark}{written.title}",
        f"  folder    {written.folder}" + ("  (not written: --dry-run)" if dry_run else ""),
        f"  archive   {written.archive}",
        f"  repro.sh  {verified.get(written.repro_exit, 'cannot tell')}: {written.repro_text}",
    ]
    console.result(joined(lines))
    return 0
