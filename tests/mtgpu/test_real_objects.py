"""The goals of the open decoder on real objects, where MTGPU_OBJECTS names their folder."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from mccprobe.inspection.resources import ReportRequest, report_on
from mccprobe.objects.binary.read import code_symbols, read_images, read_kernels
from mccprobe.objects.isa.diff import diff_images
from mccprobe.objects.isa.disassemble import Disassemblers, ImageListing, load
from mccprobe.objects.isa.lint import lint_images
from mccprobe.objects.isa.lint_rules import RULES
from mccprobe.objects.isa.mtgpu.cut import cut
from mccprobe.objects.isa.mtgpu.listing import flow_known

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS, INSTRUCTIONS = 235, 8725


@pytest.fixture(scope="module")
def images(real_objects: Path) -> list[ImageListing]:
    """Every device ELF of the three fat binaries, read without an SDK."""
    return [image for path in sorted(real_objects.glob("*.elf")) for image in load(path, Disassemblers())]


def test_all_code_is_cut_with_nothing_left_over(real_objects: Path) -> None:
    symbols = [
        symbol
        for path in sorted(real_objects.glob("*.elf"))
        for image in read_images(path)
        if image.kind == "mtgpu-elf"
        for symbol in code_symbols(image)
    ]
    cuts = [cut(symbol.data) for symbol in symbols]
    assert len(cuts) == FUNCTIONS and all(one.fits for one in cuts)
    assert sum(len(one.pieces) for one in cuts) == INSTRUCTIONS


def test_the_notes_hold_no_surprise(real_objects: Path) -> None:
    for path in sorted(real_objects.glob("*.elf")):
        for image in read_images(path):
            kernels, warnings = read_kernels(image)
            assert warnings == [] and kernels
            assert {key for kernel in kernels for key in kernel.unknown_keys} == set()
            assert {text for kernel in kernels for text in kernel.warnings} == set()


def test_classes_and_their_certainty(images: list[ImageListing]) -> None:
    for image in images:
        found = Counter(
            one.confidence or "unknown" for function in image.listing.functions for one in function.instructions
        )
        total = found.total()
        assert (found["certain"] + found["likely"]) / total >= 0.95, image.image.origin
        assert found["certain"] / total >= 0.65, (image.image.origin, found)


def test_branches_land_and_control_flow_is_known(images: list[ImageListing]) -> None:
    branches = [
        one
        for image in images
        for function in image.listing.functions
        for one in function.instructions
        if one.mnemonic in ("branch", "jump")
    ]
    assert len(branches) == 636 and all(one.target for one in branches)
    assert all(flow_known(function) for image in images for function in image.listing.functions)


def test_no_register_is_at_or_above_the_notes_count(images: list[ImageListing]) -> None:
    found = lint_images(images, RULES)
    assert [
        one
        for result in found
        for one in (*result.findings, *result.observations)
        if one.rule in ("open-table-registers", "register-count")
    ] == []
    assert sum(result.unread for result in found) == 0


def test_one_instruction_cut_out_of_vectoradd_is_one_removed(
    real_objects: Path, tmp_path: Path, writer: ModuleType
) -> None:
    image = next(one for one in read_images(real_objects / "VectorAdd.elf") if one.target == "mp_22")
    (symbol,) = code_symbols(image)
    piece = cut(symbol.data).pieces[4]
    shorter = symbol.data[: piece.offset] + symbol.data[piece.offset + len(piece.data) :]
    sides = []
    for name, code in (("a", symbol.data), ("b", shorter)):
        path = tmp_path / f"{name}.mubin"
        function = writer.Function(symbol.name, 0, len(code))
        kernel = writer.mtgpu_kernel(symbol.name)
        path.write_bytes(writer.mtgpu_elf(writer.mtgpu_document(kernel), text=code, functions=[function]))
        sides.append(load(path, Disassemblers()))
    (change,) = diff_images(*sides)
    counts = {kind: count for kind, count in change.functions[0].counts.items() if count}
    assert counts == {"same": 18, "removed": 1}


def test_report_counts_every_kernel(real_objects: Path) -> None:
    report = report_on(ReportRequest([real_objects / "basic_funcs_template.elf"]))
    assert len(report.kernels) == 204 and all(kernel.mix.count for kernel in report.kernels)
    assert sum(kernel.kernel.const_calc is not None for kernel in report.kernels) == 25


def test_the_stored_tables_are_as_measured(real_objects: Path) -> None:
    """And kernels, loops and registers agree with sources and notes: the script counts them."""
    result = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "mtgpu" / "measure.py"), "--check"],
        env={"MTGPU_OBJECTS": str(real_objects), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (result.returncode, result.stderr) == (0, "")
