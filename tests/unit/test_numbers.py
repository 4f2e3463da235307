"""A number and its noun: what the user reads counts as people do."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import mccprobe
from mccprobe.base.console import number_of
from mccprobe.bisection.passes.determinism import Determinism

EITHER = re.compile(r"[a-z]\(e?s\)")  # `place(s)`


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (number_of(0, "file"), "0 files"),
        (number_of(1, "file"), "1 file"),
        (number_of(1, "mix", "mixes"), "1 mix"),
        (number_of(2, "mix", "mixes"), "2 mixes"),
        (number_of(1024, "run", style=","), "1,024 runs"),
        (number_of(1024, "run"), "1024 runs"),
    ],
)
def test_a_number_with_its_noun(number: str, text: str) -> None:
    assert number == text


def test_objects_that_were_seen_once() -> None:
    told = Determinism(limit=None, objects=(("a" * 64, 1), ("b" * 64, 2)), failed=1).describe()
    assert "aaaaaaaaaaaa 1 time, bbbbbbbbbbbb 2 times, no object 1 time" in told


def test_no_text_leaves_the_choice_to_the_reader() -> None:
    found = [
        f"{path.name}:{node.lineno}: {node.value}"
        for path in Path(mccprobe.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and EITHER.search(node.value)
    ]
    assert EITHER.search("2 place(s)") and not found
