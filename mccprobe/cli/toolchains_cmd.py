"""`mccprobe toolchains`: what is here and what each can do."""

from __future__ import annotations

from typing import Any

import click

from mccprobe import __version__
from mccprobe.cli.common import cache_directory
from mccprobe.console import Console
from mccprobe.report.lines import joined


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
    from mccprobe.toolchain.inventory import inventory
    from mccprobe.toolchain.mcc import MccPaths

    entries = inventory(MccPaths(mcc, musa_path), cache_directory())
    if as_json:
        listed = [entry.to_dict() for entry in entries]
        console.document({"schema_version": 1, "tool_version": __version__, "toolchains": listed})
        return 0
    lines = []
    for entry in entries:
        where = f"{entry.path}  {entry.version}" if entry.found else "not found"
        lines.append(f"{entry.name:<6} {where}{'  [SIMULATED]' if entry.simulated else ''}")
        if entry.found:
            lines.append("       " + ", ".join(f"{name}: {_word(value)}" for name, value in entry.capabilities.items()))
        lines += [f"       {note}" for note in entry.notes]
    console.report(joined(lines))
    return 0


def _word(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
