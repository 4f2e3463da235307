"""What a bug report is made of, before it is Markdown or plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mccprobe.report.bug_report_words import Piece, Pieces


@dataclass(frozen=True)
class Paragraph:
    pieces: Pieces


@dataclass(frozen=True)
class Bullets:
    items: tuple[Pieces, ...]


@dataclass(frozen=True)
class Table:
    header: tuple[Pieces, ...]
    rows: tuple[tuple[Pieces, ...], ...]


@dataclass(frozen=True)
class Listing:
    """Text as it stands: compiler output, code, commands. language: for colours, "" for none."""

    text: str
    language: str = ""
    caption: Pieces = ()


Block = Paragraph | Bullets | Table | Listing


@dataclass(frozen=True)
class Section:
    """key: the name that a style orders sections by."""

    key: str
    heading: Pieces
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """title: one line. notice: stands before everything ("" where nothing is simulated)."""

    title: Pieces
    notice: Pieces
    sections: tuple[Section, ...]


def marked(section: Section, mark: str) -> Section:
    """The section with `mark` on every line that says something: what is simulated says so wherever it is quoted."""
    blocks: list[Block] = []
    for block in section.blocks:
        if isinstance(block, Paragraph):
            blocks.append(Paragraph((*block.pieces, f" {mark}")))
        elif isinstance(block, Bullets):
            blocks.append(Bullets(tuple((*item, f" {mark}") for item in block.items)))
        elif isinstance(block, Table):
            rows = tuple((*row[:-1], (*row[-1], f" {mark}")) for row in block.rows)
            blocks.append(Table(block.header, rows))
        else:
            caption = (*block.caption, f" {mark}") if block.caption else (mark,)
            blocks.append(Listing(block.text, block.language, caption))
    return Section(section.key, section.heading, tuple(blocks))


@dataclass(frozen=True)
class BundleFacts:
    """What the writer of the bundle adds to result.json.

    compiler_text: the whole `--version`. repro_exit: of the run of repro.sh at writing, None when it was not
    run (repro_text says why). reduced: lines of the reduced source and of the untouched one. files: name in the
    bundle and the key of its sentence. removed: kind -> times; None when nothing was scrubbed.
    """

    compiler_name: str
    compiler_text: str = ""
    machine: str = ""
    toolkit: str = ""
    repro_exit: int | None = None
    repro_text: str = ""
    reduced: tuple[int, int] | None = None
    source_name: str = ""
    source_text: str = ""
    files: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    no_bitcode: str = ""
    removed: Mapping[str, int] | None = field(default_factory=dict)


def joined_pieces(parts: Sequence[Pieces]) -> Pieces:
    """The parts with commas between them."""
    pieces: list[Piece] = []
    for index, part in enumerate(parts):
        pieces += [", "] if index else []
        pieces += part
    return tuple(pieces)


def head_of(text: str, count: int) -> str:
    """The first `count` lines, and how many more there are."""
    lines = text.splitlines()
    return text if len(lines) <= count else "\n".join([*lines[:count], f"... ({len(lines) - count} more lines)"])
