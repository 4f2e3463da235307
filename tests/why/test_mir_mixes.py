"""MIR texts and their mixes: what is kept and dropped, what hangs together, the path of swaps between two orders."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.explain.locate.mir_mix import HunkKind, Mixes, SwapPath
from mccprobe.explain.locate.mir_text import MirFile, parse_mir, print_mir

HEADER = """---
name:            work
alignment:       16
registers:
  - { id: 0, class: gr32, preferred-register: '' }
  - { id: 1, class: gr32, preferred-register: '' }
  - { id: 2, class: gr32, preferred-register: '' }
constants:
  - id:              0
    value:           '<4 x i32> zeroinitializer'
body:             |
"""
END = """
...
---
name:            other
body:             |
  bb.0:
    RET 0

...
"""


def mir(*blocks: str, header: str = HEADER) -> str:
    """A file with function `work` in these blocks, behind a module and before another function."""
    return "--- |\n  define void @work() { ret void }\n...\n" + header + "\n".join(blocks) + END


def block(number: int, *instructions: str, successors: str = "") -> str:
    """One block as llc prints it."""
    lines = [f"  bb.{number}.name{number}:"]
    if successors:
        lines += [f"    successors: {successors}", "  "]
    return "\n".join([*lines, *(f"    {one}" for one in instructions), ""])


def test_blocks_and_instructions_are_taken_apart() -> None:
    text = mir(block(0, "%0:gr32 = MOV32ri 1", successors="%bb.1(0x80000000)"), block(1, "RET 0, %0"))
    file = parse_mir(text, "work")
    assert file is not None
    assert [(one.number, one.label) for one in file.blocks] == [(0, "bb.0.name0"), (1, "bb.1.name1")]
    assert file.blocks[0].head[1].strip() == "successors: %bb.1(0x80000000)"
    assert file.blocks[0].instructions == ("    %0:gr32 = MOV32ri 1",)
    assert set(file.registers) == {"0", "1", "2"}
    assert parse_mir(text, "missing") is None


def test_liveness_flags_stay_on_physical_registers_only() -> None:
    file = parse_mir(mir(block(0, "dead %0:gr32 = ADD32rr killed %1, %2, implicit-def dead $eflags")), "work")
    assert file is not None
    assert file.blocks[0].instructions == ("    %0:gr32 = ADD32rr %1, %2, implicit-def dead $eflags",)


def test_zero_vectors_of_the_constant_pool_are_written_out() -> None:
    file = parse_mir(mir(block(0, "RET 0")), "work")
    assert file is not None
    assert "'<4 x i32> <i32 0, i32 0, i32 0, i32 0>'" in file.header
    module = "--- |\n  @zero = global <4 x i32> zeroinitializer\n...\n"
    other = parse_mir(mir(block(0, "RET 0")).replace("--- |\n", module + "--- |\n", 1), "work")
    assert other is not None and "global <4 x i32> zeroinitializer" in other.before


def test_comments_go_and_bundles_are_one_instruction() -> None:
    bundle = "    BUNDLE implicit-def $r0 {\n      $r0 = A\n      $r1 = B\n    }\n"
    file = parse_mir(mir(f"  bb.0:\n  ; predecessors: %bb.1\n{bundle}    RET 0\n"), "work")
    assert file is not None
    assert len(file.blocks[0].instructions) == 2
    assert file.blocks[0].instructions[0].count("\n") == 3


def test_printing_gives_the_other_functions_back_and_adds_registers() -> None:
    text = mir(block(0, "%0:gr32 = MOV32ri 1", successors="%bb.1(0x80000000)"), block(1, "RET 0, %0"))
    file = parse_mir(text, "work")
    assert file is not None
    printed = print_mir(file, {1: ["    RET 1"]}, {"7": "  - { id: 7, class: gr64, preferred-register: '' }\n"})
    again = parse_mir(printed, "work")
    assert again is not None
    assert again.blocks[0] == file.blocks[0] and again.blocks[1].instructions == ("    RET 1",)
    assert set(again.registers) == {"0", "1", "2", "7"}
    assert parse_mir(printed, "other") is not None
    assert again.before == file.before


def _read(text: str) -> MirFile:
    file = parse_mir(text, "work")
    assert file is not None
    return file


def _mixes(good: list[str], bad: list[str]) -> Mixes:
    return Mixes(_read(mir(block(0, *good))), _read(mir(block(0, *bad))))


def _instructions(text: str) -> list[str]:
    return [one.strip() for one in _read(text).blocks[0].instructions]


def test_an_edit_in_place_is_one_unit() -> None:
    mixes = _mixes(["%0:gr32 = ADD %1, %2", "RET %0"], ["%0:gr32 = ADD %1, %1", "RET %0"])
    assert [[hunk.kind for hunk in unit] for unit in mixes.units] == [[HunkKind.EDIT]]
    assert _instructions(mixes.text(frozenset())) == ["%0:gr32 = ADD %1, %2", "RET %0"]
    assert _instructions(mixes.text(frozenset({0}))) == ["%0:gr32 = ADD %1, %1", "RET %0"]


def test_edits_around_a_value_that_one_side_lacks_hang_together() -> None:
    good = ["%1:gr32 = LOAD a", "%2:gr32 = ADD %1, 1", "STORE %2", "X %0"]
    bad = ["%2:gr32 = ADDload a, 1", "STORE %2", "X %0, 1"]
    mixes = _mixes(good, bad)
    assert len(mixes.units) == 2
    assert max(len(unit) for unit in mixes.units) >= 2
    assert _instructions(mixes.text(frozenset({0, 1}))) == bad


def test_a_copy_that_is_dropped_takes_the_uses_of_its_register_along() -> None:
    good = ["$eax = COPY $ebx", "USE $eax", "OTHER $ecx"]
    bad = ["USE $ebx", "OTHER $edx"]
    mixes = _mixes(good, bad)
    assert sorted(len(unit) for unit in mixes.units) == [1, 2]


def test_an_instruction_that_went_to_another_block_is_one_unit() -> None:
    good = mir(block(0, "%0:gr32 = LOAD a", "JMP"), block(1, "USE %0"))
    bad = mir(block(0, "JMP"), block(1, "%0:gr32 = LOAD a", "USE %0"))
    mixes = Mixes(_read(good), _read(bad))
    assert [[hunk.kind for hunk in unit] for unit in mixes.units] == [[HunkKind.DROPPED, HunkKind.ADDED]]


def test_order_and_edits_are_taken_apart() -> None:
    mixes = _mixes(["A 1", "B 2", "C 3"], ["C 3", "A 1", "B 9"])
    assert sorted(hunk.kind for unit in mixes.units for hunk in unit) == [HunkKind.EDIT, HunkKind.ORDER]
    order = next(n for n, unit in enumerate(mixes.units) if unit[0].kind is HunkKind.ORDER)
    assert _instructions(mixes.text(frozenset({order}))) == ["C 3", "A 1", "B 2"]
    assert _instructions(mixes.text(frozenset({1 - order}))) == ["A 1", "B 9", "C 3"]
    assert _instructions(mixes.text(frozenset({0, 1}))) == ["C 3", "A 1", "B 9"]


def test_a_block_with_another_order_and_other_instructions_is_taken_whole() -> None:
    mixes = _mixes(["A 1", "B 2", "C 3"], ["C 3", "NEW 4", "A 1"])
    assert [hunk.kind for unit in mixes.units for hunk in unit] == [HunkKind.WHOLE]
    assert _instructions(mixes.text(frozenset({0}))) == ["C 3", "NEW 4", "A 1"]


@pytest.mark.parametrize(
    ("good", "bad", "why"),
    [
        (mir(block(0, "A")), mir(block(0, "A"), block(1, "B")), "changed the blocks"),
        (
            mir(block(0, "A", successors="%bb.0(0x1)")),
            mir(block(0, "A", successors="%bb.0(0x2)")),
            "changed successors",
        ),
        (mir(block(0, "A")), mir(block(0, "A"), header=HEADER.replace("id: 1, class: gr32", "id: 1, class: a")), "%1"),
        (mir(block(0, "A")), mir(block(0, "A"), header=HEADER.replace("16", "32")), "only the function's header"),
    ],
)
def test_what_cannot_be_mixed_is_refused(good: str, bad: str, why: str) -> None:
    mixes = Mixes(_read(good), _read(bad))
    assert why in mixes.refusal and mixes.units == []


@given(
    st.lists(st.sampled_from(["A 1", "A 2", "B 1", "C 1", "D 1"]), max_size=8),
    st.lists(st.sampled_from(["A 1", "A 2", "B 1", "C 1", "D 1"]), max_size=8),
)
def test_the_empty_mix_is_good_and_the_full_mix_is_bad(good: list[str], bad: list[str]) -> None:
    mixes = _mixes(good, bad)
    if good != bad:
        assert _instructions(mixes.text(frozenset())) == good
        assert _instructions(mixes.text(frozenset(range(len(mixes.units))))) == bad


def _inversions(order: list[int], rank: list[int]) -> set[tuple[int, int]]:
    """Pairs (a, b), a first in good order, that `order` has the other way round."""
    place = {one: index for index, one in enumerate(order)}
    assert len(place) == len(rank)
    return {(a, b) for a, b in itertools.combinations(range(len(rank)), 2) if place[a] > place[b]}


@given(st.permutations(range(9)), st.data())
def test_every_stop_of_a_swap_path_keeps_what_both_orders_agree_on(rank: list[int], data: st.DataObject) -> None:
    path = SwapPath(rank)
    bad = _inversions(sorted(range(9), key=rank.__getitem__), rank)
    assert path.length == len(bad)
    assert path.order(0) == list(range(9))
    assert path.order(path.length) == sorted(range(9), key=rank.__getitem__)
    for stop in range(1, path.length + 1):
        here, before = _inversions(path.order(stop), rank), _inversions(path.order(stop - 1), rank)
        assert here - before == {path.swapped(stop)} and before <= here <= bad
    if path.length:
        first, second = path.swapped(data.draw(st.integers(1, path.length)))
        alone = _inversions(path.good_with(first, second), rank)
        without = _inversions(path.bad_without(first, second), rank)
        assert (first, second) in alone <= bad
        assert (first, second) not in without and without <= bad


def test_a_long_path_is_a_number_not_a_text() -> None:
    path = SwapPath(list(reversed(range(1200))))
    assert path.length == 1200 * 1199 // 2
    assert len(path.order(path.length // 3)) == 1200
