"""IR texts for people, pipeline texts for opt, and diffs that stay bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccprobe.explain.locate.diff import DIFF_LINES, LINE_CHARACTERS, bounded_diff
from mccprobe.explain.locate.ir_pipeline import pass_level, pipeline_steps, single_pass_texts
from mccprobe.explain.locate.ir_text import function_lines, readable_lines
from mccprobe.targets.llvm.llvm_tools import LlvmTool, find_tool, llc_arguments, llvm_options

MODULE = """; ModuleID = 'x'
define i32 @"odd name"(i32 %a) #0 {
entry:
  ret i32 %a
}

define i32 @work(i32* nocapture %p) #1 {
entry:                                            ; preds = %nowhere
  %v = load i32, i32* %p, align 4, !tbaa !5
  %c = call i32 @work(i32* %p) #2, !dbg !12
  ret i32 %v
}

attributes #1 = { norecurse nounwind "target-cpu"="x86-64" "no-trapping-math"="true" }
attributes #2 = { nounwind }
"""
PIPELINE = (
    "verify,function<eager-inv>(sroa,simplifycfg<a=1;b>),cgscc(devirt<4>(inline<only-mandatory>,inline,"
    "function<eager-inv>(early-cse<memssa>,simplifycfg<a=2;c>,loop-mssa(licm,loop-rotate),loop(indvars,loop-deletion))))"
    ",globaldce"
)
LISTING = """Module passes:
  globaldce
Module passes with params:
  loop-extract<single>
CGSCC passes:
  inline
  function-attrs
Function passes:
  sroa
  newgvn
Function passes with params:
  simplifycfg<no-a;b>
Function analyses:
  licm
LoopNest passes:
  loop-interchange
Loop passes:
  licm
  indvars
"""


def test_one_function_without_what_renumbers() -> None:
    lines = readable_lines(MODULE, function_lines(MODULE, "work"))
    assert lines == [
        "define i32 @work(i32* nocapture %p) { norecurse nounwind } {",
        "entry:",
        "  %v = load i32, i32* %p, align 4",
        "  %c = call i32 @work(i32* %p) { nounwind }",
        "  ret i32 %v",
        "}",
    ]
    assert function_lines(MODULE, "odd name")[0].startswith('define i32 @"odd name"')
    assert function_lines(MODULE, "missing") == []


def test_a_pipeline_text_is_read_with_its_nesting() -> None:
    steps = {step.text: step.adaptors for step in pipeline_steps(PIPELINE)}
    assert steps["inline<only-mandatory>"] == ("cgscc", "devirt<4>")
    assert steps["licm"][-1] == "loop-mssa"
    assert steps["globaldce"] == ()


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("licm", ["function(loop-mssa(licm))", "function(loop(licm))"]),
        ("indvars", ["function(loop(indvars))", "function(loop-mssa(indvars))"]),
        ("loop-interchange", ["function(loop(loop-interchange))", "function(loop-mssa(loop-interchange))"]),
        ("simplifycfg", ["function(simplifycfg<a=1;b>)", "function(simplifycfg<a=2;c>)", "function(simplifycfg)"]),
        ("inline", ["cgscc(inline<only-mandatory>)", "cgscc(inline)"]),
        ("globaldce", ["globaldce"]),
        ("newgvn", ["function(newgvn)"]),
        ("early-cse", ["function(early-cse<memssa>)"]),
        ("unknown", []),
    ],
)
def test_a_pass_alone_is_wrapped_as_its_pipeline_needs(name: str, texts: list[str]) -> None:
    assert single_pass_texts(name, PIPELINE, LISTING) == texts


def test_analyses_have_no_level() -> None:
    assert pass_level(LISTING.partition("LoopNest")[0], "licm") == ""


def test_a_diff_of_ten_thousand_lines_is_bounded_and_whole_in_its_file(tmp_path: Path) -> None:
    before = [f"line {number}" for number in range(10_000)]
    after = [line + " changed" if number % 50 == 0 else line for number, line in enumerate(before)]
    after[1] = "x" * 5000
    shown = bounded_diff(before, after, tmp_path / "diff.txt", names=("a", "b")).splitlines()
    assert len(shown) == DIFF_LINES + 1 and shown[-1].endswith("more lines in diff.txt]")
    assert max(map(len, shown)) < LINE_CHARACTERS + 20
    whole = (tmp_path / "diff.txt").read_text().splitlines()
    assert len(whole) > 1500 and "+" + "x" * 5000 in whole
    assert bounded_diff(before, before, tmp_path / "none.txt", names=("a", "b")) == ""
    assert not (tmp_path / "none.txt").exists()


def _tool(path: Path, version: str) -> None:
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(0o755)


def test_a_tool_of_another_version_is_refused(tmp_path: Path) -> None:
    _tool(tmp_path / "clang", "Vendor clang version 14.0.6-12")
    _tool(tmp_path / "llc", "LLVM version 15.0.6")
    answer = find_tool("llc", str(tmp_path / "clang"), elsewhere=False)
    assert isinstance(answer, str) and "15.0.6" in answer and "14.0.6" in answer
    assert "no opt beside" in str(find_tool("opt", str(tmp_path / "clang"), elsewhere=False))
    assert "does not tell" in str(find_tool("opt", str(tmp_path / "missing"), elsewhere=True))


def test_llc_gets_what_the_driver_says_beside_the_ir() -> None:
    cc1 = (
        "clang -cc1 -triple x -emit-obj --mrelax-relocations -mrelocation-model pic -target-cpu gfx908 -target-feature "
        "+a -target-feature -b -load p.so -mllvm -x=1 -mllvm -opt-bisect-limit=7 -ffp-contract=fast -Os -faddrsig "
        "-ffunction-sections -x ir in.bc"
    ).split()
    llc = LlvmTool(Path("llc"), frozenset({"addrsig", "x86-relax-relocations", "function-sections"}))
    assert llc_arguments(cc1, llc) == [
        "-load",
        "p.so",
        "-O2",
        "-relocation-model=pic",
        "-mcpu=gfx908",
        "-mattr=+a,-b",
        "-fp-contract=fast",
        "-addrsig",
        "-x86-relax-relocations",
        "-function-sections",
    ]
    assert llvm_options(cc1) == ["-x=1"]
