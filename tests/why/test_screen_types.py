"""Strict aliasing is excluded where the source shows no way to another type: in C and, by the same measure, in C++."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccprobe.base.process import RunSpec, run
from mccprobe.explain.screen.types import converts, own_text, system_files

pytestmark = pytest.mark.toolchain("clang-14")

HEADERS = """#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
struct S { int a; float b; };
"""
KEEPS = {
    "C++ without conversions": "struct I { unsigned long u; }; void f(I **l, int n) { while (n--) l[n]->u++; }",
    "containers": HEADERS + "int f(int n) { std::vector<S> v(n); std::string s(3, 'a'); v[0].a = n; return s.size(); }",
    "no arguments": "int g(); int f() { return g(); }",
    "fresh memory": HEADERS + "S *f() { return (S *)std::malloc(sizeof(S)); }",
    "calloc": HEADERS + "S *f(int n) { return static_cast<S *>(calloc(n, sizeof(S))); }",
    "new and delete": HEADERS + "int f() { S *s = new S[3]; s[1].a = 4; int r = s[1].a; delete[] s; return r; }",
    "bytes": HEADERS + "char f(S *s) { return *reinterpret_cast<char *>(s); }",
    "memcpy": HEADERS + "int f(float x) { int i; std::memcpy(&i, &x, sizeof i); return i; }",
    "to a base": "struct A { int a; }; struct B : A { int b; }; int f(B *b) { A *a = b; return a->a; }",
    "a lambda": HEADERS + "int f(std::vector<int> &v) { auto g = [&](int i) { return v[i]; }; return g(0); }",
}
CONVERTS = {
    "reinterpret_cast": "float f(int *p) { return *reinterpret_cast<float *>(p); }",
    "reference": "float f(int &p) { return reinterpret_cast<float &>(p); }",
    "through void": "float f(int *p) { void *v = p; return *static_cast<float *>(v); }",
    "through bytes": HEADERS + "float f(int *p) { char *c = reinterpret_cast<char *>(p); return *(float *)c; }",
    "in a template": HEADERS + "template <class T> T g(int *p) { return *(T *)p; } float h = g<float>(0);",
    "integer": HEADERS + "float f(unsigned long p) { return *(float *)p; }",
    "placement new": "#include <new>\nfloat f(int *p) { return *new (p) float(1); }",
    "to a derived class": "struct A { int a; }; struct B : A { int b; }; int f(A *a) { return ((B *)a)->b; }",
    "fresh memory of another's": HEADERS + "S *own(unsigned long); void *get(); S *f() { return (S *)get(); }",
    "namespace": "namespace n { float f(int *p) { return *(float *)p; } }",
}


def tree_converts(tmp_path: Path, text: str, suffix: str) -> bool:
    source = tmp_path / f"program{suffix}"
    source.write_text(text)
    driver = ["clang-14", *(["--driver-mode=g++"] if suffix == ".cc" else [])]
    printed = [
        run(RunSpec([*driver, *how, str(source)], capture_bytes=1 << 26))
        for how in (["-E"], ["-fsyntax-only", "-w", "-Xclang", "-ast-dump"])
    ]
    assert all(result.ok for result in printed), printed[1].stderr_text
    text, tree = (result.stdout_text for result in printed)
    return converts(tree, system_files(text), cxx=suffix == ".cc")


@pytest.mark.parametrize("what", KEEPS)
def test_memory_keeps_its_type(tmp_path: Path, what: str) -> None:
    assert not tree_converts(tmp_path, KEEPS[what], ".cc")


@pytest.mark.parametrize("what", CONVERTS)
def test_memory_may_get_another_type(tmp_path: Path, what: str) -> None:
    assert tree_converts(tmp_path, CONVERTS[what], ".cc")


def test_c_is_weighed_by_the_same_measure(tmp_path: Path) -> None:
    assert not tree_converts(tmp_path, "#include <stdlib.h>\nint *f(void) { return malloc(4); }\n", ".c")
    assert not tree_converts(tmp_path, "void free(void *); void f(int *p) { free(p); }\n", ".c")
    assert tree_converts(tmp_path, "int g(); int f(int *p) { return g(p); }\n", ".c")
    assert tree_converts(tmp_path, "float f(void *p) { float *q = p; return *q; }\n", ".c")


def test_own_text_leaves_system_headers_out() -> None:
    text = '# 1 "a.c"\nint x;\n# 1 "/usr/include/h.h" 1 3 4\nunion u { int i; };\n# 2 "a.c" 2\nint y;\n'
    assert own_text(text) == "int x;\nint y;"
    assert system_files(text) == {"/usr/include/h.h"}
