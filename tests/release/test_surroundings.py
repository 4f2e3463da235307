"""The installed command where something is missing or may not be written: it works without it, or says what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BISECT = ("bisect", "--flag", "internal-regs-ra")
# root may write everywhere; without these it may write what its permissions say
BOUND = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


@pytest.fixture
def bound() -> tuple[str, ...]:
    """What stands before a command so that read-only folders are read-only, for root too."""
    if os.geteuid() != 0:
        return ()
    if shutil.which(BOUND[0]) is None:
        pytest.skip("setpriv (util-linux) is not here, and root may write everywhere")
    return BOUND


@pytest.fixture
def read_only() -> Iterator[Callable[[Path], None]]:
    """`read_only(folder)`: takes the right to write away from everything below; given back afterwards."""
    changed: list[tuple[Path, int]] = []

    def take(folder: Path) -> None:
        for path in [folder, *folder.rglob("*")]:
            if not path.is_symlink():
                changed.append((path, path.stat().st_mode))
                path.chmod(path.stat().st_mode & ~0o222)

    yield take
    for path, mode in changed:
        path.chmod(mode)


def _path_without(folder: Path, *left_out: str) -> str:
    """A PATH of one folder with links to all programs but those whose names begin so."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        if not (os.path.isdir(place) and os.access(place, os.X_OK)):  # noqa: PTH112  Path.is_dir raises PermissionError
            continue
        for program in Path(place).iterdir():
            target = folder / program.name
            if not program.name.startswith(left_out) and not target.is_symlink():
                target.symlink_to(program)
    return str(folder)


@pytest.fixture
def no_headers(tmp_path: Path) -> dict[str, str]:
    """clang-14 in a folder that has its libraries and no LLVM headers beside it."""
    found = shutil.which("clang-14")
    if found is None:
        pytest.skip("clang-14 does not work here: not in PATH")
    own = Path(found).resolve()
    (tmp_path / "llvm/bin").mkdir(parents=True)
    shutil.copy(own, tmp_path / "llvm/bin/clang")
    for program in own.parent.iterdir():
        if program.name != "clang":
            (tmp_path / "llvm/bin" / program.name).symlink_to(program)
    (tmp_path / "llvm/lib").symlink_to(own.parent.parent / "lib")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/clang-14").symlink_to(tmp_path / "llvm/bin/clang")
    return {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.toolchain("clang-14")
def test_without_llvm_headers_only_the_planted_fault_is_missing(
    mccprobe: Callable[..., Any], no_headers: dict[str, str], long: bool, tmp_path: Path
) -> None:
    env = {**no_headers, "MCCPROBE_CACHE": str(tmp_path / "cache")}
    listed = mccprobe("toolchains", env=env)
    assert listed.code == 0 and "without the fault plugin" in listed.stdout and "llvm-14-dev" in listed.stdout, listed
    planted = mccprobe(*BISECT, env=env)
    assert planted.code == 3 and "apt-get install llvm-14-dev" in planted.stderr, planted
    if long:
        passed = mccprobe("check", "gemm", env=env)
        assert passed.code == 0 and "gate PASSED" in passed.stdout, passed


def test_without_any_clang(mccprobe: Callable[..., Any], tmp_path: Path) -> None:
    path = _path_without(tmp_path / "bin", "clang", "llvm", "ld.lld", "lld", "opt", "llc", "nvcc", "mcc")
    env = {"PATH": path, "MCCPROBE_CACHE": str(tmp_path / "cache")}
    listed = mccprobe("toolchains", env=env)
    assert listed.code == 0 and "apt-get install clang-14 lld-14" in listed.stdout, listed
    for command in (BISECT, ("check", "gemm"), ("why", "--flag", "internal-regs-ra"), ("report", "gemm")):
        ran = mccprobe(*command, env=env)
        assert ran.code == 3 and "apt-get install clang-14" in ran.stderr, ran
        assert "Traceback" not in ran.stderr and not ran.stdout, ran
    assert mccprobe("plan", env=env).code == 0  # what needs no compiler works


@pytest.mark.toolchain("clang-14")
def test_without_any_extra(mccprobe: Callable[..., Any]) -> None:
    """Extras are not installed here. What needs none works; what needs one says which."""
    document = json.loads(mccprobe("report", "gemm", "--json").stdout)
    assert document["status"] == "ok" and len(document["kernels"]) == 2, document
    for command, package in [
        (("report", "gemm", "--html", "page.html"), "jinja2"),
        (("flags", "search", "gemm", "--strategy", "tpe"), "optuna"),
        ((*BISECT, "--scheduler", "tcp://127.0.0.1:8786"), "distributed"),
        (("journal", "export", "--parquet", "x.parquet"), "pyarrow"),
    ]:
        ran = mccprobe(*command)
        asked = rf"hint: (pipx inject mccprobe|.*pip .*install) .*'{package}>="  # a wheel file has no name in an index
        assert ran.code in (2, 3) and re.search(asked, ran.stderr) and "mccprobe[" not in ran.stderr, ran
        assert "Traceback" not in ran.stderr, ran


@pytest.mark.toolchain("clang-14")
def test_an_installation_that_may_not_be_written(
    mccprobe: Callable[..., Any], installed: Path, bound: tuple[str, ...], read_only: Callable[[Path], None], long: bool
) -> None:
    read_only(installed)
    ran = mccprobe("report", "gemm", "--no-instructions", before=bound)
    assert ran.code == 0 and "gemm_wmma_256" in ran.stdout, ran
    if long:
        ran = mccprobe(*BISECT, before=bound)
        assert ran.code == 0 and "FOUND" in ran.stdout, ran


@pytest.mark.toolchain("clang-14")
def test_a_cache_that_may_not_be_written(
    mccprobe: Callable[..., Any], bound: tuple[str, ...], read_only: Callable[[Path], None], long: bool, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    read_only(tmp_path / "empty")
    env = {"MCCPROBE_CACHE": str(tmp_path / "empty")}
    ran = mccprobe(*BISECT, env=env, before=bound)
    assert ran.code == 3 and "MCCPROBE_CACHE" in ran.stderr and str(tmp_path / "empty") in ran.stderr, ran
    assert mccprobe("toolchains", env=env, before=bound).code == 0
    if long:
        filled = {"MCCPROBE_CACHE": str(tmp_path / "filled")}
        assert mccprobe("toolchains", env=filled).code == 0
        read_only(tmp_path / "filled")
        ran = mccprobe(*BISECT, env=filled, before=bound)
        assert ran.code == 0 and "FOUND" in ran.stdout, ran


def test_a_working_folder_that_may_not_be_written(
    mccprobe: Callable[..., Any], bound: tuple[str, ...], read_only: Callable[[Path], None], tmp_path: Path
) -> None:
    read_only(tmp_path / "cwd")
    ran = mccprobe(*BISECT, before=bound)
    assert ran.code == 4 and "-o DIR" in ran.stderr and "Traceback" not in ran.stderr, ran


@pytest.mark.toolchain("clang-14")
def test_without_a_home(mccprobe: Callable[..., Any]) -> None:
    ran = mccprobe("report", "gemm", "--no-instructions", env={"HOME": None})
    assert ran.code == 0 and "gemm_wmma_256" in ran.stdout, ran
