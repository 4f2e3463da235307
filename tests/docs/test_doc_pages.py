"""The rules by which pages are run, on small pages of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_pages import Block, commands, differences, read_page


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a\nb", "a\nb", True),
        ("a\nb", "a\nb\nc", False),
        ("a", "b", False),
        ("a\n...", "a\nb\nc", True),
        ("a\n...", "a", True),
        ("...\nc", "a\nb\nc", True),
        ("...\nb", "a\nb\nc", False),
        ("a\n...\nc\n...\ne", "a\nb\nc\nd\ne", True),
        ("a\n...\nc\n...\ne", "a\nc\ne", True),
        ("a\n...\ne\n...\nc", "a\nb\nc\nd\ne", False),
        ("...\na\nb\n...", "a\nx\na\nb\nz", True),
        ("took ... s", "took 3 s", True),
        ("took ... s", "took 3 min", False),
        ("a.c", "abc", False),
        ("a\nb", "a", False),
        ("...", "", True),
    ],
)
def test_ellipses(expected: str, actual: str, same: bool) -> None:
    assert (differences(tuple(expected.splitlines()), actual.splitlines()) == "") is same


def test_commands_of_a_block() -> None:
    block = Block("console", (), "$ one \\\n  --more\nout\n$ two  # exit 3\n\n$ three\n", 10)
    first, second, third = commands(block)
    assert (first.text, first.expected, first.exit_code, first.line) == ("one \\\n  --more", ("out",), 0, 11)
    assert (second.expected, second.exit_code) == (None, 3)
    assert third.text == "three"


def test_output_without_a_command() -> None:
    with pytest.raises(ValueError, match="line 5: output before the first command"):
        commands(Block("console", (), "hello\n$ one\n", 4))


def test_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\n<!-- file: a as b -->\n<!-- needs: clang-14 -->\n\n```console\n$ true\n```\n\n    mccprobe plan\n\n"
        "```toml file=x/y.toml\na = 1\n```\n\n```\nmake test\n```\n\n| `a b` | [c](d.md) |\n|---|---|\n| e | f |\n"
    )
    read = read_page(page)
    assert [(block.language, block.is_run, block.file) for block in read.blocks] == [
        ("console", True, ""),
        ("", False, ""),
        ("toml", False, "x/y.toml"),
        ("text", False, ""),
    ]
    assert (read.directives("file"), read.directives("needs")) == (["a as b"], ["clang-14"])
    assert (read.code_spans, read.links, read.rows[1]) == (["a b"], ["d.md"], ["e", "f"])
    assert read.headings == [("h1", "Title")]
