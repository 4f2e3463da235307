"""The one look-up of kernels: what a user's text means, the same for every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccprobe.base.errors import BadDataFile, InputError
from mccprobe.oracle.kernel.lookup import find_kernel, is_source_of
from mccprobe.oracle.kernel.spec import KernelSpec, shipped_kernel
from mccprobe.tuning.check.subject import runnable_kernel


@pytest.fixture
def gemm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> KernelSpec:
    monkeypatch.chdir(tmp_path)
    return shipped_kernel("gemm")


def test_a_folder_its_description_a_source_and_the_name_are_one_kernel(gemm: KernelSpec) -> None:
    for text in ("gemm", gemm.folder, gemm.path, gemm.sources[0], str(gemm.sources[0])):
        assert find_kernel(text) == gemm


def test_where_no_description_is_there_is_no_kernel(gemm: KernelSpec, tmp_path: Path) -> None:
    (tmp_path / "k.mu").touch()
    for text in ("k.mu", tmp_path, "nowhere", "no/where"):
        assert find_kernel(text) is None


def test_what_is_there_hides_a_shipped_kernel(gemm: KernelSpec, tmp_path: Path) -> None:
    (tmp_path / "gemm").mkdir()
    assert find_kernel("gemm") is None
    with pytest.raises(InputError, match=r"no kernel\.toml in it") as caught:
        runnable_kernel("gemm")
    assert "hides the shipped kernel gemm" in (caught.value.hint or "")


def test_another_file_of_the_folder_is_no_source(gemm: KernelSpec) -> None:
    assert is_source_of(gemm.sources[0], gemm) and not is_source_of(gemm.path, gemm)


def test_a_damaged_description_is_an_error(gemm: KernelSpec, tmp_path: Path) -> None:
    (tmp_path / "kernel.toml").write_text("name = 1\n")
    with pytest.raises(BadDataFile):
        find_kernel(tmp_path)
