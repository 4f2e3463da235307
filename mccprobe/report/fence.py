"""Foreign text inside a report: compiler output cannot end a fence, make markup, or steer a terminal or a reader."""

from __future__ import annotations

import re

from mccprobe.base.console import visible

_TICKS = re.compile(r"`+")
# what Markdown gives a meaning in the middle of a sentence, and at its start
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|~&$^])")
_AT_START = re.compile(r"^([-+#=>]|\d+[.)])")
# what a tracker turns into a link, a reference or a mention whatever is escaped: shown as code
_LINK = re.compile(r"@\w|#\d|\b(?:https?|ftp|file|javascript|data|mailto):|\bwww\.", re.IGNORECASE)


def plain(text: str) -> str:
    """The text with everything unseen written out; newlines and tabs stay."""
    return visible(text.replace("\r\n", "\n").replace("\r", "\n"))


def one_line(text: str) -> str:
    """The same, on one line."""
    return " ".join(plain(text).split())


def fenced(text: str, language: str = "") -> str:
    """A Markdown code block. Its fence is longer than any run of backticks in the text."""
    body = plain(text).rstrip("\n")
    longest = max((len(run) for run in _TICKS.findall(body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def code(text: str, *, in_table: bool = False) -> str:
    """A Markdown code span on one line. in_table: a bar would end the cell, also inside a span."""
    body = one_line(text)
    if not body:
        return ""
    longest = max((len(run) for run in _TICKS.findall(body)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if body.startswith("`") or body.endswith("`") else ""
    span = f"{ticks}{pad}{body}{pad}{ticks}"
    return span.replace("|", "\\|") if in_table else span


def escaped(text: str, *, at_start: bool = False) -> str:
    """Foreign text as part of a Markdown sentence: it means nothing but itself. at_start: of a line or an item."""
    body = " ".join(
        code(word, in_table=True) if _LINK.search(word) else _MARKUP.sub(r"\\\1", word)
        for word in one_line(text).split(" ")
    )
    return _AT_START.sub(r"\\\1", body) if at_start else body
