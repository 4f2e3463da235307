"""Lines of a text report, each one line whatever names stand in it."""

from __future__ import annotations

from collections.abc import Iterable

from mccprobe.base.console import visible


def one_line(text: str) -> str:
    """The text with control characters (but tab), newline included, written as escapes.

    Names of kernels, symbols and bundle entries come from files and may hold anything: a newline in one would
    make a line of its own, without the heading of a stand-in.
    """
    # nearly every line is printable as it stands, and asking costs a tenth of translating
    return text if text.isprintable() else visible(text).replace("\n", "\\n")


def joined(lines: Iterable[str]) -> str:
    """The lines as one text."""
    return "\n".join(map(one_line, lines))
