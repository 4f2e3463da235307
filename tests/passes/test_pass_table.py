"""The pass table: lookup, sanity of the data, damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.base.errors import BadDataFile
from mccprobe.targets import registry
from mccprobe.targets.passes.table import (
    PassInfo,
    PassTable,
    guess_kind,
    load_pass_table,
)

TABLE = load_pass_table()
PASSES = list(TABLE.passes())
FILES = registry.target("mcc").pass_data

# title -> argument, kind, options that switch it off
GOLDEN = {
    "NewGVNPass": ("newgvn", "ir", ()),
    "InstCombinePass": ("instcombine", "ir", ()),
    "Combine redundant instructions": ("instcombine", "ir", ()),
    "LoopInterchangePass": ("loop-interchange", "ir", ()),
    "ConstraintEliminationPass": ("constraint-elimination", "ir", ()),
    "PostOrderFunctionAttrsPass": ("function-attrs", "ir", ()),
    "SROA": ("sroa", "ir", ()),
    "X86 DAG->DAG Instruction Selection": ("x86-isel", "isel", ()),
    "AMDGPU DAG->DAG Pattern Instruction Selection": ("amdgpu-isel", "isel", ()),
    "Loop Strength Reduction": ("loop-reduce", "codegen-ir", ("-disable-lsr",)),
    "CodeGen Prepare": ("codegenprepare", "codegen-ir", ("-disable-cgp",)),
    "Machine Instruction Scheduler": ("machine-scheduler", "machine", ("-enable-misched=false",)),
    "Merge disjoint stack slots": ("stack-coloring", "machine", ("-no-stack-coloring",)),
    "Shrink Wrapping analysis": ("shrink-wrap", "machine", ("-enable-shrink-wrap=false",)),
    "Remove dead machine instructions": ("dead-mi-elimination", "machine", ("-disable-machine-dce",)),
    "Early Machine Loop Invariant Code Motion": ("early-machinelicm", "machine", ("-disable-machine-licm",)),
    "Machine Loop Invariant Code Motion": ("machinelicm", "machine", ("-disable-postra-machine-licm",)),
    "Two-Address instruction pass": ("twoaddressinstruction", "machine", ()),
    "MTGPU PreRA Optimization": ("", "machine", ()),
}


@pytest.mark.parametrize("title", GOLDEN)
def test_lookup(title: str) -> None:
    found = TABLE.find(title)
    assert found is not None
    assert (found.argument, found.kind, found.neutralisers) == GOLDEN[title]


def test_titles_are_found_without_namespace_and_template_arguments() -> None:
    assert TABLE.find("(anonymous namespace)::NewGVNPass") == TABLE.find("NewGVNPass")
    analyses = TABLE.find("InvalidateAnalysisPass<llvm::AAManager>")
    assert analyses is not None and analyses.kind == "ir"
    assert TABLE.find("X86 DAG->DAG Instruction Selection") is not None  # no template
    assert TABLE.find("NoSuchPass") is None
    assert TABLE.find("") is None


def test_class_names_need_one_file_only() -> None:
    table = PassTable(FILES)
    assert table.find("NewGVNPass") is not None
    assert set(table._read) == {FILES[0]}


def test_schedulers_and_attribute_passes_are_marked() -> None:
    assert {info.title for info in PASSES if info.scheduler} == {
        "Machine Instruction Scheduler",
        "PostRA Machine Instruction Scheduler",
        "Post RA top-down list latency scheduler",
        "Modulo Software Pipelining",
    }
    attributes = {info.title for info in PASSES if info.attributes_only}
    assert {"PostOrderFunctionAttrsPass", "InferFunctionAttrsPass"} <= attributes
    assert "InstCombinePass" not in attributes


def test_no_title_is_there_twice() -> None:
    titles = [info.title for info in PASSES]
    assert len(titles) == len(set(titles)) > 500


@pytest.mark.parametrize("info", PASSES, ids=lambda info: info.title)
def test_entries_are_sane(info: PassInfo) -> None:
    assert info.title.strip() == info.title
    assert " " not in info.argument
    for option in (*info.neutralisers, *info.partial):
        assert option.startswith("-") and not option.startswith("--") and " " not in option
    assert not set(info.neutralisers) & set(info.partial)
    assert not (info.kind == "isel" and info.neutralisers), "selection is never absent"


def test_an_option_switches_off_one_pass_only() -> None:
    arguments: dict[str, set[str]] = {}
    for info in PASSES:
        for option in info.neutralisers:
            arguments.setdefault(option, set()).add(info.argument)
    shared = {option: found for option, found in arguments.items() if len(found) > 1}
    # it takes away the post-RA scheduler that the target chose; there is only one
    assert shared == {"-disable-post-ra": {"postmisched", "post-RA-sched"}}


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("BrandNewPass", "ir"),
        ("polly::CodePreparationPass", "ir"),
        ("(anonymous namespace)::HiddenPass", "ir"),
        ("RequireAnalysisPass<llvm::X, llvm::Y>", "ir"),
        ("MTGPU DAG->DAG Pattern Instruction Selection", "isel"),
        ("MTGPU Fence Something", "machine"),
        ("Machine Copy Propagation Pass", "machine"),  # a title, although it ends in Pass
        ("", "machine"),
    ],
)
def test_unknown_titles_are_guessed(title: str, kind: str) -> None:
    assert guess_kind(title) == kind


@given(st.text())
def test_any_title_has_an_answer(title: str) -> None:
    found = TABLE.find(title)
    assert found is None or isinstance(found, PassInfo)
    assert guess_kind(title) in ("ir", "isel", "machine")


def test_guesses_agree_with_the_table() -> None:
    wrong = [
        i.title for i in PASSES if i.title.endswith("Pass") and " " not in i.title and guess_kind(i.title) != i.kind
    ]
    assert wrong == ["DummyCGSCCPass"]  # of the legacy pass manager, whose titles are seldom class names


ENTRY = '[[pass]]\ntitles = ["A"]\nargument = "a"\nkind = "machine"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[pass", "not TOML"),
        ("schema_version = 2", "schema_version"),
        ("schema_version = 1", "expected schema_version and [[pass]] tables"),
        ("schema_version = 1\nother = 2\n" + ENTRY, "nothing else"),
        ("schema_version = 1\npass = [1]", "pass[0].is not a table"),
        ("schema_version = 1\n" + ENTRY.replace('kind = "machine"', ""), "pass[0].kind: is missing"),
        ("schema_version = 1\n" + ENTRY.replace("machine", "engine"), "pass[0].kind: not one of"),
        ("schema_version = 1\n" + ENTRY.replace('["A"]', "[]"), "pass[0].titles: is empty"),
        ("schema_version = 1\n" + ENTRY.replace('["A"]', '"A"'), "pass[0].titles: expected a list of strings"),
        ("schema_version = 1\n" + ENTRY.replace('"a"', "1"), "pass[0].argument: expected a string"),
        ("schema_version = 1\n" + ENTRY + "scheduler = 1", "pass[0].scheduler: expected true or false"),
        ("schema_version = 1\n" + ENTRY + "sheduler = true", "pass[0].sheduler: unknown key"),
        ("schema_version = 1\n" + ENTRY + ENTRY, "pass[1].titles: A is there twice"),
    ],
)
def test_damaged_tables_name_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    damaged = tmp_path / FILES[1].name
    damaged.write_text(text)
    table = PassTable((FILES[0], damaged, FILES[2]))
    assert table.find("NewGVNPass") is not None
    with pytest.raises(BadDataFile) as error:
        table.find("Machine Instruction Scheduler")
    assert str(damaged) in error.value.message
    assert said in error.value.message


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadDataFile, match="cannot be read"):
        PassTable([tmp_path / "none.toml"]).find("NewGVNPass")
