"""Tables on a terminal: within its width, nothing lost, without colour where none is wanted; plain lines elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.base.console import cells
from mccprobe.report.terminal_table import LEAST_VALUE, Column, terminal_table
from mccprobe.targets.flags.catalogue import load_catalogue

RunCli = Callable[..., Any]
Open = Callable[..., Any]
LISTING = Path(__file__).resolve().parents[1] / "isa" / "data" / "gemm-loop-mp22.s"
WORDS = st.text("abyz019-=_,.\u6f22\u5b57", min_size=1, max_size=30)
# commands that list things, each with a heading of its table that its plain lines do not have
LISTS = {
    ("flags", "list"): "purpose", ("journal", "list"): "kernel, flags", ("toolchains",): "version",
    ("report", str(LISTING)): "blocks/MP",
}  # fmt: skip


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=6), st.integers(1, 120))
def test_no_character_of_a_cell_is_lost_at_any_width(rows: list[tuple[str, str, str]], width: int) -> None:
    columns = (Column("A", fold=4), Column("B", right=True), Column("C", fold=2))
    lines = terminal_table(columns, rows, width, color=False)
    heads = 1 if lines[0].split() == ["A", "B", "C"] else len(rows)  # a table, or cell below cell
    told = Counter("".join(lines).replace(" ", ""))
    assert told == Counter("".join(map("".join, rows)) + "ABC" * heads)
    assert all(cells(line) <= max(width, LEAST_VALUE + len("  A") + 2) for line in lines)


def test_a_table_without_room_becomes_lines_of_one_cell() -> None:
    """A terminal would break each line of a table in the middle."""
    columns = (Column("name", fold=8), Column("bytes", right=True), Column("what it is for", fold=12))
    rows = [("gemm", "37,396", "a long sentence about it, \u6f22\u5b57"), ("barrier", "", "short")]
    assert terminal_table(columns, rows, 27, color=False) == [
        "name              gemm",
        "  bytes           37,396",
        "  what it is for  a long",
        "                  sentence",
        "                  about it,",
        "                  \u6f22\u5b57",
        "",
        "name              barrier",
        "  what it is for  short",
    ]


def test_what_folds_gives_way_and_what_does_not_stays_whole() -> None:
    columns = (Column("name", fold=4), Column("bytes", right=True), Column("what", fold=6))
    rows = [("gemm", "37,396", "a long sentence about it"), ("a_long_name", "0", "short")]
    assert terminal_table(columns, rows, 34, color=False) == [
        "name          bytes  what",
        "gemm         37,396  a long",
        "                     sentence",
        "                     about it",
        "a_long_name       0  short",
    ]


def test_cells_cannot_steer_the_terminal() -> None:
    lines = terminal_table((Column("name", fold=4),), [("k\x1b[31m\nx[bold]",)], 40, color=True)
    assert len(lines) == 2 and "\x1b[31m" not in lines[1] and "[bold]" in lines[1]


@pytest.fixture
def journal(run_cli: RunCli, tmp_path: Path) -> Path:
    """A folder with a journal of one note."""
    run = run_cli("journal", "note", "tried it once, \x1b[31mand never again", "--kernel", "gemm", cwd=tmp_path)
    assert run.code == 0, run
    return tmp_path


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_a_terminal_gets_a_table_and_a_pipe_gets_lines(
    command: tuple[str, ...], journal: Path, on_terminal: Open, run_cli: RunCli
) -> None:
    head = LISTS[command]
    piped = run_cli(*command, cwd=journal)
    assert piped.code == 0, piped
    assert "\x1b" not in piped.stdout and not re.search(rf"^.*\b{head}\s*$", piped.stdout, re.MULTILINE)
    for columns, environment, coloured in ((120, {}, True), (60, {"NO_COLOR": "1"}, False)):
        shown = on_terminal(*command, columns=columns, cwd=journal, env=environment)
        assert shown.end() == 0, shown.text
        assert head.split(",")[0] in shown.text.split("\r\n\r\n")[0]
        assert ("\x1b[1m" in shown.text) is coloured
        assert "\x1b[31mand" not in shown.text


def test_flags_on_a_terminal_have_their_whole_purpose(on_terminal: Open) -> None:
    shown = on_terminal("flags", "list", columns=90, env={"NO_COLOR": "1"})
    assert shown.end() == 0, shown.text
    text = shown.text.replace("\r\n", "\n")
    assert max(map(cells, text.split("\n"))) <= 90
    words = set(text.split())
    longest = max(load_catalogue().flags.values(), key=lambda flag: len(flag.purpose))
    assert {word for word in longest.purpose.split() if len(word) < 20} <= words
