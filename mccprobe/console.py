"""Streams: standard output is the result, standard error everything else. The only module that prints.

Control characters from compilers and programs are made visible, so that their output cannot steer
a terminal. A reader that went away (`| head`) is no error and ends no work.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, TextIO

from mccprobe.errors import InputError

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))}
# bytes of names that are no UTF-8 (os.fsdecode), and what cannot be encoded at all
_CONTROL |= {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}
_CONTROL |= {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000) if code not in _CONTROL}
_SURROGATES = {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}  # as JSON escapes them


def visible(text: str) -> str:
    """The text with control characters (but newline and tab) written as \\xNN."""
    return text.translate(_CONTROL)


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """A JSON document, readable, with a newline at its end; any file name can stand in it."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=ascii_only) + "\n"
    return text.translate(_SURROGATES)


def _write(stream: TextIO | None, text: str) -> None:
    """Write and flush. A stream that is closed or whose reader went away takes nothing from then on.

    Raises InputError when it cannot be written (a full disk).
    """
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # Python would try what is left once more at exit, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):
            raise InputError(
                f"standard output cannot be written: {error.strerror or error}", hint="free space, or redirect it"
            ) from error


def _tell(text: str) -> None:
    """To standard error, where a failure must not end the work."""
    try:
        _write(sys.stderr, text)
    except (InputError, ValueError):
        return


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
        _write(sys.stdout, text if text.endswith("\n") else text + "\n")

    def document(self, value: dict[str, Any]) -> None:
        """One JSON document to standard output."""
        encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
        self.result(json_text(value, ascii_only=encoding != "utf8"))

    def message(self, text: str) -> None:
        """A line for people, to standard error, unless quiet."""
        if not self.quiet:
            self.always(text)

    def always(self, text: str) -> None:
        """A line for people that even --quiet shows (errors, warnings of simulation)."""
        self._end_live()
        _tell(visible(text) + "\n")

    def progress(self, text: str) -> None:
        """Where the work is: rewritten in place on a terminal, one plain line each elsewhere."""
        if self.quiet:
            return
        with self._lock:
            if sys.stderr is not None and sys.stderr.isatty():
                _tell("\r\x1b[2K" + visible(text)[: _columns() - 1].replace("\n", " "))
                self._live = True
            else:
                _tell(visible(text) + "\n")

    def _end_live(self) -> None:
        with self._lock:
            if self._live:
                _tell("\r\x1b[2K")
                self._live = False


def _columns() -> int:
    try:
        return os.get_terminal_size(2).columns
    except OSError:
        return 80
