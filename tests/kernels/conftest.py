"""expected.toml of the shipped kernels as records, and programs that are built once for all tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mccprobe.flags.datafile import Table, read_toml
from mccprobe.gate.build import BuiltKernel, build_kernel
from mccprobe.kernel.spec import find_shipped_kernels, load_kernel
from mccprobe.sim.build import sim_sdk
from mccprobe.toolchain.sim import SimToolchain

VERDICTS = ("GOOD", "BAD", "UNRESOLVED")
TOOLCHAINS = ("mcc", "sim", "cuda")


@dataclass(frozen=True)
class On:
    """What one toolchain gives. wrong: allowed shares of wrong elements. told: part of the reason."""

    toolchain: str
    verdict: str
    settings: Mapping[str, str] = field(default_factory=dict)
    defines: Mapping[str, str] = field(default_factory=dict)
    wrong: tuple[float, float] = (0.0, 1.0)
    told: str = ""

    def __str__(self) -> str:
        names = [f"{name}={value}" for name, value in {**self.settings, **self.defines}.items()]
        return "+".join(names) or "default"


@dataclass(frozen=True)
class Expected:
    """What a device kernel gives on an MP22, and why."""

    folder: Path
    kernel: str
    case: str
    verdict: str
    reason: str
    on: tuple[On, ...]

    def for_toolchain(self, name: str) -> tuple[On, ...]:
        """Without an entry of its own for plain runs, the toolchain gives what an MP22 does."""
        own = tuple(entry for entry in self.on if entry.toolchain == name)
        plain = any(not entry.settings and not entry.defines for entry in own)
        return own if plain else (On(name, self.verdict), *own)


def read_expected(folder: Path) -> tuple[Expected, ...]:
    """expected.toml of a kernel's folder."""
    top = read_toml(folder / "expected.toml")
    found = tuple(_expected(folder, table) for table in top.tables("expected"))
    top.finish()
    return found


def _expected(folder: Path, table: Table) -> Expected:
    found = Expected(
        folder,
        table.text("kernel"),
        table.text("case"),
        table.choice("verdict", ("GOOD", "BAD")),
        table.text("reason"),
        tuple(_on(entry) for entry in table.tables("on")),
    )
    table.finish()
    return found


def _on(table: Table) -> On:
    low, high = table.scalars("wrong_share") or (0.0, 1.0)
    found = On(
        table.choice("toolchain", TOOLCHAINS),
        table.choice("verdict", VERDICTS),
        _values(table, "settings"),
        _values(table, "defines"),
        (float(low), float(high)),
        table.text("told", ""),
    )
    table.finish()
    return found


def _values(table: Table, key: str) -> dict[str, str]:
    """["NAME=VALUE", ...]"""
    pairs = [text.partition("=") for text in table.texts(key)]
    return {name: value for name, _, value in pairs}


def all_expected() -> Iterator[Expected]:
    for folder in find_shipped_kernels():
        yield from read_expected(folder)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with `expected` and `on` runs for each line of each expected.toml on the stand-in."""
    if {"expected", "on"} <= set(metafunc.fixturenames):
        lines = [(entry, on) for entry in all_expected() for on in entry.for_toolchain("sim")]
        names = [f"{entry.folder.name}-{entry.kernel}-{on}" for entry, on in lines]
        metafunc.parametrize(("expected", "on"), lines, ids=names)


@pytest.fixture
def expected_of() -> Callable[[Path], tuple[Expected, ...]]:
    """`expected_of(folder)`: its expected.toml."""
    return read_expected


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
