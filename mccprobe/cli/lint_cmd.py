"""`mccprobe lint`: suspicious things in an instruction stream and its metadata."""

from __future__ import annotations

from pathlib import Path

import click

from mccprobe.base.console import Console
from mccprobe.cli.listing_options import disassemblers


@click.command("lint", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--target", default="", metavar="ARCH", help="this architecture only (mp_22), where a file has several")
@click.option(
    "--spill-threshold-bytes",
    "--spill-threshold",
    "spill_threshold",
    type=click.IntRange(min=0),
    default=16,
    show_default=True,
    metavar="N",
    help="private memory up to this is no spill",
)
@click.option("--mcc", metavar="PATH", help="the mcc whose llvm-objdump is used")
@click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to use")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/lint.schema.json)")
@click.pass_obj
def lint(
    console: Console,
    file: Path,
    target: str,
    spill_threshold: int,
    mcc: str | None,
    musa_path: str | None,
    as_json: bool,
) -> int:
    """Look for what should not be in a compiler's output, with evidence and certainty.

    Exit 0 if clean, 1 if anything was found. Observations are shown and change no exit code.

    \b
    Example:
      mccprobe lint kernel.s
    """
    from mccprobe.inspection.lint import document, render
    from mccprobe.objects.isa.disassemble import load
    from mccprobe.objects.isa.lint import lint_images
    from mccprobe.objects.isa.lint_rules import RULES
    from mccprobe.oracle.kernel.shipped import refuse_shipped_name

    refuse_shipped_name(file, takes_source=False)
    sources = load(file, disassemblers(mcc, musa_path), target=target)
    results = lint_images(sources, RULES, spill_threshold_bytes=spill_threshold)
    if as_json:
        console.document(document(results, RULES))
    else:
        console.result(render(results))
    return 1 if any(one.findings for one in results) else 0
