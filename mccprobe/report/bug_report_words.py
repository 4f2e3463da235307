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
_GROUP = re.compile(r"\\(\d)")
_SEMICOLON = "\uff1b"  # the wide one of Chinese text


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
    phrases: tuple[tuple[re.Pattern[str], str], ...] = ()

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

    def told(self, text: str) -> str:
        """What a step of the run told, in this language as far as the table of phrases goes; the rest as it is."""
        if not self.phrases or not text:
            return text
        for pattern, replacement in self.phrases:
            found = pattern.fullmatch(text)
            if found:
                groups = [self.told(group or "") for group in found.groups()]
                return _GROUP.sub(lambda number, groups=groups: groups[int(number[1]) - 1], replacement)  # type: ignore[misc]
        parts = text.split("; ")
        return text if len(parts) == 1 else _SEMICOLON.join(map(self.told, parts))


@functools.cache
def load_words(language: str) -> Words:
    """The tables of one language (LANGUAGES)."""
    text = (_FOLDER / f"bug_report.{language}.toml").read_text("utf-8")
    phrases = _FOLDER / f"phrases.{language}.toml"
    rows = tomllib.loads(phrases.read_text("utf-8"))["phrase"] if phrases.is_file() else []
    return Words(language, tomllib.loads(text), tuple((re.compile(row[0]), row[1]) for row in rows))
