"""Text of users and programs made safe for a terminal: what it holds is shown, not obeyed."""

from __future__ import annotations


def safe(text: str) -> str:
    """Printable text and line ends; all else (escape sequences, bidirectional overrides) as \\xNN or \\uNNNN."""
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def one_line(text: str, limit: int) -> str:
    """The same without line ends, cut to `limit` characters."""
    line = safe(" ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 3] + "..."
