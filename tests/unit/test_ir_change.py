"""What one pass execution did to the IR: instructions, or attributes and metadata only."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.bisection.passes.ir_change import IrChange, changed_lines, compare_ir, instruction_lines

SOURCE = """
struct S { int a; short b; };
int use(const int *p);
static __attribute__((noinline)) int sum(const int *p, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += p[i];
  return s;
}
short pick(struct S *s) { return s->b + s->a; }
int f(int n) { int v[4] = {n, 2, 3, 4}; return sum(v, 4) + use(v); }
"""
DEDUCING = ("PostOrderFunctionAttrsPass", "ReversePostOrderFunctionAttrsPass", "InferFunctionAttrsPass")
CHANGING = ("SROAPass", "InlinerPass", "LoopRotatePass")


def classified(clang: str, folder: Path, options: list[str], names: tuple[str, ...]) -> list[IrChange]:
    """What each execution of these passes did, from the IR at the limit before and at its own."""
    source = folder / "a.c"
    source.write_text(SOURCE)

    def emit(limit: int) -> tuple[str, str]:
        out = folder / f"{limit}.ll"
        ran = subprocess.run(
            [clang, *options, "-S", "-emit-llvm", "-mllvm", f"-opt-bisect-limit={limit}", str(source), "-o", str(out)],
            capture_output=True,
            text=True,
            check=True,
        )
        return out.read_text(), ran.stderr

    log = emit(-1)[1]
    numbers = [int(number) for name in names for number in re.findall(rf"pass \((\d+)\) {name} on", log)]
    assert numbers
    return [compare_ir(emit(number - 1)[0], emit(number)[0]) for number in numbers]


@pytest.mark.toolchain
@pytest.mark.parametrize("major", [14, 16, 19])
@pytest.mark.parametrize("options", [["-O2"], ["-O2", "-g"]], ids=" ".join)
def test_real_passes(major: int, options: list[str], compiler: Callable[..., str], tmp_path: Path) -> None:
    clang = compiler(major)
    deduced = classified(clang, tmp_path, options, DEDUCING)
    assert IrChange.ATTRIBUTES in deduced and IrChange.INSTRUCTIONS not in deduced, deduced
    assert IrChange.INSTRUCTIONS in classified(clang, tmp_path, options, CHANGING)


@pytest.mark.toolchain
@pytest.mark.parametrize("major", [14, 16, 19])
def test_the_same_program_without_aliasing_metadata(major: int, compiler: Callable[..., str], tmp_path: Path) -> None:
    """-fno-strict-aliasing takes every !tbaa away and shifts all metadata numbers; no instruction differs."""
    clang = compiler(major)
    (tmp_path / "a.c").write_text(SOURCE)
    texts = [
        subprocess.run(
            [clang, "-O1", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", *more, "a.c", "-o", "-"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for more in ([], ["-fno-strict-aliasing"])
    ]
    assert "!tbaa" in texts[0] and "!tbaa" not in texts[1]
    assert compare_ir(*texts) is IrChange.ATTRIBUTES
    assert compare_ir(texts[0], texts[0]) is IrChange.NOTHING
    assert compare_ir(texts[0], texts[0].replace("add nsw", "sub nsw", 1)) is IrChange.INSTRUCTIONS


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("define i32 @f(i32* %0) #0 {", "define i32 @f(i32* nocapture noundef readonly %0) local_unnamed_addr #3 {"),
        (
            "define i32 @f(ptr %p) {",
            "define dso_local noundef i32 @f(ptr captures(none) align 4 dereferenceable(8) %p) {",
        ),
        ("define ptr @f() {", "define noundef nonnull align 8 ptr @f() {"),
        ("define i32 @f(i32 %0) {", "define range(i32 0, 10) i32 @f(i32 %0) memory(argmem: read) {"),
        ("define void @f(ptr %p) {", "define void @f(ptr initializes((0, 4), (8, 12)) %p) {"),
        ("define void @f(ptr %p) {", "define void @f(ptr elementtype(void (i32)) %p) {"),
        ("define float @f(float %0) {", "define nofpclass(nan inf) float @f(float nofpclass(nan) %0) {"),
        ("define i8* @f(i64 %n) #1 {", "define noalias i8* @f(i64 %n) allocsize(0) #2 {"),
        ("  %1 = call i32 @g(i32* %0)", "  %1 = call i32 @g(i32* nonnull align 16 %0) #4"),
        ("  tail call void @g(ptr %0) #1", "  tail call void @g(ptr noundef align(8) %0) #2, !srcloc !4"),
        ("  %1 = load i32, i32* %0, align 4", "  %1 = load i32, i32* %0, align 4, !tbaa !5, !noundef !6"),
        ("  br i1 %1, label %2, label %3, !prof !1", "  br i1 %1, label %2, label %3, !prof !9, !llvm.loop !2"),
        ("  store i32 1, ptr %0, align 4, !dbg !7", "  store i32 1, ptr %0, align 4"),
        ("  %1 = load i32, i32* %0, align 4", "  %1 = load i32, i32* %0, align 16"),
        ("  store i32 1, ptr %0, align 4", "  store i32 1, ptr %0, align 8"),
        ("  %1 = call i32 @g()", "  %1 = tail call i32 @g()"),
        ("3:    ; preds = %1, %2", "3:         ; preds = %2, %1"),
        ("  ret void", "  ret void\n  #dbg_value(i32 %x, !12, !DIExpression(), !13)"),
        (
            "  ret void",
            "  call void @llvm.dbg.value(metadata i32 %x, metadata !1, metadata !DIExpression())\n  ret void",
        ),
        ("  ret void", "  ret void ; a comment, nocapture"),
        ("declare i32 @g(i32)", "declare i32 @g(i32) #7"),
        ("attributes #0 = { nounwind }", "attributes #0 = { nounwind readnone }"),
        ("!0 = !{i32 1}", "!0 = !{i32 2}\n!1 = distinct !{!1}"),
    ],
)
def test_attributes_and_metadata(before: str, after: str) -> None:
    assert instruction_lines(before) == instruction_lines(after)
    assert compare_ir(before, after) is IrChange.ATTRIBUTES
    assert changed_lines(before, after) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("  %1 = add i32 %0, 1", "  %1 = sub i32 %0, 1"),
        ("  %1 = add nsw i32 %0, 1", "  %1 = add i32 %0, 1"),
        ("  %1 = alloca i32, align 4", "  %1 = alloca i32, align 16"),
        ("  %1 = load i32, ptr %0, align 4", "  %1 = load volatile i32, ptr %0, align 4"),
        ("  ret i32 %cold", "  ret i32 %hot"),
        ("  call void @range()", "  call void @memory()"),
        ("  br label %hot", "  br label %cold"),
        ("hot:", "cold:"),
        ("  %1 = alloca %struct.range", "  %1 = alloca %struct.memory"),
        ('@s = constant [4 x i8] c"hot\\00"', '@s = constant [4 x i8] c"ssp\\00"'),
        ('@s = constant [4 x i8] c"!12\\00"', '@s = constant [4 x i8] c"!13\\00"'),
        ('@s = constant [4 x i8] c";ab\\00"', '@s = constant [4 x i8] c";cd\\00"'),
        ('  call void @"a nest"()', '  call void @"a sret"()'),
        ("  call void @f(i32 1)", "  call fastcc void @f(i32 1)"),
        ("define i32 @f() {", "define internal i32 @f() {"),
        ("@x = global i32 0", "@x = constant i32 0"),
        ("  ret void", "  call void @llvm.assume(i1 %0)\n  ret void"),
        ("  %1 = call i32 @g(i32 1)", ""),
    ],
)
def test_instructions(before: str, after: str) -> None:
    assert compare_ir(before, after) is IrChange.INSTRUCTIONS
    assert changed_lines(before, after)


def test_module_name_is_no_change() -> None:
    before = '; ModuleID = "a"\nsource_filename = "a"\n  ret void\n'
    assert compare_ir(before, before.replace('"a"', '"b"')) is IrChange.NOTHING


def test_changed_lines_are_the_first_ones_and_few() -> None:
    before = "".join(f"  %{n} = add i32 %0, {n}\n" for n in range(5000))
    after = before.replace("%0, 7\n", "%0, 8888\n").replace("%0, 4000\n", "%0, 9999\n")
    assert changed_lines(before, after)[:2] == ["- %7 = add i32 %0, 7", "+ %7 = add i32 %0, 8888"]
    assert changed_lines("", before)[-1] == "..." and len(changed_lines("", before)) == 13
