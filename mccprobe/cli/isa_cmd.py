"""`mccprobe isa`: learn encodings from a disassembler's listings, show them, decode by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console, number_of
from mccprobe.cli.common import FiniteRange
from mccprobe.inspection.lines import joined, one_line

CONTEXT = {"help_option_names": ["-h", "--help"]}


@click.group("isa", context_settings=CONTEXT)
def isa() -> None:
    """Learn instruction encodings from a disassembler, decode without it.

    \b
    Example:
      mccprobe isa learn --from kernels.lst -o gfx908.json
    """


@isa.command("learn", context_settings=CONTEXT)
@click.option("--from", "first", metavar="LISTING", required=True, help="text of llvm-objdump -d or nvdisasm -hex")
@click.argument("more", metavar="[LISTING]...", nargs=-1)
@click.option("-o", "--output", metavar="TABLE.json", required=True, help="where the table goes")
@click.option("--word-bytes", metavar="N|auto", default="auto", help="bytes of a whole word")
@click.option("--target", metavar="NAME", default="", help="target of the listings, where they do not say it")
@click.option("--tool", metavar="TEXT", default="", help="name and version of the disassembler, for the record")
@click.option("--probe", metavar="DISASSEMBLER", default="", help="ask it about words one bit away from known ones")
@click.option("--probe-object", metavar="FILE", help="an object of the target, its code is exchanged for the probes")
@click.option("--object", "objects", metavar="FILE", multiple=True, help="MTGPU object to compare the two tables on")
@click.option("--probe-seconds", metavar="S", type=FiniteRange(1), default=600.0, help="stop after S seconds")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/isa.schema.json)")
@click.pass_obj
def learn(
    console: Console,
    first: str,
    more: tuple[str, ...],
    output: str,
    word_bytes: str,
    target: str,
    tool: str,
    probe: str,
    probe_object: str | None,
    objects: tuple[str, ...],
    probe_seconds: float,
    as_json: bool,
) -> int:
    """Learn which bits say the mnemonic, from listings with bytes and text.

    For MTGPU the result is compared with mccprobe's own open table, on the listings and on each --object;
    where the two disagree, both readings are shown.

    \b
    Example:
      mccprobe isa learn --from *.lst -o gfx908.json --probe llvm-objdump-14 --probe-object a.o
    """
    from mccprobe.base.errors import UsageError
    from mccprobe.objects.isa.learn_files import learn_files
    from mccprobe.objects.isa.mtgpu.agree import lines_of, with_object
    from mccprobe.objects.isa.table_file import write_table

    if word_bytes != "auto" and (not word_bytes.isdecimal() or not 1 <= int(word_bytes) <= 64):
        raise UsageError(f"--word-bytes {word_bytes}: neither auto nor a number from 1 to 64")
    if bool(probe) != bool(probe_object):
        raise UsageError("--probe and --probe-object go together", hint="the probes are put into a real object's code")
    learned = learn_files(
        [Path(name) for name in (first, *more)],
        word_bytes=None if word_bytes == "auto" else int(word_bytes),
        target=target,
        tool=tool,
        disassembler=probe,
        template=_bytes(probe_object),
        budget_s=probe_seconds,
        progress=console.progress,
    )
    table = learned.table
    agreements = [learned.open_table] if learned.open_table is not None else []
    agreements += [with_object(table, Path(name)) for name in objects]
    write_table(Path(output), table, __version__)
    summary = table.summary()
    held_out = _held_out(table.held_out)
    if as_json:
        console.document(
            {
                "schema_version": 1,
                "tool_version": __version__,
                "status": "learned",
                "table": output,
                "summary": summary,
                "instructions": learned.instructions,
                "without_bytes": learned.without_bytes,
                "held_out": held_out,
                "probes": dict(table.probes) or None,
                "open_table": [one.to_dict() for one in agreements],
            }
        )
        return 0
    lines = [
        f"{output}: {number_of(summary['mnemonics'], 'mnemonic')}, {number_of(summary['rows'], 'row')} "
        f"from {number_of(learned.instructions, 'instruction')}",
        f"  words of {table.word} bytes, slots {table.slots}, instructions step by {table.unit}",
        *(f"  assumed: {text}" for text in table.assumptions),
    ]
    if held_out:
        lines.append(
            f"  held out (before probing): {held_out['words']} new words, {held_out['answered']} named, "
            f"{held_out['wrong']} wrong; certain {held_out['certain']}, {held_out['certain_wrong']} wrong; "
            f"{held_out['unseen']} of unseen mnemonics, {held_out['unseen_named']} of them named"
        )
    if table.probes:
        lines.append(
            f"  probed: {table.probes['asked']} words, {table.probes['decoded']} decoded, the disassembler died on "
            f"{table.probes['killers']}{'' if table.probes['complete'] else '; stopped by --probe-seconds'}"
        )
    lines += [line for one in agreements for line in lines_of(one)]
    lines += [f"  conflict: {word:0{2 * size}x} is {' and '.join(names)}" for size, word, names in table.conflicts[:20]]
    console.result(joined(lines))
    return 0


def _bytes(name: str | None) -> bytes:
    from mccprobe.base.errors import InputError
    from mccprobe.base.paths import read_file

    try:
        return read_file(name) if name else b""
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from error


def _held_out(held_out: Any) -> dict[str, int] | None:
    from dataclasses import asdict

    return asdict(held_out) if held_out else None


@isa.command("show", context_settings=CONTEXT)
@click.argument("table", metavar="TABLE")
@click.argument("mnemonic", required=False)
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/isa.schema.json)")
@click.pass_obj
def show(console: Console, table: str, mnemonic: str | None, as_json: bool) -> int:
    """Show a table, or the encodings of one mnemonic with their confidence.

    \b
    Example:
      mccprobe isa show gfx908.json v_fma_f32
    """
    from mccprobe.objects.isa.table_file import read_table

    content = read_table(Path(table))
    rows = [row for row in content.rows if row.mnemonic == mnemonic]
    if as_json:
        console.document(
            {
                "schema_version": 1,
                "tool_version": __version__,
                "status": "table",
                "table": table,
                "summary": content.summary(),
                "held_out": _held_out(content.held_out),
                "mnemonic": mnemonic,
                "rows": [
                    {
                        "form": None if row.form is None else list(row.form),
                        "size": row.size,
                        "slot": row.slot,
                        "samples": row.samples,
                        "probed": row.probed,
                        "confidence": row.confidence.name.lower(),
                        "pipe": content.pipes.get(row.mnemonic),
                        "bits": _pattern(row.size, row.relaxed, row.value),
                    }
                    for row in rows
                ],
            }
        )
        return 0 if rows or mnemonic is None else 1
    if mnemonic is None:
        lines = [f"{key.replace('_', ' '):<14} {value}" for key, value in content.summary().items()]
        for source in content.sources[:20]:
            size = number_of(source.instructions, "instruction")
            lines.append(f"source         {source.name}  {source.format}  {size}")
        lines += [f"source         {len(content.sources) - 20} more"] * (len(content.sources) > 20)
        lines.append("mnemonics      " + " ".join(sorted({row.mnemonic for row in content.rows})))
        console.result(joined(lines))
        return 0
    if not rows:
        console.result(one_line(f"{mnemonic}: not in this table; no name is guessed"))
        return 1
    lines = [f"{mnemonic}  pipe {content.pipes.get(mnemonic, 'not known')}"]
    for row in rows:
        form = "any form" if row.form is None else ", ".join(row.form) or "no operands"
        seen = f"{number_of(row.samples, 'word')}" + (f", {row.probed} of them probed" if row.probed else "")
        lines.append(f"  {_pattern(row.size, row.relaxed, row.value)}  {row.confidence.name.lower():<8} {seen}  {form}")
    console.result(joined(lines))
    return 0


def _pattern(size: int, mask: int, value: int) -> str:
    """Bits from the highest down, a dot for each that is no part of the opcode."""
    bits = "".join(str(value >> n & 1) if mask >> n & 1 else "." for n in reversed(range(8 * size)))
    return " ".join(bits[n : n + 8] for n in range(0, len(bits), 8))


@isa.command("decode", context_settings=CONTEXT)
@click.argument("table", metavar="TABLE")
@click.argument("file", metavar="FILE")
@click.option("--target", metavar="NAME", default="", help="only images of this target")
@click.option("--counts", is_flag=True, help="only the counts of each function")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/isa.schema.json)")
@click.pass_obj
def decode(console: Console, table: str, file: str, target: str, counts: bool, as_json: bool) -> int:
    """Name the instructions of a device object by a table; unknown stays unknown.

    \b
    Example:
      mccprobe isa decode gfx908.json kernel.o --counts
    """
    from mccprobe.objects.isa.decode_file import decode_file
    from mccprobe.objects.isa.table_file import read_table
    from mccprobe.report.json_stream import print_json

    functions, warnings = decode_file(read_table(Path(table)), Path(file), target)
    documents: list[dict[str, Any]] = []
    lines = []
    for function in functions:
        count = function.stream.count()
        documents.append(
            {
                "image": function.image,
                "target": function.target or None,
                "name": function.name,
                "address": function.address,
                "steps": count.total,
                "states": count.states,
                "confidence": count.confidence,
                "pipes": count.pipes,
                "instructions": None
                if counts
                else [
                    {
                        "address": one.address,
                        "bytes": one.data.hex(),
                        "mnemonic": one.mnemonic or None,
                        "pipe": one.pipe or None,
                        "state": one.state,
                        "confidence": one.confidence.name.lower(),
                        "rivals": list(one.rivals),
                    }
                    for one in function.stream
                ],
            }
        )
        if as_json:
            continue
        states = ", ".join(f"{number} {state}" for state, number in count.states.items() if number)
        lines.append(f"{function.name}  {function.target}  {number_of(count.total, 'step')}: {states}")
        lines.append("  pipes: " + ", ".join(f"{pipe} {number}" for pipe, number in count.pipes.items()))
        lines.append("  names: " + ", ".join(f"{number} {level}" for level, number in count.confidence.items()))
        for one in () if counts else function.stream:
            name = one.mnemonic or (f"({' or '.join(one.rivals)})" if one.rivals else f"<{one.state}>")
            level = one.confidence.name.lower() if one.mnemonic else ""
            text = f"  {one.address:08x}  {one.data.hex(' '):<24} {name:<32} {one.pipe or '-':<8} {level}"
            lines.append(text.rstrip())
    for warning in warnings:
        console.message(f"warning: {warning}")
    if as_json:
        print_json(
            console,
            {
                "schema_version": 1,
                "tool_version": __version__,
                "status": "decoded",
                "table": table,
                "file": file,
                "functions": documents,
                "warnings": warnings,
            },
            depth=4,
        )
    else:
        console.result(joined(lines))
    return 0
