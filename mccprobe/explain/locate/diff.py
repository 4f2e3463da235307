"""Diffs for people: hunks with context, bounded; the whole text goes to a file."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

DIFF_LINES = 120  # shown in a report; the file has all of them
LINE_CHARACTERS = 400  # a phi of a thousand predecessors is one line
CONTEXT_LINES = 3


def bounded_diff(before: Sequence[str], after: Sequence[str], file: Path, *, names: tuple[str, str]) -> str:
    """The unified diff, also written whole to `file`; "" (and no file) where nothing differs."""
    lines = list(difflib.unified_diff(before, after, *names, lineterm="", n=CONTEXT_LINES))
    if not lines:
        return ""
    file.write_text("\n".join(lines) + "\n", "utf-8", errors="surrogateescape")
    shown = [line if len(line) <= LINE_CHARACTERS else line[:LINE_CHARACTERS] + " [...]" for line in lines[:DIFF_LINES]]
    if len(lines) > DIFF_LINES:
        shown.append(f"[{len(lines) - DIFF_LINES} more lines in {file.name}]")
    return "\n".join(shown)
