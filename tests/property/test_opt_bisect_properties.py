"""LogReader equals a line parser that anybody can read, whatever the text and however it is cut."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from mccprobe.targets.llvm.opt_bisect import LogReader, LogSummary, parse_line

PREFIX = re.compile(rb"BISECT: (NOT )?running pass \((\d+)\)")


def straightforward(data: bytes, around: int) -> tuple[int, int, int | None, str, bytes]:
    """total, ran, number looked at, function, other text: one line after the other."""
    total = ran = 0
    at, function, loop_function, text = None, "", "", b""
    for raw in data.splitlines(keepends=True) if b"\r" not in data else re.findall(rb"[^\n]*\n|[^\n]+", data):
        found = PREFIX.match(raw)
        if not found:
            text += raw
            continue
        total = int(found[2])
        ran += not found[1]
        execution = parse_line(raw.decode("utf-8", "replace").removesuffix("\n"))
        if execution is None:
            continue
        if around and execution.number < around and execution.name in ("LoopSimplifyPass", "LCSSAPass"):
            loop_function = execution.function
        elif around and execution.number == around:
            at = execution
            function = execution.function
            if not function and execution.is_loop and execution.target != "loop":
                function = loop_function
        elif at is not None and not function and at.is_loop:
            function = execution.function
    return total, ran, at.number if at else None, function, text


TARGETS = st.sampled_from(
    ["f", "loop", "[module]", "(f, g)", "<unnamed loop>", "Loop at depth 1 containing: %1<header>", "a b (c)",
     "loop %x in function g h", "function (f)", "function (g (h))", ".preheader"]
)  # fmt: skip
NAMES = st.sampled_from(
    ["LoopSimplifyPass", "LCSSAPass", "LICMPass", "SROAPass", "SROA", "Loop Strength Reduction", "Peephole work",
     "LoopVectorizePass"]
)  # fmt: skip
OTHER = st.sampled_from(
    [b"", b"warning: w", b"running pass (4)", b"BISECT: hello", b" BISECT: running pass (9) A on f", b"\xff\xfe"]
)  # fmt: skip


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Numbered lines with other text between them; the last line may be unterminated."""
    data = b""
    number = 0
    for _ in range(draw(st.integers(0, 25))):
        if draw(st.integers(0, 3)) == 0:
            data += draw(OTHER) + b"\n"
            continue
        number += 1
        words = draw(st.sampled_from(["running", "running", "NOT running"]))
        data += f"BISECT: {words} pass ({number}) {draw(NAMES)} on {draw(TARGETS)}\n".encode()
    if draw(st.booleans()):  # killed in the middle of a line
        return data + draw(st.sampled_from([b"w", b"BISECT: running pass (", b"BISECT: NOT running pass (3"]))
    return data.removesuffix(b"\n") if draw(st.booleans()) else data


@given(logs(), st.integers(1, 30), st.lists(st.integers(1, 60), max_size=60))
def test_equals_a_line_parser(data: bytes, around: int, cuts: list[int]) -> None:
    reader = LogReader(around)
    text = b""
    at = 0
    for size in [*cuts, len(data)]:
        text += reader.feed(data[at : at + size])
        at += size
    summary, rest = reader.finish()
    seen = (summary.total, summary.ran, summary.at.number if summary.at else None, summary.function, text + rest)
    assert seen == straightforward(data, around)


@given(st.binary(max_size=400), st.integers(0, 5), st.integers(1, 50))
def test_any_bytes_are_read(data: bytes, around: int, size: int) -> None:
    reader = LogReader(around)
    text = b"".join(reader.feed(data[at : at + size]) for at in range(0, len(data), size))
    summary, rest = reader.finish()
    if b"running pass (" not in data:
        assert (text + rest, summary) == (data, LogSummary(0, 0))
