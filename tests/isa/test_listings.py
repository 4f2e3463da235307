"""Listings to instructions: the documented shapes, what is not understood, any text at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import InputError, MccprobeError
from mccprobe.inspection.disasm import document, view
from mccprobe.inspection.lint import render as lint_text
from mccprobe.objects.binary.records import DeviceImage
from mccprobe.objects.isa.diff import diff_images
from mccprobe.objects.isa.disassemble import ImageListing
from mccprobe.objects.isa.lint import lint_images
from mccprobe.objects.isa.lint_rules import RULES
from mccprobe.objects.isa.listing import parse_listing, sniff
from mccprobe.objects.isa.listing_objdump import bytes_of, parse_objdump
from mccprobe.objects.isa.records import Listing
from mccprobe.objects.isa.registers import registers_of
from mccprobe.objects.isa.summary import summarise
from mccprobe.report.disasm_text import render

DATA = Path(__file__).parent / "data"


def _listing(name: str) -> Listing:
    return parse_listing((DATA / name).read_text(), name)


def test_mcc_assembly() -> None:
    listing = _listing("demo-mp22.s")
    assert (listing.format, listing.unknown) == ("mcc-s", ())
    assert listing.symbols == {"llvm.musa.kernel._Z5demo1Pf.sm": 4864}
    (function,) = listing.functions
    assert (function.name, len(function.instructions)) == ("_Z5demo1Pf", 13)
    assert function.labels == {"BB0_1": 7, "BB0_2": 11, ".Lfunc_end0": 13}
    branch = function.instructions[6]
    assert (branch.mnemonic, branch.target) == ("CTRL.BR.ALLPEF", "BB0_2")
    assert (branch.control, branch.pipe) == ("Nw-D---", "CTRL")
    guarded = function.instructions[5]
    assert (guarded.flags, guarded.text, guarded.pipe) == ("EX", "COND.ST.P0 1, 1", "COND")
    assert {one.address for one in function.instructions} == {None}


def test_every_form_of_the_reference_has_its_pipe() -> None:
    pipes = [one.pipe for one in _listing("demo-mp22.s").functions[0].instructions]
    assert pipes == "FOP DMA.LD INT INT INT COND CTRL BIT BIT LDMA.WR AP COND CTRL".split()


def test_the_invented_objdump_shape() -> None:
    listing = _listing("objdump-mtgpu-invented.txt")
    assert (listing.format, listing.unknown) == ("objdump-mtgpu", ())
    (function,) = listing.functions
    assert [one.address for one in function.instructions] == [0, 0, 12, 12, 12, 24, 24, 36, 48, 60]
    assert {len(one.data or b"") for one in function.instructions} == {12}
    assert function.instructions[7].target == "0xc"
    assert function.instructions[8].pipe == "unknown"


def test_the_other_assumed_shape_of_mtgpu() -> None:
    text = (
        "k.o:\tfile format elf64-mtgpu\n\n0000000000000000 <k>:\n"
        "\t[N-sD---]\t\tFOP.MOV R1, SH23 // 000000000000: 00C0FFEE 00000001 00000002\n"
        "\t[Nw-D---]\t\tCTRL.BR.ALLPEF 4 // 00000000000C: 00000003 00000004 00000005 <k+0x0>\n"
    )
    listing = parse_objdump(text)
    one, two = listing.functions[0].instructions
    assert one.data == bytes.fromhex("eeffc000 01000000 02000000")
    assert (one.control, one.pipe, two.target, listing.unknown) == ("N-sD---", "FOP", "0x0", ())


def test_nvdisasm_words_have_both_halves() -> None:
    listing = _listing("nvdisasm.txt")
    (function,) = listing.functions
    assert (function.name, listing.unknown, function.labels) == ("saxpy", (), {".L_x_0": 2})
    halves = ("00000a0000017a02", "000fe20000000f00")
    assert function.instructions[0].data == b"".join(bytes.fromhex(half)[::-1] for half in halves)
    branch = function.instructions[3]
    assert (branch.flags, branch.mnemonic, branch.target) == ("@!P0", "BRA", ".L_x_0")


def test_gnu_objdump_breaks_long_instructions() -> None:
    text = (
        "x.o:     file format elf64-x86-64\n\n\nDisassembly of section .text:\n\n0000000000000000 <f>:\n"
        "   0:\t48 b8 88 77 66 55 44 \tmovabs $0x1122334455667788,%rax\n"
        "   7:\t33 22 11 \n"
        "   a:\tc3                   \tret    \n"
    )
    listing = parse_listing(text)
    one, two = listing.functions[0].instructions
    assert one.data == bytes.fromhex("48b88877665544332211")
    assert (one.mnemonic, two.mnemonic, two.pipe, listing.unknown) == ("movabs", "ret", "BRANCH", ())


def test_what_is_not_understood_is_kept_with_its_number() -> None:
    text = "k:\n\t\t[N-sD---]\t\tFOP.MOV R1, SH23\n%%% something else\n\t\t[N-wD---]\t\tCTRL.END\n"
    listing = parse_listing(text)
    assert [(line.number, line.text) for line in listing.unknown] == [(3, "%%% something else")]
    assert listing.instruction_count == 2


def test_an_unseen_family_is_other_and_keeps_its_name() -> None:
    listing = parse_listing("k:\n\t\t[N-sD---]\t\tNEWPIPE.OP R1, R2\n")
    (one,) = listing.functions[0].instructions
    assert (one.mnemonic, one.pipe) == ("NEWPIPE.OP", "other")


def test_a_text_that_is_no_listing_is_refused() -> None:
    with pytest.raises(InputError, match="poem: no listing"):
        parse_listing("roses are red\nviolets are blue\n", "poem")


def test_the_metadata_block_is_no_code() -> None:
    text = (DATA / "demo-mp22.s").read_text()
    assert sniff(text) == "asm-mtgpu"
    assert parse_listing(text[text.index("\t.addrsig") :]).functions == ()


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("85 f6", b"\x85\xf6"),
        ("BF850020", b"\x20\x00\x85\xbf"),
        ("C00A0904 00000001", b"\x04\x09\x0a\xc0\x01\0\0\0"),
        ("x", None),
    ],
)
def test_bytes_are_in_memory_order(text: str, data: bytes | None) -> None:
    assert bytes_of(text) == data


LINES = st.sampled_from(
    r"""
x.o:\tfile format elf64-amdgpu
x.o:\tfile format elf64-mtgpu
0000000000000000 <k>:
<L0>:
BB0_1:
k:
\ts_mov_b32 s0, 1 // 000000000000: BE800081
\ts_cbranch_scc1 8 // 000000000004: BF850020 <k+0x8>
       0: 85 f6                        \ttestl\t%esi, %esi
   2:\t7e 31 \tjle    35 <f+0x35>
   9:\t00
\t\t[N-sD---]\t\tFOP.MOV R1, SH23
\t\t[Nw-D---]\t\tCTRL.BR.ALLPEF BB0_1
[
\t[
//
\t//:
:
<>:
        /*0000*/  @P0 BRA `(.L_x_0) ;  /* 0x0000000000000000 */
        /* 0x0000000000000000 */
.text.k:
\t.mtgpu_metadata.start
\t.mtgpu_metadata.end
\t.comm x,4,1
\t.amdgcn_target "a-gfx908"
\t\t...
\r
""".replace(r"\t", "\t")
    .replace(r"\r", "\r")
    .split("\n")
)


FAR = """k.o:\tfile format elf64-mtgpu

0000000000000000 <k>:
       0: 01 02 03 04 05 06 07 08 09 0a 0b 0c\t[N-sD---]\t\tFOP.MOV R1, SH23
ffffffffffff0000: 01 02 03 04 05 06 07 08 09 0a 0b 0c\t[N-sD---]\t\tFOP.MOV R[1:9999], R99999999999[9999:9999]
"""


def test_addresses_far_apart_take_no_memory() -> None:
    (function,) = parse_listing(FAR).functions
    summary = summarise(function)
    assert (summary.geometry.state, summary.words, summary.code_bytes) == ("unknown", None, 24)
    assert sum(register.size for register in registers_of(function.instructions[1].text, "mtgpu")) == 1024


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(LINES, st.text(max_size=30)), max_size=30).map("\n".join))
def test_any_text_is_a_listing_or_a_clear_error(text: str) -> None:
    try:
        listing = parse_listing(text)
    except MccprobeError:
        return
    assert listing.instruction_count + len(listing.unknown) <= listing.lines
    for function in listing.functions:
        assert all(0 <= place <= len(function.instructions) for place in function.labels.values())
        assert all(one.mnemonic and one.pipe for one in function.instructions)
    image = DeviceImage("", "listing", text.encode("utf-8", "surrogatepass"), "any.txt", "")
    source = ImageListing(image, listing, "text")
    shown = view(source)
    assert render([shown], words=True, loops=False).startswith("any.txt")
    assert render([shown], words=False, loops=True)
    assert len(document([shown], with_words=True)["images"]) == 1
    assert lint_images([source], RULES)[0].functions >= 0
    (change,) = diff_images([source], [source])
    assert change.equal


def test_sections_of_a_cubin_that_hold_no_code() -> None:
    data = "        /*0000*/ \t.byte\t0xff, 0x24\n"
    code = "        /*0000*/       EXIT ;   /* 0x000000000000794d */\n                 /* 0x000fea0003800000 */\n"
    frame = '\t.target\tsm_80\n\t.section\t.debug_frame,"",@progbits\n.debug_frame:\n'
    text = '\t.section\t.text.k,"ax",@progbits\n.text.k:\n'
    listing = parse_listing(frame + data + text + code)
    assert (listing.unknown, listing.target, listing.instruction_count) == ((), "sm_80", 1)
    assert [line.text for line in parse_listing(frame + text + code + data).unknown] == [data.rstrip("\n")]


def test_lint_does_not_call_clean_what_no_rule_looks_at() -> None:
    listing = _listing("nvdisasm.txt")
    source = ImageListing(DeviceImage("sm_80", "listing", b"", "k.lst", ""), listing, "text")
    results = lint_images([source], RULES)
    assert lint_text(results).splitlines() == ["k.lst: no rule here looks at nvidia code", "nothing checked"]
