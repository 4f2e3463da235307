"""Readers of what compilers and programs print."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from .reader import as_file, files, lines_of, text_of

# ---- what compilers and programs say --------------------------------------------------------------

JOBS = (
    b'clang version 14.0.6\nTarget: x86_64\n "/usr/bin/clang-14" "-cc1" "-triple" "mtgpu-mt-musa" "-emit-obj" '
    b'"-target-cpu" "mp_22" "-mllvm" "-x=1" "-cuid=12" "-o" "/tmp/a-mp_22.o" "-x" "musa" "a \\"b\\".mu"\n'
    b' "/usr/bin/lld" "-o" "/tmp/out" "/tmp/a-mp_22.o"\n "/usr/bin/clang-offload-bundler" "-outputs=/tmp/x.mt_fatbin"\n'
    b' "/usr/bin/clang-14" "-cc1" "-emit-obj" "-fcuda-include-gpubinary" "/tmp/x" "-o" "a.o" "-x" "musa" "a.mu"\n'
)


def read_jobs(data: bytes, scratch: Path) -> object:
    from mccprobe.targets.llvm import jobs

    found = jobs.parse_jobs(text_of(data))
    for job in jobs.with_stable_cuid(found, "seed"):
        jobs.mllvm_options(job.argv)
        if job.kind in (jobs.JobKind.COMPILE, jobs.JobKind.DEVICE_COMPILE):
            jobs.front_end_argv(job, "a.bc")
            jobs.back_end_argv(job, "a.bc", "a.o", options=["-y"])
            jobs.cc1_input(job.argv)
        job.substitute({"a.mu": "b.mu", "/tmp/out": ""})
    return found


HELP = b"""OVERVIEW: llvm

USAGE: clang [options]

OPTIONS:

Color Options:

  --color                                            - Use colors in output (default=autodetect)

General options:

  --aarch64-bcc-offset-bits=<uint>                   - Restrict range of Bcc instructions (DEBUG)
  --abort-on-max-devirt-iterations-reached           - Abort when the max iterations
                                                       are reached
  --accel-tables=<value>                             - Output dwarf accelerator tables.
    =Default                                         -   Default for platform
    =Disable                                         -   Disabled.
  Pass options:
      --x                                            - one
"""
PRINTED = b"""
=== settings ===
  -align-loops                   = 0                    (default: *no default*)
  -x = true (default: false)
"""


def read_help_text(data: bytes, scratch: Path) -> object:
    from mccprobe.targets.flags.harvest import read_help
    from mccprobe.targets.flags.write import catalogue_text

    told, _, settings = text_of(data).partition("\n=== settings ===\n")
    found = read_help(told, settings)
    return tomllib.loads(catalogue_text(found.options, source="x", compiler="clang"))


def log_seeds() -> list[bytes]:
    logs = [one.split(b"\n") for one in files("tests/data/opt-bisect-logs/*.txt")()]
    return [b"\n".join(lines[:30] + lines[-12:]) for lines in logs]


def read_bisect_log(data: bytes, scratch: Path) -> object:
    from mccprobe.targets.llvm.opt_bisect import LogReader, LogSummary, parse_line

    for around in (0, 3):
        reader = LogReader(around)
        for start in range(0, len(data), 777):
            reader.feed(data[start : start + 777])
        summary, rest = reader.finish()
        assert isinstance(rest, bytes)
        json.dumps(summary.to_dict())
        LogSummary.from_dict(json.loads(json.dumps(summary.to_dict())))
    for line in text_of(data).split("\n")[:50]:
        execution = parse_line(line)
        if execution is not None:
            assert execution.function is not None and execution.is_loop in (True, False)
    return None


IR = b"""; ModuleID = 'a.c'
source_filename = "a.c"
target triple = "x86_64-pc-linux-gnu"

@g = global i32 7, align 4

; Function Attrs: nounwind uwtable
define dso_local i32 @work(i32* noalias nocapture %0, i32 %1) local_unnamed_addr #0 !dbg !7 {
entry:
  %2 = load i32, i32* %0, align 4, !tbaa !3
  br label %loop                                    ; preds = %entry

loop:                                             ; preds = %loop, %entry
  %3 = phi i32 [ 0, %entry ], [ %4, %loop ]
  %4 = add nsw i32 %3, %2
  %5 = icmp slt i32 %4, %1
  br i1 %5, label %loop, label %exit, !llvm.loop !5

exit:
  %6 = tail call i32 @llvm.assume(i1 %5) #2
  ret i32 %4
}

define void @"other name"() { ret void }
declare i32 @f(i32) #1
attributes #0 = { nounwind uwtable "frame-pointer"="none" mustprogress }
attributes #1 = { readnone }
!3 = !{!"int", !4, i64 0}
"""


def read_ir(data: bytes, scratch: Path) -> object:
    from mccprobe.bisection.passes.ir_change import changed_functions, changed_lines, compare_ir
    from mccprobe.explain.locate.hunk_shape import diff_shape, edit_shape
    from mccprobe.explain.locate.ir_text import function_lines, readable_lines
    from mccprobe.explain.reduce.interesting import holes_in
    from mccprobe.explain.screen.promises import IN_IR, without_promises
    from mccprobe.explain.screen.types import own_text

    text, good = text_of(data), IR.decode()
    readable_lines(text, function_lines(text, "work"))
    compare_ir(good, text)
    changed_functions(text, good)
    lines = changed_lines(good, text)
    diff_shape("\n".join(lines))
    edit_shape(text[:200], text[200:400])
    holes_in(data)
    without_promises(text, None)
    for change in IN_IR.values():
        change(text)
    return own_text(text)


def mir_seeds() -> list[bytes]:
    from tests.why.test_mir_mixes import block, mir

    end = block(1, "RET 0, %1")
    first = block(0, "%0:gr32 = MOV32ri 1", "%1:gr32 = ADD32rr killed %0, %0", successors="%bb.1(0x80000000)")
    other = block(0, "%1:gr32 = ADD32rr %0, %0", "%0:gr32 = MOV32ri 2", "BUNDLE {", "  X", "}")
    return [mir(first, end).encode(), mir(other, end).encode()]


def read_mir(data: bytes, scratch: Path) -> object:
    from mccprobe.explain.locate.mir_mix import Mixes
    from mccprobe.explain.locate.mir_text import parse_mir, print_mir

    good = parse_mir(mir_seeds()[0].decode(), "work")
    file = parse_mir(text_of(data), "work")
    if file is None or good is None:
        return None
    file.lines()
    print_mir(file, {}, {"9": "  - { id: 9, class: gr32 }\n"})
    mixes = Mixes(good, file)
    if not mixes.refusal:
        mixes.text(frozenset(range(min(3, len(mixes.units)))))
    return mixes


VERIFIER = b"""# After Machine Instruction Scheduler
# Machine code for function work: NoPHIs
*** Bad machine code: Using an undefined physical register ***
- function:    work
- basic block: %bb.0 entry (0x55d0c8)
- instruction: 16B\t%0:gr32 = COPY $edi
- operand 1:   $edi
"""


def read_verifier(data: bytes, scratch: Path) -> object:
    from mccprobe.explain.locate.verifier import _Reader

    reader = _Reader()
    for start in range(0, len(data), 777):
        reader.feed(data[start : start + 777])
    complaint = reader.complaint()
    return complaint.describe() if complaint else None


PIPELINE = b"""annotation2metadata,forceattrs,
cgscc(devirt<4>(inline<only-mandatory>,function<eager-inv>(sroa,loop-mssa(licm<x;y>))))
=== settings ===
Module passes:
  forceattrs
Function passes with params:
  sroa<x>
Loop passes:
  licm
"""


def read_pipeline(data: bytes, scratch: Path) -> object:
    from mccprobe.explain.locate.ir_pipeline import single_pass_texts

    pipeline, _, listed = text_of(data).partition("\n=== settings ===\n")
    return [single_pass_texts(name, pipeline, listed) for name in ("sroa", "licm", "inline", "x")]


def read_ptxas(data: bytes, scratch: Path) -> object:
    from mccprobe.targets.nvidia.ptxas import parse_ptxas, parse_usage

    text = text_of(data)
    return [json.dumps(kernel.raw) for kernel in (*parse_ptxas(text), *parse_usage(text))]


def ptxas_seeds() -> list[bytes]:
    from tests.report.test_ptxas import TEXT

    return [TEXT.encode()]


HOST = {
    "case": "legacy", "m": 1024, "n": 1024, "k": 1024, "seed": 1, "input": "random", "zero_share": 0.1,
    "elements": 1048576, "mismatches": 0, "max_err": 0.001, "tolerance": 0.01, "verdict": "GOOD",
    "launches": {"gemm_kernel<128, true>": 1}, "milliseconds": [1.5, 1.4, 1.6], "device": "sim", "reason": "",
}  # fmt: skip


@cache
def shipped_gemm() -> Any:
    from mccprobe.oracle.kernel.spec import shipped_kernel

    return shipped_kernel("gemm")


def read_host_answer(data: bytes, scratch: Path) -> object:
    from mccprobe.base.process import RunResult
    from mccprobe.oracle.checks import KernelOracle, json_document
    from mccprobe.tuning.check.answer import read_answer
    from mccprobe.tuning.check.launchable import covers, emulated_launches, kernel_name, launched_among

    kernel = shipped_gemm()
    status, _, out = data.partition(b"\n")
    result = RunResult(
        returncode={b"1": 1, b"125": 125}.get(status, 0),
        stdout=out,
        stderr=out,
        seconds=0.1,
        timed_out=False,
        stdout_bytes=len(out),
        stderr_bytes=len(out),
    )
    answer = read_answer(kernel, kernel.case(kernel.default_case), result, seed=1)
    json.dumps([answer.verdict, answer.reason, answer.max_err, answer.milliseconds], allow_nan=False)
    if answer.launches:
        launched_among(answer.launches, ["gemm_kernel<128,true>"])
    KernelOracle._numbers(json_document(out))
    emulated_launches(text_of(out))
    covers(text_of(out)[:2000], "a<1>", ["a<1>", "b"])
    return kernel_name(text_of(out)[:5000])


@as_file("lab.json")
def read_lab(path: Path) -> object:
    from mccprobe.tuning.lab.record import merge, read_observation

    found = merge([read_observation(path, "a"), read_observation(path, "b")])
    found.verdict()
    return [json.dumps(one.to_dict()) for one in (*found.findings, *found.banks, *found.kernels)]


PLACE = {"file": "a.mu", "line": 3, "column": 7, "function": "k", "outer_file": "", "outer_line": 0}
LAB = {
    "schema_version": 1, "ended": None,
    "findings": [{"kind": "race", "severity": "error", "kernel": "k", "block": [0, 0, 0], "warp": 1, "lanes": "0-31",
                  "count": 3, "text": "x", "site": PLACE, "other": {**PLACE, "line": 4},
                  "groups": [{"lanes": "0", "what": "store", "site": PLACE}]}],
    "banks": [{"kernel": "k", "site": PLACE, "access": "load", "bytes": 4, "groups": 8, "cycles": 16, "ideal": 8,
               "worst": 2, "uncounted": 0}],
    "kernels": [{"name": "k", "launches": 1, "blocks": 4, "grid": [4, 1, 1], "block": [128, 1, 1], "static_bytes": 0,
                 "dynamic_bytes": 1024}],
}  # fmt: skip


def trace_seeds() -> list[bytes]:
    from tests.trace.test_read import LAUNCH, MODULE

    refused = {"event": "refused", "pid": 1, "tid": 1, "time_ns": 6, "api": "muLaunchKernel", "order": 1, "result": 9}
    return [lines_of(LAUNCH, MODULE, refused, {**LAUNCH, "order": 2, "kernel": "\u00c3\u00a4"})]


def read_trace(data: bytes, scratch: Path) -> object:
    from mccprobe.tuning.trace.read import read_record

    (scratch / "modules").mkdir(exist_ok=True)
    (scratch / "modules/a.bin").write_bytes(b"abc")
    (scratch / "launches.jsonl").write_bytes(data)
    record = read_record(scratch)
    return record.kernels(), [module.file for module in record.modules]
