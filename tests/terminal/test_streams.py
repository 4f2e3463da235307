"""What a terminal gets and what a pipe gets: colour, width, the live line, and a clean screen at the end."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base import console as module
from mccprobe.base.console import Console, cells, cut_to_width, width

RunCli = Callable[..., Any]
ESCAPE = "\x1b["
TAKE_BACK = "\r\x1b[2K"
LISTING = """\t.text
k:
\t\t[N-sD---]\t\tFOP.MOV R1, SH23
\t\t[N-wD---]\t\tCTRL.END
\t.mtgpu_metadata.start
---
mtgpu.kernels:
  - .arch_id: 220
    .name: k
    .temp_reg_count: 2
mtgpu.version:
  - 1
  - 0
...
\t.mtgpu_metadata.end
"""
COLOR_NAMES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM")


class Stream(io.StringIO):
    """A stream that is a terminal, or is none."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("color", "environment", "on_terminal", "in_pipe"),
    [
        ("auto", {}, True, False),
        ("always", {}, True, True),
        ("never", {"FORCE_COLOR": "1"}, False, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, True, True),
        ("auto", {"NO_COLOR": "1"}, False, False),
        ("auto", {"NO_COLOR": ""}, True, False),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ("auto", {"FORCE_COLOR": "1"}, True, True),
        ("auto", {"FORCE_COLOR": "0"}, True, False),
        ("auto", {"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True, True),
        ("auto", {"TERM": "dumb"}, False, False),
        ("auto", {"CLICOLOR": "0"}, False, False),
        ("auto", {"CLICOLOR": "1"}, True, False),
    ],
)
def test_when_there_is_colour(
    color: str, environment: dict[str, str], on_terminal: bool, in_pipe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in COLOR_NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Console(color=color).colored(Stream(True)) is on_terminal
    assert Console(color=color).colored(Stream(False)) is in_pipe


def test_a_cut_line_counts_columns_and_not_characters() -> None:
    assert cells("abc") == 3
    assert cells("寄存器") == 6
    assert cells("e\u0301") == 1, "an accent that is written apart takes no column"
    assert cut_to_width("寄存器", 5) == "寄存"
    assert cut_to_width("a寄存器", 5) == "a寄存"
    assert cut_to_width("abc", 2) == "ab"
    assert (cut_to_width("寄", 1), cut_to_width("abc", 0), cut_to_width("abc", -3)) == ("", "", "")


def test_the_width_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "47")
    assert width() == 47
    monkeypatch.setenv("COLUMNS", "nonsense")
    assert width() > 0


def a_terminal(monkeypatch: pytest.MonkeyPatch, term: str = "xterm") -> Stream:
    """In the place of standard error, 20 columns wide."""
    stream = Stream(True)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(module, "terminal_width", lambda: 20)
    monkeypatch.setattr(Console, "_live", False)
    return stream


def test_the_live_line_is_taken_back_whoever_writes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = a_terminal(monkeypatch)
    Console().progress("plain", live="寄存器寄存器寄存器\tand\nmore")
    assert shown.getvalue() == TAKE_BACK + "寄存器寄存器寄存器 ", "19 columns, one line"
    Console().always("error: something")
    assert shown.getvalue().endswith(f"{TAKE_BACK}error: something\n")
    Console().always("and more")
    assert shown.getvalue().endswith("something\nand more\n"), "nothing is taken back twice"


def test_escapes_in_progress_do_not_reach_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = a_terminal(monkeypatch)
    Console().progress("x", live="\x1b]0;t\x07")
    assert shown.getvalue() == TAKE_BACK + "\\x1b]0;t\\x07"


def test_elsewhere_a_live_line_alone_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(False)
    monkeypatch.setattr(sys, "stderr", stream)
    Console().progress("", live="file 1 of 3")
    Console().progress("a line", live="another")
    Console(quiet=True).progress("quiet", live="quiet")
    assert stream.getvalue() == "a line\n"


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = a_terminal(monkeypatch, "dumb")
    Console().progress("a line", live="live")
    assert shown.getvalue() == "a line\n"


# --- the real program ---------------------------------------------------------------------------------


def plain(text: str) -> str:
    """The text without colour."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_pipe_gets_no_escape_and_force_gives_some(run_cli: RunCli, tmp_path: Path) -> None:
    listing = tmp_path / "k.s"
    listing.write_text(LISTING, encoding="utf-8")
    piped = run_cli("disasm", listing, env={"TERM": "xterm"})
    assert piped.code == 0 and ESCAPE not in piped.stdout, piped
    report = run_cli("report", listing, env={"TERM": "xterm"})
    forced = run_cli("report", "--color", "always", listing, env={"TERM": "xterm"})
    assert ESCAPE not in report.stdout and ESCAPE in forced.stdout, forced
    for environment in ({"NO_COLOR": "1"}, {"CLICOLOR": "0"}):
        assert ESCAPE not in run_cli("report", listing, env={"TERM": "xterm", **environment}).stdout
    before = run_cli("--color", "always", "report", listing, env={"TERM": "xterm"})
    assert before.stdout == forced.stdout, "the option means the same in front of the command"


@pytest.mark.parametrize("columns", [20, 40, 120])
def test_a_result_on_a_terminal_is_that_of_a_pipe(
    columns: int, on_terminal: Callable[..., Any], run_cli: RunCli
) -> None:
    opened = on_terminal("help", "words", columns=columns)
    assert opened.end() == 0
    assert plain(opened.text).replace("\r\n", "\n") == run_cli("help", "words").stdout


@pytest.mark.toolchain("clang-14")
def test_a_bisection_on_a_terminal_says_what_is_left(on_terminal: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "寄存器.c").write_text(
        '#include <stdio.h>\nint main(void) { volatile int x = 3; printf("%d\\n", x * 2); return 0; }\n', "utf-8"
    )
    opened = on_terminal(
        "bisect",
        "寄存器.c",
        "--toolchain",
        "clang",
        "--compiler",
        "clang-14",
        "--oracle",
        "./check.sh",
        "--",
        "-O2",
        columns=80,
    )
    script = tmp_path / "check.sh"
    script.write_text('#!/bin/sh\n[ "$("$1")" = 6 ]\n', encoding="utf-8")
    script.chmod(0o755)
    code = opened.end()
    assert code in (1, 5), opened.text
    lines = opened.text.split(TAKE_BACK)
    assert any(line.startswith("... compiling") and "so far" in line for line in lines), opened.text
    for line in lines[1:-1]:
        assert cells(line.partition("\r\n")[0]) < 80, "a live line never wraps"


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_a_clean_terminal(
    number: signal.Signals, on_terminal: Callable[..., Any], tmp_path: Path
) -> None:
    check = tmp_path / "check.sh"
    check.write_text("#!/bin/sh\ntouch begun\nsleep 30\n", encoding="utf-8")
    check.chmod(0o755)
    (tmp_path / "a.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    opened = on_terminal(
        "bisect", "a.c", "--toolchain", "clang", "--compiler", "clang-14", "--oracle", f"{check}", "--", "-O2"
    )
    opened.until("...")
    opened.resize(30)
    deadline = 100
    while not list(tmp_path.rglob("begun")) and deadline:
        opened.read(0.2)
        deadline -= 1
    if number is signal.SIGINT:
        opened.type("\x03")
    else:
        os.kill(opened.process.pid, number)
    assert opened.end() == 130, opened.text
    after = opened.text.rpartition(TAKE_BACK)[2]
    assert after.startswith("error: interrupted"), "the live line is gone"
    assert after.endswith("\r\n")
    assert "\x1b[?25l" not in opened.text, "the cursor was never hidden"
    assert "Traceback" not in opened.text


def test_verdicts_are_painted_where_there_is_colour_and_only_there(capsys: pytest.CaptureFixture[str]) -> None:
    text = "SIMULATED: gate NOT PASSED, 3 GOOD, 1 BAD; GOODNESS and BADGE are no verdicts\n"
    Console(color="never").report(text)
    assert capsys.readouterr().out == text
    Console(color="always").report(text)
    painted = capsys.readouterr().out
    assert plain(painted) == text, "the same text"
    assert "\x1b[31mNOT PASSED\x1b[0m" in painted and "\x1b[32mGOOD\x1b[0m," in painted
    assert "GOODNESS" in painted and "BADGE" in painted
