"""Pipe tables: their data is sound, and the longest prefix decides."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest

from mccprobe.objects.isa.pipes import ISAS, UNKNOWN, pipe_table

ISSUE_PIPES = {
    "MMA", "LDMA.RD", "LDMA.WR", "DMA.LD", "DMA.ST", "LSU.LD", "LSU.ST", "INT", "FOP", "BIT", "CTRL", "AP", "COND",
    "MOV", "SHUFFLE",
}  # fmt: skip


@pytest.mark.parametrize("isa", ISAS)
def test_every_entry_has_a_source_and_no_name_stands_twice(isa: str) -> None:
    document = tomllib.loads((resources.files("mccprobe.objects.isa") / f"data/pipes-{isa}.toml").read_text())
    assert document["isa"] == isa
    seen: set[tuple[str, str]] = set()
    for entry in document["entry"]:
        assert entry["source"] in document["sources"]
        assert entry.get("flow", "") in {"", "jump", "branch", "call", "end"}
        for kind in ("prefixes", "names"):
            for name in entry.get(kind, ()):
                assert (kind, name) not in seen
                seen.add((kind, name))
    used = {entry["source"] for entry in document["entry"]}
    assert used | {"hand-asm", "article"} >= set(document["sources"])


def test_mtgpu_has_the_pipes_of_the_issue_and_no_others() -> None:
    assert set(pipe_table("mtgpu").pipes()) == ISSUE_PIPES


@pytest.mark.parametrize(
    ("isa", "mnemonic", "pipe", "flow"),
    [
        ("mtgpu", "MMA.323216", "MMA", ""),
        ("mtgpu", "MMAX.1", "other", ""),
        ("mtgpu", "LDMA.RD.B32.BST1", "LDMA.RD", ""),
        ("mtgpu", "LDMA", "other", ""),
        ("mtgpu", "LSU.LD.B128", "LSU.LD", ""),
        ("mtgpu", "BIT", "BIT", ""),
        ("mtgpu", "BIT.LUT.XOR", "BIT", ""),
        ("mtgpu", "CTRL.BR.ALLP0T", "CTRL", "branch"),
        ("mtgpu", "CTRL.END", "CTRL", "end"),
        ("mtgpu", "CTRL.NOP", "CTRL", ""),
        ("mtgpu", "SQMMA.WAIT", "other", ""),
        ("mtgpu", "<unknown>", UNKNOWN, ""),
        ("amdgpu", "v_mfma_f32_32x32x8f16", "MFMA", ""),
        ("amdgpu", "v_add_f32_e32", "VALU", ""),
        ("amdgpu", "s_load_dwordx4", "SMEM", ""),
        ("amdgpu", "s_cbranch_scc1", "BRANCH", "branch"),
        ("amdgpu", ".long", UNKNOWN, ""),
        ("x86", "je", "BRANCH", "branch"),
        ("x86", "jmpq", "BRANCH", "jump"),
        ("x86", "retq", "BRANCH", "end"),
        ("x86", "movss", "SIMD", ""),
        ("x86", "movslq", "MOV", ""),
        ("x86", "pushq", "MOV", ""),
        ("x86", "popcntl", "BIT", ""),
        ("x86", "vpaddd", "SIMD", ""),
        ("nvidia", "HMMA.16816.F32", "TENSOR", ""),
        ("nvidia", "LDGDEPBAR", "BARRIER", ""),
    ],
)
def test_look_up(isa: str, mnemonic: str, pipe: str, flow: str) -> None:
    kind = pipe_table(isa).find(mnemonic)
    assert (kind.pipe, kind.flow) == (pipe, flow)


@pytest.mark.parametrize("isa", ISAS)
def test_what_follows_the_longest_prefix_changes_nothing(isa: str) -> None:
    """And takes no time: 100,000 dots were minutes."""
    table = pipe_table(isa)
    for prefix, kind in table.prefixes.items():
        if prefix + ".x" not in table.names:
            assert table.find(prefix + ".x" * 100_000) is table.find(prefix + ".x")
            assert table.find(prefix + ".x").pipe == kind.pipe
