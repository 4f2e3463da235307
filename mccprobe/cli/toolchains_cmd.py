"""`mccprobe toolchains`: what is here and what each can do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console, width
from mccprobe.cli.common import cache_directory
from mccprobe.inspection.lines import joined
from mccprobe.report.terminal_table import Column, terminal_table

if TYPE_CHECKING:
    from mccprobe.targets.inventory import Entry


@click.command("toolchains", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--mcc", metavar="PATH", help="the mcc to use")
@click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to pin")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/toolchains.schema.json)")
@click.pass_obj
def toolchains(console: Console, mcc: str | None, musa_path: str | None, as_json: bool) -> int:
    """List compilers: what was found, what each can do.

    \b
    Example:
      mccprobe toolchains --json
    """
    from mccprobe.targets.inventory import inventory
    from mccprobe.targets.mcc.toolchain import MccPaths

    entries = inventory(MccPaths(mcc, musa_path), cache_directory())
    if as_json:
        listed = [entry.to_dict() for entry in entries]
        console.document({"schema_version": 1, "tool_version": __version__, "toolchains": listed})
        return 0
    table = _table(entries, color=console.colored(sys.stdout)) if console.draws_tables() else []
    lines = []
    for entry in entries:
        where = f"{entry.path}  {entry.version}" if entry.found else "not found"
        lines.append(f"{entry.name:<6} {where}{_mark(entry)}")
        if entry.found and not table:
            lines.append("       " + ", ".join(f"{name}: {_word(value)}" for name, value in entry.capabilities.items()))
        lines += [f"       {note}" for note in entry.notes]
    console.report("\n".join([*table, *[""] * bool(table), joined(lines)]))
    return 0


def _table(entries: Sequence[Entry], *, color: bool) -> list[str]:
    """What each can do, for a terminal."""
    found = [entry for entry in entries if entry.found]
    names = list(dict.fromkeys(name for entry in found for name in entry.capabilities))
    rows = [
        (entry.name + _mark(entry), *(_word(entry.capabilities.get(name, "-")) for name in names), entry.version)
        for entry in found
    ]
    heads = (Column("toolchain"), *(Column(name) for name in names), Column("version", fold=12))
    return terminal_table(heads, rows, width(), color=color) if rows else []


def _mark(entry: Entry) -> str:
    return "  [SIMULATED]" if entry.simulated else ""


def _word(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
