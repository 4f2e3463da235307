"""Every kernel gives what its kernel.toml expects: right ones right, wrong ones wrong for the stated reason."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.oracle.kernel.spec import Expected, ExpectedOutcome, KernelSpec, find_shipped_kernels, load_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.tuning.check.build import BuiltKernel, CaseResult, run_case
from mccprobe.tuning.check.cases import DispatchTable, PlannedCase
from mccprobe.tuning.check.check import case_fault

Built = Callable[..., BuiltKernel]


def run(built: Built, folder: Path, case: str, *, seed: int = 1, **defines: str) -> CaseResult:
    program = built(folder, **defines)
    return run_case(program, program.kernel.case(case), seed=seed)


@pytest.mark.toolchain
def test_verdict_on_the_stand_in(
    built: Built, monkeypatch: pytest.MonkeyPatch, kernel: KernelSpec, expected: Expected, on: ExpectedOutcome
) -> None:
    for variable, value in on.settings:
        monkeypatch.setenv(variable, value)
    program = built(kernel.folder, **dict(on.defines))
    case = program.kernel.case(expected.case)
    result = run_case(program, case, seed=5)
    assert result.verdict == on.verdict, result
    assert on.told in result.reason
    if result.verdict is not Verdict.UNRESOLVED:
        assert expected.kernel in (result.launches or {})
        dispatch = DispatchTable(program.kernel).taking(case)
        planned = PlannedCase(case, "declared", dispatch.kernel if dispatch else None, True)
        assert case_fault(program, planned, result) == ""
    if result.verdict is Verdict.BAD:
        low, high = on.wrong_share
        assert low <= share(result) <= high, result.reason


def share(result: CaseResult) -> float:
    """Of wrong elements: "48935/65536 wrong, max_err not finite"."""
    wrong, _, elements = result.reason.split()[0].partition("/")
    return int(wrong) / int(elements)


@pytest.mark.parametrize("folder", find_shipped_kernels(), ids=lambda folder: folder.name)
def test_each_kernel_has_a_verdict(folder: Path) -> None:
    spec = load_kernel(folder)
    entries = spec.expected
    assert [entry.kernel for entry in entries] == [entry.kernel for entry in spec.dispatch]
    known = {define.name: {str(value) for value in define.values} for define in spec.defines}
    for entry in entries:
        dispatch = DispatchTable(spec).taking(spec.case(entry.case))
        assert dispatch is not None and dispatch.kernel == entry.kernel
        for on in entry.on:
            assert all(value in known[define] for define, value in on.defines)
    text = (folder.parent / "README.md").read_text()
    assert f"| `{folder.name}` |" in text, "its line in the table of kernels/README.md"


def test_the_kernels_of_the_article_are_all_there() -> None:
    schemes = [f"double-buffer-{scheme}" for scheme in ("dynamic", "unrolled", "xor", "template", "array")]
    versions = ["naive", "tensorcore-basic", "tile64", "tile128", "double-buffer", "mega-tile", "mega-tile-32"]
    rebuilt = ["interleaved", "narrow", "rebuilt-0", "gemm", "compute-only", "accumulators-16", "split-k"]
    micro = ["mma-latency", "barrier", "shared-stride", "global-bandwidth", "pointer-chase", "throughput"]
    proofs = ["manual-fragment", "subwarp-divergence"]
    there = {folder.name for folder in find_shipped_kernels()}
    assert {*schemes, *versions, *rebuilt, *micro, *proofs} <= there


# --- the article's figures ---------------------------------------------------------------------------


def diverging(built: Built, root: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> CaseResult:
    monkeypatch.setenv("MCCSIM_DIVERGE", model)
    return run(built, root / "kernels" / "subwarp-divergence", "article")


@pytest.mark.toolchain
def test_98_percent_is_what_any_unrelated_result_gives(
    built: Built, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 11 counts 64,477 of 65,536. K = 32 products of numbers in +-0.5 have a standard deviation of
    sqrt(32)/12; a result that shares nothing with the right one, or is zero, is within 0.01 by accident."""
    deviation = math.sqrt(32) / 12

    def outside(sigma: float) -> float:
        return 1 - math.erf(0.01 / sigma / math.sqrt(2))

    unrelated, zero = outside(deviation * math.sqrt(2)), outside(deviation)
    assert zero == pytest.approx(0.9831, abs=1e-3) and unrelated == pytest.approx(0.9880, abs=1e-3)
    measured = share(diverging(built, root, monkeypatch, "lane"))
    article = 64477 / 65536
    assert zero - 0.003 < article < unrelated and abs(measured - article) < 0.005


@pytest.mark.toolchain
def test_75_percent_is_three_of_four_groups(built: Built, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 8 counts about 75 % for the submitted kernel: one of four groups gets what it asked for. The
    98 % of section 11 cannot come from the same model: it would leave a quarter of the elements right there too."""
    measured = share(diverging(built, root, monkeypatch, "first"))
    assert measured == pytest.approx(0.75 * 64477 / 65536, abs=0.01)


@pytest.mark.toolchain
def test_the_authors_four_cases_never_launch_the_wrong_kernel(built: Built, root: Path) -> None:
    """Section 8: the score was full, as small shapes go to another kernel."""
    result = run(built, root / "kernels" / "mega-tile-32", "256x256x64")
    assert result.verdict is Verdict.GOOD and set(result.launches or {}) == {"gemm_wmma_16"}
    spec = load_kernel(root / "kernels" / "mega-tile-32")
    assert {
        entry.kernel
        for case in spec.cases
        if case.legacy and not case.toolchains
        if (entry := DispatchTable(spec).taking(case))
    } == {"gemm_wmma_16"}


@pytest.mark.toolchain
@pytest.mark.parametrize("scheme", ["unrolled", "template", "array"])
@pytest.mark.parametrize("k", [32, 64, 96, 128])
def test_a_double_buffer_ends_in_either_buffer(built: Built, root: Path, scheme: str, k: int) -> None:
    result = run(built, root / "kernels" / f"double-buffer-{scheme}", f"256x256x{k}")
    assert result.verdict is Verdict.GOOD, result.reason


@pytest.mark.toolchain
def test_a_second_launch_starts_from_nothing(built: Built, root: Path) -> None:
    """split-k keeps the memory of its sums."""
    program = built(root / "kernels" / "split-k")
    result = run_case(program, program.kernel.case("tile"), repeat=2)
    assert result.verdict is Verdict.GOOD and len(result.milliseconds) == 2


# --- micro-benchmarks --------------------------------------------------------------------------------


@pytest.mark.toolchain
def test_a_micro_benchmark_gives_no_cycles_on_the_stand_in(built: Built, root: Path) -> None:
    program = built(root / "kernels" / "mma-latency")
    result = run_case(program, program.kernel.case("1x128x10"))
    assert result.verdict is Verdict.GOOD and result.max_err == 0
    assert run_case(program, program.kernel.case("1x64x10")).refused


@pytest.mark.toolchain
def test_a_chain_that_is_computed_wrong_is_no_figure(built: Built, root: Path, tmp_path: Path) -> None:
    """A step too few is seen."""
    for folder in ("common", "pointer-chase"):
        shutil.copytree(root / "kernels" / folder, tmp_path / folder)
    source = tmp_path / "pointer-chase" / "pointer-chase.mu"
    source.write_text(source.read_text().replace("i < steps", "i < steps - 1"))
    result = run(built, tmp_path / "pointer-chase", "small")
    assert result.verdict is Verdict.BAD
