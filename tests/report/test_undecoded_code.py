"""Objects whose code nobody here decodes, and names that want to break out of their line."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from mccprobe.inspection import diff as diff_record
from mccprobe.inspection import disasm as disasm_record
from mccprobe.inspection import lint as lint_record
from mccprobe.inspection.resources import ReportRequest, report_on
from mccprobe.objects.isa.diff import ImageChange, diff_images
from mccprobe.objects.isa.disassemble import Disassemblers, load
from mccprobe.objects.isa.lint import lint_images
from mccprobe.objects.isa.lint_rules import RULES
from mccprobe.report import disasm_text
from mccprobe.report.render_resources import render_markdown, render_text

ROOT = Path(__file__).resolve().parents[2]
NAME = "_Z5demo1Pf"


def _valid(document: dict[str, Any], name: str) -> dict[str, Any]:
    schema = json.loads((ROOT / "reports" / f"{name}.schema.json").read_text("utf-8"))
    assert [one.message for one in jsonschema.Draft202012Validator(schema).iter_errors(document)] == []
    return document


def _object(writer: ModuleType, file: Path, text: bytes, *kernels: dict[str, Any], functions: bool = True) -> Path:
    named = [writer.Function(NAME, 0, len(text))] if functions else []
    file.write_bytes(writer.mtgpu_elf(writer.mtgpu_document(*kernels), text=text, functions=named))
    return file


def _diff(a: Path, b: Path) -> tuple[ImageChange, dict[str, Any], str]:
    changes = diff_images(load(a, Disassemblers()), load(b, Disassemblers()))
    document = _valid(diff_record.document(changes, "a", "b"), "diff")
    return changes[0], document, diff_record.render(changes, "a", "b", limit=20)


def test_other_bytes_are_a_difference_where_nobody_decodes_them(writer: ModuleType, tmp_path: Path) -> None:
    kernel = writer.mtgpu_kernel(NAME)
    one = _object(writer, tmp_path / "a.o", bytes(range(48)), kernel)  # fits no cut: no dword has bit 31
    two = _object(writer, tmp_path / "b.o", bytes(range(36)) + bytes(12), kernel)
    change, document, text = _diff(one, two)
    assert not change.equal
    (function,) = document["images"][0]["functions"]
    assert function["instructions"] == {"a": None, "b": None}
    (entry,) = function["differences"]
    assert (entry["kind"], entry["b"]["bytes"]) == ("changed", (bytes(range(36)) + bytes(12)).hex())
    assert "1 -> 1 undecoded pieces" in text and "24 25 26" in text and "no difference" not in text
    assert text.count("unknown code at 0x0") == 1
    assert _diff(one, one)[0].equal


def test_a_kernel_that_one_sides_metadata_lacks_is_told(writer: ModuleType, tmp_path: Path) -> None:
    first, more = writer.mtgpu_kernel(NAME), writer.mtgpu_kernel("stripped")
    one = _object(writer, tmp_path / "a.o", bytes(24), first)
    change, _, text = _diff(one, _object(writer, tmp_path / "b.o", bytes(24), first, more))
    assert (change.only_left, change.only_right, change.resources) == ((), ("stripped",), ())
    assert "stripped: only in b" in text
    change, _, _ = _diff(one, _object(writer, tmp_path / "c.o", bytes(24)))
    assert {item.name: item.right for item in change.resources}["registers.temp"] is None and not change.equal


def test_lint_says_whose_code_it_did_not_see(writer: ModuleType, tmp_path: Path) -> None:
    file = _object(writer, tmp_path / "a.o", bytes(24), writer.mtgpu_kernel(NAME), writer.mtgpu_kernel("other"))
    found = lint_images(load(file, Disassemblers()), RULES)
    document = _valid(lint_record.document(found, RULES), "lint")
    assert (document["images"][0]["functions"], document["images"][0]["unread"]) == (2, 2)
    assert "2 functions checked, 2 of them by metadata alone" in lint_record.render(found)
    text = tmp_path / "a.s"
    text.write_text(writer.mtgpu_assembly(writer.mtgpu_document(writer.mtgpu_kernel(NAME)), writer.BODY), "utf-8")
    (seen,) = lint_images(load(text, Disassemblers()), RULES)
    assert seen.unread == 0


def test_a_stand_ins_image_is_never_shown_as_mp_22(writer: ModuleType, tmp_path: Path) -> None:
    host = writer.ElfWriter(machine=62, text=b"\xc3", functions=[writer.Function("k", 0, 1)]).build()
    file = tmp_path / "sim.o"
    file.write_bytes(writer.bundle([("musa-mtgpu-mt-musa-mp_22", host)]))
    views = [disasm_record.view(one) for one in load(file, Disassemblers(), target="mp_22")]
    image = _valid(disasm_record.document(views, with_words=False), "disasm")["images"][0]
    assert (image["target"], image["warnings"]) == ("x86-64", ["SIMULATED x86-64 code, not MP22"])
    assert "SIMULATED x86-64 code, not MP22" in disasm_text.render(views, words=False, loops=False)


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[2J", "a|b"])
def test_a_name_stays_on_its_line(writer: ModuleType, tmp_path: Path, name: str) -> None:
    plain, odd = tmp_path / "plain.o", tmp_path / "odd.o"
    for file, label in ((plain, "k"), (odd, name)):
        device = writer.mtgpu_elf(
            writer.mtgpu_document(writer.mtgpu_kernel(label)), text=bytes(12), functions=[writer.Function(label, 0, 12)]
        )
        file.write_bytes(writer.bundle([(label, device)]))
    lines = {}
    for file in (plain, odd):
        found, sources = report_on(ReportRequest([file])), load(file, Disassemblers())
        lint = lint_record.render(lint_images(sources, RULES))
        disasm = disasm_text.render([disasm_record.view(one) for one in sources], words=False, loops=False)
        texts = (render_text(found), render_markdown(found), lint, disasm, diff_record.render([], name, name, limit=1))
        lines[file] = [len(text.splitlines()) for text in texts]
        assert "\x1b" not in "".join(texts)
    assert lines[plain] == lines[odd]
