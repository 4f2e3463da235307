"""The text that `-opt-bisect-limit` prints, read as a stream.

Line shape on clang 13 to 19: `BISECT: [NOT ]running pass (N) NAME on TARGET`. One counter runs
from the IR passes into the code generator and starts again for each compile. Only numbers up to
the limit are stable from run to run, so a log is read from the run with that limit, and the total
from the unlimited run alone (llvm/docs/OptBisect.rst).

A header-heavy translation unit prints over 100,000 lines (17 MB): chunks are counted with C-speed
searches and dropped; only the lines around one number are parsed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"BISECT: (NOT )?running pass \((\d+)\) (.*?) on (.*)$")
_RUNNING = b"BISECT: running pass ("
_ANY = b"running pass ("
_NOT_BISECT = re.compile(rb"^(?!BISECT: )[^\n]*\n?", re.MULTILINE)
_NUMBER = re.compile(rb"^BISECT: (?:NOT )?running pass \((\d+)\)", re.MULTILINE)
_LOOP_FUNCTION = re.compile(rb"^BISECT: running pass \(\d+\) (?:LoopSimplifyPass|LCSSAPass) on ([^\n]+)$", re.MULTILINE)
KEPT_TAIL_BYTES = 64 << 10  # an incomplete last line longer than this is given up

# Passes whose target is a loop, not a function (new pass manager). LoopSimplifyPass and LCSSAPass
# are function passes and are what names the function for the loop passes behind them.
_FUNCTION_PASSES_NAMED_LOOP = frozenset(
    "LoopSimplifyPass LoopVectorizePass LoopUnrollPass LoopDistributePass LoopLoadEliminationPass LoopSinkPass "
    "LoopDataPrefetchPass LoopFusePass LoopUnrollAndJamPass LoopVersioningPass LoopAccessInfoPrinterPass".split()
)
_LOOP_PASSES = frozenset("LICMPass LNICMPass IndVarSimplifyPass SimpleLoopUnswitchPass".split())


@dataclass(frozen=True)
class PassExecution:
    """One line of the log. target is the text after "on", as printed."""

    number: int
    name: str
    target: str
    ran: bool

    @property
    def is_loop(self) -> bool:
        """True when the target is a loop: the log then names no function (before clang 19)."""
        lowered = self.target.lower()
        if lowered == "loop" or lowered.startswith(("loop at depth", "parallel loop at depth", "loop %", "<unnamed")):
            return True
        if lowered.endswith("<unnamed loop>"):
            return True
        if self.name in _LOOP_PASSES:
            return True
        return self.name.startswith("Loop") and self.name.endswith("Pass") and self.name not in _FUNCTION_PASSES_NAMED_LOOP

    @property
    def function(self) -> str:
        """The function that the line itself names, "" if none."""
        target = self.target.strip()
        inside = re.search(r" in function (\S+)$", target)
        if inside:
            return inside.group(1)
        if target.startswith("function (") and target.endswith(")"):
            return target[len("function (") : -1]
        if self.is_loop or target in ("[module]", "module"):
            return ""
        if target.startswith("module ") or target.startswith("basic block"):
            return ""
        if target.startswith("(") and target.endswith(")"):  # a strongly connected component
            return target[1:-1]
        return target


def parse_line(line: str) -> PassExecution | None:
    """One BISECT line, None for any other text."""
    found = _LINE.match(line)
    if not found:
        return None
    return PassExecution(int(found.group(2)), found.group(3), found.group(4), found.group(1) is None)


@dataclass(frozen=True)
class LogSummary:
    """What is kept of one compile's log.

    total: number of the last line; ran: lines that say "running" (not "NOT running").
    at: the execution asked for; function and function_from ("log" | "inferred" | "") belong to it.
    """

    total: int
    ran: int
    at: PassExecution | None = None
    function: str = ""
    function_from: str = ""
    around: tuple[str, ...] = ()


class LogReader:
    """Feed chunks of standard error; get back what is not BISECT text.

    around: the execution number to look at closely, 0 for none.
    """

    CONTEXT_LINES = 3

    def __init__(self, around: int = 0) -> None:
        self._around = around
        self._tail = b""
        self._total = 0
        self._ran = 0
        self._at: PassExecution | None = None
        self._loop_function = ""  # named by the last LoopSimplify or LCSSA line
        self._function = ""
        self._function_from = ""
        self._context: list[str] = []
        self._after = 0

    def feed(self, chunk: bytes) -> bytes:
        """Take one chunk, return the text in it that is not BISECT output."""
        data = self._tail + chunk
        cut = data.rfind(b"\n") + 1
        self._tail = data[cut:]
        if len(self._tail) > KEPT_TAIL_BYTES:
            self._tail, data, cut = b"", data, len(data)
        return self._lines(data[:cut])

    def _lines(self, data: bytes) -> bytes:
        marks = data.count(_ANY)
        if not marks:
            return data
        self._ran += data.count(_RUNNING)
        last = data.rfind(b"BISECT: ")
        number = _NUMBER.match(data[last:]) if last >= 0 else None
        if number:
            self._total = int(number.group(1))
        if self._around and not (self._function and self._after >= self.CONTEXT_LINES):
            self._look(data)
        return b"".join(_NOT_BISECT.findall(data)) if self._has_other(data, marks) else b""

    @staticmethod
    def _has_other(data: bytes, marks: int) -> bool:
        return data.count(b"\n") != marks

    def _look(self, data: bytes) -> None:
        if self._total < self._around - self.CONTEXT_LINES:
            # far before the execution: only the last function named for loop passes matters
            named = _LOOP_FUNCTION.findall(data)
            if named:
                self._loop_function = named[-1].decode("utf-8", "replace")
            return
        for raw in data.split(b"\n"):
            execution = parse_line(raw.decode("utf-8", "replace"))
            if execution is None:
                continue
            if execution.number < self._around:
                if execution.name in ("LoopSimplifyPass", "LCSSAPass") and execution.function:
                    self._loop_function = execution.function
                if execution.number >= self._around - self.CONTEXT_LINES:
                    self._context.append(raw.decode("utf-8", "replace"))
            elif execution.number == self._around:
                self._at = execution
                self._context.append(raw.decode("utf-8", "replace"))
                if execution.function:
                    self._function, self._function_from = execution.function, "log"
                elif execution.is_loop and execution.target.strip() != "loop" and self._loop_function:
                    self._function, self._function_from = self._loop_function, "inferred"
            elif self._at is not None:
                self._after += 1
                if self._after <= self.CONTEXT_LINES:
                    self._context.append(raw.decode("utf-8", "replace"))
                if not self._function and self._at.is_loop and execution.function:
                    # legacy loop passes of the code generator are followed by lines that name it
                    self._function, self._function_from = execution.function, "inferred"
                if self._after >= self.CONTEXT_LINES and (self._function or not self._at.is_loop):
                    return

    def finish(self) -> tuple[LogSummary, bytes]:
        """The summary, and what was left of an unfinished last line."""
        rest = self._lines(self._tail + b"\n") if self._tail else b""
        self._tail = b""
        return (
            LogSummary(self._total, self._ran, self._at, self._function, self._function_from, tuple(self._context)),
            rest,
        )
