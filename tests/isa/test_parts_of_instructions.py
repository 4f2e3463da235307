"""Operands, written registers, labels and pipes: each part of an instruction by itself, with the exact answer."""

from __future__ import annotations

import pytest

from mccprobe.base.errors import InputError
from mccprobe.objects.binary.read import CodeSymbol
from mccprobe.objects.isa.count import CodeCount, count_amdgpu, count_x86
from mccprobe.objects.isa.listing_build import FunctionBuilder
from mccprobe.objects.isa.operands import parse_operand
from mccprobe.objects.isa.pipes import PipeTable
from mccprobe.objects.isa.records import Instruction
from mccprobe.objects.isa.registers import Register, registers_of, roles


@pytest.mark.parametrize(
    ("text", "kind", "numbers"),
    [
        # number, span beyond it, then negative, absolute, inverted, reuse
        ("v7", "v", (7, 0, 0, 0, 0, 0)),
        ("v[4:7]", "v", (4, 3, 0, 0, 0, 0)),
        ("-v7", "v", (7, 0, 1, 0, 0, 0)),
        ("|v7|", "v", (7, 0, 0, 1, 0, 0)),
        ("-|v7|", "v", (7, 0, 1, 1, 0, 0)),
        ("!P3", "P", (3, 0, 0, 0, 1, 0)),
        ("~R5", "R", (5, 0, 0, 0, 1, 0)),
        ("R12.reuse", "R", (12, 0, 0, 0, 0, 1)),
        ("0x1f", "#", (31,)),
        ("-0x1f", "#", (-31,)),
        ("-12", "#", (-12,)),
        ("012", "#", (12,)),
        ("1.5", "f", ()),
        ("-1.5", "f", ()),
        ("[1:3]", "[:]", (1, 2, 0, 0, 0, 0)),
        ("BB0_3", "L", ()),
        (".Ltmp0", "L", ()),
        ("off", "off", ()),
        ("-off", "-off", ()),
        ("||", "||", ()),
        ("[R2+0x10]", "[R+#]", (2, 0, 16, 0, 0, 0, 0)),
    ],
)
def test_operands(text: str, kind: str, numbers: tuple[int, ...]) -> None:
    assert parse_operand(text) == (kind, numbers)


@pytest.mark.parametrize(
    ("isa", "line", "pipe", "read", "written"),
    [
        ("amdgpu", "v_add_f32 v1, v2, v3", "VALU", ["v2", "v3"], ["v1"]),
        ("amdgpu", "global_store_dword v[0:1], v2, off", "VMEM", ["v0+2", "v2"], []),
        ("nvidia", "FADD R1, R2, R3", "ALU", ["R2", "R3"], ["R1"]),
        ("nvidia", "STG [R2], R3", "LSU", ["R2", "R3"], []),
        ("x86", "movq %rax, %rbx", "MOV", ["ra"], ["rb"]),
        ("x86", "addq %rax, %rbx", "INT", ["ra", "rb"], []),  # written only where nothing of it is read
        ("x86", "cmpq %rax, %rbx", "INT", ["ra", "rb"], []),
    ],
)
def test_what_is_read_and_what_is_written(isa: str, line: str, pipe: str, read: list[str], written: list[str]) -> None:
    mnemonic, _, operands = line.partition(" ")
    found = roles(Instruction(None, None, mnemonic, operands, line, pipe), isa)

    def short(registers: tuple[Register, ...]) -> list[str]:
        if isa == "x86":
            return [one.bank for one in registers]
        return [f"{one.bank}{one.first}" + (f"+{one.size}" if one.size > 1 else "") for one in registers]

    assert (short(found.read), short(found.written)) == (read, written)


def test_a_range_of_registers_may_be_written_either_way_and_has_a_bound() -> None:
    assert registers_of("v[4:7] v[7:4]", "amdgpu") == (Register("v", 4, 4), Register("v", 4, 4))
    (wide,) = registers_of("v[0:9999]", "amdgpu")
    assert wide.first == 0 and 256 <= wide.size < 9999


def test_targets_beside_a_symbol_become_addresses() -> None:
    def jump(target: str) -> Instruction:
        return Instruction(0, b"\0", "s_branch", target, f"s_branch {target}", "BRANCH", target)

    build = FunctionBuilder()
    build.start("first", 0x100)
    build.current += [jump("second"), jump("second+0x10"), jump("elsewhere+0x4"), jump("0x7")]
    build.start("second", 0x200)
    build.current += [jump("first+0x8")]
    build.end_section()
    targets = [[one.target for one in function.instructions] for function in build.functions]
    assert targets == [["0x200", "0x210", "elsewhere+0x4", "0x7"], ["0x108"]]
    build.start("third", 0)
    build.current += [jump("first")]
    build.end_section()
    assert build.functions[-1].instructions[0].target == "first", "addresses start anew in a section"


def test_the_longest_prefix_decides() -> None:
    def table(dots: bool) -> PipeTable:
        entries = [
            {"pipe": "SHORT", "source": "s", "prefixes": ["A"]},
            {"pipe": "LONG", "source": "s", "prefixes": ["A.BB"], "flow": "jump"},
            {"pipe": "NAME", "source": "s", "names": ["A.BB.CC"]},
        ]
        return PipeTable({"isa": "x", "labelled": "X", "dots": dots, "sources": {"s": "here"}, "entry": entries})

    parts, letters = table(True), table(False)
    for mnemonic, by_parts, by_letters in [
        ("A", "SHORT", "SHORT"),
        ("A.BB", "LONG", "LONG"),
        ("A.BB.CC", "NAME", "NAME"),
        ("A.BB.DD", "LONG", "LONG"),
        ("A.BBX", "SHORT", "LONG"),
        ("AX", "other", "SHORT"),
        ("A.B", "SHORT", "SHORT"),
        ("B", "other", "other"),
        ("A.BB" + ".X" * 50, "LONG", "LONG"),
        ("(bad)", "unknown", "unknown"),
    ]:
        assert (parts.find(mnemonic).pipe, letters.find(mnemonic).pipe) == (by_parts, by_letters), mnemonic
    assert parts.find("A.BB").flow == "jump" and parts.find("A.BB").source == "here"
    assert PipeTable({"isa": "x", "labelled": "X", "sources": {"s": ""}, "entry": []}).dots


AMDGPU = """
k.o:	file format elf64-amdgpu

Disassembly of section .text:

0000000000000000 <first>:
	v_add_f32_e32 v0, v1, v2                                   // 000000000000: 06000501
	v_add_f32_e32 v0, v1, v2                                   // 000000000004: 06000501
	s_endpgm                                                   // 000000000008: BF810000
	s_nop 0                                                    // 00000000000C: BF800000

0000000000000100 <second>:
	s_endpgm                                                   // 000000000100: BF810000
"""


def symbol(name: str, address: int, data: bytes) -> CodeSymbol:
    return CodeSymbol(name=name, address=address, data=data, section=".text")


def test_counts_without_what_stands_between_functions() -> None:
    found = count_amdgpu(AMDGPU, [symbol("first", 0, bytes(12)), symbol("second", 0x100, bytes(4))])
    (end,) = found["second"].pipes  # the pipe of s_endpgm
    assert found == {"first": CodeCount(3, {"VALU": 2, end: 1}), "second": CodeCount(1, {end: 1})}
    assert list(found["first"].pipes) == ["VALU", end], "the most frequent first"
    with pytest.raises(InputError, match="no listing of AMDGPU code"):
        count_amdgpu(AMDGPU.replace("amdgpu", "x86-64"), [])
    with pytest.raises(InputError, match=r"no instruction of AMDGPU: s_endpgm"):
        count_amdgpu(AMDGPU.replace("// 000000000100:", ""), [])


def test_x86_is_counted_by_capstone() -> None:
    found = count_x86([symbol("f", 0, bytes.fromhex("4889c34801d8c3"))])  # mov, add, ret
    assert {name: one.instructions for name, one in found.items()} == {"f": 3}
    assert found["f"].pipes["MOV"] == found["f"].pipes["INT"] == 1
