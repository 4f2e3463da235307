"""What ptxas tells of kernels: read from its text, and beside cuobjdump where the tools are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.inspection.resources import ReportRequest, report_on
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.model.resources import sources
from mccprobe.report.render_resources import render_text
from mccprobe.targets.nvidia.ptxas import parse_ptxas

ROOT = Path(__file__).resolve().parents[2]
# as ptxas of CUDA 13 prints it
TEXT = """\
ptxas info    : 99 bytes gmem
ptxas info    : Compiling entry function '_Z12gemm_wmma_16PK6__halfS1_PS_ii' for 'sm_90'
ptxas info    : Function properties for _Z12gemm_wmma_16PK6__halfS1_PS_ii
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 64 registers, used 16 barriers, 1024 bytes smem
ptxas info    : Compile time = 87.960 ms
ptxas info    : Compiling entry function '_Z13gemm_wmma_256PK6__halfS1_PS_ii' for 'sm_90'
ptxas info    : Function properties for _Z13gemm_wmma_256PK6__halfS1_PS_ii
    344 bytes stack frame, 704 bytes spill stores, 560 bytes spill loads
ptxas info    : Used 62 registers, 344 bytes cumulative stack size, 37376 bytes smem
"""


def test_every_number_is_read() -> None:
    small, large = parse_ptxas(TEXT)
    assert small.symbol == "_Z12gemm_wmma_16PK6__halfS1_PS_ii" and small.target == "sm_90"
    assert (small.registers["vector"], small.shared_memory_bytes, small.has_barrier) == (64, 1024, True)
    assert (large.registers["vector"], large.private_memory_bytes, large.shared_memory_bytes) == (62, 344, 37376)
    assert large.spills == {"store_bytes": 704, "load_bytes": 560}
    assert large.has_barrier is False  # the line tells registers and no barrier


def test_what_is_not_told_is_unknown() -> None:
    (kernel,) = parse_ptxas("ptxas info : Compiling entry function 'k' for 'sm_80'\n")
    assert (kernel.registers["vector"], kernel.shared_memory_bytes, kernel.spills, kernel.has_barrier) == (None,) * 4


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    parse_ptxas(text + TEXT)


def test_report_of_a_kernel_folder(run_cli: Callable[..., Any]) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc here")
    result = run_cli("report", ROOT / "kernels/naive", "--toolchain", "cuda", "--json")
    assert result.code == 0, result.stderr
    document = json.loads(result.stdout)
    jsonschema.validate(document, json.loads((ROOT / "reports/report.schema.json").read_text()))
    assert document["kernels"] and all(kernel["source_format"] == "ptxas" for kernel in document["kernels"])
    text = run_cli("report", ROOT / "kernels/naive", "--toolchain", "cuda").stdout
    assert all("stand-in" in line for line in text.splitlines() if line.strip())


def test_the_same_as_cuobjdump(tmp_path: Path) -> None:
    if shutil.which("nvcc") is None or shutil.which("cuobjdump") is None:
        pytest.skip("no nvcc or no cuobjdump here")
    from mccprobe.targets.nvidia.toolchain import cuda_toolchain

    source, made = ROOT / "kernels/naive/naive.mu", tmp_path / "k.o"
    argv = [*cuda_toolchain().compile_argv(["-O2"], str(source), str(made)), "-Xptxas", "-v"]
    built = subprocess.run(argv, capture_output=True, text=True, check=True)
    dumped = subprocess.run(
        ["cuobjdump", "--dump-resource-usage", str(made)], capture_output=True, text=True, check=True
    ).stdout
    kernels = parse_ptxas(built.stderr + built.stdout)
    assert kernels
    for kernel in kernels:
        told = re.search(rf"Function {re.escape(kernel.name)}:\s+REG:(\d+) STACK:(\d+)", dumped)
        assert told is not None
        assert (kernel.registers["vector"], kernel.private_memory_bytes) == (int(told[1]), int(told[2]))


# --- texts that `report` reads as files ----------------------------------------------------------------
# Real ones: ptxas, cuobjdump and nvdisasm 13.5 on one small kernel; the listing is cut to the sections that matter.

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("ptxas-v-sm80.txt", "ptxas -v", (8, 256, 0, True)),
        ("cuobjdump-res-usage-sm80.txt", "cuobjdump -res-usage", (8, 256, 0, None)),
        ("nvdisasm-sm80.txt", "disassembly", (8, None, None, True)),
    ],
)
def test_nvidias_texts_are_read(name: str, source: str, expected: tuple[object, ...]) -> None:
    (kernel,) = report_on(ReportRequest([DATA / name])).kernels
    found = kernel.kernel
    assert (found.name, found.target, sources(found, kernel.mix)["metadata"]) == ("matmul_kernel", "sm_80", source)
    numbers = (found.registers["vector"], found.shared_memory_bytes, found.private_memory_bytes, found.has_barrier)
    assert numbers == expected
    assert f"vector {expected[0]} a thread" in render_text(report_on(ReportRequest([DATA / name])))


OLD = """\t.headerflags\t@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM70 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM70)"
//--------------------- .text.triton__0d1d2de.kernel --------------------------
\t.section\t.text.triton__0d1d2de.kernel,"ax",@progbits
\t.sectionflags\t@"SHF_BARRIERS=1"
\t.sectioninfo\t@"SHI_REGISTERS=24"
\t.align\t128
        .global         triton__0d1d2de.kernel
triton__0d1d2de.kernel:
.text.triton__0d1d2de.kernel:
        /*0000*/                   EXIT ;   /* 0x000000000000794d */
                                            /* 0x000fea0003800000 */
\t.section\t.text.other,"ax",@progbits
\t.sectioninfo\t@"SHI_REGISTERS=6"
other:
.text.other:
        /*0000*/                   EXIT ;   /* 0x000000000000794d */
                                            /* 0x000fea0003800000 */
"""


def test_heads_of_older_listings(tmp_path: Path) -> None:
    file = tmp_path / "k.sass"
    file.write_text(OLD)
    found = [
        (one.kernel.name, one.kernel.target, one.kernel.registers["vector"], one.kernel.has_barrier, one.mix.count)
        for one in report_on(ReportRequest([file])).kernels
    ]
    assert found == [("triton__0d1d2de.kernel", "sm_70", 24, True, 1), ("other", "sm_70", 6, None, 1)]
    listing = parse_listing(OLD)
    assert (listing.unknown, listing.target) == ((), "sm_70")
