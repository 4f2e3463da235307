"""Streams: standard output is the result, standard error everything else. The only module that prints.

Control characters from compilers and programs are made visible, so that their output cannot steer
a terminal.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, TextIO

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))}


def visible(text: str) -> str:
    """The text with control characters (but newline and tab) written as \\xNN."""
    return text.translate(_CONTROL)


class Console:
    """Writes results and messages; one line of live progress on a terminal, plain lines elsewhere."""

    def __init__(self, *, quiet: bool = False, color: str = "auto") -> None:
        self.quiet = quiet
        self._live = False
        self._lock = threading.Lock()
        self._color = color

    def colored(self, stream: TextIO) -> bool:
        """Flag, then NO_COLOR and TERM=dumb, then whether the stream is a terminal."""
        if self._color != "auto":
            return self._color == "always"
        if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            return False
        return stream.isatty()

    def result(self, text: str) -> None:
        """The answer, to standard output."""
        self._end_live()
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()

    def document(self, value: dict[str, Any]) -> None:
        """One JSON document to standard output."""
        import json

        self.result(json.dumps(value, indent=2, ensure_ascii=False))

    def message(self, text: str) -> None:
        """A line for people, to standard error, unless quiet."""
        if not self.quiet:
            self.always(text)

    def always(self, text: str) -> None:
        """A line for people that even --quiet shows (errors, warnings of simulation)."""
        self._end_live()
        sys.stderr.write(visible(text) + "\n")
        sys.stderr.flush()

    def progress(self, text: str) -> None:
        """Where the work is: rewritten in place on a terminal, one plain line each elsewhere."""
        if self.quiet:
            return
        with self._lock:
            if sys.stderr.isatty():
                sys.stderr.write("\r\x1b[2K" + visible(text)[: _columns() - 1])
                self._live = True
            else:
                sys.stderr.write(visible(text) + "\n")
            sys.stderr.flush()

    def _end_live(self) -> None:
        with self._lock:
            if self._live:
                sys.stderr.write("\r\x1b[2K")
                self._live = False


def _columns() -> int:
    try:
        return os.get_terminal_size(2).columns
    except OSError:
        return 80
