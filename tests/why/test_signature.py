"""The shape of an edit in words that do not change from kernel to kernel."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mccprobe.explain.locate.hunk_shape import diff_shape, edit_shape, opcode
from mccprobe.explain.reduce.signature import _others, shape_of
from mccprobe.report.why_record import BadInstruction, Confirmed, StepState, Where

FMA = "%5:vr128 = nofpexcept VFMADD213SSr %3, %4, killed %2, implicit $mxcsr"


@pytest.mark.parametrize(
    ("instruction", "name"),
    [
        (FMA, "VFMADD213SSr"),
        ("%7:gr32 = ADD32rr %1, %2, implicit-def dead $eflags", "ADD32rr"),
        ("renamable $eax = MOV32rm $rsp, 1, $noreg, 8, $noreg :: (load (s32) from %stack.0)", "MOV32rm"),
        ("frame-setup PUSH64r killed $rbp, implicit-def $rsp", "PUSH64r"),
        ("%x = add nsw i32 %a, %b", "add"),
        ("%r = tail call i32 @f(i32 %x)", "call"),
        ("store i32 0, ptr %p, align 4", "store"),
        ("br label %exit", "br"),
        ('call void asm "x = y", ""()', "call"),
        ("", ""),
    ],
)
def test_opcode(instruction: str, name: str) -> None:
    assert opcode(instruction) == name


@pytest.mark.parametrize(
    ("before", "after", "shape"),
    [
        (FMA, FMA.replace("%4", "%9"), "operand replaced in VFMADD213SSr"),
        (FMA, "", "instruction deleted: VFMADD213SSr"),
        ("", FMA, "instruction inserted: VFMADD213SSr"),
        (FMA, FMA, "instruction moved: VFMADD213SSr"),
        ("%x = add i32 %a, %b", "%x = sub i32 %a, %b", "add replaced by sub"),
        ("", "", ""),
    ],
)
def test_shape_of_one_edit(before: str, after: str, shape: str) -> None:
    assert edit_shape(before, after) == shape


HEAD = "--- before\n+++ after\n@@ -1,3 +1,3 @@\n"


@pytest.mark.parametrize(
    ("lines", "shape"),
    [
        (
            "-%1 = add i32 %a, 1\n-%2 = mul i32 %b, 2\n+%1 = mul i32 %b, 2\n+%2 = add i32 %a, 1\n",
            "instructions reordered",
        ),
        ("-bb.3.loop:\n-%1 = ADD32rr %2, %3\n+bb.9.loop:\n+%1 = ADD32rr %2, %3\n", "block moved"),
        ("-%1 = add i32 %a, 1\n-%2 = add i32 %a, 2\n-%3 = mul i32 %a, 2\n", "instructions deleted: add, mul"),
        ("+%1 = freeze i32 %a\n", "instructions inserted: freeze"),
        ("-%1 = add i32 %a, %b\n+%1 = add i32 %a, %c\n", "operands replaced in add"),
        ("-%1 = urem i32 %a, 8\n+%1 = and i32 %a, 7\n", "removed urem; added and"),
        ("-bb.3:\n+bb.4:\n", "blocks renamed or joined"),
        (" %1 = add i32 %a, %b\n", ""),
    ],
)
def test_shape_of_a_diff(lines: str, shape: str) -> None:
    assert diff_shape(HEAD + lines) == shape


def test_a_confirmed_instruction_wins_over_the_diff() -> None:
    diff = HEAD + "-%1 = add i32 %a, 1\n"
    named = BadInstruction(FMA, FMA.replace("%4", "%9"), "f", "bb.0", Confirmed.BOTH_SIDES)
    assert shape_of(Where(StepState.DONE, diff=diff, instruction=named)) == "operand replaced in VFMADD213SSr"
    assert shape_of(Where(StepState.DONE, diff=diff)) == "instructions deleted: add"
    assert shape_of(Where(StepState.NOT_RUN)) == ""


@pytest.mark.toolchain("clang-14")
def test_shipped_kernels_are_tried_by_two_builds(root: Path, tmp_path: Path, run_cli: Callable[..., Any]) -> None:
    """A second kernel with the same fault beside the one examined."""
    kernels = tmp_path / "kernels"
    for name, source in (("gemm", "gemm"), ("common", "common"), ("second", "gemm")):
        shutil.copytree(root / "kernels" / source, kernels / name)
    run = run_cli(
        "why",
        "--toolchain",
        "sim",
        "--flag",
        "internal-regs-ra",
        "--step",
        "signature",
        "--json",
        "-o",
        tmp_path / "run",
        env={"MCCPROBE_KERNELS": str(kernels)},
    )
    assert run.code == 0, run
    found = json.loads(run.stdout)["signature"]
    assert [(other["name"], other["shows"]) for other in found["others"]] == [("second", True)]
    assert "right with -enable-misched=false; the shape of the edit was not compared" in found["others"][0]["text"]


def test_of_the_shipped_kernels_those_known_to_be_right_are_tried(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is wrong by itself says nothing; of the others first those that compute the same."""
    monkeypatch.setenv("MCCPROBE_KERNELS", str(root / "kernels"))
    report = SimpleNamespace(source=str(root / "kernels" / "gemm" / "gemm.mu"), toolchain="sim")
    others = _others(report, [])  # type: ignore[arg-type]
    names = [other.path.name for other in others]
    assert "gemm" not in names and {"barrier", "tile64", "double-buffer"} <= set(names)
    kinds = [(bool(other.why_not), not other.alike) for other in others]
    assert kinds == sorted(kinds) and others[0].alike
    for other in others:
        assert other.why_not or re.fullmatch(r"\d+x\d+x\d+", str(other.case)), other
    [own] = [other for other in _others(report, [str(root / "kernels" / "tile64")]) if other.named]  # type: ignore[arg-type]
    assert own.case and own.path.name == "tile64"
