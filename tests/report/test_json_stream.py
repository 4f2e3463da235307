"""A document written piece by piece is the text that `console.json_text` makes of it at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.base.console import json_text
from mccprobe.report import json_stream
from mccprobe.report.json_stream import iter_json

SCALARS = st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_characters="\x7f"), max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=30,
)  # fmt: skip


@given(VALUES, st.integers(0, 6), st.booleans())
def test_the_text_is_that_of_json(value: Any, depth: int, ascii_only: bool) -> None:
    text = "".join(iter_json(value, depth, ascii_only=ascii_only))
    assert text == json_text(value, ascii_only=ascii_only)


def test_pieces_end_with_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "PIECE_CHARACTERS", 40)
    value = {"kernels": [{"name": f"k{number}", "text": "a\nb", "none": {}} for number in range(20)]}
    pieces = list(iter_json(value, 2))
    assert len(pieces) > 10
    assert all(piece.endswith("\n") for piece in pieces)
    assert json.loads("".join(pieces)) == value


class _Record:
    def to_dict(self) -> dict[str, int]:
        return {"a": 1}


def test_records_names_that_are_no_utf8_and_large_numbers() -> None:
    shown = json.loads("".join(iter_json({"records": [_Record()], "name": "k\udcff", "large": 1 << 80}, 2)))
    assert shown == {"records": [{"a": 1}], "name": "k\udcff", "large": 1 << 80}


def test_without_orjson_the_text_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"kernels": [{"name": "k", "numbers": [1, 2.5, None]}], "none": {}}
    monkeypatch.setattr(json_stream, "_orjson", lambda: None)
    assert "".join(iter_json(value, 2)) == json_text(value)
