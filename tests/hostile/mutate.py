"""Damage done to a whole input: an edit is (name, where, how much), so that Hypothesis can shrink a list of them.

`where` is a share of the input, `how much` any number; both are taken as they come. Text and JSON have edits of
their own, beside those of bytes, since a reader that refuses broken syntax is not tested by broken syntax.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

Edit = tuple[str, float, int]
MOST_BYTES = 1 << 13  # of a damaged input; growth is a test of its own

NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
# what stands in files of people who wish no good, and of compilers that were cut off
TOKENS = (
    b"\x00", b"\n", b"\r", b"\r\n", b"\t", b" ", b'"', b"'", b"\\", b"`", b"$(id)", b"-", b"--", b"=", b":", b";",
    b",", b"#", b"[", b"]", b"{", b"}", b"(", b")", b"<", b">", b"%", b"@", b"!", b"/", b"../", b"/etc/passwd", b"|",
    b"&", b"\x1b[2J", b"\x1b]52;c;aGk=\x07", b"\x9b31m", b"\xc2\x9b31m", b"\x08", b"\x7f", b"\xff", b"\xfe\xff",
    b"\xed\xa0\x80", b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xf0\x9f\x92\xa5", b"0", b"-1", b"1e999",
    b"NaN", b"Infinity", b"0x", b"0x" + b"f" * 40, b"9" * 19, b"9" * 40, b"9" * 5000, b"null", b"true", b"''", b'""',
    b"x" * 300, b"a" * 5000, b"[" * 3000, b"{" * 300, b"(" * 3000, b" " * 3000, b"\n" * 300, b"---\n", b"...\n",
    b"<4000000000 x i8> ", b"@@ -1 +1 @@\n", b"BISECT: running pass (1) ", b" on ", b"name: ",
    b"schema_version = 1\n",
)  # fmt: skip
DEEP = 100_000
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**400, -(10**400), 0.0, -0.5, 1e308, float("inf"),
    float("nan"), "", " ", "0", "x" * 300, "a\nb", "\x00", "\x1b[2J", "\ud800", "\udc80", "\u202e", "../../x",
    "/etc/passwd", "-x", "$(id)", [], [[]], [None], [1, 2, 3], ["a", "b"], {}, {"": None}, {"a": {"b": []}},
)  # fmt: skip


def damaged(data: bytes, edits: Sequence[Edit], others: Sequence[bytes] = ()) -> bytes:
    """The input with these edits, one after the other; at most MOST_BYTES of it, unless it was longer."""
    most = max(MOST_BYTES, len(data))
    for name, where, much in edits:
        data = EDITS[name](data, where, much, others)[:most]
    return data


def random_edits(rng: random.Random, kind: str) -> list[Edit]:
    """One to five edits that suit a kind of input ("binary", "text" or "json")."""
    names = KINDS[kind]
    return [(rng.choice(names), rng.random(), rng.getrandbits(32)) for _ in range(1 + rng.getrandbits(2))]


def _at(data: bytes, where: float) -> int:
    return min(len(data), int(where * (len(data) + 1)))


def _byte(data: bytes, where: float, much: int, _: Sequence[bytes]) -> bytes:
    at = _at(data, where)
    return data[:at] + bytes((much & 0xFF,)) + data[at + 1 :]


def _number(data: bytes, where: float, much: int, _: Sequence[bytes]) -> bytes:
    """A number that lies, of 1 to 8 bytes, over what stood there."""
    size = (1, 2, 4, 8)[much & 3]
    value = NUMBERS[(much >> 4) % len(NUMBERS)] & (1 << 8 * size) - 1
    at = _at(data, where) & (~(size - 1) if much & 4 else ~0)
    return data[:at] + value.to_bytes(size, "big" if much & 8 else "little") + data[at + size :]


def _cut(data: bytes, where: float, much: int, _: Sequence[bytes]) -> bytes:
    at = _at(data, where)
    return data[:at] if much & 1 else data[:at] + data[at + 1 + (much >> 1) % 64 :]


def _again(data: bytes, where: float, much: int, _: Sequence[bytes]) -> bytes:
    at, size = _at(data, where), 1 + (much >> 4) % 200
    return data[:at] + data[at : at + size] * (2 + (1 << (much & 7))) + data[at:]


def _token(data: bytes, where: float, much: int, _: Sequence[bytes]) -> bytes:
    at = _at(data, where)
    return data[:at] + TOKENS[much % len(TOKENS)] + data[at + (much >> 16) % 4 :]


def _splice(data: bytes, where: float, much: int, others: Sequence[bytes]) -> bytes:
    other = others[much % len(others)] if others else data
    at, start = _at(data, where), (much >> 8) % (len(other) + 1)
    return data[:at] + other[start : start + (much >> 4) % 2000] + data[at:]


def _line(data: bytes, where: float, much: int, others: Sequence[bytes]) -> bytes:
    """A line left out, doubled, moved, or taken from another input."""
    lines = data.split(b"\n")
    at, to = int(where * len(lines)) % len(lines), much % len(lines)
    what = (much >> 24) & 3
    if what == 0:
        del lines[at]
    elif what == 1:
        lines[at:at] = [lines[at]] * (1 + (much >> 8) % 50)
    elif what == 2:
        lines.insert(to, lines.pop(at))
    else:
        other = (others[much % len(others)] if others else data).split(b"\n")
        lines.insert(at, other[(much >> 8) % len(other)])
    return b"\n".join(lines)


def _word(data: bytes, where: float, much: int, others: Sequence[bytes]) -> bytes:
    """A word replaced by a token: the line around it stays what it was."""
    at = _at(data, where)
    start, end = at, at
    while start > 0 and data[start - 1 : start].isalnum():
        start -= 1
    while end < len(data) and data[end : end + 1].isalnum():
        end += 1
    return data[:start] + TOKENS[much % len(TOKENS)] + data[end:]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value[:200]):
            found += _places(item, (*path, key))
    return found


def _json(data: bytes, where: float, much: int, _: Sequence[bytes]) -> bytes:
    """One value of a document, or of one of its lines, replaced, left out, or nested without end."""
    lines = [data]
    at = 0
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        lines = data.split(b"\n")
        at = much % len(lines)
        try:
            document = json.loads(lines[at])
        except (ValueError, RecursionError):
            return data
    places = _places(document)
    *path, last = (None, *places[int(where * len(places)) % len(places)])
    if last is None:
        document = VALUES[(much >> 8) % len(VALUES)]
    else:
        owner = document
        for key in path[1:]:
            owner = owner[key]
        what = (much >> 20) % 8
        if what == 0:
            del owner[last]
        elif what == 1 and isinstance(owner, dict):
            owner[str(VALUES[(much >> 8) % len(VALUES)])[:400]] = owner.pop(last)
        elif what == 2:
            owner[last] = "DEEP"
        else:
            owner[last] = VALUES[(much >> 8) % len(VALUES)]
    text = json.dumps(document).encode()
    lines[at] = text.replace(b'"DEEP"', (b"[" if much & 1 else b'{"a":') * DEEP, 1) if b'"DEEP"' in text else text
    return b"\n".join(lines)


EDITS: dict[str, Callable[[bytes, float, int, Sequence[bytes]], bytes]] = {
    "byte": _byte, "number": _number, "cut": _cut, "again": _again, "token": _token, "splice": _splice, "line": _line,
    "word": _word, "json": _json,
}  # fmt: skip
KINDS = {
    "binary": ("byte", "number", "number", "number", "cut", "again", "token", "splice"),
    "text": ("byte", "cut", "again", "token", "token", "splice", "line", "word", "word"),
    "json": ("json", "json", "json", "json", "json", "byte", "cut", "token", "line", "word"),
}
