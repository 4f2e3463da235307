"""Streams: standard output is the result, standard error everything else. The only module that prints.

Control characters from compilers and programs are made visible, so that their output cannot steer
a terminal. A reader that went away (`| head`) is no error and ends no work.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from mccprobe.base.errors import InputError

if TYPE_CHECKING:
    import re  # and others only where they are used: `--version` pays for what stands above

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))}
# bytes of names that are no UTF-8 (os.fsdecode), and what cannot be encoded at all
_CONTROL |= {0xDC00 + byte: f"\\x{byte:02x}" for byte in range(0x80, 0x100)}
_CONTROL |= {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000) if code not in _CONTROL}
# Characters that are not seen and change what is seen: bidirectional marks, embeddings, overrides and isolates
# (Unicode UAX #9; CVE-2021-42574), zero-width ones, line and paragraph separators, tags, soft hyphens.
UNSEEN = {
    code: f"\\u{code:04x}"
    for code in (0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF)
}
UNSEEN |= {code: f"\\U{code:08x}" for code in range(0xE0000, 0xE0080)}
_CONTROL |= UNSEEN
# As JSON escapes them: what has no UTF-8, and what would steer the terminal that the document is shown on.
_IN_JSON = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *range(0xD800, 0xE000))}
_IN_JSON |= {code: text for code, text in UNSEEN.items() if code < 0x10000}
_IN_JSON |= {code: f"\\udb40\\u{0xDC00 + (code & 0x3FF):04x}" for code in range(0xE0000, 0xE0080)}

# words that a reader looks for; told apart by the word, so colour is never the only sign (SGR parameters, ECMA-48)
_PAINT = {
    "GOOD": "32", "PASSED": "32", "BAD": "31", "NOT PASSED": "31", "contradicted": "31", "UNRESOLVED": "33",
    "FOUND": "1", "EXPOSED": "1", "SIMULATED": "35",
}  # fmt: skip
_ONE_LINE = {0x09: " ", 0x0A: " "}
DEFAULT_WIDTH = 80  # columns, where neither COLUMNS nor a terminal says


def visible(text: str) -> str:
    """The text with control characters (but newline and tab) and what is not seen written as \\xNN or \\uNNNN."""
    return text.translate(_CONTROL)


def number_of(count: int, one: str, many: str = "", *, style: str = "") -> str:
    """`1 pass`, `2 files`: a number with its noun. many: where it is not `one` with an s; style: of format()."""
    return f"{count:{style}} {one if count == 1 else many or one + 's'}"


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """A JSON document, readable, with a newline at its end; any file name can stand in it."""
    import json

    return json_safe(json.dumps(value, indent=2, ensure_ascii=ascii_only) + "\n")


def json_safe(document: str) -> str:
    """The same document, in which nothing stands that has no UTF-8 or steers a terminal."""
    return document if document.isascii() and "\x7f" not in document else document.translate(_IN_JSON)


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
    """Writes results and messages; one line of live progress on a terminal, plain lines elsewhere.

    The live line is the terminal's, not an object's: whoever writes next takes it away first, whichever Console
    that is (an interrupt is told by another one than the command's).
    """

    documents: ClassVar[int] = 0  # printed by this process
    _live: ClassVar[bool] = False
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, *, quiet: bool = False, color: str = "auto") -> None:
        self.quiet = quiet
        self.color = color

    def colored(self, stream: TextIO) -> bool:
        """Flag, then NO_COLOR, FORCE_COLOR, TERM=dumb, CLICOLOR, then whether the stream is a terminal."""
        if self.color != "auto":
            return self.color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
            return True
        if os.environ.get("TERM") == "dumb" or os.environ.get("CLICOLOR") == "0":
            return False
        return stream.isatty()

    def draws_tables(self) -> bool:
        """Whether standard output gets drawn tables: a terminal, coloured or not, or where colour is forced."""
        return sys.stdout is not None and (sys.stdout.isatty() or self.colored(sys.stdout))

    def result(self, text: str) -> None:
        """The answer, to standard output. Raises InputError where that is closed or takes no more."""
        self._end_live()
        if sys.stdout is None:
            raise InputError("standard output cannot be written: it is closed", hint="redirect it: >FILE")
        _write(sys.stdout, text if text.endswith("\n") else text + "\n")

    def report(self, text: str) -> None:
        """The answer as text, with its verdicts in colour where colour is wanted; the same text elsewhere."""
        if sys.stdout is not None and self.colored(sys.stdout):
            import re

            text = re.sub(r"\b(?:NOT PASSED|" + "|".join(_PAINT) + r")\b", _painted, text)
        self.result(text)

    def document(self, value: dict[str, Any]) -> None:
        """One JSON document to standard output."""
        encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
        text = json_text(value, ascii_only=encoding != "utf8")
        try:
            self.result(text)
        except InputError:  # standard output takes nothing
            raise
        except BaseException:  # an interrupt: what is in the stream's buffer still goes out
            Console.documents += 1
            raise
        Console.documents += 1

    def message(self, text: str) -> None:
        """A line for people, to standard error, unless quiet."""
        if not self.quiet:
            self.always(text)

    def always(self, text: str) -> None:
        """A line for people that even --quiet shows (errors, warnings of simulation)."""
        self._end_live()
        _tell(visible(text) + "\n")

    def progress(self, text: str, *, live: str | None = None) -> None:
        """Where the work is: rewritten in place on a terminal, one plain line each elsewhere.

        live: what a terminal shows in its place; with an empty text nothing is told elsewhere.
        """
        if self.quiet:
            return
        with self._lock:
            if animated():
                shown = cut_to_width(visible(text if live is None else live).translate(_ONE_LINE), terminal_width() - 1)
                _tell("\r\x1b[2K" + shown)
                Console._live = True
            elif text:
                _tell(visible(text) + "\n")

    def _end_live(self) -> None:
        with self._lock:
            if self._live:
                _tell("\r\x1b[2K")
                Console._live = False


def of_this_command() -> Console | None:
    """The console of the command that this thread runs, for work that any command may start; None in a library call."""
    import click

    context = click.get_current_context(silent=True)
    return context.find_object(Console) if context is not None else None


def _painted(found: re.Match[str]) -> str:
    return f"\x1b[{_PAINT[found[0]]}m{found[0]}\x1b[0m"


def animated() -> bool:
    """Whether standard error is a terminal that can take back a line."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def terminal_width() -> int:
    """Columns of the terminal of standard error as it is now, whatever COLUMNS says: a longer line would wrap."""
    try:
        return os.get_terminal_size(2).columns or DEFAULT_WIDTH
    except OSError:
        return DEFAULT_WIDTH


def width() -> int:
    """Columns for a table: COLUMNS, else the terminal's, else 80."""
    import shutil

    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns


def cut_to_width(text: str, columns: int) -> str:
    """The text cut to so many columns; a Chinese character takes two, an accent that is written apart none."""
    if text.isascii():
        return text[: max(0, columns)]
    used = 0
    for index, character in enumerate(text):
        used += cells(character)
        if used > columns:
            return text[:index]
    return text


def cells(text: str) -> int:
    """How many columns the text takes on a terminal (Unicode UAX #11; ambiguous ones as narrow)."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )
