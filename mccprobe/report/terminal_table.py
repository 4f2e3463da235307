"""A table as a terminal shows it, drawn by rich: headings, numbers to the right, long texts folded in their column.

Elsewhere (a pipe, a file) the same is told in plain lines, which stay as they are: scripts read them.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from mccprobe.base.console import cells
from mccprobe.inspection.lines import one_line

GAP = 2  # columns between two cells
LEAST_VALUE = 12  # columns for a value on a terminal narrower than any


@dataclass(frozen=True)
class Column:
    """A column. fold: the least width to which it may shrink; None where a cell is never broken."""

    head: str
    right: bool = False
    fold: int | None = None


def terminal_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, *, color: bool) -> list[str]:
    """Lines of the table, at most `width` columns; no control characters of cells.

    A table that cannot shrink so far would be broken by the terminal in the middle of its lines: there each row
    becomes lines of its own, a cell behind its heading. color: whether headings stand out by more than their place.
    """
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = _widths(columns, shown, width)
    if _total(widths) <= width:
        sized = [(column.head, size, column.right) for column, size in zip(columns, widths, strict=True)]
        return _drawn(sized, shown, color=color)
    heads = [column.head if at == 0 else f"  {column.head}" for at, column in enumerate(columns)]
    label = max(map(cells, heads))
    sized = [("", label, False), ("", max(width - label - GAP, LEAST_VALUE), False)]
    lines: list[str] = []
    for row in shown:
        told = [pair for pair in zip(heads, row, strict=True) if pair[1]]
        lines += [*([""] if lines else []), *_drawn(sized, told, color=color)]
    return lines


def _total(widths: Sequence[int]) -> int:
    """Columns of a line."""
    return sum(widths) + GAP * (len(widths) - 1)


def _drawn(columns: Sequence[tuple[str, int, bool]], rows: Sequence[Sequence[str]], *, color: bool) -> list[str]:
    """columns: heading, width, whether to the right. Without any heading the first column is one."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    headed = any(head for head, _, _ in columns)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold", show_header=headed)
    for at, (head, size, right) in enumerate(columns):
        table.add_column(
            Text(head),
            overflow="fold",
            justify="right" if right else "left",
            width=size,
            style="" if headed or at else "bold",
        )
    for row in rows:
        table.add_row(*map(Text, row))
    stream = io.StringIO()
    # rich would take 80 columns where TERM is dumb, and cut what is wider than its console
    console = Console(
        file=stream,
        force_terminal=color,
        color_system="standard" if color else None,
        height=len(rows) + 2,
        width=_total([size for _, size, _ in columns]),
    )
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
