"""A bug report as Markdown (trackers) or as plain text (mail). Pure: blocks in, text out."""

from __future__ import annotations

import textwrap
import unicodedata

from mccprobe.report.bug_report_blocks import Block, Bullets, Document, Listing, Paragraph, Table
from mccprobe.report.bug_report_words import Code, Foreign, Piece, Pieces, plain_text
from mccprobe.report.fence import code, escaped, fenced, plain

FOLD_LINES = 30  # longer listings are folded where the tracker can unfold them
MAIL_COLUMNS = 76  # RFC 2646: readable after two quotations


def render(document: Document, style: str) -> str:
    """The whole text of one style: "gcc" is plain text, the others are Markdown."""
    return _mail(document) if style == "gcc" else _markdown(document, fold=style == "llvm")


# -- Markdown --------------------------------------------------------------------------------------


def _markdown(document: Document, *, fold: bool) -> str:
    parts = [f"# {_inline(document.title)}"]
    if document.notice:
        parts.append(f"**{_inline(document.notice)}**")
    for section in document.sections:
        parts.append(f"## {_inline(section.heading)}")
        parts += [_block(block, fold=fold) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def _inline(pieces: Pieces, *, in_table: bool = False) -> str:
    def one(index: int, piece: Piece) -> str:
        if isinstance(piece, Code):
            return code(piece.text, in_table=in_table)
        return escaped(piece.text, at_start=index == 0) if isinstance(piece, Foreign) else piece

    return "".join(one(index, piece) for index, piece in enumerate(pieces))


def _block(block: Block, *, fold: bool) -> str:
    if isinstance(block, Paragraph):
        return _inline(block.pieces)
    if isinstance(block, Bullets):
        return "\n".join(f"- {_inline(item)}" for item in block.items)
    if isinstance(block, Table):
        rows = [[_inline(cell, in_table=True) for cell in row] for row in (block.header, *block.rows)]
        rows.insert(1, ["---"] * len(block.header))
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)
    text = fenced(block.text, block.language)
    caption = _inline(block.caption)
    if fold and caption and text.count("\n") > FOLD_LINES:
        return f"<details><summary>{_html(block.caption)}</summary>\n\n{text}\n\n</details>"
    return f"{caption}\n\n{text}" if caption else text


def _html(pieces: Pieces) -> str:
    """For the one place where our Markdown is HTML."""
    return plain_text(pieces).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# -- mail ------------------------------------------------------------------------------------------


def _mail(document: Document) -> str:
    lines = [f"Subject: {plain_text(document.title)}", ""]
    if document.notice:
        lines += [*_wrapped(plain_text(document.notice), "*** ", "*** "), ""]
    for section in document.sections:
        heading = plain_text(section.heading)
        lines += [heading, "-" * _width(heading), ""]
        for block in section.blocks:
            lines += [*_mail_block(block), ""]
    return "\n".join(lines)


def _mail_block(block: Block) -> list[str]:
    if isinstance(block, Paragraph):
        return _wrapped(plain_text(block.pieces))
    if isinstance(block, Bullets):
        return [line for item in block.items for line in _wrapped(plain_text(item), "- ", "  ")]
    if isinstance(block, Listing):
        caption = [plain_text(block.caption), ""] if block.caption else []
        return [*caption, *(f"    {line}".rstrip() for line in plain(block.text).rstrip("\n").split("\n"))]
    rows = [[plain_text(cell) for cell in row] for row in (block.header, *block.rows)]
    widths = [max(_width(row[column]) for row in rows) for column in range(len(block.header))]
    lines = ("  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return [f"  {line}".rstrip() for line in lines]


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """Wrapped at blanks alone: a command or a name is never broken."""
    return textwrap.wrap(
        text, MAIL_COLUMNS, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def _width(text: str) -> int:
    """Columns in a terminal: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
