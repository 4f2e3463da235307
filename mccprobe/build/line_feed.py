"""Chunks of a stream to whole lines, however long one is: a child that never ends a line must not fill the memory."""

from __future__ import annotations

MOST_BYTES = 1 << 20  # of a line; the longest of a compiler's log name thousands of functions


class LineFeed:
    """Of a line longer than MOST_BYTES only the beginning is given."""

    def __init__(self) -> None:
        self._tail = b""
        self._overlong = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk, without their ends."""
        if self._overlong:
            _, end, chunk = chunk.partition(b"\n")
            if not end:
                return []
            self._overlong = False
        *lines, self._tail = (self._tail + chunk).split(b"\n")
        if len(self._tail) > MOST_BYTES:
            lines.append(self._tail[:MOST_BYTES])
            self._tail, self._overlong = b"", True
        return lines
