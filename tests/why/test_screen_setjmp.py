"""Locals around setjmp: only those that change between setjmp and longjmp are indeterminate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mccprobe.base.process import RunSpec, run
from mccprobe.explain.screen.setjmp import volatile_where_changed

pytestmark = pytest.mark.toolchain("clang-14")

HEAD = """
#include <setjmp.h>
static jmp_buf place;
void work(void);
void fill(int *);
int print(int);
"""
SAME = [
    # not changed at all, whatever is read
    "int f(int n) { int k = n + 1; if (!setjmp(place)) work(); else return k; return 5; }",
    # changed before setjmp only
    "int f(int n) { int k = n; k += 2; if (setjmp(place) == 0) { work(); } return k; }",
    # what it points to changes, not the local itself (llvm-project#57110)
    "int f(int *p) { int *k = p; if (!setjmp(place)) { *k = 42; work(); } else return *k; return 5; }",
    # a jmp_buf of its own, given to what jumps (the same report)
    "void go(jmp_buf b, int *p); int f(int *p) { jmp_buf b; if (!setjmp(b)) go(b, p); else return *p; return 5; }",
    # changed after the second return, and nothing can jump back from there
    "int f(int n) { int k = n; if (!setjmp(place)) work(); else k = 3; return k; }",
    # changed after the last call: nothing can jump from there
    "int f(int n) { int k = n; if (!setjmp(place)) { work(); k = 4; } return k; }",
    # no setjmp at all
    "int f(int n) { int k = n; k = 7; work(); return k; }",
]
CHANGED = [
    "int f(int n) { int k = n; if (!setjmp(place)) { k = 7; work(); } return k; }",
    "int f(int n) { int k = n; int r = setjmp(place); if (r == 0) { k++; work(); } return k; }",
    "int f(int n) { int k = n; if (!setjmp(place)) { fill(&k); } return k; }",
    "int f(int n) { int k[4] = {n}; if (!setjmp(place)) { k[n & 3] = 7; work(); } return k[0]; }",
    "int f(int n) { int k = n; switch (setjmp(place)) { case 0: k = 2; work(); break; default: k += 1; } return k; }",
    "int f(int n) { int k = n, *p = &k; if (!setjmp(place)) { work(); } return *p; }",
    "int f(int n) { int i; if (!setjmp(place)) for (i = 0; i < n; i++) work(); return i; }",
]


def front_end_ir(tmp_path: Path, text: str, compiler: str) -> str:
    source = tmp_path / "program.c"
    source.write_text(HEAD + text)
    argv = [compiler, "-O2", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", "-o", "-", str(source)]
    result = run(RunSpec(argv))
    assert result.ok, result.stderr_text
    return result.stdout_text


@pytest.mark.parametrize("text", SAME)
def test_a_local_that_keeps_its_value_is_left_alone(tmp_path: Path, text: str) -> None:
    module = front_end_ir(tmp_path, text, "clang-14")
    assert volatile_where_changed(module) == module


@pytest.mark.parametrize("text", CHANGED)
def test_a_local_that_changes_before_the_jump_is_made_volatile(tmp_path: Path, text: str) -> None:
    module = front_end_ir(tmp_path, text, "clang-14")
    changed = volatile_where_changed(module)
    assert re.search(r"load volatile", changed) and re.sub(r"volatile ", "", changed) == module


def test_opaque_pointers_are_read_too(tmp_path: Path, compiler: object) -> None:
    newer = compiler(16)  # type: ignore[operator]
    module = front_end_ir(tmp_path, CHANGED[0], newer)
    assert "store volatile i32 7" in volatile_where_changed(module)
    same = front_end_ir(tmp_path, SAME[2], newer)
    assert volatile_where_changed(same) == same
