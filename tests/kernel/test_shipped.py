"""Which folder a name means: a file of that name goes before a shipped kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccprobe.oracle.kernel.shipped import file_or_shipped, kernels_folder


def test_names_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = kernels_folder()
    assert folder is not None
    assert file_or_shipped(Path("gemm")) == folder / "gemm"
    assert file_or_shipped(Path("./other/gemm")) == Path("other/gemm")
    assert file_or_shipped(Path("no-such-kernel")) == Path("no-such-kernel")
    assert file_or_shipped(Path("x" * 5000)) == Path("x" * 5000)
    (tmp_path / "gemm").write_text("mine")
    assert file_or_shipped(Path("gemm")) == Path("gemm")
