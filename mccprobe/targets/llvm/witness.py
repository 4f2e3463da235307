"""A small source on which a pass limit must show: every optimiser changes its loop, so limit 0 gives another object.

A user's source may be one that no pass changes (at -O0, or with nothing to do). Only where the witness too has one
object for limit 0 and for no limit at all does the compiler ignore the limit.
"""

from __future__ import annotations

from dataclasses import replace

from mccprobe.targets.flags.levels import is_level
from mccprobe.targets.llvm.jobs import Job, value_after

_LOOP = """int mccprobe_witness(int *v, int n);
int mccprobe_witness(int *v, int n) {
  int s = 0, i;
  for (i = 0; i < n; ++i) s += v[i] * 4;
  return s;
}
"""
_KERNEL = """__attribute__((global)) void mccprobe_witness(int *v, int n) {
  int s = 0;
  for (int i = 0; i < n; ++i) s += v[i] * 4;
  v[0] = s;
}
"""
# no pointer: their spelling differs between LLVM 14 and 17
_IR = """define i32 @mccprobe_witness(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %sum, %loop ]
  %twice = add i32 %i, %i
  %sum = add i32 %s, %twice
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret i32 %sum
}
"""


def witness_of(job: Job) -> tuple[str, str] | None:
    """(language, text) of the witness for a cc1 of this language; None where there is none."""
    if len(job.argv) < 2 or job.argv[1] != "-cc1":
        return None
    language = value_after(job.argv, "-x").removesuffix("-cpp-output")
    if language in ("c", "cpp", "objective-c"):
        return "c", _LOOP
    if language in ("c++", "objective-c++"):
        return "c++", _LOOP
    if language in ("cuda", "hip", "musa"):
        return language, _KERNEL
    return ("ir", _IR) if language == "ir" else None


def on_witness(job: Job, path: str) -> Job:
    """The compile with the witness at `path` as its input: optimised, and without warnings about it."""
    found = witness_of(job)
    assert found is not None
    argv = ["-O2" if is_level(argument) else argument for argument in job.argv]
    at = len(argv) - 1 - argv[::-1].index("-x")
    return replace(job, argv=(*argv[:at], "-w", "-x", found[0], path))
