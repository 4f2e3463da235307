"""Entries of the journal as lines: whatever stands in a note, a terminal gets printable text."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mccprobe.journal.entry import Entry, Figure
from mccprobe.journal.review import Comparison, DeadEnd, Row
from mccprobe.journal.text import one_line, safe
from mccprobe.report.terminal_table import Column, terminal_table

MAX_CELL = 60  # characters of text, flags or kernel in a list
SIMULATED = "SIMULATED"


def figure_text(figure: Figure) -> str:
    """Value and unit; "not known" is never a number, and has no unit."""
    return "not known" if figure.value is None else safe(f"{figure.value:.6g} {figure.unit}".rstrip())


def list_lines(entries: Sequence[Entry]) -> list[str]:
    """A line an entry."""
    lines = []
    for one in entries:
        figures = ", ".join(f"{safe(name)} {figure_text(figure)}" for name, figure in one.figures.items())
        cells = [
            SIMULATED if one.simulated else "",
            one_line(one.kernel or "", 30),
            one_line(shlex.join(one.flags), MAX_CELL),
            one_line(figures, MAX_CELL),
            one_line(one.text, MAX_CELL),
            "DEAD END" if one.dead_end else "",
        ]
        head = f"{safe(one.id):<8}  {safe(one.time[:19]):<19}  {one.kind:<6}  {one.verdict or '-':<10}"
        lines.append("  ".join([head, *(cell for cell in cells if cell)]))
    return lines


def list_table(entries: Sequence[Entry], width: int, *, color: bool) -> list[str]:
    """The same for a terminal, texts folded in their column."""
    heads = (
        Column("entry"),
        Column("time (UTC)", fold=10),
        Column("kind"),
        Column("verdict"),
        Column("kernel, flags", fold=12),
        Column("figures", fold=12),
        Column("what", fold=10),
    )
    rows = []
    for one in entries:
        figures = ", ".join(f"{safe(name)} {figure_text(figure)}" for name, figure in one.figures.items())
        marks = [SIMULATED] * one.simulated + ["DEAD END"] * one.dead_end
        subject = " ".join(filter(None, (safe(one.kernel or ""), safe(shlex.join(one.flags)))))
        what = ": ".join(filter(None, (", ".join(marks), safe(one.text))))
        time = safe(one.time[:19]).replace("T", " ")
        rows.append((safe(one.id), time, one.kind, one.verdict or "-", subject, figures, what))
    return terminal_table(heads, rows, width, color=color)


def entry_lines(entry: Entry) -> list[str]:
    """All of one entry; "not known" where something is not."""
    rows = {
        "kind": entry.kind,
        "time": entry.time,
        "what": entry.text or "-",
        "why": entry.why or "-",
        "kernel": entry.kernel,
        "commit": entry.kernel_commit,
        "toolchain": entry.toolchain,
        "flags": shlex.join(entry.flags) or "none",
        "verdict": entry.verdict or "none",
        "health": None if entry.health is None else ", ".join(f"{key} {value}" for key, value in entry.health.items()),
        "run": entry.run_directory,
    }
    if entry.toolchain and entry.simulated:
        rows["toolchain"] = f"{entry.toolchain} {SIMULATED}: says nothing of a GPU"
    if entry.about:
        rows["about"] = entry.about
    if entry.dead_end:
        rows["dead end"] = "yes"
    lines = [safe(entry.id)]
    for name, value in rows.items():
        first, *more = safe("not known" if value is None else str(value)).split("\n")
        lines += [f"  {name:<10} {first}", *(f"  {'':<10} {line}" for line in more)]
    lines += [f"  {safe(name):<10} {figure_text(figure)}" for name, figure in entry.figures.items()]
    return lines


def dead_end_lines(ends: Sequence[DeadEnd]) -> list[str]:
    """One sentence each, and how often it was seen."""
    lines = []
    for one in ends:
        what = [one_line(one.kernel or "any kernel", 30), one_line(shlex.join(one.flags), MAX_CELL) or "no flags"]
        what += [SIMULATED] * one.simulated
        times = "once" if len(one.entries) == 1 else f"{len(one.entries)} times, last"
        seen = f"{times} {one.entries[-1].time[:10]} ({one.entries[-1].id})"
        lines.append(f"{'  '.join(what)}: {one_line(one.reason, 120)}; {safe(seen)}")
        if one.contradicted:
            ids = ", ".join(entry.id for entry in one.contradicted)
            lines.append(f"    but GOOD at the same commit: {safe(ids)}; flaky rather than dead?")
    return lines or ["no dead ends recorded"]


def comparison_lines(found: Comparison) -> list[str]:
    """Both entries, their figures, and what speaks against comparing them."""
    lines = [*list_lines([found.first, found.second])]
    lines += [f"  + {safe(flag)}" for flag in found.flags_added]
    lines += [f"  - {safe(flag)}" for flag in found.flags_removed]
    lines += [f"  {safe(row.name):<20} {_row(row)}" for row in found.rows]
    if any(row.ratio is not None for row in found.rows):
        lines.append("  one figure each, so no interval on the ratio: mccprobe bench gives one")
    return [*lines, *(f"  caveat: {safe(text)}" for text in found.caveats)]


def _row(row: Row) -> str:
    first, second = (figure_text(Figure(value, row.unit)) for value in (row.first, row.second))
    return f"{first} -> {second}  " + (f"x {row.ratio:.4f}" if row.ratio is not None else f"({safe(row.problem)})")
