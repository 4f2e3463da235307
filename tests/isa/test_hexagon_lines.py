"""Lines of Hexagon code as llvm-objdump-14 prints them: the statement becomes a mnemonic, its numbers operands."""

from __future__ import annotations

import pytest

from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.listing_hexagon import hexagon_instruction
from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import OTHER, Instruction

WORD = bytes.fromhex("b040c110")


def read(line: str) -> Instruction:
    """What stands behind the bytes, its fields parted by tabs."""
    made = hexagon_instruction(0x40, WORD, [field.strip() for field in line.split("\t") if field.strip()], 9)
    assert made is not None
    assert (made.address, made.data, made.line, made.flags, made.confidence) == (0x40, WORD, 9, "", "")
    return made


@pytest.mark.parametrize(
    ("line", "mnemonic", "operands", "control", "target"),
    [
        (
            "10c140b0 { \tp0 = cmp.gt(r1,#0); if (!p0.new) jump:nt 0x160",
            "p=cmp.gt(r,#); if(!p.new) jump:nt @",
            "p0, r1, 0, p0, 0x160",
            "{",
            "0x160",
        ),
        ("7800c002   \tr2 = #0 } ", "r=#", "r2, 0", "}", ""),
        ("760140e3 { \tr3 = and(r1,#7)", "r=and(r,#)", "r3, r1, 7", "{", ""),
        ("28043312   \tr4 = #0; \tr2 = add(r1,#-1) } ", "r=#; r=add(r,#)", "r4, 0, r2, r1, -1", "}", ""),
        ("05555555   \timmext(#1431655744)", "immext(#)", "1431655744", "", ""),
        # its upper bits stand in the word before: the text is not of this word alone
        ("7c00c2c4   \tr5:4 = combine(##1431655766,#0) } ", "r=combine(#,#)", "r5:4, 1431655766, 0", "}", "immext"),
        ("7800c561   \tr1 = ##-2048144789 } ", "r=#", "r1, -2048144789", "}", "immext"),
        ("60024108 { \tloop0(0x40,r2)", "loop0(@,r)", "0x40, r2", "{", "0x40"),
        ("7f00c000 { \tnop } ", "nop", "", "{}", ""),
        ("7f00c000   \tnop }  :endloop0", "nop", "", "}:endloop0", ""),
        ("7f00c000 { \tnop }  :endloop0 :endloop1", "nop", "", "{}:endloop0:endloop1", ""),
        ("97817f86   \tr6 = memw(r1+#-16)", "r=memw(r+#)", "r6, r1, -16", "", ""),
        ("7482c006 { \tif (!p0) r6 = add(r2,#0) } ", "if(!p) r=add(r,#)", "p0, r6, r2, 0", "{}", ""),
        ("e106c062 { \tr2 += mpyi(r6,#3) } ", "r +=mpyi(r,#)", "r2, r6, 3", "{}", ""),
        ("5a00c000 { \tcall 0x1f0 }", "call @", "0x1f0", "{}", "0x1f0"),
        ("5a00c000 { \tcall 0x1F0 }", "call @", "0x1F0", "{}", "0x1f0"),
        ("5200c000 { \tjumpr r31 }", "jumpr r", "r31", "{}", ""),  # a register is no target
        ("6e0ac006 { \tr6 = s10 }", "r=s", "r6, s10", "{}", ""),
        ("00000000   \tr0 = memw(gp+#0x20)", "r=memw(gp+#)", "r0, 0x20", "", ""),
        ("00000000   \tr0 = add(pc,0x80)", "r=add(pc,@)", "r0, 0x80", "", ""),  # no jump: its address is no target
    ],
)
def test_a_line(line: str, mnemonic: str, operands: str, control: str, target: str) -> None:
    made = read(line)
    assert (made.mnemonic, made.operands, made.control, made.target) == (mnemonic, operands, control, target)
    assert made.pipe == OTHER


def test_the_text_is_the_statement_without_braces() -> None:
    assert read("60024108 { \tloop0(0x40,r2) }").text == "loop0(0x40,r2)"
    assert read("28043312   \tr4 = #0; \tr2 = add(r1,#-1) } ").text == "r4 = #0; r2 = add(r1,#-1)"


def test_a_word_that_nobody_knows() -> None:
    made = read("deadbeef   \t<unknown>")
    assert (made.mnemonic, made.text, made.operands, made.pipe) == ("<unknown>", "<unknown>", "", UNKNOWN)
    assert read("deadbeef { \t<unknown> }").control == "{}"


@pytest.mark.parametrize("fields", [[], [""], ["nop"], ["7f00c00", "nop"], ["7F00C000", "nop"]])
def test_another_shape_is_no_instruction(fields: list[str]) -> None:
    assert hexagon_instruction(0, WORD, fields, 1) is None


def test_a_listing_of_packets() -> None:
    text = (
        "\nh.o:\tfile format elf32-hexagon\n\nDisassembly of section .text:\n\n00000000 <sum>:\n"
        "       0:\tb0 40 c1 10\t10c140b0 { \tp0 = cmp.gt(r1,#0); if (!p0.new) jump:nt 0x8\n"
        "       4:\t02 c0 00 78\t7800c002   \tr2 = #0 } \n"
        "       8:\t00 c0 9f 52\t529fc000 { \tjumpr r31 } \n"
    )
    listing = parse_listing(text)
    assert (listing.format, listing.unknown) == ("objdump-hexagon", ())
    (function,) = listing.functions
    assert [(one.address, one.data, one.control, one.target) for one in function.instructions] == [
        (0, bytes.fromhex("b040c110"), "{", "0x8"),
        (4, bytes.fromhex("02c00078"), "}", ""),
        (8, bytes.fromhex("00c09f52"), "{}", ""),
    ]
