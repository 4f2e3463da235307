"""What kernel.toml expects of the toolchain `cuda`: on a GPU where there is one, and in the kept results of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mccprobe.base.errors import CompilerNotFound
from mccprobe.oracle.kernel.spec import Expected, ExpectedOutcome, KernelSpec, find_shipped_kernels, load_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets.nvidia.toolchain import LEAST_CAPABILITY, CudaToolchain, cuda_toolchain
from mccprobe.tuning.check.build import BuiltKernel, build_kernel, run_case

KERNELS = [load_kernel(folder) for folder in find_shipped_kernels()]
LINES = [(k, entry, on) for k in KERNELS for entry in k.expected for on in entry.for_toolchain("cuda")]
NAMES = ["-".join([k.name, entry.kernel, *(f"{name}={value}" for name, value in on.defines)]) for k, entry, on in LINES]
RESULTS = sorted(path for k in KERNELS for path in k.folder.glob("results/*.json"))


@pytest.fixture(scope="session")
def cuda() -> CudaToolchain:
    try:
        toolchain = cuda_toolchain()
    except CompilerNotFound:
        pytest.skip("no nvcc here")
    name, capability = toolchain.gpu
    if capability < LEAST_CAPABILITY:
        pytest.skip(f"nvcc without a GPU of sm_{LEAST_CAPABILITY} or later: nvidia-smi names {name or 'none'}")
    return toolchain


@pytest.mark.toolchain("nvcc")
@pytest.mark.parametrize(("kernel", "entry", "on"), LINES, ids=NAMES)
def test_verdict_on_a_gpu(
    cuda: CudaToolchain, kernel: KernelSpec, entry: Expected, on: ExpectedOutcome, tmp_path: Path
) -> None:
    built = build_kernel(kernel, cuda, defines=dict(on.defines), folder=tmp_path)
    assert isinstance(built, BuiltKernel), built
    result = run_case(built, built.kernel.case(entry.case), seed=5)
    assert result.verdict is on.verdict, result
    assert on.told in result.reason
    assert entry.kernel in (result.launches or {})
    if result.verdict is Verdict.BAD:
        assert on.wrong_share[0] <= _share(result.reason) <= on.wrong_share[1]


def _share(reason: str) -> float:
    wrong, _, elements = reason.split()[0].partition("/")
    return int(wrong) / int(elements)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_kept_results_are_those_of_the_kernel(path: Path) -> None:
    """Of a named GPU, all cases, and as expected."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    kernel = load_kernel(path.parent.parent)
    assert kept["gpu"] and "S4000" not in kept["gpu"]
    command = kept["check"]["command"]
    assert command[:2] == ["mccprobe", "check"] and command[2] == f"kernels/{kernel.folder.name}"
    cases = {case["name"]: case for case in kept["check"]["document"]["cases"]}
    for entry in kernel.expected:
        on = next(on for on in entry.for_toolchain("cuda") if on.plain)
        case = cases[entry.case]
        assert case["verdict"] == on.verdict.value, (entry.case, case["reason"])
        assert entry.kernel in case["launches"]
        if on.verdict is Verdict.BAD:
            assert on.wrong_share[0] <= _share(case["reason"]) <= on.wrong_share[1]
