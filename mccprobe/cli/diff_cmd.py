"""`mccprobe diff`: two listings or objects, aligned as a scheduler would change them."""

from __future__ import annotations

from pathlib import Path

import click

from mccprobe.base.console import Console
from mccprobe.cli.listing_options import disassemblers

SHOWN = 20  # differing instructions of a function: a screen


@click.command("diff", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option("--function", "function", metavar="NAME", help="this function only")
@click.option("--target", default="", metavar="ARCH", help="this architecture only (mp_22)")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=SHOWN,
    show_default=True,
    metavar="N",
    help="differences shown of a function; 0 for all",
)
@click.option("--mcc", metavar="PATH", help="the mcc whose llvm-objdump is used")
@click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to use")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/diff.schema.json)")
@click.pass_obj
def diff(
    console: Console,
    a: Path,
    b: Path,
    function: str | None,
    target: str,
    limit: int,
    mcc: str | None,
    musa_path: str | None,
    as_json: bool,
) -> int:
    """Compare two objects or listings: resources, mix, moved and changed instructions.

    Exit 0 if there is no difference, 1 if there is one. Marks: m moved, r other registers
    (consistently), M both, c other control field, ! changed, + added, - removed.

    \b
    Example:
      mccprobe diff good.s bad.s --function gemm
    """
    from mccprobe.inspection.diff import document, render
    from mccprobe.objects.isa.diff import diff_images
    from mccprobe.objects.isa.disassemble import load

    tools = disassemblers(mcc, musa_path)
    changes = diff_images(load(a, tools, target=target), load(b, tools, target=target), function or "")
    if as_json:
        console.document(document(changes, str(a), str(b)))
    else:
        shown = limit or max((len(item.entries) for one in changes for item in one.functions), default=0)
        console.result(render(changes, str(a), str(b), limit=shown))
    return 0 if all(one.equal for one in changes) else 1
