"""A large JSON document piece by piece: the text of `console.json_text`, without all of it in memory.

`json` itself leaves its C encoder as soon as it indents; of a document on a thousand kernels that is
most of the command's time. orjson indents natively. What orjson refuses (names that are no UTF-8,
integers over 64 bits) goes through `json`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

from mccprobe.base.console import Console, json_safe, json_text

PIECE_CHARACTERS = 1 << 16  # handed on at a time


def iter_json(value: Any, depth: int, *, ascii_only: bool = False) -> Iterator[str]:
    """Pieces of the document, each of whole lines.

    depth: containers down to there are taken apart. In lists of these records may stand that have a `to_dict`.
    """
    kept: list[str] = []
    size = 0
    for part in _parts(value, "", depth, ascii_only):
        kept.append(part)
        size += len(part)
        if size >= PIECE_CHARACTERS:
            whole, newline, rest = "".join(kept).rpartition("\n")
            if newline:
                yield whole + newline
            kept, size = [rest], len(rest)
    yield "".join(kept) + "\n"


def _parts(value: Any, pad: str, depth: int, ascii_only: bool) -> Iterator[str]:
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    if not depth or not value or not isinstance(value, dict | list):
        yield _whole(value, ascii_only).replace("\n", "\n" + pad)  # a text in JSON has no newline of its own
        return
    inner = pad + "  "
    mark = first = ("{" if isinstance(value, dict) else "[") + "\n" + inner
    for item in value.items() if isinstance(value, dict) else value:
        if isinstance(value, dict):
            yield f"{mark}{_whole(item[0], ascii_only)}: "
            item = item[1]
        else:
            yield mark
        yield from _parts(item, inner, depth - 1, ascii_only)
        mark = ",\n" + inner
    yield f"\n{pad}{'}' if first[0] == '{' else ']'}"


@functools.cache
def _orjson() -> Any:
    """The package of the extra `fast`; None without it: the text is the same, later."""
    try:
        import orjson
    except ImportError:
        return None
    return orjson


def _whole(value: Any, ascii_only: bool) -> str:
    orjson = _orjson()
    if orjson is not None and not ascii_only:
        try:
            return json_safe(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
        except TypeError:
            pass
    return json_text(value, ascii_only=ascii_only).rstrip("\n")


def print_json(console: Console, document: dict[str, Any], depth: int) -> None:
    """`console.document`, for documents that may be large."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    for piece in iter_json(document, depth, ascii_only=encoding != "utf8"):
        console.result(piece)
