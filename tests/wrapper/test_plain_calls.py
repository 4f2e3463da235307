"""The loop that passes plain calls on at once: it must add what the whole wrapper adds, or leave the call to it."""

from __future__ import annotations

import random

import pytest

from mccprobe.targets.llvm.command import TAKES_NEXT

# what a build writes, and what looks like it
WORDS = (
    "-c", "-S", "-O2", "-O3", "-Od3", "-Oz", "-std=c++17", "-Wall", "-Wl,-rpath,x", "-DX=1", "-UX", "-Iinc", "-I",
    "-Ldir", "-lm", "-l", "-fPIC", "-fstack-protector", "-fsyntax-only", "-fdebug-compilation-dir",
    "-march=native", "-mcpu=x", "-mavx2", "-mthread-model", "-mllvm", "-mtgpu-load-store-opt",
    "--offload-arch=mp_22", "-MD", "-MMD", "-MF", "-MT", "-M", "-E", "-g", "-g3", "-w", "-o", "-x", "musa", "c++",
    "none", "assembler", "c-header", "-isystem", "-include", "-pthread", "k.mu", "k.c", "a.o", "b.a", "c.so",
    "k.h", "k.s", "k", "dir/k.mu", "", "-", "--", "two words.mu", "-shared", "-v", "--version", "-###", "-Xclang",
    "-fno-x", "@none",
)  # fmt: skip
SETTLED = 120  # command lines of each shell


@pytest.mark.parametrize("part", range(4))
def test_the_same_as_with_all_of_it(call, part: int) -> None:  # type: ignore[no-untyped-def]
    """A log makes the whole wrapper look at the call."""
    draw = random.Random(part)
    for _ in range(SETTLED // 4):
        argv = [draw.choice(WORDS) for _ in range(draw.randrange(1, 8))] + ["k.mu"] * draw.randrange(2)
        whole, plain = call(argv), call(argv, log=False)
        assert plain.argv == whole.argv and plain.code == whole.code, argv


@pytest.mark.parametrize("part", range(4))
def test_no_value_is_taken_for_an_input(call, part: int) -> None:  # type: ignore[no-untyped-def]
    """`OPTION k.mu` is no compile where the option takes the next argument."""
    for option in sorted(TAKES_NEXT)[part::4]:
        whole, plain = call([option, "k.mu", "a.o"]), call([option, "k.mu", "a.o"], log=False)
        assert plain.argv == whole.argv, option
