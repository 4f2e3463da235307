"""`mccprobe report`: options to one request, one library call, one of four renderings."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mccprobe.base.console import Console, width
from mccprobe.base.errors import UsageError
from mccprobe.cli.collector import no_collection
from mccprobe.cli.common import cache_directory
from mccprobe.cli.html_option import deliver, html_options, page_places
from mccprobe.cli.pace import Pace
from mccprobe.cli.toolchain_option import toolchain_option
from mccprobe.targets.mcc.architecture import DEFAULT_ARCH

if TYPE_CHECKING:
    from mccprobe.inspection.resources import ResourceReport
    from mccprobe.report.pages.blocks import Page

DEPTH_OF_KERNELS = 2  # of the document

HELP = """Registers, shared memory, spills, instructions and occupancy of each kernel.

FILE is anything that mcc or clang made (object, bundle, assembly text, listing, host program), a .mu
or .cu source, a kernel folder or the name of a shipped kernel. Without mcc a shipped kernel is compiled for another
GPU (amdgcn), and every line says so.

\b
Examples:
  mccprobe report gemm --toolchain amdgcn --compare gemm
  mccprobe report kernel.o --block-size 512
"""


@click.command("report", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--block-size", type=click.IntRange(1, 1 << 20), metavar="N", help="threads of a block, for occupancy")
@click.option(
    "--spill-threshold-bytes",
    type=click.IntRange(0),
    default=16,
    show_default=True,
    metavar="N",
    help="private memory up to this is no spill",
)
@click.option("--no-instructions", is_flag=True, help="leave them uncounted: no disassembler is run")
@click.option("--compare", metavar="KERNEL", help="set the published figures of a shipped kernel beside it")
@toolchain_option("report", "compiles a source")
@click.option("--arch", default=DEFAULT_ARCH, show_default=True, metavar="ARCH", help="target of a compile with mcc")
@click.option("--compile-args", metavar="ARGS", help="arguments of that compile [default: kernel.toml, or -O3]")
@click.option("--mcc", metavar="PATH", help="the mcc to use")
@click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to pin")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/report.schema.json)")
@click.option("--csv", "as_csv", is_flag=True, help="a line of values for each kernel")
@click.option("--markdown", "as_markdown", is_flag=True, help="tables to paste")
@html_options
@click.pass_obj
@no_collection()
def report(
    console: Console,
    /,
    files: tuple[Path, ...],
    block_size: int | None,
    spill_threshold_bytes: int,
    no_instructions: bool,
    compare: str | None,
    toolchain: str,
    arch: str,
    compile_args: str | None,
    mcc: str | None,
    musa_path: str | None,
    as_json: bool,
    as_csv: bool,
    as_markdown: bool,
    html: Path | None,
    figures: Path | None,
) -> int:
    from mccprobe.build.device_source import SourceOptions
    from mccprobe.inspection.resources import ReportRequest, report_on
    from mccprobe.objects.model.resources import Options
    from mccprobe.oracle.kernel.shipped import file_or_shipped, refuse_shipped_name
    from mccprobe.oracle.kernel.spec import shipped_kernel
    from mccprobe.report import render_resources as render
    from mccprobe.report.json_stream import print_json
    from mccprobe.targets.mcc.toolchain import MccPaths

    if as_json + as_csv + as_markdown > 1:
        raise UsageError("--json, --csv and --markdown do not go together", hint="choose one")
    other = "--json" if as_json else "--csv" if as_csv else "--markdown" if as_markdown else ""
    places = page_places(html, figures, also_stdout=other)
    source = SourceOptions(toolchain, MccPaths(mcc, musa_path), arch, _arguments(compile_args), cache_directory())
    kernels_and_files = tuple(map(file_or_shipped, files))
    for file in kernels_and_files:
        refuse_shipped_name(file, takes_source=True)
    request = ReportRequest(
        kernels_and_files,
        Options(block_size, spill_threshold_bytes),
        source,
        shipped_kernel(compare) if compare is not None else None,
        count_instructions=not no_instructions,
        functions=_drawn() if places is not None and not no_instructions else 0,
    )
    pace = Pace()

    def tell(done: int, of: int, what: str) -> None:
        if done:
            pace.step()
        if of > 1:
            console.progress("", live=f"file {done + 1} of {of}, {pace.left(of - done, about='')}: {what}")

    found = report_on(request, tell)
    for told in found.told:
        console.message(told)

    def show() -> None:
        if as_json:
            print_json(console, found.document(), DEPTH_OF_KERNELS)
        elif as_csv or as_markdown:
            for warning in found.warnings:
                console.message(f"warning: {warning}")
            console.result(render.render_csv(found) if as_csv else render.render_markdown(found))
        elif console.draws_tables():
            console.result(render.render_terminal(found, width(), color=console.colored(sys.stdout)))
        else:
            console.result(render.render_text(found))

    deliver(console, places, lambda: _page(found), show, as_json=as_json)
    return 0


def _drawn() -> int:
    from mccprobe.report.pages.report_page import KERNELS_DRAWN

    return KERNELS_DRAWN


def _page(found: ResourceReport) -> Page:
    from mccprobe import __version__
    from mccprobe.report.pages.report_page import report_page

    return report_page(found, __version__)


def _arguments(text: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text)) if text is not None else ()
    except ValueError as error:
        raise UsageError(f"--compile-args: {error}", hint="quote it as a shell would") from error
