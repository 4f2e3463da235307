"""Device objects and texts of the documented shapes, made by the writer of tests/binary."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# invented shape: forms of public samples, put together for this test
BODY = """\
\t.text
\t.protected\t{name}
\t.globl\t{name}
\t.p2align\t8
\t.type\t{name},@function
{name}:
\t\t[N-sD---]\t\tFOP.MOV R1, SH23
\t\t[N-wD--o]\t\tDMA.LD.B32 AR1, SH[16:17], R1, 4, 1, 1, chrnt=l2_l3, slc=new, persist=0, stride_add_first=0
\t\t[N--Ds--]\t\tLDMA.RD.B32.BST1 R6, _, _, 0, BURST_STRIDE=4
\t\t[Ns-Dw--]\t\tMMA.323216 R14[4:2][2:1].f32, R1[2:1][1:1].f16.row, R9[1:1][2:1].f16.col, 0
\t\t[N--D--s]\t\tAP.BARRIER LM4
\t\t[N-wD---]\t\tCTRL.END
.Lfunc_end0:
\t.size\t{name}, .Lfunc_end0-{name}
\t.type\tllvm.musa.kernel.{name}.sm,@object
\t.local\tllvm.musa.kernel.{name}.sm
\t.comm\tllvm.musa.kernel.{name}.sm,37376,1
"""
FINAL = "_Z13gemm_wmma_256PK6__halfS1_PS_ii"
MUBLAS = "hgemm_nn_512_256x256_tensor_qy2"


@pytest.fixture(scope="session")
def writer() -> ModuleType:
    """tests/binary/writer.py: makes MTGPU objects, notes, bundles and assembly text."""
    name = "mccprobe_test_writer"
    if name not in sys.modules:
        path = Path(__file__).resolve().parents[1] / "binary" / "writer.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture
def final_kernel(writer: ModuleType) -> dict[str, Any]:
    """The article's figures of its final kernel (section 22.2)."""
    kernel: dict[str, Any] = writer.mtgpu_kernel(
        FINAL, temp_reg_count=126, shared_memory_size=37_396, private_memory_size=8, has_barrier=True
    )
    return kernel


@pytest.fixture
def mublas_kernel(writer: ModuleType) -> dict[str, Any]:
    """And of muBLAS."""
    kernel: dict[str, Any] = writer.mtgpu_kernel(
        MUBLAS,
        temp_reg_count=250,
        shared_reg_count=74,
        shared_memory_size=65_664,
        has_barrier=True,
        internal_reg_count=0,
        max_block_size=512,
    )
    return kernel


@pytest.fixture
def assembly(writer: ModuleType, final_kernel: dict[str, Any], tmp_path: Path) -> Path:
    """`mcc -S` text of one kernel, with its body and its shared symbol."""
    path = tmp_path / "gemm.s"
    path.write_text(writer.mtgpu_assembly(writer.mtgpu_document(final_kernel), BODY.format(name=FINAL)), "utf-8")
    return path


@pytest.fixture
def bundle(writer: ModuleType, final_kernel: dict[str, Any], mublas_kernel: dict[str, Any], tmp_path: Path) -> Path:
    """A raw bundle for two architectures with both kernels, of which one has a key that nobody knows."""
    newer = writer.mtgpu_kernel(FINAL, arch_id=310, temp_reg_count=100, shared_memory_size=37_396, surprise=3)
    path = tmp_path / "gemm.o"
    path.write_bytes(
        writer.bundle(
            [
                ("host-x86_64-unknown-linux-gnu", b""),
                ("musa-mtgpu-mt-musa-mp_22", writer.mtgpu_elf(writer.mtgpu_document(final_kernel, mublas_kernel))),
                ("musa-mtgpu-mt-musa--mp_31", writer.mtgpu_elf(writer.mtgpu_document(newer))),
            ]
        )
    )
    return path
