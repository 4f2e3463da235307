"""Alignment: its laws on any sequences, and what it makes of reorders, renames and edits."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.objects.isa.align import in_order, longest_increasing
from mccprobe.objects.isa.change import KINDS, FunctionChange, compare, comparison_key, rebuild
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.pipes import pipe_table
from mccprobe.objects.isa.records import Function, Instruction
from mccprobe.objects.isa.registers import Register, registers_of, split_operands

DATA = Path(__file__).parent / "data"


def _function(texts: list[str], isa: str = "mtgpu", control: str = "") -> Function:
    find = pipe_table(isa).find
    made = []
    for text in texts:
        mnemonic, _, operands = text.partition(" ")
        made.append(Instruction(None, None, mnemonic, operands, text, find(mnemonic).pipe, control=control))
    return Function("k", tuple(made))


def _gemm() -> Function:
    return parse_listing((DATA / "gemm-loop-mp22.s").read_text()).functions[0]


def _kinds(change: FunctionChange) -> dict[str, int]:
    return {kind: count for kind, count in change.counts.items() if count}


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)))
def test_pairs_increase_and_are_equal(left: list[int], right: list[int]) -> None:
    pairs = in_order(left, right)
    assert all(left[a] == right[b] for a, b in pairs)
    assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(pairs))


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), max_size=12))
def test_what_both_have_at_their_ends_is_paired(left: list[int], right: list[int]) -> None:
    assert in_order(left, left) == [(place, place) for place in range(len(left))]
    assert len(in_order([*left, 9, *right], [9])) == 1


@given(st.lists(st.integers(0, 30), max_size=40))
def test_longest_increasing_is_longest(values: list[int]) -> None:
    places = longest_increasing(values)
    chosen = [values[place] for place in places]
    assert places == sorted(places) and chosen == sorted(set(chosen))
    best = [0] * len(values)
    for place, value in enumerate(values):
        best[place] = 1 + max((best[i] for i in range(place) if values[i] < value), default=0)
    assert len(places) == max(best, default=0)


STATEMENTS = st.sampled_from(
    [f"INT.ADD R{a}, R{b}, SH{c}" for a in range(3) for b in range(3) for c in range(2)]
    + ["AP.BARRIER LM4", "FOP.MOV R1, SH23", "DMA.ST.B32 R1, SH[16:17], R2", "MMA.323216 R14[4:2][2:1], R1, R2, 0"]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(STATEMENTS, max_size=25), st.lists(STATEMENTS, max_size=25))
def test_every_instruction_once_and_b_comes_out_of_a(left: list[str], right: list[str]) -> None:
    change = compare(_function(left), _function(right), "mtgpu")
    assert sorted(entry.left for entry in change.entries if entry.left is not None) == list(range(len(left)))
    assert sorted(entry.right for entry in change.entries if entry.right is not None) == list(range(len(right)))
    assert rebuild(change) == right
    assert set(change.counts) == set(KINDS)
    assert change.equal == (left == right)


@settings(max_examples=200, deadline=None)
@given(st.lists(STATEMENTS, min_size=2, max_size=25), st.randoms(use_true_random=False))
def test_a_pure_reorder_of_distinct_statements_is_moves_only(texts: list[str], source: random.Random) -> None:
    texts = list(dict.fromkeys([*texts, "AP.BARRIER LM4", "CTRL.END"]))
    shuffled = texts[:]
    source.shuffle(shuffled)
    found = _kinds(compare(_function(texts), _function(shuffled), "mtgpu"))
    assert set(found) <= {"same", "moved", "renamed"}
    assert found.get("same", 0) + found.get("moved", 0) + found.get("renamed", 0) == len(texts)


def test_one_moved_instruction_is_one_move() -> None:
    one = _gemm()
    items = list(one.instructions)
    items.insert(12, items.pop(4))  # a barrier is moved behind the inner loop
    assert _kinds(compare(one, Function("k", tuple(items)), "mtgpu")) == {"same": 17, "moved": 1}


def test_two_loads_swapped_are_a_move_and_no_rename() -> None:
    one = _function(["LDMA.RD.B32.BST1 R1, R13, _, 0", "LDMA.RD.B32.BST1 R2, R13, _, 4", "INT.ADD R3, R1, R2"])
    two = Function("k", (one.instructions[1], one.instructions[0], one.instructions[2]))
    assert _kinds(compare(one, two, "mtgpu")) == {"same": 2, "moved": 1}


def test_registers_renamed_throughout() -> None:
    one = _gemm()
    mapping = {0: 5, 1: 31, 9: 41, 13: 2, 14: 14, 2: 32, 3: 33, 4: 34}

    def renamed(text: str) -> str:
        text = text.replace("R[1:4]", "R[31:34]")
        return re.sub(r"(?<![\w.])R(\d+)", lambda found: f"R{mapping[int(found[1])]}", text)

    two = Function(
        "k",
        tuple(item._replace(text=renamed(item.text), operands=renamed(item.operands)) for item in one.instructions),
        one.labels,
    )
    change = compare(one, two, "mtgpu")
    assert set(_kinds(change)) == {"same", "renamed"}
    assert change.renames["R13 -> R2"] == 8


def test_an_inconsistent_register_is_a_change() -> None:
    before, after = ["FOP.MOV R1, SH23", "FOP.MOV R2, SH24"], ["DMA.ST.B32 R3, SH[16:17], R1", "CTRL.END"]
    one = _function([*before, "INT.ADD R3, R1, R2", *after])
    two = _function([*before, "INT.ADD R3, R2, R1", *after])
    assert _kinds(compare(one, two, "mtgpu")) == {"same": 4, "changed": 1}


def test_an_overwritten_register_holds_its_value_no_more() -> None:
    one = _function(["FOP.MOV R1, SH23", "FOP.MOV R2, SH24", "INT.ADD R3, R1, R2"])
    two = _function(["FOP.MOV R1, SH23", "FOP.MOV R1, SH24", "INT.ADD R3, R1, R1"])
    found = _kinds(compare(one, two, "mtgpu"))
    assert found == {"same": 1, "renamed": 1, "changed": 1}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        # the reader that stayed takes what was in R2 before: another value
        (["MOV R2", "READ R2"], ["MOV R5", "READ R2"], {"same": 1, "changed": 1}),
        (["MOV R2", "READ R2"], ["MOV R5", "READ R5"], {"renamed": 2}),
        # renamed for the first reader and not for the second one
        (["MOV R2", "READ R2", "READ R2"], ["MOV R5", "READ R5", "READ R2"], {"same": 1, "renamed": 1, "changed": 1}),
        # the second reader takes what A alone and B alone wrote in between
        (
            ["MOV R2", "READ R2", "ADD R2", "READ R2"],
            ["MOV R5", "READ R5", "MUL R2", "READ R2"],
            {"same": 1, "renamed": 2, "added": 1, "removed": 1},
        ),
    ],
)
def test_a_new_name_that_a_reader_does_not_take_is_a_change(
    left: list[str], right: list[str], expected: dict[str, int]
) -> None:
    spelled = {
        "MOV": "FOP.MOV {}, SH23",
        "ADD": "INT.ADD {}, R9, C4",
        "MUL": "INT.MUL {}, R9, C4",
        "READ": "DMA.ST.B32 R7, SH[16:17], {}",
    }

    def made(texts: list[str]) -> Function:
        body = [spelled[name].format(register) for name, register in (text.split() for text in texts)]
        return _function(["INT.ADD R9, R8, C1", *body, "CTRL.END"])

    found = _kinds(compare(made(left), made(right), "mtgpu"))
    assert found == expected | {"same": expected.get("same", 0) + 2}


def test_control_fields_are_a_kind_of_their_own() -> None:
    one, two = _function(["FOP.MOV R1, SH23"], control="N-sD---"), _function(["FOP.MOV R1, SH23"], control="N-wD---")
    change = compare(one, two, "mtgpu")
    assert (_kinds(change), change.equal) == ({"control": 1}, False)


def test_branch_targets_are_not_compared() -> None:
    here = Instruction(0, b"\xeb\0", "jmp", "0x35 <f+0x35>", "jmp 0x35 <f+0x35>", "BRANCH", "0x35")
    assert comparison_key(here, "x86") == "jmp <target>"
    call = Instruction(0, b"\xe8\0", "callq", "0x35 <g>", "callq 0x35 <g>", "BRANCH", "0x35")
    assert comparison_key(call, "x86") == "callq g"
    load = Instruction(0, b"", "movq", "0x10(%rip), %rax", "movq 0x10(%rip), %rax", "MOV")
    assert comparison_key(load, "x86") == "movq <offset>(%rip), %rax"


def test_a_branch_to_another_place_is_a_change() -> None:
    text = (DATA / "gemm-loop-mp22.s").read_text()
    other = parse_listing(text.replace("CTRL.BR.ALLP0T BB0_2", "CTRL.BR.ALLP0T BB0_1")).functions[0]
    change = compare(_gemm(), other, "mtgpu")
    assert _kinds(change) == {"same": 17, "changed": 1}
    assert [entry.left for entry in change.differing()] == [12]
    renamed = parse_listing(re.sub(r"\bBB0_", "BB7_", text)).functions[0]  # labels are names, not places
    assert compare(_gemm(), renamed, "mtgpu").equal


def test_a_jump_to_another_function_is_a_change() -> None:
    def tail(symbol: str, target: str) -> Function:
        operands = f"{target} <{symbol}>"
        return Function("k", (Instruction(0, b"\xeb\0", "jmp", operands, f"jmp {operands}", "BRANCH", target),))

    assert _kinds(compare(tail("f", "0x35"), tail("g", "0x35"), "x86")) == {"changed": 1}
    assert compare(tail("f", "0x35"), tail("f", "0x95"), "x86").equal


def test_code_without_operands_is_compared_by_its_bytes() -> None:
    def word(data: bytes, name: str, level: str, pipe: str) -> Function:
        return Function("k", (Instruction(0, data, name, "", name, pipe, confidence=level),))

    for name, level, pipe in (("<unknown>", "", "unknown"), ("FOP.MOV", "certain", "FOP")):
        one = word(b"\1\2", name, level, pipe)
        assert compare(one, one, "mtgpu").equal
        assert _kinds(compare(one, word(b"\1\3", name, level, pipe), "mtgpu")) == {"changed": 1}


def test_large_functions_without_anything_in_common_are_bounded() -> None:
    source = random.Random(1)
    left = [f"INT.ADD R{source.randrange(40)}, R{source.randrange(40)}, C{source.randrange(9)}" for _ in range(8000)]
    right = [f"INT.MUL R{source.randrange(40)}, R{source.randrange(40)}, C{source.randrange(9)}" for _ in range(8000)]
    assert _kinds(compare(_function(left), _function(right), "mtgpu")) == {"added": 8000, "removed": 8000}
    source.shuffle(left)
    assert rebuild(compare(_function(right), _function(left + right), "mtgpu")) == left + right


@pytest.mark.parametrize(
    ("text", "isa", "expected"),
    [
        ("R[1:2].s64, SH[16:17], I0, C45", "mtgpu", [("R", 1, 2), ("SH", 16, 2), ("I", 0, 1)]),
        ("AR1, p0, SL2", "mtgpu", [("AR", 1, 1), ("p", 0, 1), ("SL", 2, 1)]),
        ("R14[4:2][2:1].f32", "mtgpu", [("R", 14, 8)]),
        ("R1[2:1][1:1].f16.row, X4, LM4, _", "mtgpu", [("R", 1, 2), ("X", 4, 1)]),
        ("v[0:3], s4, vcc, 0xa1, off", "amdgpu", [("v", 0, 4), ("s", 4, 1)]),
        ("R12, UR4, c[0x0][0x160], P0", "nvidia", [("R", 12, 1), ("UR", 4, 1), ("P", 0, 1)]),
        ("%eax, (%rbx,%r8,4)", "x86", [("ra", 0, 1), ("rb", 0, 1), ("r8", 0, 1)]),
        ("%al, %sil, %r9d, %ymm3", "x86", [("ra", 0, 1), ("rsi", 0, 1), ("r9", 0, 1), ("v3", 0, 1)]),
    ],
)
def test_registers(text: str, isa: str, expected: list[tuple[str, int, int]]) -> None:
    assert list(registers_of(text, isa)) == [Register(*one) for one in expected]


def test_operands_are_split_outside_of_brackets() -> None:
    assert split_operands("(%rdi,%rdx,4), %eax") == ["(%rdi,%rdx,4)", "%eax"]
    assert split_operands("") == []


# --- which operands are read ---------------------------------------------------------------------------

# for each entry of a pipe table that may not overwrite its first operand: a store, a compare, a branch, a barrier
READS_ALL = {
    "mtgpu": ["MMA.323216", "LDMA.WR.B128.BST1", "DMA.ST.B32", "LSU.ST.B128", "AP.BARRIER", "COND.ST.P0", "CTRL.NOP",
              "MOV.ST.LM.B16", "MOV.ST.LM.B32", "INT.BYP.TL.MOVC", "DMA.ATOM.ADD", "LSU.RED", "FOP.UNHEARD", "NEW.LD"],
    "amdgpu": ["v_smfmac_f32_16x16x32_f16", "v_cmpx_eq_u32", "v_fmac_f32", "v_mov_b32_dpp", "s_store_dword",
               "s_waitcnt", "s_barrier", "s_nop", "s_cbranch_scc0", "s_setpc_b64", "s_endpgm", "s_sendmsg",
               "s_cmp_eq_u32", "s_setreg_b32", "ds_write_b32", "ds_add_u32", "ds_write2st64_b64",
               "buffer_store_dword", "global_atomic_add", "global_load_lds_dword", "flat_store_dword",
               "scratch_store_dword", "exp", "unheard_of"],
    "nvidia": ["STG.E", "STS", "STL", "RED.E.ADD", "CCTL.IVALL", "BAR.SYNC", "WARPSYNC", "BRX", "CALL.REL", "EXIT",
               "NOP", "UNHEARD", "R2P"],
}  # fmt: skip
BANK = {"mtgpu": "R", "amdgpu": "v", "nvidia": "R"}
WRITES = {
    "mtgpu": ["FOP.MOV", "INT.ADD", "BIT.LSL.OR", "BIT.ROT.LSR", "DMA.LD.B32", "LDMA.RD.B32.BST1", "LSU.LD.B128",
              "SHUFFLE.IDX", "INT.BYP.TG"],
    "amdgpu": ["v_mov_b32_e32", "v_add_f32", "global_load_dword", "ds_read_b32", "buffer_load_dwordx2"],
    "nvidia": ["MOV", "IADD3", "LDG.E", "LDS", "FFMA"],
}  # fmt: skip


@pytest.mark.parametrize(("isa", "mnemonic"), [(isa, name) for isa, names in READS_ALL.items() for name in names])
def test_an_operand_of_a_store_or_of_an_unknown_mnemonic_is_read(isa: str, mnemonic: str) -> None:
    bank, first = BANK[isa], WRITES[isa][0]
    one = [f"{first} {bank}1, {bank}9", f"{first} {bank}2, {bank}9", f"{mnemonic} {bank}1, {bank}9"]
    two = [*one[:2], f"{mnemonic} {bank}2, {bank}9"]
    found = _kinds(compare(_function(one, isa), _function(two, isa), isa))
    assert found == {"same": 2, "changed": 1}, found


@pytest.mark.parametrize(("isa", "mnemonic"), [(isa, name) for isa, names in WRITES.items() for name in names])
def test_a_first_operand_that_is_written_may_be_renamed(isa: str, mnemonic: str) -> None:
    bank = BANK[isa]
    one = [f"{mnemonic} {bank}1, {bank}9", f"{mnemonic} {bank}2, {bank}1"]
    two = [f"{mnemonic} {bank}3, {bank}9", f"{mnemonic} {bank}2, {bank}3"]
    assert _kinds(compare(_function(one, isa), _function(two, isa), isa)) == {"renamed": 2}


@pytest.mark.parametrize("isa", ["mtgpu", "amdgpu", "nvidia"])
def test_every_entry_of_the_table_with_an_address_in_front_reads_it(isa: str) -> None:
    """Whatever stands in the table: registers in brackets, and those of names that no rule lists, are read."""
    bank, first = BANK[isa], WRITES[isa][0]
    table = pipe_table(isa)
    names = [*table.prefixes, *table.names, *(f"{prefix}.UNHEARD.OF" for prefix in table.prefixes if table.dots)]
    for name in names:
        for operand in (f"LM0[{bank}%d]", f"[{bank}%d]", f"[{bank}%d+0x10]"):
            one = [f"{first} {bank}1, {bank}9", f"{first} {bank}2, {bank}9", f"{name} {operand % 1}, {bank}9"]
            two = [*one[:2], f"{name} {operand % 2}, {bank}9"]
            assert _kinds(compare(_function(one, isa), _function(two, isa), isa)) == {"same": 2, "changed": 1}, name


@pytest.mark.parametrize(
    ("one", "two", "isa"),
    [
        ("MOV.ST.LM.B16 LM0[R3], R6.l", "MOV.ST.LM.B16 LM0[R4], R6.l", "mtgpu"),
        ("DMA.ST.B32 R1, SH[16:17], R0, 4", "DMA.ST.B32 R1, SH[18:19], R0, 4", "mtgpu"),  # another argument
        ("global_store_dword v0, v1, s[0:1]", "global_store_dword v0, v1, s[2:3]", "amdgpu"),
    ],
)
def test_another_address_alone_is_no_pure_change_of_registers(one: str, two: str, isa: str) -> None:
    assert _kinds(compare(_function([one], isa), _function([two], isa), isa)) == {"changed": 1}


def test_another_guard_is_a_change() -> None:
    def guarded(guard: str) -> Function:
        return Function("k", (Instruction(None, None, "MOV", "R1, R2", "MOV R1, R2", "MOV", flags=guard),))

    assert _kinds(compare(guarded("@P0"), guarded("@P1"), "nvidia")) == {"changed": 1}
