"""README.md and its Chinese twin say the same: sections, commands, rows of tables, links, names in code."""

from __future__ import annotations

import re
from pathlib import Path

import click
from doc_pages import Page, command_lines, read_page

from mccprobe.cli import root as cli

ROOT = Path(__file__).resolve().parents[2]
ENGLISH = read_page(ROOT / "README.md")
CHINESE = read_page(ROOT / "README.zh.md")
CODE = re.compile(r"`[^`]+`")
HAN = re.compile(r"[\u4e00-\u9fff]")


def twin(links: list[str]) -> list[str]:
    """The links, those from one README to the other left out."""
    return [link for link in links if not link.startswith("README")]


def lines(page: Page) -> list[str]:
    return [line.split("  # ")[0].rstrip() for block in page.blocks for line in command_lines(block)]


def test_sections() -> None:
    assert [tag for tag, _ in ENGLISH.headings] == [tag for tag, _ in CHINESE.headings]


def test_command_lines_and_what_they_print() -> None:
    assert lines(ENGLISH) == lines(CHINESE)
    assert ENGLISH.blocks[0].text == CHINESE.blocks[0].text, "the transcript"


def test_rows_of_tables() -> None:
    """Row by row the same names in code. Words in the first column are translated."""
    assert len(ENGLISH.rows) == len(CHINESE.rows)
    for ours, theirs in zip(ENGLISH.rows, CHINESE.rows, strict=True):
        assert len(ours) == len(theirs)
        assert CODE.findall(" ".join(ours)) == CODE.findall(" ".join(theirs)), theirs[0]


def test_every_command_has_a_row() -> None:
    named = {word for span in ENGLISH.code_spans for word in re.split(r"[ |]", span.removeprefix("mccprobe "))}
    assert not set(cli.list_commands(click.Context(cli))) - named


def test_links() -> None:
    assert twin(ENGLISH.links) == twin(CHINESE.links)


def test_names_in_code() -> None:
    assert sorted(set(ENGLISH.code_spans)) == sorted(set(CHINESE.code_spans))


def test_the_twin_is_chinese_and_this_one_is_not() -> None:
    assert all(HAN.search(text) for tag, text in CHINESE.headings if tag == "h2" and text != "Kernel")
    assert len(HAN.findall(ENGLISH.text)) < 10, "the link to the twin alone"
