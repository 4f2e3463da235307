"""Titles of passes as real compilers print them: the recipe of targets/llvm/data/passes-*.toml.

    python tests/passes/collect_titles.py clang-14     prints the titles that the table lacks

A title comes from the bisect log of small programs that make many passes run. To fill an entry in:
`opt-14 -passes=NAME -debug-pass-manager` (class names) and `llc-14 -print-after-all` (the banner
has title and argument) tell the argument; `llc-14 -debug-pass=Structure OPTION` tells which passes
an option removes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mccprobe.targets.passes.table import load_pass_table

LINE = re.compile(r"BISECT: (?:NOT )?running pass \(\d+\) (.+?) on ")
TIMEOUT_S = 300.0

C = """
typedef struct { double x[16]; } S;
double fabs(double);
S mix(S a, S b) {
  S r;
  for (int i = 0; i < 16; i++) r.x[i] = a.x[i] * b.x[i] + fabs(a.x[(i + 3) & 15]);
  return r;
}
void mm(double *a, double *b, double *c) {
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 64; j++) {
      double s = 0;
      for (int k = 0; k < 64; k++) s += a[i * 64 + k] * b[k * 64 + j];
      c[i * 64 + j] = s;
    }
}
long divide(long a, long b) { return a / b + a % b + (a < b ? a * 3 : b * 7); }
static int twice(int x) { return 2 * x; }
int choose(int x) {
  switch (x) { case 0: return 12; case 1: return 5; case 2: return 99; case 3: return twice(x); default: return x; }
}
"""
CXX = """
#include <map>
#include <string>
thread_local int counter;
int main(int argc, char **argv) {
  std::map<std::string, int> seen;
  try {
    for (int i = 0; i < argc; i++) { seen[argv[i]] += i; if (*argv[i] == 'd') throw ++counter; }
  } catch (int x) { return x; }
  return (int)seen.size();
}
"""
CL = """
__attribute__((noinline)) float dev(float x, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) { if (x > i) s += x * i; else s -= x / i; }
  return s;
}
kernel void k(global float *a, global float *b, int n) {
  local float tile[256];
  int t = __builtin_amdgcn_workitem_id_x();
  tile[t] = a[t];
  __builtin_amdgcn_s_barrier();
  float own[32], s = 0;
  for (int i = 0; i < n; i++) s += tile[(t + i) & 255] * b[i * n + t];
  for (int i = 0; i < 32; i++) own[(i * t) & 31] = s + i;
  if (t & 1) s = dev(s, n);
  a[t] = s + own[n & 31];
}
kernel void at(global int *p, int n) {
  for (int i = 0; i < n; i++) { if (p[i] > 5) break; __atomic_fetch_add(p + i, 1, __ATOMIC_SEQ_CST); }
}
"""
PROGRAMS = {"p.c": C, "p.cc": CXX, "p.cl": CL}
AMD = ["--target=amdgcn", "-nogpulib"]
PLAIN = [
    *(["p.c", level] for level in ("-O0", "-O1", "-O2", "-O3", "-Os", "-Oz")),
    ["p.c", "-O2", "-g", "-march=skylake-avx512"],
    ["p.c", "-O3", "-ffast-math"],
    ["p.c", "-O2", "-m32"],
    ["p.c", "-O2", "-flto"],
    ["p.c", "-O2", "-fsanitize=undefined"],
    ["p.c", "-O2", "-fprofile-instr-generate"],
    ["p.c", "-O2", "-ftrivial-auto-var-init=pattern"],
    *(
        ["p.c", "-O3", "-mllvm", option]
        for option in (
            "-enable-newgvn",
            "-enable-loopinterchange",
            "-enable-loop-flatten",
            "-enable-constraint-elimination",
            "-enable-ipra",
            "-enable-gvn-hoist",
            "-enable-gvn-sink",
            "-enable-unroll-and-jam",
            "-enable-dfa-jump-thread",
            "-regalloc=basic",
            "-global-isel",
            "-enable-partial-inlining",
            "-hot-cold-split",
        )
    ),
    ["p.cc", "-O1"],
    ["p.cc", "-O2"],
    *([*["p.cl", level], *AMD, f"-mcpu={cpu}"] for level in ("-O0", "-O2", "-O3") for cpu in ("gfx906", "gfx1030")),
    ["p.c", "-O2", "--target=aarch64-linux-gnu", "-ffreestanding"],
    ["p.c", "-O2", "--target=nvptx64", "-ffreestanding"],
]


def iter_titles(compiler: str, arguments: list[str], folder: Path) -> Iterator[str]:
    """Each title of one compile's bisect log, once. The log is read as a stream: it may be large."""
    name, *options = arguments
    source = folder / name
    if not source.exists():
        source.write_text(PROGRAMS[name])
    output = ["-emit-llvm"] if "-flto" in options else []
    argv = [compiler, "-w", *options, *output, "-S", str(source), "-o", "-", "-mllvm", "-opt-bisect-limit=-1"]
    seen: set[str] = set()
    with subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as child:
        assert child.stderr is not None
        for line in child.stderr:
            found = LINE.match(line)
            if found and found[1] not in seen:
                seen.add(found[1])
                yield found[1]


def missing(compiler: str, arguments: list[str], folder: Path) -> tuple[int, list[str]]:
    """How many titles one compile showed, and those that the table lacks."""
    titles = list(iter_titles(compiler, arguments, folder))
    return len(titles), [title for title in titles if load_pass_table().find(title) is None]


def main() -> int:
    lacking: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for compiler in sys.argv[1:]:
            for arguments in PLAIN:
                lacking |= set(missing(compiler, arguments, Path(folder))[1])
    print("\n".join(sorted(lacking)))
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
