"""Which cases are planned."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from mccprobe.oracle.kernel.spec import Case, KernelSpec, shipped_kernel
from mccprobe.tuning.check.cases import DispatchTable, plan_cases
from mccprobe.tuning.check.launchable import covers, emulated_launches, kernel_name, launched_among

MakeKernel = Callable[..., KernelSpec]
ARTICLE = {(256, 256, 512), (512, 512, 1024), (1024, 1024, 2048), (512, 1024, 2048)}
LARGE = (8192, 8192, 16384)


def shapes(kernel: KernelSpec, toolchain: str, cases: str) -> set[tuple[int, int, int]]:
    planned, _ = plan_cases(kernel, toolchain, cases)
    return {(entry.case.m, entry.case.n, entry.case.k) for entry in planned}


def test_the_article_s_cases() -> None:
    gemm = shipped_kernel("gemm")
    assert shapes(gemm, "mcc", "legacy") >= ARTICLE
    assert LARGE not in shapes(gemm, "mcc", "legacy")
    assert LARGE in shapes(gemm, "mcc", "full")
    assert LARGE in shapes(gemm, "cuda", "full")
    for case in gemm.cases:
        assert gemm.tolerance is not None
        assert gemm.tolerance.limit(case) == pytest.approx(0.01 * (case.k / 512) ** 0.5)


def test_the_8k_case_is_not_run_on_the_stand_in_and_each_branch_has_one_in_its_place() -> None:
    gemm = shipped_kernel("gemm")
    for cases in ("legacy", "full"):
        planned, left_out = plan_cases(gemm, "sim", cases)
        assert LARGE not in {(entry.case.m, entry.case.n, entry.case.k) for entry in planned}
        (missing,) = [entry for entry in left_out if entry.name == "correctness_8k"]
        assert "not for sim" in missing.reason
        assert "a reduced case for each dispatch branch" in missing.reason
        assert {entry.expected for entry in planned if entry.why == "branch"} == {"gemm_wmma_256", "gemm_wmma_16"}


def test_the_8k_case_has_one_seed_only() -> None:
    planned, _ = plan_cases(shipped_kernel("gemm"), "mcc", "full")
    assert [entry.case.name for entry in planned if entry.once] == ["correctness_8k"]


def test_shapes_beside_the_tiles() -> None:
    planned, _ = plan_cases(shipped_kernel("gemm"), "sim", "legacy")
    beside = [entry for entry in planned if entry.why == "beside"]
    taken = [entry for entry in beside if entry.expected]
    assert any(entry.case.m % 256 for entry in taken)
    assert any(entry.case.n % 256 for entry in taken)
    assert any(entry.case.k % 32 for entry in taken)
    assert any(entry.expected is None for entry in beside)


def test_work_rises() -> None:
    planned, _ = plan_cases(shipped_kernel("gemm"), "sim", "full")
    work = [entry.case.m * entry.case.n * entry.case.k for entry in planned]
    assert work == sorted(work)


def test_the_article_s_hidden_branch_gets_a_shape(make_kernel: MakeKernel) -> None:
    """Behind `M <= 1024 && N <= 1024`, only a larger shape reaches the second branch."""
    kernel = make_kernel()
    found = DispatchTable(kernel).shape_for(kernel.dispatch[1])
    assert found is not None
    assert DispatchTable(kernel).taking(found) is kernel.dispatch[1]
    assert max(found.m, found.n) > 1024


def test_a_branch_that_no_shape_reaches_is_told(make_kernel: MakeKernel) -> None:
    kernel = make_kernel(
        '\n[[dispatch]]\nkernel = "first"\ncondition = "1 == 1"\n'
        '\n[[dispatch]]\nkernel = "never"\ncondition = "M == 3"\n'
    )
    _, left_out = plan_cases(kernel, "mcc", "legacy")
    assert [entry.name for entry in left_out] == ["never"]


def test_the_table_decides_as_kernel_toml_does(make_kernel: MakeKernel) -> None:
    kernel = make_kernel()
    table = DispatchTable(kernel)
    for m, n, k in itertools.product((1, 256, 1024, 1025, 1280), (256, 2048), (16, 17, 32)):
        case = Case("c", m, n, k)
        assert table.taking(case) is next((entry for entry in kernel.dispatch if entry.holds(case)), None)


# --- names of kernels ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gemm_wmma_256(__half const*, int)", "gemm_wmma_256"),
        ("void ns::gemm<128, true>(int*)", "gemm<128,true>"),
        ("(anonymous namespace)::k", "k"),
        ("void (anonymous namespace)::k<ns::T>(float)", "k<ns::T>"),
        ("gemm<128,  64>", "gemm<128,64>"),
        ("plain", "plain"),
    ],
)
def test_kernel_names(text: str, name: str) -> None:
    assert kernel_name(text) == name


def test_an_instance_is_covered_by_its_own_launch_only() -> None:
    two = ("gemm<128>", "gemm<256>")
    assert launched_among({"gemm<128>": 1}, two) == {"gemm<128>"}
    assert launched_among({"gemm": 1}, two) == set()  # which of them, the name does not say
    assert launched_among({"gemm": 1}, ("gemm<128>", "other")) == {"gemm<128>"}
    assert launched_among({"gemm<128>": 0}, two) == set()
    assert not covers("gem", "gemm", ("gemm",))


def test_the_emulator_s_own_count() -> None:
    text = (
        "mccprobe-sim: launch gemm_wmma_256 grid (1,1,1) block (1024,1,1) shared 37376+0 bytes: 14.475 ms, 2 switches\n"
        "launch fake grid (1,1,1)\n"
        "mccprobe-sim: launch void k<1, 2> grid (1,1,1) block (32,1,1)\n"
        "mccprobe-sim: launch gemm_wmma_256 grid (1,1,1) block (1024,1,1)\n"
    )
    assert emulated_launches(text) == {"gemm_wmma_256": 2, "k<1,2>": 1}
