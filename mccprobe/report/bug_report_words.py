"""The fixed sentences of a bug report, one table a language, and how foreign text is set into them."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from mccprobe.report.fence import one_line

LANGUAGES = ("en", "zh")
_FOLDER = Path(__file__).parent / "templates"
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Code:
    """Foreign text that is shown as code."""

    text: str


@dataclass(frozen=True)
class Foreign:
    """Foreign text inside a sentence."""

    text: str


Piece = str | Code | Foreign  # a str is our own sentence and may hold no foreign text
Pieces = tuple[Piece, ...]


def plain_text(pieces: Pieces) -> str:
    """The sentence without markup, on one line."""
    return "".join(piece if isinstance(piece, str) else one_line(piece.text) for piece in pieces)


@dataclass(frozen=True)
class Words:
    """The sentences of one language. Fields are written {name}."""

    language: str
    table: dict[str, str]

    def say(self, key: str, **fields: Piece | int | float) -> Pieces:
        """The sentence with its fields; numbers are our own text. Raises KeyError for what is not there."""
        pieces: list[Piece] = []
        for index, part in enumerate(_FIELD.split(self.table[key])):
            if index % 2 == 0:
                if part:
                    pieces.append(part)
            else:
                value = fields[part]
                pieces.append(value if isinstance(value, str | Code | Foreign) else f"{value:g}")
        return tuple(pieces)

    def word(self, key: str) -> str:
        """A sentence without fields."""
        return self.table[key]

    def has(self, key: str) -> bool:
        return key in self.table


@functools.cache
def load_words(language: str) -> Words:
    """The table of one language (LANGUAGES)."""
    text = (_FOLDER / f"bug_report.{language}.toml").read_text("utf-8")
    return Words(language, tomllib.loads(text))
