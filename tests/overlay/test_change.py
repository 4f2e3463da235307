"""A change applies exactly once or not at all; a diff says what was done."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import BadDataFile, PatchDoesNotApply, UsageError
from mccprobe.tuning.overlay.change import apply_once, difference, parse_patch, replacement

LINES = st.lists(
    st.sampled_from(["a\n", "b\n", "c\x0c\n", "d\r\n", "e\u2028f\n", "\n", "-c\n", "+d\n", "@@ -1 +1 @@\n", "--- x\n"]),
    min_size=1, max_size=9,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "old", "count"),
    [("int x = 32;", "32", 1), ("int x = 8;", "32", 0), ("32 + 32", "32", 2), ("aaa", "aa", 2), ("a.b", "a?b", 0)],
)
def test_the_count(text: str, old: str, count: int) -> None:
    change = replacement(old, "8")
    if count == 1:
        assert apply_once(text, [change], "h") == text.replace(old, "8")
        return
    with pytest.raises(PatchDoesNotApply) as caught:
        apply_once(text, [change], "mma.h")
    assert caught.value.count == count
    assert ("nowhere" if count == 0 else f"{count} times") in caught.value.message


def test_changes_follow_each_other() -> None:
    changes = [replacement("a", "b1"), replacement("b1", "c")]
    assert apply_once("xay", changes, "h") == "xcy"


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("x", "x")])
def test_replacements_that_make_no_sense(old: str, new: str) -> None:
    with pytest.raises(UsageError):
        replacement(old, new)


@settings(max_examples=150)
@given(LINES, LINES)
def test_a_diff_of_ours_gives_the_text_or_the_count(before: list[str], after: list[str]) -> None:
    old, new = "".join(before), "".join(after)
    patch = difference(old, new, "crt/mma.h")
    if old == new:
        assert patch == ""
        return
    try:
        changes = parse_patch(patch, "p")
    except BadDataFile as error:
        assert "no line to be found by" in error.message
        return
    try:
        made = apply_once(old, changes, "h")
    except PatchDoesNotApply as error:
        assert error.count >= 2 or len(changes) > 1
        return
    assert made == new


def test_a_real_diff_and_the_real_patch(tmp_path: Path) -> None:
    before = "one\ntwo\nclass f : public base<float, 32> {};\nthree\nfour\n"
    after = before.replace("32", "8")
    (tmp_path / "crt").mkdir()
    file = tmp_path / "crt" / "mma.h"
    file.write_text(before)
    patch = difference(before, after, "crt/mma.h")
    assert patch.splitlines()[2:] == [
        "@@ -2,3 +2,3 @@",
        " two",
        "-class f : public base<float, 32> {};",
        "+class f : public base<float, 8> {};",
        " three",
    ]
    subprocess.run(["patch", "-p1"], input=patch.encode(), cwd=tmp_path, check=True, capture_output=True)
    assert file.read_text() == after
    moved = "new first line\n" * 7 + before
    assert apply_once(moved, parse_patch(patch, "p"), "h") == "new first line\n" * 7 + after, "line numbers may drift"
    with pytest.raises(PatchDoesNotApply, match="2 times"):
        apply_once(before + before, parse_patch(patch, "p"), "h")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no hunk"),
        ("just words\n", "no hunk"),
        (f"@@ -1,{'9' * 5000} +1 @@\n-a\n+b\n", "no hunk"),
        ("@@ -1,2 +1,2 @@\n a\n", "cut off"),
        ("@@ -0,0 +1 @@\n+x\n", "no line to be found by"),
        ("@@ -1 +1 @@\n a\n", "changes nothing"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "changes 2 files"),
    ],
)
def test_bad_patches(text: str, said: str) -> None:
    with pytest.raises(BadDataFile, match=said):
        parse_patch(text, "p")


def test_the_end_of_a_file_without_a_newline() -> None:
    for before, after in (("a\nb", "a\nc"), ("a\nb", "a\nb\n"), ("a\nb\n", "a\nb"), ("x\na\nb", "x\na\nb\nc")):
        (change,) = parse_patch(difference(before, after, "h"), "p")
        assert apply_once(before, [change], "h") == after
    (change,) = parse_patch(difference("a\nb", "a\nc", "h"), "p")
    with pytest.raises(PatchDoesNotApply):
        apply_once("a\nb\nmore\n", [change], "h")


def test_line_ends() -> None:
    """A header with CR LF takes a diff of its own; of another's it is said that the line ends differ."""
    before, after = "one\r\nint x = 32;\r\n\r\ntwo\r\n", "one\r\nint x = 8;\r\n\r\ntwo\r\n"
    patch = difference(before, after, "h")
    assert apply_once(before, parse_patch(patch, "p"), "h") == after
    assert apply_once(before, parse_patch(patch.replace("\n \r\n", "\n\r\n"), "p"), "h") == after, "a blank was lost"
    unix = parse_patch(patch.replace("\r\n", "\n"), "p")
    with pytest.raises(PatchDoesNotApply) as caught:
        apply_once(before, unix, "h")
    assert "CR LF" in caught.value.hint


def test_a_replacement_may_end_with_a_line() -> None:
    assert apply_once("int x = 32;\nint y;\n", [replacement("32;\n", "8;\n")], "h") == "int x = 8;\nint y;\n"


def test_a_hunk_begins_a_line() -> None:
    (change,) = parse_patch("@@ -1 +1 @@\n-x;\n+y;\n", "p")
    assert apply_once("max;\nx;\n", [change], "h") == "max;\ny;\n"
