"""`mccprobe disasm`: the instruction stream of a listing or an object."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from mccprobe.base.console import Console
from mccprobe.base.errors import UsageError
from mccprobe.cli.listing_options import disassemblers

DEPTH_OF_INSTRUCTIONS = 6  # of the document: images, image, functions, function, stream


@click.command("disasm", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--function", "function", metavar="NAME", help="this function only")
@click.option("--target", default="", metavar="ARCH", help="this architecture only (mp_22), where a file has several")
@click.option("--words", is_flag=True, help="by 12-byte words with their slots (MTGPU listings of that view)")
@click.option("--loops", is_flag=True, help="the loops instead of the stream")
@click.option(
    "--table",
    metavar="TABLE.json",
    type=click.Path(path_type=Path),
    help="name instructions of its target by this learned table (mccprobe isa learn)",
)
@click.option("--mcc", metavar="PATH", help="the mcc whose llvm-objdump is used")
@click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to use")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/disasm.schema.json)")
@click.pass_obj
def disasm(
    console: Console,
    file: Path,
    function: str | None,
    target: str,
    words: bool,
    loops: bool,
    table: Path | None,
    mcc: str | None,
    musa_path: str | None,
    as_json: bool,
) -> int:
    """Show the instruction stream: pipes, loops, sizes.

    FILE is a listing (mcc -S, llvm-objdump -d, nvdisasm -hex) or an object; what it is, is seen from
    its content. Where no disassembler reads an object, a table learned for its target does, if it
    lies at MCCPROBE_TABLES/TARGET.json (default folder: ~/.local/share/mccprobe/tables); MTGPU objects
    are otherwise cut at bit 31 and read by the open table: classes of instructions with their certainty.

    \b
    Examples:
      mccprobe disasm kernel.s
      mccprobe disasm kernel.o --words --function gemm
      mccprobe disasm kernel.o --table mp_22.json
    """
    from mccprobe.inspection.disasm import document, view
    from mccprobe.objects.isa.by_table import tables_folder
    from mccprobe.objects.isa.disassemble import load
    from mccprobe.oracle.kernel.shipped import refuse_shipped_name
    from mccprobe.report.disasm_text import render
    from mccprobe.report.json_stream import print_json

    refuse_shipped_name(file, takes_source=False)
    tools = replace(disassemblers(mcc, musa_path), table=table, tables=tables_folder())
    views = [view(source, function or "") for source in load(file, tools, target=target)]
    if function and not any(one.functions for one in views):
        names = sorted({item.name for one in views for item in one.source.listing.functions})
        raise UsageError(f"{file}: no function {function}", hint="it has: " + ", ".join(names[:20]) if names else "")
    if as_json:
        print_json(console, document(views, with_words=words), DEPTH_OF_INSTRUCTIONS)
    else:
        console.result(render(views, words=words, loops=loops))
    return 0
