"""Mutants of the kernels: the data, their page, and a few of them run (all: benchmarks/kernel_mutants.py)."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mccprobe.oracle.verdict import Verdict
from mccprobe.targets.sim.build import sim_sdk
from mccprobe.targets.sim.toolchain import SimToolchain

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "kernel_mutants.py"


def _benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("kernel_mutants", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


run = _benchmark()
MUTANTS = run.load_mutants()
KINDS = {
    "missing barrier", "wrong stride", "swapped index", "off by one in K", "wrong pad", "wrong lane arithmetic",
    "missing prefetch", "wrong dispatch condition", "missing tail", "wrong layout", "uninitialised accumulators",
    "wrong scale", "half instead of float accumulation", "wrong epilogue index", "wrong serpentine",
}  # fmt: skip


def test_there_are_enough_of_each_kind() -> None:
    names = Counter(mutant.name for mutant in MUTANTS)
    assert len(names) == len(MUTANTS) >= 36
    assert {mutant.kind for mutant in MUTANTS} >= KINDS
    assert len({mutant.kernel for mutant in MUTANTS}) >= 10


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_fault_has_exactly_one_place(mutant: Any) -> None:
    text = (run.KERNELS / mutant.file).read_text()
    assert run.mutated(mutant, text) != text
    with pytest.raises(ValueError, match="0 places"):
        run.mutated(replace(mutant, find="not in any kernel"), text)
    with pytest.raises(ValueError, match="2 places"):
        run.mutated(mutant, text + mutant.find)


def test_page_and_data_agree() -> None:
    """Each has its line with what is expected of it, each survivor its reason, and the shares are those of the data."""
    page = run.TABLE.read_text()
    rows = [line.strip("|").replace("\\|", "/").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    shown = [(cells[0].strip().strip("`"), cells[1].split()[0], cells[2], cells[4]) for cells in rows]
    assert shown == [(one.name, one.kernel, one.kind, one.caught) for one in MUTANTS]
    for one, cells in zip(MUTANTS, rows, strict=True):
        passed = cells[5] == "passes"
        assert passed is (one.caught not in run.CHECK), one.name
        assert one.told in cells[5] + cells[6], one.name
    assert run.counts(MUTANTS) in page
    survivors = [line for line in page.splitlines() if line.startswith("- `")]
    assert survivors == [f"- `{one.name}` ({one.caught}): {one.why}" for one in MUTANTS if one.survives]


def test_a_result_that_is_not_the_expected_one_is_told() -> None:
    mutant = next(one for one in MUTANTS if one.caught == "numbers" and one.told)
    right = run.Seen("numbers", "1/2 wrong", Verdict.BAD, (mutant.told,), (), None)
    assert run.fault_of(mutant, right) == ""
    missed = replace(right, check="", check_text="", lab=Verdict.GOOD, rules=())
    assert "seen nothing" in run.fault_of(mutant, missed)
    assert mutant.told in run.fault_of(mutant, replace(right, rules=()))
    assert "seen trap" in run.fault_of(mutant, replace(right, check="trap"))
    survivor = next(one for one in MUTANTS if one.survives)
    assert run.fault_of(survivor, missed) == "" and "seen numbers" in run.fault_of(survivor, right)


NOT_ASKED = SimpleNamespace(verdict=Verdict.UNRESOLVED, merged=SimpleNamespace(findings=(), banks=()))


@pytest.mark.toolchain
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.quick], ids=lambda mutant: mutant.name)
def test_it_is_caught_as_said(
    compiler: Callable[[int], str], tmp_path: Path, mutant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the check must catch is not shown to the laboratory where its word would not count: it takes longest."""
    compiler(14)
    sdk = sim_sdk(Path(os.environ["MCCPROBE_CACHE"]))
    spec = run.place(mutant.kernel, tmp_path, mutant)
    if mutant.caught in run.CHECK and not mutant.told:
        monkeypatch.setattr(run, "lab_kernel", lambda *_, **__: NOT_ASKED)
    found = run.judge(spec, mutant.defines, SimToolchain(sdk.mcc, sdk), tmp_path)
    assert run.fault_of(mutant, found) == ""
