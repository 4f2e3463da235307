"""Objects of our own writer with the facts of real ones, through report, disasm, diff, lint and isa learn."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from mccprobe.inspection import diff as diff_record
from mccprobe.inspection import disasm as disasm_record
from mccprobe.inspection import lint as lint_record
from mccprobe.inspection.resources import ReportRequest, report_on
from mccprobe.objects.isa.diff import diff_images
from mccprobe.objects.isa.disassemble import Disassemblers, ImageListing, load
from mccprobe.objects.isa.lint import lint_images
from mccprobe.objects.isa.lint_rules import RULES
from mccprobe.objects.isa.mtgpu.cut import dwords_of
from mccprobe.report import disasm_text
from mccprobe.report.render_resources import render_text

from .words import branch, encode, word

ROOT = Path(__file__).resolve().parents[2]
NAME = "_Z3addPi"
Objects = Callable[..., Path]


def valid(document: dict[str, Any], name: str) -> dict[str, Any]:
    schema = json.loads((ROOT / "reports" / f"{name}.schema.json").read_text("utf-8"))
    assert [one.message for one in jsonschema.Draft202012Validator(schema).iter_errors(document)] == []
    return document


def dwords(pieces: Sequence[bytes]) -> int:
    return sum(map(len, pieces)) // 4


def body(family: str = "mp_2x", *, without: int | None = None) -> bytes:
    """A loop over a load, an add and a store; its branch fits what is left out."""
    counter = {"dst": ("R", 2), "a": ("R", 2), "b": ("SH", 16)}
    moved, wide = {"dst": ("R", 1), "a": ("SH", 17)}, {"dst": ("AR", 0), "a": ("AR", 0)}
    head = [word(family, "move", 3, **moved), word(family, "int.convert", **wide)]
    inside = [
        word(family, "load", 2, dst=("R", 3), address=("AR", 0)),
        word(family, "int.add", dst=("R", 3), a=("R", 3)),
        word(family, "store"),
        word(family, "int.add", **counter),
        word(family, "mask", 1),
    ]
    if without is not None:
        del inside[without]
    back = branch(family, "branch.lanes", -dwords(inside))
    return b"".join([*head, *inside, back, word(family, "end")])


@pytest.fixture
def objects(writer: ModuleType, tmp_path: Path) -> Objects:
    """`objects(code, ...)`: a bundle with one device ELF, as mcc makes it."""

    def make(code: bytes, name: str = "k.elf", entry: str = "musa-mtgpu-mt-musa--mp_22", **kernel: Any) -> Path:
        values = {"call_flag": False, "shared_memory_size": 20, **kernel}
        elf = writer.mtgpu_elf(
            writer.mtgpu_document(writer.mtgpu_kernel(NAME, **values)),
            text=code,
            functions=[writer.Function(NAME, 0, len(code))],
            type=3,
            text_address=0x1000,
            note_segment=True,
        )
        path = tmp_path / name
        path.write_bytes(writer.bundle([("host-x86_64-unknown-linux", b""), (entry, elf)], align=4096))
        return path

    return make


def listing(path: Path) -> ImageListing:
    (found,) = load(path, Disassemblers())
    return found


def test_disasm_shows_raw_dwords_sizes_classes_and_the_loop(objects: Objects) -> None:
    views = [disasm_record.view(listing(objects(body())))]
    document = valid(disasm_record.document(views, with_words=True), "disasm")
    (function,) = document["images"][0]["functions"]
    assert (function["instructions"], function["geometry"]["state"]) == (9, "dwords")
    assert (function["words"], function["slot_packing"], function["word_list"]) == (None, None, [])
    assert function["dwords"] == {"1": 2, "2": 3, "3": 1, "4": 3}
    assert function["marks"]["certain"] == 9
    (loop,) = function["loops"]
    assert (loop["instructions"], loop["label"]) == (6, f"0x{0x1000 + 12 + 16:x}")
    text = disasm_text.render(views, words=False, loops=False)
    assert "3 instructions of 2 dwords, 1 instruction of 3 dwords" in text and "slot" not in text
    assert "load global R3, AR[0:1] (certain)" in text
    last = text.rstrip().splitlines()[-1].split()
    assert last == ["1058", f"{int.from_bytes(word('mp_2x', 'end'), 'little'):08x}", "CTRL", "end", "(certain)"]


def test_report_counts_without_an_objdump_and_always_names_mma(objects: Objects) -> None:
    report = report_on(ReportRequest([objects(body())]))
    (kernel,) = valid(report.to_dict(), "report")["kernels"]
    assert (kernel["instructions"], kernel["unknown_keys"]) == (9, [])
    assert kernel["instruction_mix"]["pipes"]["DMA.LD"] == 1 and kernel["instruction_mix"]["marks"] == {"certain": 9}
    assert kernel["instruction_mix"]["names_mma"] is False
    assert kernel["max_block_size"] == 1 and "says nothing" in kernel["max_block_size_note"]
    text = render_text(report)
    (line,) = (one for one in text.splitlines() if "instructions  " in one)
    assert "9 (open table mp_2x, certain 9)" in line and line.endswith("MMA not known to this table")


def test_the_articles_paragraph_on_zero_blocks_stands_once(objects: Objects) -> None:
    report = report_on(ReportRequest([objects(body()), objects(body(), "b.elf")]))
    assert len(report.kernels) == 2 and render_text(report).count("0 blocks by this model") == 1


def test_one_instruction_cut_out_is_one_removed_and_branches_across_it_stay(objects: Objects) -> None:
    one, two = listing(objects(body(), "a.elf")), listing(objects(body(without=1), "b.elf"))
    changes = diff_images([one], [two])
    document = valid(diff_record.document(changes, "a", "b"), "diff")
    (function,) = document["images"][0]["functions"]
    assert {kind: count for kind, count in function["counts"].items() if count} == {"same": 8, "removed": 1}
    assert function["instructions"] == {"a": 9, "b": 8}
    (entry,) = function["differences"]
    assert entry["a"]["text"].startswith("integer add R3, R3")


def test_code_that_fits_no_cut_is_reported_with_its_offset(objects: Objects) -> None:
    path = objects(word("mp_2x", "end") + bytes(24))
    view = disasm_record.view(listing(path))
    assert any("unknown code at 0x1004 (offset 4, 24 bytes)" in text for text in view.source.warnings)
    (function,) = view.functions
    assert (function.summary.instructions, function.flow_known) == (None, False)
    (kernel,) = report_on(ReportRequest([path])).to_dict()["kernels"]
    assert kernel["instructions"] is None and "does not fit" in kernel["instruction_mix"]["reason"]


def test_an_unknown_branch_like_instruction_leaves_the_loops_unknown(objects: Objects) -> None:
    unknown = encode(0xC | 1 << 9, 1)  # of the group that branches are in, and of no rule
    (function,) = disasm_record.view(listing(objects(unknown + body()))).functions
    assert not function.flow_known and function.summary.instructions == 10
    document = disasm_record.document([disasm_record.view(listing(objects(unknown + body())))], with_words=False)
    assert document["images"][0]["functions"][0]["loops"] is None


def test_an_architecture_without_a_table_is_cut_and_not_named(objects: Objects) -> None:
    path = objects(body(), entry="musa-mthg-mt-musa--mp_42", arch_id=420)
    found = listing(path)
    assert found.tool == "none" and "no open table for mp_42" in found.warnings[0]
    (kernel,) = report_on(ReportRequest([path])).to_dict()["kernels"]
    assert (kernel["instructions"], kernel["instruction_mix"]["pipes"]) == (9, {"unknown": 9})


def test_lint_reads_such_objects_and_never_accuses_the_compiler_by_the_table(objects: Objects) -> None:
    (found,) = lint_images([listing(objects(body(), temp_reg_count=3))], RULES)  # the body has R3
    assert found.findings == () and found.unread == 0
    assert "open-table-registers" in {one.rule for one in found.observations}
    valid(lint_record.document([found], RULES), "lint")
    (found,) = lint_images([listing(objects(body(), temp_reg_count=4))], RULES)
    assert "open-table-registers" not in {one.rule for one in found.observations}


def test_the_constant_part_of_a_kernel_is_named_with_its_size(writer: ModuleType, tmp_path: Path) -> None:
    part = f"{NAME}_ConstCalcProg"
    code, rest = body(), word("mp_2x", "end")
    argument = {".argBase": {".offset": 20, ".reg_bank": 3, ".size": 4}, ".kind": 25}
    kernel = writer.mtgpu_kernel(NAME, const_calc_kernel=part, args=[argument])
    path = tmp_path / "k.mubin"
    functions = [writer.Function(NAME, 0, len(code)), writer.Function(part, len(code), len(rest))]
    path.write_bytes(writer.mtgpu_elf(writer.mtgpu_document(kernel), text=code + rest, functions=functions))
    report = report_on(ReportRequest([path]))
    (found,) = valid(report.to_dict(), "report")["kernels"]
    assert found["const_calc"] == {"function": part, "code_bytes": 4} and found["instructions"] == 9
    assert report.warnings == () and f"{part}, 4 bytes" in render_text(report)
    path.write_bytes(writer.mtgpu_elf(writer.mtgpu_document(kernel), text=code, functions=functions[:1]))
    assert any("is not among the functions" in text for text in report_on(ReportRequest([path])).warnings)


def test_isa_learn_compares_with_the_open_table(
    objects: Objects, tmp_path: Path, call_cli: Callable[..., tuple[int, str, str]]
) -> None:
    """A listing of the same code: where its names are of other pipes, both readings are shown."""
    names = {
        "CTRL": "CTRL.END",
        "INT": "INT.ADD",
        "FOP": "FOP.MOV",
        "COND": "COND.ST",
        "DMA.LD": "DMA.LD.B32",
        "DMA.ST": "DMA.ST.B32",
    }
    (function,) = listing(objects(body())).listing.functions

    def write(wrong: str = "") -> Path:
        lines = ["", "k.o:\tfile format elf64-mtgpu", "", "Disassembly of section .text:", ""]
        lines.append(f"0000000000001000 <{NAME}>:")
        for one in function.instructions:
            hexes = " ".join(f"{dword:08X}" for dword in dwords_of(one.data))
            name = "BIT.LSL" if one.pipe == wrong else names[one.pipe]
            lines.append(f"\t[N-sD---]\t\t{name} R1, R2 // {one.address:012X}: {hexes}")
        path = tmp_path / f"l{wrong}.lst"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return path

    def learn(path: Path, *more: str) -> dict[str, Any]:
        code, out, err = call_cli(
            "isa", "learn", "--from", str(path), "-o", str(tmp_path / "t.json"), "--target", "mp_22", "--json", *more
        )
        assert code == 0, err
        return valid(json.loads(out), "isa")

    good, other = learn(write(), "--object", str(objects(body())))["open_table"]
    assert (good["agree"], good["disagree"], good["ends"]) == (9, 0, 0)
    assert other["disagree"] == other["ends"] == 0 and other["agree"] + other["unnamed"] == 9
    (bad,) = learn(write("COND"))["open_table"]
    assert (bad["agree"], bad["disagree"]) == (8, 1)
    assert (bad["examples"][0]["other"], bad["examples"][0]["open"]) == ("BIT.LSL", "lane mask")
