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
from typing import Any

_LINE = re.compile(r"BISECT: (NOT )?running pass \((\d{1,18})\) (.*)$", re.DOTALL)
# How the legacy pass manager (the code generator's) writes its targets; its titles may hold " on " as well.
_LEGACY = re.compile(r"(.*) on ((?:function|module|SCC|region) \(.*\)|basic block \(.*\) in function \(.*\)|loop)$")
_RUNNING = b"BISECT: running pass ("
_SKIPPED = b"BISECT: NOT running pass ("
_TEXT_LINE = re.compile(rb"^(?!BISECT: (?:NOT )?running pass \()[^\n]*\n", re.MULTILINE)
_NUMBER = re.compile(rb"BISECT: (?:NOT )?running pass \((\d{1,18})\)")
_NAMES_FUNCTION = re.compile(
    rb"^BISECT: (?:NOT )?running pass \(\d+\) (?:LoopSimplifyPass|LCSSAPass) on ([^\n]+)$", re.MULTILINE
)
KEPT_TAIL_BYTES = 64 << 10  # of one line; what is longer names thousands of functions or blocks
_RECENT_BYTES = 1 << 10  # before the last line, for its context

# New pass manager: passes whose target is a loop, not a function. LoopSimplifyPass and LCSSAPass are
# function passes, and what names the function for the loop passes behind them
# (llvm/lib/Passes/PassRegistry.def, LOOP_PASS and LOOPNEST_PASS).
_FUNCTION_PASSES_NAMED_LOOP = frozenset(
    ("LoopSimplifyPass", "LoopVectorizePass", "LoopUnrollPass", "LoopDistributePass", "LoopSinkPass",
     "LoopLoadEliminationPass", "LoopDataPrefetchPass", "LoopFusePass", "LoopVersioningPass",
     "LoopAccessInfoPrinterPass")
)  # fmt: skip
_LOOP_PASSES = frozenset(
    ("LICMPass", "LNICMPass", "IndVarSimplifyPass", "SimpleLoopUnswitchPass", "CanonicalizeFreezeInLoopsPass")
)
_LOOP_TARGETS = ("Loop at depth ", "Parallel Loop at depth ", "loop %", "<unnamed loop>")


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
        if self.target == "loop":
            return " " in self.name  # a title of the code generator; behind a class name it is a function
        if self.target.startswith(_LOOP_TARGETS) or self.name in _LOOP_PASSES:
            return True
        called_loop = self.name.startswith("Loop") and self.name.endswith("Pass")
        return called_loop and self.name not in _FUNCTION_PASSES_NAMED_LOOP

    @property
    def function(self) -> str:
        """The function that the line itself names, "" if none; of an SCC all of its functions."""
        target = self.target
        if target.startswith("loop %"):
            return target.partition(" in function ")[2]
        for opening in ("function (", "SCC (", "("):
            if target.startswith(opening) and target.endswith(")"):
                return target[len(opening) : -1]
        if target.startswith("basic block (") and target.endswith(")"):
            return target[:-1].rpartition(" in function (")[2]
        if self.is_loop or target == "[module]" or target.startswith(("module (", "region (")):
            return ""
        return target


def parse_line(line: str) -> PassExecution | None:
    """One BISECT line, None for any other text."""
    found = _LINE.match(line)
    if not found:
        return None
    name, on, target = found.group(3).partition(" on ")
    legacy = _LEGACY.match(found.group(3)) if " " in name else None
    if legacy:
        name, target = legacy.groups()
    elif not on:
        return None
    return PassExecution(int(found.group(2)), name, target, found.group(1) is None)


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

    def to_dict(self) -> dict[str, Any]:
        """For the journal."""
        return {
            "total": self.total,
            "ran": self.ran,
            "function": self.function,
            "function_from": self.function_from,
            "at": None if self.at is None else [self.at.number, self.at.name, self.at.target, self.at.ran],
            "around": list(self.around),
        }

    @classmethod
    def from_dict(cls, entry: dict[str, Any]) -> LogSummary:
        """Read back. Raises KeyError, TypeError or ValueError for what `to_dict` did not write."""
        at, around = entry["at"], entry["around"]
        if at is not None and [type(part) for part in at] != [int, str, str, bool]:
            raise TypeError("at")
        if not isinstance(around, list) or not all(isinstance(line, str) for line in around):
            raise TypeError("around")
        if not isinstance(entry["function"], str) or not isinstance(entry["function_from"], str):
            raise TypeError("function")
        if type(entry["total"]) is not int or type(entry["ran"]) is not int:
            raise TypeError("total")
        return cls(
            entry["total"],
            entry["ran"],
            None if at is None else PassExecution(*at),
            entry["function"],
            entry["function_from"],
            tuple(around),
        )


class LogReader:
    """Feed chunks of standard error; get back what is not BISECT text, byte for byte and in order.

    around: the execution number to look at closely; 0: the last one.
    """

    CONTEXT_LINES = 3

    def __init__(self, around: int = 0) -> None:
        self._around = around
        self._tail = b""
        self._overlong = ""  # in the middle of a line that is too long: "bisect" or "text"
        self._total = 0
        self._ran = 0
        self._at: PassExecution | None = None
        self._loop_function = ""  # named by the last LoopSimplify or LCSSA line
        self._function = ""
        self._function_from = ""
        self._context: list[str] = []
        self._after = 0
        self._done = False
        self._recent = b""

    def feed(self, chunk: bytes) -> bytes:
        """Take one chunk, return the text in it that is not BISECT output."""
        text = b""
        if self._overlong:
            end = chunk.find(b"\n") + 1 or len(chunk)
            text = chunk[:end] if self._overlong == "text" else b""
            if not chunk[:end].endswith(b"\n"):
                return text
            self._overlong = ""
            chunk = chunk[end:]
        data = self._tail + chunk
        cut = data.rfind(b"\n") + 1
        self._tail = data[cut:]
        text += self._lines(data[:cut])
        if len(self._tail) > KEPT_TAIL_BYTES:
            text += self._unfinished()
        return text

    def _unfinished(self) -> bytes:
        """Take the unfinished line as it is: number and pass stand at its beginning."""
        line, self._tail = self._tail, b""
        if _NUMBER.match(line):
            self._overlong = "bisect"
            self._lines(line + b"\n")
            return b""
        self._overlong = "text"
        return line

    def _lines(self, data: bytes) -> bytes:
        ran = data.count(b"\n" + _RUNNING) + data.startswith(_RUNNING)
        marks = ran + data.count(b"\n" + _SKIPPED) + data.startswith(_SKIPPED)
        if not marks:
            return data
        self._ran += ran
        # where neither stands behind a newline, the data begins with it
        last = max(data.rfind(b"\n" + _RUNNING), data.rfind(b"\n" + _SKIPPED)) + 1
        number = _NUMBER.match(data, last)
        if number:
            self._total = int(number.group(1))
        if not self._around:
            self._recent = data[max(0, last - _RECENT_BYTES) : data.find(b"\n", last)]
        elif not self._done:
            self._look(data)
        return b"".join(_TEXT_LINE.findall(data)) if data.count(b"\n") != marks else b""

    def _look(self, data: bytes) -> None:
        if self._total < self._around - self.CONTEXT_LINES:
            # far before the execution: only the last function named for loop passes matters
            if b" LoopSimplifyPass on " in data or b" LCSSAPass on " in data:
                named = _NAMES_FUNCTION.findall(data)
                if named:
                    self._loop_function = named[-1].decode("utf-8", "replace")
            return
        for raw in data.split(b"\n"):
            line = raw.decode("utf-8", "replace")
            execution = parse_line(line)
            if execution is None:
                continue
            self._see(execution, line)
            if self._done:
                return

    def _see(self, execution: PassExecution, line: str) -> None:
        if execution.number < self._around:
            if execution.name in ("LoopSimplifyPass", "LCSSAPass"):
                self._loop_function = execution.function
            if execution.number >= self._around - self.CONTEXT_LINES:
                self._context.append(line)
        elif execution.number == self._around:
            self._at = execution
            self._context.append(line)
            if execution.function:
                self._function, self._function_from = execution.function, "log"
            elif execution.is_loop and execution.target != "loop" and self._loop_function:
                self._function, self._function_from = self._loop_function, "inferred"
        elif self._at is not None:
            self._after += 1
            if self._after <= self.CONTEXT_LINES:
                self._context.append(line)
            if not self._function and self._at.is_loop and execution.function:
                # legacy loop passes of the code generator are followed by lines that name it
                self._function, self._function_from = execution.function, "inferred"
            self._done = self._after >= self.CONTEXT_LINES and bool(self._function or not self._at.is_loop)

    def finish(self) -> tuple[LogSummary, bytes]:
        """The summary, and the text of an unfinished last line."""
        rest = self._unfinished() if self._tail else b""
        if not self._around:
            self._look_back()
        seen = (self._at, self._function, self._function_from, tuple(self._context))
        return LogSummary(self._total, self._ran, *seen), rest

    def _look_back(self) -> None:
        lines = [raw.decode("utf-8", "replace") for raw in self._recent.split(b"\n")]
        executions = [(execution, line) for line in lines if (execution := parse_line(line)) is not None]
        for execution, line in executions[-1 - self.CONTEXT_LINES :]:
            self._at = execution
            self._context.append(line)
        if self._at is not None and self._at.function:
            self._function, self._function_from = self._at.function, "log"
