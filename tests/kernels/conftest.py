"""The [[expected]] of the shipped kernels, and programs that are built once for all tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.oracle.kernel.spec import ExpectedOutcome, find_shipped_kernels, load_kernel
from mccprobe.targets.sim.build import sim_sdk
from mccprobe.targets.sim.toolchain import SimToolchain
from mccprobe.tuning.check.build import BuiltKernel, build_kernel


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with `kernel`, `expected` and `on` runs for each line of each [[expected]] on the stand-in."""
    if {"expected", "on"} <= set(metafunc.fixturenames):
        kernels = [load_kernel(folder) for folder in find_shipped_kernels()]
        lines = [(k, entry, on) for k in kernels for entry in k.expected for on in entry.for_toolchain("sim")]
        names = [f"{k.name}-{entry.kernel}-{_name(on)}" for k, entry, on in lines]
        metafunc.parametrize(("kernel", "expected", "on"), lines, ids=names)


def _name(on: ExpectedOutcome) -> str:
    return "+".join(f"{name}={value}" for name, value in (*on.settings, *on.defines)) or "default"


Built = Callable[..., BuiltKernel]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[object, BuiltKernel]:
    """Each program once."""
    return {}


@pytest.fixture
def built(
    compiler: Callable[[int], str], programs: dict[object, BuiltKernel], tmp_path_factory: pytest.TempPathFactory
) -> Built:
    """`built(folder, GEMM_WARP="128")`: the kernel's program for the stand-in."""
    compiler(14)
    sdk = sim_sdk(Path(os.environ["MCCPROBE_CACHE"]))

    def build(folder: Path, **defines: str) -> BuiltKernel:
        key = (folder, tuple(sorted(defines.items())))
        if key not in programs:
            place = tmp_path_factory.getbasetemp() / "programs"
            made = build_kernel(load_kernel(folder), SimToolchain(sdk.mcc, sdk), defines=defines, folder=place)
            assert isinstance(made, BuiltKernel), made
            programs[key] = made
        return programs[key]

    return build
