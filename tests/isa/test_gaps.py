"""Alignment where little is left: gaps of one line, repeated lines, lines at the ends. The pairs are known by hand."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.objects.isa.align import SMALL_CELLS, by_occurrence, in_order
from mccprobe.objects.isa.change import FunctionChange, compare
from mccprobe.objects.isa.pipes import pipe_table
from mccprobe.objects.isa.records import Function, Instruction


@pytest.mark.parametrize("cells", [SMALL_CELLS, 0])
@pytest.mark.parametrize(
    ("left", "right", "pairs"),
    [
        # p and q, r and s keep the ends apart; a and b stand once on both sides, x stands in gaps of one
        ("paxbxq", "raxbxs", [(1, 1), (2, 2), (3, 3), (4, 4)]),
        ("pxaxbq", "rxaxbs", [(1, 1), (2, 2), (3, 3), (4, 4)]),  # a gap of one before the first anchor too
        ("paxbq", "raxxbs", [(1, 1), (2, 2), (3, 4)]),  # one line in the gap, two on the other side
        ("paxxbq", "raxbs", [(1, 1), (2, 2), (4, 3)]),
        ("paxbq", "rabxs", [(1, 1), (3, 2)]),  # the x of A lies in another gap than the x of B: a move, no pair
        ("paxbq", "rabs", [(1, 1), (3, 2)]),
        ("x", "x", [(0, 0)]),
        ("x", "y", []),
        ("", "x", []),
        ("x", "", []),
        ("x", "axb", [(0, 1)]),
        ("axb", "x", [(1, 0)]),
        ("paxxq", "rxxas", [(1, 3)]),  # what stands once on both sides is paired first, even where that costs pairs
        ("pxaxbq", "raxxbs", [(2, 1), (3, 2), (4, 4)]),  # the x before a is not the x behind it
    ],
)
def test_pairs_in_order(
    left: str, right: str, pairs: list[tuple[int, int]], cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same whether what lies between is looked at in full or (cells 0) is too long for that."""
    monkeypatch.setattr("mccprobe.objects.isa.align.SMALL_CELLS", cells)
    assert in_order(left, right) == pairs


@pytest.mark.parametrize(("cells", "inside"), [(SMALL_CELLS, 3), (0, 2)])
def test_between_anchors_is_a_world_of_its_own(cells: int, inside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three letters are common to both; the i-th x with the i-th x and the i-th y with the i-th y: two do not cross."""
    monkeypatch.setattr("mccprobe.objects.isa.align.SMALL_CELLS", cells)
    left, right = "paxyxybq", "rayxyxbs"
    pairs = in_order(left, right)
    assert {(1, 1), (6, 6)} < set(pairs) and len(pairs) == 2 + inside
    assert all(left[a] == right[b] for a, b in pairs)
    assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(pairs))


def longest_common(left: str, right: str) -> int:
    """By trying: the length of the longest text that is in both, as a subsequence."""

    def parts(text: str, size: int) -> set[str]:
        return {"".join(text[place] for place in places) for places in combinations(range(len(text)), size)}

    return next(size for size in range(len(left), -1, -1) if parts(left, size) & parts(right, size))


@settings(max_examples=40, deadline=None)
@given(st.text("xyz", max_size=4), st.text("xyz", max_size=4))
def test_of_repeated_lines_as_many_are_paired_as_can_be(left: str, right: str) -> None:
    """Doubled, no line stands once: no anchors, so the longest common subsequence is asked for."""
    left, right = left + left, right + right
    longest = longest_common(left, right)
    assert len(in_order(left, right)) == longest
    parted = in_order(f"l{left}|{left}m", f"r{right}|{right}s")  # the same on both sides of a line that stands once
    assert len(parted) == 2 * longest + 1 and (len(left) + 1, len(right) + 1) in parted


def test_by_occurrence() -> None:
    assert by_occurrence("xyx", "xxxy") == [(0, 0), (1, 3), (2, 1)]
    assert by_occurrence("xxx", "ax") == [(0, 1)]
    assert by_occurrence("a", "b") == []


# --- functions --------------------------------------------------------------------------------------


def function(*texts: str) -> Function:
    find = pipe_table("mtgpu").find
    made = []
    for text in texts:
        mnemonic, _, operands = text.partition(" ")
        made.append(Instruction(None, None, mnemonic, operands, text, find(mnemonic).pipe))
    return Function("k", tuple(made))


def entries(change: FunctionChange) -> list[str]:
    """`changed 1 2`: the kind, the line of A, the line of B, a dash where there is none."""
    shown = []
    for one in change.entries:
        places = ["-" if place is None else str(place) for place in (one.left, one.right)]
        shown.append(" ".join([one.kind, *places]))
    return shown


FIRST, SECOND, LAST = "FOP.MOV R1, SH23", "AP.BARRIER LM4", "CTRL.END"
ADD, ADD_OTHER, MUL = "INT.ADD R3, R1, C4", "INT.ADD R3, R1, C5", "INT.MUL R3, R1, C4"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([FIRST, ADD, LAST], [FIRST, ADD_OTHER, LAST], ["same 0 0", "changed 1 1", "same 2 2"]),
        ([FIRST, ADD, LAST], [FIRST, MUL, LAST], ["same 0 0", "added - 1", "removed 1 -", "same 2 2"]),
        ([FIRST, ADD, LAST], [FIRST, LAST], ["same 0 0", "removed 1 -", "same 2 1"]),
        ([FIRST, LAST], [FIRST, ADD, LAST], ["same 0 0", "added - 1", "same 1 2"]),
        ([ADD, FIRST, LAST], [FIRST, LAST], ["removed 0 -", "same 1 0", "same 2 1"]),
        ([FIRST, LAST, ADD], [FIRST, LAST], ["same 0 0", "same 1 1", "removed 2 -"]),
        ([FIRST, LAST], [ADD, FIRST, LAST], ["added - 0", "same 0 1", "same 1 2"]),
        ([FIRST, LAST], [FIRST, LAST, ADD], ["same 0 0", "same 1 1", "added - 2"]),
        # two gaps of one line, each with its own change
        (
            [FIRST, ADD, SECOND, ADD, LAST],
            [FIRST, ADD_OTHER, SECOND, ADD_OTHER, LAST],
            ["same 0 0", "changed 1 1", "same 2 2", "changed 3 3", "same 4 4"],
        ),
        # gone in one gap, come in the next: no pair across the barrier but a move
        ([FIRST, ADD, SECOND, LAST], [FIRST, SECOND, ADD, LAST], ["same 0 0", "same 2 1", "moved 1 2", "same 3 3"]),
        (
            [FIRST, ADD, SECOND, LAST],
            [FIRST, SECOND, ADD_OTHER, LAST],
            ["same 0 0", "removed 1 -", "same 2 1", "added - 2", "same 3 3"],
        ),
        # a line that moved does not drag along what A alone has
        (
            [FIRST, ADD, MUL, SECOND, LAST],
            [FIRST, SECOND, ADD, LAST],
            ["same 0 0", "removed 2 -", "same 3 1", "moved 1 2", "same 4 3"],
        ),
        ([FIRST], [LAST], ["added - 0", "removed 0 -"]),
        ([ADD], [ADD_OTHER], ["changed 0 0"]),
        ([], [ADD], ["added - 0"]),
        ([ADD], [], ["removed 0 -"]),
        ([], [], []),
    ],
    ids=lambda value: None,
)
def test_entries_stand_where_they_stood(left: list[str], right: list[str], expected: list[str]) -> None:
    assert entries(compare(function(*left), function(*right), "mtgpu")) == expected


def test_one_line_with_other_registers_between_kept_ones() -> None:
    """Renamed where the register is read under its new name, changed where it is read under a third one."""
    left = function(FIRST, "FOP.MOV R2, SH24", "DMA.ST.B32 R2, SH[16:17], R1", LAST)

    def against(stored: str, *between: str) -> FunctionChange:
        store = f"DMA.ST.B32 {stored}, SH[16:17], R1"
        return compare(left, function(FIRST, "FOP.MOV R5, SH24", *between, store, LAST), "mtgpu")

    assert entries(against("R5")) == ["same 0 0", "renamed 1 1", "renamed 2 2", "same 3 3"]
    assert entries(against("R5", SECOND)) == ["same 0 0", "renamed 1 1", "added - 2", "renamed 2 3", "same 3 4"]
    assert against("R5").renames == against("R5", SECOND).renames == {"R2 -> R5": 2}
    assert entries(against("R6", SECOND)) == ["same 0 0", "renamed 1 1", "added - 2", "changed 2 3", "same 3 4"]
    assert against("R6", SECOND).renames == {"R2 -> R5": 1}


def test_moved_and_with_other_registers() -> None:
    """The same statement behind the barrier, on another register that is read under its new name there."""
    left = function("FOP.MOV R2, SH24", SECOND, "DMA.ST.B32 R2, SH[16:17], R1", LAST)
    right = function(SECOND, "FOP.MOV R5, SH24", "DMA.ST.B32 R5, SH[16:17], R1", LAST)
    assert entries(compare(left, right, "mtgpu"))[:2] == ["same 1 0", "moved-renamed 0 1"]
