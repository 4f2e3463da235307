"""A table as a terminal shows it, drawn by rich: headings, numbers to the right, long texts folded in their column.

Elsewhere (a pipe, a file) the same is told in plain lines, which stay as they are: scripts read them.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from mccprobe.console import cells
from mccprobe.report.lines import one_line

GAP = 2  # columns between two cells


@dataclass(frozen=True)
class Column:
    """A column. fold: the least width to which it may shrink; None where a cell is never broken."""

    head: str
    right: bool = False
    fold: int | None = None


def terminal_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, *, color: bool) -> list[str]:
    """Lines of the table, at most `width` columns where it can shrink so far; no control characters of cells.

    color: whether the headings stand out by more than their place.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = _widths(columns, shown, width)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
    for column, size in zip(columns, widths, strict=True):
        table.add_column(Text(column.head), overflow="fold", justify="right" if column.right else "left", width=size)
    for row in shown:
        table.add_row(*map(Text, row))
    stream = io.StringIO()
    # rich would take 80 columns where TERM is dumb, and cut what is wider than its console
    console = Console(
        file=stream, force_terminal=color, color_system="standard" if color else None, height=len(rows) + 2,
        width=sum(widths) + GAP * (len(widths) - 1),
    )  # fmt: skip
    console.print(table)
    return [line if color else line.rstrip() for line in stream.getvalue().rstrip("\n").split("\n")]


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Whole cells where there is room; else those that fold share what the others leave, the longest giving most."""
    whole = [max(map(cells, texts)) for texts in zip([one.head for one in columns], *rows, strict=True)]
    widths = [size if one.fold is None else min(size, one.fold) for one, size in zip(columns, whole, strict=True)]
    left = width - sum(widths) - GAP * (len(columns) - 1)
    growing = sorted((size - widths[at], at) for at, size in enumerate(whole) if size > widths[at])
    for number, (wanted, at) in enumerate(growing):
        more = min(wanted, max(left, 0) // (len(growing) - number))
        widths[at] += more
        left -= more
    return widths
