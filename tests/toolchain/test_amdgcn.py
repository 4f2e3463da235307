"""The compile-only stand-in: what it takes, what it leaves out, what it makes, how it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccprobe.base.errors import CompilerNotFound, SourceDoesNotCompile
from mccprobe.objects.binary.read import read_images, read_kernels
from mccprobe.oracle.kernel.shipped import find_shipped_kernels
from mccprobe.oracle.kernel.spec import load_kernel
from mccprobe.targets.amdgcn.toolchain import AmdgcnToolchain, amdgcn_toolchain, device_arguments

KERNEL = """#include <musa_runtime.h>
extern __shared__ float dynamic[];
__global__ void __launch_bounds__(256) everything(float *o, int n) {
  __shared__ float tile[256];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float x = __ldg(o + i);
  tile[threadIdx.x] = expf(x) + logf(x) + sinf(x) + cosf(x) + rintf(x) + floorf(x) + ceilf(x) + exp2f(x) +
                      log2f(x) + rsqrtf(x) + fabsf(x) + fminf(x, 2) + fmaxf(x, 3) + fmaf(x, x, x) + sqrtf(x);
  __syncthreads();
  __syncwarp();
  __threadfence();
  atomicAdd(o, tile[0]);
  atomicAdd((int *)o + 1, 3);
  dynamic[threadIdx.x] = tile[threadIdx.x ^ 1];
  __threadfence_block();
  o[i + gridDim.x] = dynamic[threadIdx.x] + max(n, 3);
}
int main() {
  float *p = nullptr;
  if (musaMalloc(&p, 1024) != musaSuccess) return 1;
  everything<<<dim3(2), dim3(256), 1024>>>(p, 3);
  return musaDeviceSynchronize();
}
"""


def test_arguments_of_mcc_are_left_out() -> None:
    given = [
        "-O3",
        "--offload-arch=mp_22",
        "-mtgpu",
        "-Od3",
        "-mllvm",
        "-mtgpu-opt-level=1",
        "-mllvm",
        "--FenceSetting=mixed",
        "-mllvm",
        "-misched=mtgpu-max-ilp",
        "-mllvm",
        "-enable-misched=false",
        "-DTILE=8",
        "-x",
        "musa",
        "-o",
        "out",
        "-c",
        "-lmusart",
        "-fmusa-flush-denormals-to-zero",
    ]
    assert device_arguments(given) == ["-O3", "-mllvm", "-enable-misched=false", "-DTILE=8"]


def test_without_a_compiler_the_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompilerNotFound) as caught:
        amdgcn_toolchain()
    assert "clang-14 lld-14" in caught.value.hint


@pytest.fixture
def toolchain() -> AmdgcnToolchain:
    return amdgcn_toolchain()


def compiled(toolchain: AmdgcnToolchain, source: Path, folder: Path, *args: str) -> dict[str, dict[str, object]]:
    made = toolchain.compile(source, folder / "out.so", folder, args)
    (image,) = read_images(made.path)
    kernels, warnings = read_kernels(image)
    assert not warnings
    assert image.target == made.target == "gfx908"
    return {kernel.name: dict(kernel.raw) for kernel in kernels}


@pytest.mark.toolchain("clang-14")
def test_it_is_found_out_what_it_can() -> None:
    able = amdgcn_toolchain().capabilities()
    assert (able.compile, able.run, able.bisect, able.resources, able.timing) == (True, False, True, True, False)
    assert isinstance(able.bundle, bool)
    assert "gfx908 stand-in, not MP22" in able.notes[0]


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    "kernel",
    # some that differ: all of them take minutes; gemm is compiled below
    [folder for folder in find_shipped_kernels() if folder.name in {"rebuilt-0", "split-k", "barrier"}],
    ids=lambda folder: folder.name,
)
def test_shipped_kernels_compile(kernel: Path, toolchain: AmdgcnToolchain, tmp_path: Path) -> None:
    spec = load_kernel(kernel)
    for source in spec.sources:
        assert compiled(toolchain, source, tmp_path, *spec.compile_args)


@pytest.mark.toolchain("clang-14")
def test_the_gemm_has_the_tiles_shared_memory_and_the_launch_bounds(
    toolchain: AmdgcnToolchain, tmp_path: Path, root: Path
) -> None:
    kernels = compiled(toolchain, root / "kernels/gemm/gemm.mu", tmp_path, "-O3")
    large = next(raw for name, raw in kernels.items() if "gemm_wmma_256" in name)
    small = next(raw for name, raw in kernels.items() if "gemm_wmma_16" in name)
    assert (large[".group_segment_fixed_size"], large[".max_flat_workgroup_size"]) == (37_376, 1024)
    assert (small[".group_segment_fixed_size"], small[".max_flat_workgroup_size"]) == (1024, 32)
    assert 8 * 8 <= int(str(large[".vgpr_count"])) <= 64, "8 accumulators of 8 floats, at most 64 for 1024 threads"


@pytest.mark.toolchain("clang-14")
def test_the_headers_hold_what_a_kernel_needs(toolchain: AmdgcnToolchain, tmp_path: Path) -> None:
    source = tmp_path / "everything.mu"
    source.write_text(KERNEL, encoding="utf-8")
    (raw,) = compiled(toolchain, source, tmp_path, "-O2").values()
    assert raw[".group_segment_fixed_size"] == 1024
    assert raw[".max_flat_workgroup_size"] == 256


@pytest.mark.toolchain("clang-14")
def test_a_flag_of_the_back_end_reaches_it(toolchain: AmdgcnToolchain, tmp_path: Path) -> None:
    source = tmp_path / "everything.mu"
    source.write_text(KERNEL, encoding="utf-8")
    plain = toolchain.compile(source, tmp_path / "a.so", tmp_path, ["-O2"]).path.read_bytes()
    changed = toolchain.compile(
        source, tmp_path / "b.so", tmp_path, ["-O2", "-mllvm", "-enable-misched=false"]
    ).path.read_bytes()
    again = toolchain.compile(source, tmp_path / "c.so", tmp_path, ["-O2"]).path.read_bytes()
    assert plain == again
    assert plain != changed


@pytest.mark.toolchain("clang-14")
def test_the_compilers_own_message_is_shown(toolchain: AmdgcnToolchain, tmp_path: Path) -> None:
    source = tmp_path / "broken.mu"
    source.write_text("#include <musa_runtime.h>\n__global__ void k() { nothing; }\n", encoding="utf-8")
    with pytest.raises(SourceDoesNotCompile) as caught:
        toolchain.compile(source, tmp_path / "out.so", tmp_path)
    assert "undeclared identifier 'nothing'" in caught.value.detail
    assert "gfx908 stand-in, not MP22" in caught.value.message


@pytest.mark.toolchain("clang-14")
def test_shared_memory_that_only_mp22_has_is_explained(toolchain: AmdgcnToolchain, tmp_path: Path) -> None:
    source = tmp_path / "large.mu"
    source.write_text(
        "#include <musa_runtime.h>\n__global__ void k(float *o) { __shared__ float s[17000];\n"
        "s[threadIdx.x] = o[0]; __syncthreads(); o[threadIdx.x] = s[threadIdx.x ^ 1]; }\n",
        encoding="utf-8",
    )
    with pytest.raises(SourceDoesNotCompile) as caught:
        toolchain.compile(source, tmp_path / "out.so", tmp_path)
    assert "MP22 has 73728" in caught.value.hint
