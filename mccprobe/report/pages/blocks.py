"""What a page is made of: plain records, in the order of reading. Nothing here knows HTML or a plot library.

Page ── Section ── Facts | Paragraph | Notes | Table | Figure | Commands | Code | Details
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mccprobe.base.console import visible

NONE = "-"  # where there is no value


class Tone(StrEnum):
    """How a headline reads: an answer, an answer with a caveat, none."""

    ANSWER = "answer"
    CAVEAT = "caveat"
    NONE = "none"


class Kind(StrEnum):
    """How a cell is set."""

    TEXT = "text"
    NUMBER = "number"
    CODE = "code"
    HASH = "hash"  # shortened on paper and screen, whole in its title
    VERDICT = "verdict"  # by colour, shape and word


@dataclass(frozen=True)
class Cell:
    """note: a second line, set smaller."""

    text: str
    kind: Kind = Kind.TEXT
    note: str = ""


def number(value: float | int | None, *, digits: str = "") -> Cell:
    """A number for people; a dash where there is none. digits: a format specification, for floats."""
    if value is None:
        return Cell(NONE, Kind.NUMBER)
    if digits:
        return Cell(format(value, digits), Kind.NUMBER)
    return Cell(f"{value:,}" if isinstance(value, int) else f"{value:,.10g}", Kind.NUMBER)


def code(text: str | None, note: str = "") -> Cell:
    return Cell(text or NONE, Kind.CODE if text else Kind.TEXT, note)


def digest(text: str | None) -> Cell:
    """A hash."""
    return Cell(text or NONE, Kind.HASH if text else Kind.TEXT)


def verdict(text: str | None) -> Cell:
    """GOOD, BAD, UNRESOLVED; None: not run."""
    return Cell(text or "not run", Kind.VERDICT if text else Kind.TEXT)


@dataclass(frozen=True)
class Facts:
    """Short values under their names."""

    pairs: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Notes:
    """A list of sentences. warning: set apart, for what limits the answer."""

    texts: tuple[str, ...]
    title: str = ""
    warning: bool = False


@dataclass(frozen=True)
class Table:
    """caption: also its name for a screen reader. The first cell of a row is the row's heading."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Size:
    """Of a figure, in CSS pixels: beside a desk and on a phone."""

    wide: tuple[int, int]
    narrow: tuple[int, int]


@dataclass(frozen=True)
class Figure:
    """name: of its files. alt: what it shows, in a sentence. table: the same numbers, None where they stand near.

    paint(figure, narrow): draws into a matplotlib figure, by the colours of `theme`.
    """

    name: str
    caption: str
    alt: str
    size: Size
    paint: Callable[[Any, bool], None] = field(compare=False)
    table: Table | None = None


@dataclass(frozen=True)
class Commands:
    """Command lines to copy, one a line."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Text as it stands. diff: lines of a unified diff are told apart. label: what it is, for a screen reader."""

    label: str
    text: str
    diff: bool = False


@dataclass(frozen=True)
class Details:
    """What need not be read by everybody; open on paper."""

    summary: str
    blocks: tuple[Any, ...]


Block = Facts | Paragraph | Notes | Table | Figure | Commands | Code | Details


@dataclass(frozen=True)
class Section:
    """mark: what a stand-in's results are to be called, "" for real ones."""

    key: str
    title: str
    blocks: tuple[Block, ...]
    mark: str = ""


@dataclass(frozen=True)
class Page:
    """headline: the answer. lead: the sentence below it. mark: of a stand-in, on the page's head and every result."""

    command: str
    headline: str
    tone: Tone
    lead: str
    facts: Facts
    sections: tuple[Section, ...]
    tool_version: str
    mark: str = ""
    warning: str = ""

    def figures(self) -> list[Figure]:
        """All figures, in the order of the page."""
        return list(_figures([block for section in self.sections for block in section.blocks]))


def _figures(blocks: Sequence[Any]) -> Sequence[Figure]:
    found: list[Figure] = []
    for block in blocks:
        if isinstance(block, Figure):
            found.append(block)
        elif isinstance(block, Details):
            found += _figures(block.blocks)
    return found


def shown(value: Any) -> Any:
    """A document with control characters and stray bytes made visible: neither HTML nor a font has them."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {shown(key): shown(item) for key, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list | tuple) else value


def sections(*given: Section) -> tuple[Section, ...]:
    """Those that hold anything."""
    return tuple(section for section in given if section.blocks)
