"""Undefined behaviour in LLVM IR: poison, undef and locals without a value that reach the result; and what may stay."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.screen.cheap import cheap_screen
from mccprobe.explain.screen.ir import POISON, UNDEF, with_filled_locals, with_values, without_poison
from mccprobe.explain.screen.run import ScreenChecks
from mccprobe.explain.screen.weigh import PATTERN
from mccprobe.report.why_record import ScreenCheck, ScreenOutcome

pytestmark = pytest.mark.toolchain("clang-14")
Opener = Callable[..., Workspace]

# the program is main(count) with count = 1, and its result is the exit status
WRONG = {
    "vector shift by its width": (POISON, """
        define <4 x i64> @signs(<4 x i64> %v, <4 x i64> %w) { %s = ashr <4 x i64> %v, %w
          ret <4 x i64> %s }
        define i32 @main(i32 %n) { %w = insertelement <4 x i64> zeroinitializer, i64 64, i64 1
          %s = call <4 x i64> @signs(<4 x i64> <i64 -9, i64 7, i64 -1, i64 0>, <4 x i64> %w)
          %e = extractelement <4 x i64> %s, i64 1
          %r = trunc i64 %e to i32
          ret i32 %r }"""),
    "shift by a constant beyond the width": (POISON, """
        define i32 @main(i32 %n) { %s = shl i32 %n, 34
          ret i32 %s }"""),
    "shift by a variable": (POISON, """
        define internal i32 @f(i32 %n, i32 %w) noinline { %s = shl i32 %n, %w
          ret i32 %s }
        define i32 @main(i32 %n) { %s = call i32 @f(i32 1, i32 33)
          ret i32 %s }"""),
    "signed overflow": (POISON, """
        define i1 @f(i32 %x) noinline { %y = add nsw i32 %x, 1
          %c = icmp sgt i32 %y, %x
          ret i1 %c }
        define i32 @main(i32 %n) { %x = add i32 %n, 2147483646
          %c = call i1 @f(i32 %x)
          %r = zext i1 %c to i32
          ret i32 %r }"""),
    "exact shift that loses a bit": (POISON, """
        define i32 @f(i32 %x) noinline { %y = lshr exact i32 %x, 1
          %z = shl i32 %y, 1
          ret i32 %z }
        define i32 @main(i32 %n) { %r = call i32 @f(i32 3)
          ret i32 %r }"""),
    "count of zero's zeros": (POISON, """
        declare i32 @llvm.cttz.i32(i32, i1)
        define internal i32 @f(i32 %x) noinline { %y = call i32 @llvm.cttz.i32(i32 %x, i1 true)
          ret i32 %y }
        define i32 @main(i32 %n) { %r = call i32 @f(i32 0)
          ret i32 %r }"""),
    "branch on undef": (UNDEF, """
        define i32 @main(i32 %n) { br i1 undef, label %a, label %b
        a:
          ret i32 3
        b:
          ret i32 4 }"""),
    "undef is stored": (UNDEF, """
        define i32 @main(i32 %n) { %x = alloca i32
          store i32 undef, i32* %x
          %v = load i32, i32* %x
          %c = icmp eq i32 %v, -1
          %r = zext i1 %c to i32
          ret i32 %r }"""),
    "undef in a phi": (UNDEF, """
        define i32 @main(i32 %n) { %c = icmp eq i32 %n, 1
          br i1 %c, label %b, label %a
        a:
          br label %b
        b:
          %r = phi i32 [ undef, %0 ], [ 4, %a ]
          ret i32 %r }"""),
    "second operand": (UNDEF, """
        define i32 @main(i32 %n) { %r = or i32 %n, poison
          ret i32 %r }"""),
    "a global without a value": (UNDEF, """
        @g = global i32 undef
        define i32 @main(i32 %n) { %r = load i32, i32* @g
          ret i32 %r }"""),
    "a local without a value": (PATTERN, """
        define i32 @main(i32 %n) { %x = alloca [4 x i32], align 16
          %p = getelementptr [4 x i32], [4 x i32]* %x, i32 0, i32 2
          %v = load i32, i32* %p
          %c = icmp eq i32 %v, -1431655766
          %r = zext i1 %c to i32
          ret i32 %r }"""),
}  # fmt: skip
# each function is right, though its text looks like the above; the results are added
RIGHT = """
@text = private constant [9 x i8] c" undef p\\00"
declare i32 @llvm.ctlz.i32(i32, i1)
declare i32 @llvm.cttz.i32(i32, i1)
define i32 @chosen(i32 %n) { %s = shl i32 1, %n
  %c = icmp ult i32 %n, 32
  %r = select i1 %c, i32 %s, i32 7
  ret i32 %r }
define i32 @pair(i32 %n) { %a = insertvalue { i32, i32 } undef, i32 %n, 0
  %r = extractvalue { i32, i32 } %a, 0
  ret i32 %r }
define i32 @lane(i32 %n) { %a = insertelement <4 x i32> undef, i32 %n, i32 2
  %b = shufflevector <4 x i32> %a, <4 x i32> poison, <4 x i32> <i32 2, i32 undef, i32 undef, i32 undef>
  %r = extractelement <4 x i32> %b, i32 0
  ret i32 %r }
define i32 @sum(i32 %n) { %a = add nsw nuw i32 %n, 5
  ret i32 %a }
define i32 @local(i32 %n) { %x = alloca i32, align 4
  %y = alloca { i8, i64 }
  store i32 %n, i32* %x
  %r = load i32, i32* %x
  ret i32 %r }
define i32 @way(i32 %n) { %c = icmp eq i32 %n, 9
  br i1 %c, label %a, label %b
a:
  br label %b
b:
  %r = phi i32 [ undef, %a ], [ 4, %0 ]
  ret i32 %r }
define i32 @even(i32 %n) { %a = shl i32 %n, 1
  %r = lshr exact i32 %a, 1
  ret i32 %r }
define i32 @zeros(i32 %n) { %c = icmp eq i32 %n, 0
  %a = call i32 @llvm.cttz.i32(i32 %n, i1 true)
  %r = select i1 %c, i32 32, i32 %a
  ret i32 %r }
define i32 @odd(i7 %n) { %a = shl i7 1, %n
  %r = zext i7 %a to i32
  ret i32 %r }
define i32 @letter(i32 %n) { %p = getelementptr inbounds [9 x i8], [9 x i8]* @text, i32 0, i32 1
  %a = load i8, i8* %p
  %r = zext i8 %a to i32
  ret i32 %r }
define i32 @ranged(i32 %n) { %x = alloca i32
  store i32 2, i32* %x
  %r = load i32, i32* %x, !range !0
  ret i32 %r }
define i32 @main(i32 %n) {
"""


def right_program() -> str:
    names = re.findall(r"^define i32 @(\w+)\(i(\d+) ", RIGHT, re.MULTILINE)[:-1]
    lines, total = [RIGHT], "0"
    for index, (name, bits) in enumerate(names):
        given = "%n" if bits == "32" else "1"
        lines.append(f"  %v{index} = call i32 @{name}(i{bits} {given})\n  %t{index} = add i32 {total}, %v{index}")
        total = f"%t{index}"
    # what only an optimised build would see: nothing. It is right everywhere
    return "\n".join([*lines, f"  ret i32 {total}", "}", "!0 = !{i32 0, i32 5}", ""])


def text_of(body: str) -> str:
    return re.sub(r"\{ (?=[%b])", "{\n  ", body).replace(" }", "\n}")


def row(workspace: Workspace, name: str, *, cheap: bool) -> ScreenCheck:
    checks = ScreenChecks(workspace, Deadline())
    [check] = [check for title, _, check in checks.ir.rows(cheap=cheap) if title == name]
    return check()


@pytest.mark.parametrize("what", WRONG)
def test_what_has_no_value_is_found(opened: Opener, what: str) -> None:
    """By the -O0 build alone where it shows there, else because the bad build is right without it."""
    name, body = WRONG[what]
    # of an undefined register only the optimised build makes the same value in each run
    bad, good = ("-O0", "-O2") if what == "undef in a phi" else ("-O2", "-O0")
    found = row(opened(text_of(body), suffix=".ll", args=(bad,), reference=good), name, cheap=False)
    assert found.outcome is ScreenOutcome.FINDING, found


def test_a_right_program_is_not_blamed(opened: Opener) -> None:
    workspace = opened(right_program(), suffix=".ll", reference="-O0")
    result = cheap_screen(workspace)
    outcomes = {check.name: check.outcome for check in result.checks}
    assert [outcomes[name] for name in (POISON, UNDEF, PATTERN)] == [ScreenOutcome.CLEAN] * 3, result
    assert result.clean
    again = [row(workspace, name, cheap=False).outcome for name in (POISON, UNDEF)]
    assert ScreenOutcome.FINDING not in again


def test_a_shift_by_the_width_ends_before_a_pass_is_named(opened: Opener) -> None:
    """llvm-project#55727: the cheap part that `bisect` runs sees it too."""
    result = cheap_screen(opened(text_of(WRONG["vector shift by its width"][1]), suffix=".ll", reference="-O0"))
    assert not result.clean and POISON in result.reason


def test_the_texts() -> None:
    assert without_poison("  %a = add nuw nsw i32 %x, 1\n") == "  %a = add i32 %x, 1\n"
    assert without_poison("  %a = getelementptr inbounds i8, ptr %p, i64 1") == "  %a = getelementptr i8, ptr %p, i64 1"
    assert without_poison("  %a = load i32, ptr %p, align 4, !range !3, !dbg !4") == (
        "  %a = load i32, ptr %p, align 4, !dbg !4"
    )
    assert without_poison("  %s = shl nsw i32 %x, 33, !dbg !4") == "  %s = shl i32 %x, 1, !dbg !4"
    assert without_poison("  %5 = lshr i64 %x, %4, !dbg !4") == (
        "  %mccprobe.amount.5 = and i64 %4, 63\n  %5 = lshr i64 %x, %mccprobe.amount.5, !dbg !4"
    )
    assert without_poison("  %5 = shl i7 %x, %4") == "  %5 = shl i7 %x, %4"
    assert with_values("  call void @poison(i32 noundef undef, i1 poison, double undef)", ones=True) == (
        "  call void @poison(i32 -1, i1 true, double zeroinitializer)"
    )
    assert with_filled_locals("  %x = alloca i32, i32 %n, align 4\n") == "  %x = alloca i32, i32 %n, align 4\n"
    filled = with_filled_locals("  %x = alloca ptr, align 8\n")
    assert "memset.p0.i64(ptr %x, i8 170, i64 ptrtoint (ptr getelementptr (ptr, ptr null, i32 1) to i64)" in filled
