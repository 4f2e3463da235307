"""The stand-in `cuda`: what nvcc is told, what it is not asked, and that the fragments compile where nvcc is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mccprobe.base.errors import CompilerNotFound, ToolchainError, UsageError
from mccprobe.targets.nvidia import toolchain as cuda_module
from mccprobe.targets.nvidia.toolchain import INCLUDE, CudaToolchain, cuda_toolchain, nvcc_options

KERNELS = Path(__file__).resolve().parents[2] / "kernels"


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
    return path


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CudaToolchain:
    """An nvcc that only tells its version, and a GPU of compute capability 9.0."""
    folder = tmp_path / "bin"
    script(
        folder / "nvcc",
        'echo "nvcc: NVIDIA (R) Cuda compiler driver"',
        'echo "Cuda compilation tools, release 13.0, V13.0.88"',
    )
    script(folder / "nvidia-smi", 'echo "NVIDIA Test GPU, 9.0"')
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.defpath}")
    return cuda_toolchain()


def test_the_version_is_the_line_with_the_release(fake: CudaToolchain) -> None:
    assert fake.identify().version == "nvcc: Cuda compilation tools, release 13.0, V13.0.88"


def test_every_figure_is_marked_with_the_gpu(fake: CudaToolchain) -> None:
    assert fake.heading == "NVIDIA Test GPU stand-in, not an S4000"
    assert not fake.simulated


def test_the_compile_is_for_this_gpu_with_our_headers(fake: CudaToolchain) -> None:
    argv = fake.compile_argv(["-O3", "--offload-arch=mp_22", "-DTILE=2", "-Wall"], "k.mu", "k.o")
    assert argv[1:3] == ("-x", "cu") and "-arch=sm_90" in argv and f"-I{INCLUDE}" in argv
    assert argv[-4:] == ("-c", "k.mu", "-o", "k.o")
    assert "--offload-arch=mp_22" not in argv
    assert argv[argv.index("-Wall") - 1] == "-Xcompiler"


def test_the_link_leaves_out_musas_runtime(fake: CudaToolchain) -> None:
    assert fake.link_argv(["k.o", "m.o"], ["-lmusart", "-lm"], "k")[3:] == ("k.o", "m.o", "-lm", "-o", "k")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-mllvm", "-mtgpu-load-store-opt", "-O3"], ["-O3"]),
        (["-Os"], ["-O3"]),
        (["-I", "dir", "-D", "A=1"], ["-I", "dir", "-D", "A=1"]),
        (["-ffast-math"], ["-Xcompiler", "-ffast-math"]),
        (["-Od3", "-mtgpu"], []),
    ],
)
def test_options(given: list[str], kept: list[str]) -> None:
    assert nvcc_options(given) == kept


def test_an_llvm_option_is_refused_with_a_way_out() -> None:
    with pytest.raises(UsageError, match="nvcc has no LLVM options") as caught:
        nvcc_options(["-mllvm", "-enable-misched=false"])
    assert "--toolchain sim" in caught.value.hint


def test_nothing_is_bisected(fake: CudaToolchain, tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="not supported yet"):
        fake.record(["-c", "k.mu"], tmp_path)
    assert "mean nothing to nvcc" in fake.refusal(["-mllvm", "-mtgpu-x"], tmp_path)
    assert fake.refusal([], tmp_path) == ""


def test_a_gpu_too_old_for_the_fragments_runs_nothing(fake: CudaToolchain, tmp_path: Path) -> None:
    script(Path(fake.driver[0]).parent / "nvidia-smi", 'echo "Old GPU, 7.5"')
    able = fake.capabilities()
    assert able.run is False and able.timing is False
    assert any("sm_75 is too old" in note for note in able.notes)


@pytest.mark.parametrize("answer", ["", "garbage", "NVIDIA X, [N/A]", "no devices were found"])
def test_a_gpu_that_cannot_be_asked_is_none(fake: CudaToolchain, answer: str) -> None:
    script(Path(fake.driver[0]).parent / "nvidia-smi", f"echo '{answer}'")
    assert fake.gpu[1] == 0
    assert not fake.capabilities().run


def test_without_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cuda_module, "DEFAULT_HOME", str(tmp_path / "none"))
    with pytest.raises(CompilerNotFound) as caught:
        cuda_toolchain()
    assert "CUDA toolkit" in caught.value.hint


@pytest.mark.parametrize("defines", [(), ("-DMCCPROBE_PARTIAL_WARPS",)])
def test_the_shipped_gemm_compiles_with_nvcc(defines: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc here")
    output = tmp_path / "gemm.o"
    argv = cuda_toolchain().compile_argv(["-O1", *defines], str(KERNELS / "gemm/gemm.mu"), str(output))
    built = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert b"mma.sync" in output.read_bytes() or output.stat().st_size > 10_000
