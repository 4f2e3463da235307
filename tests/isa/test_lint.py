"""Lint: each rule finds its fault, and compilers' own output stays clean."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mccprobe.objects.binary.records import DeviceImage
from mccprobe.objects.isa.disassemble import Disassemblers, ImageListing, disassemble, load
from mccprobe.objects.isa.lint import LintResult, lint_images
from mccprobe.objects.isa.lint_rules import RULES

DATA = Path(__file__).parent / "data"


def _lint(path: Path, threshold: int = 16) -> LintResult:
    (result,) = lint_images(load(path, Disassemblers()), RULES, spill_threshold_bytes=threshold)
    return result


def _kernel(body: str, metadata: str = "", symbols: str = "") -> str:
    """One mp_22 kernel `k` in the documented shape."""
    lines = "".join(f"{line}\n" if line.endswith(":") else f"\t\t[N-sD---]\t\t{line}\n" for line in body.splitlines())
    return (
        f"\t.text\n\t.type\tk,@function\nk:\n{lines}.Lfunc_end0:\n\t.size\tk, .Lfunc_end0-k\n{symbols}"
        f"\t.mtgpu_metadata.start\n---\nmtgpu.kernels:\n  - .arch_id: 220\n    .args: []\n    .name: k\n{metadata}"
        "mtgpu.version:\n  - 1\n  - 0\n...\n\n\t.mtgpu_metadata.end\n"
    )


def _rules(tmp_path: Path, text: str, threshold: int = 16) -> list[str]:
    file = tmp_path / "k.s"
    file.write_text(text)
    return [one.rule for one in _lint(file, threshold).findings]


@pytest.mark.parametrize("name", ["demo-mp22.s", "gemm-loop-mp22.s", "objdump-mtgpu-invented.txt", "nvdisasm.txt"])
def test_documented_shapes_are_clean(name: str) -> None:
    result = _lint(DATA / name)
    assert (result.findings, result.observations) == ((), ())


def test_all_faults_of_the_bad_kernel() -> None:
    result = _lint(DATA / "bypass-mp22.s")
    assert [(one.rule, one.certainty, one.where) for one in result.findings] == [
        ("mma-bypass", "suspected", "line 7"),
        ("bypass-undefined", "suspected", "line 10"),
        ("register-count", "contradiction", "line 7"),
        ("shared-memory", "contradiction", ""),
        ("spill", "reported", ""),
    ]


def test_rules_have_unique_ids_and_sources() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.title and rule.source and rule.check.__doc__ for rule in RULES)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("INT.BYP I[0:1].s64, R[1:2].s64\nINT.ADD R1, R2, I1", []),
        ("INT.BYP I0, R1\nINT.ADD R1, R2, I[0:1].s64", ["bypass-undefined"]),
        ("INT.ADD R1, R2, I0", ["bypass-undefined"]),
        ("INT.BYP I0, R1\nBB0_1:\nINT.ADD R1, R2, I0", ["bypass-undefined"]),
        ("DMA.ST.B32 I0, SH[16:17], R1", ["bypass-undefined"]),
        ("INT.BYP I0, R1\nMMA.323216 R14[4:2][2:1].f32, I0.f16, R9, 0", ["mma-bypass"]),
    ],
)
def test_bypass_registers(tmp_path: Path, body: str, found: list[str]) -> None:
    assert _rules(tmp_path, _kernel(body + "\nCTRL.END")) == found


@pytest.mark.parametrize(
    ("private", "threshold", "found"), [(8, 16, []), (16, 16, []), (17, 16, ["spill"]), (8, 0, ["spill"])]
)
def test_private_memory_over_the_threshold(tmp_path: Path, private: int, threshold: int, found: list[str]) -> None:
    text = _kernel("CTRL.END", f"    .private_memory_size: {private}\n")
    assert _rules(tmp_path, text, threshold) == found


@pytest.mark.parametrize(
    ("size", "found", "observed"),
    [
        (4884, [], []),
        (4992, [], []),
        (4864, [], []),
        (4863, ["shared-memory"], []),
        (5000, [], ["shared-memory-surplus"]),
    ],
)
def test_shared_memory(tmp_path: Path, size: int, found: list[str], observed: list[str]) -> None:
    file = tmp_path / "k.s"
    symbol = "\t.comm\tllvm.musa.kernel.k.sm,4864,1\n"
    file.write_text(_kernel("CTRL.END", f"    .shared_memory_size: {size}\n", symbol))
    result = _lint(file)
    assert ([one.rule for one in result.findings], [one.rule for one in result.observations]) == (found, observed)


def test_fewer_registers_than_counted_is_an_observation(tmp_path: Path) -> None:
    file = tmp_path / "k.s"
    file.write_text(_kernel("FOP.MOV R4, SH1\nCTRL.END", "    .temp_reg_count: 9\n"))
    result = _lint(file)
    assert (result.findings, [one.rule for one in result.observations]) == ((), ["register-count-unused"])


def _loop(words: int, kind: str = "mtgpu") -> str:
    """Invented shape: a loop of so many 12-byte words."""
    pairs = "01 02 03 04 05 06 07 08 09 0a 0b 0c"
    lines = [f"{12 * place:8x}: {pairs}\t[N-sD---]\t\tFOP.MOV R1, SH23" for place in range(words - 1)]
    lines.append(f"{12 * (words - 1):8x}: {pairs}\t[Nw-D---]\t\tCTRL.BR.ALLP0T 0x0 <k+0x0>")
    lines.append(f"{12 * words:8x}: {pairs}\t[N-wD---]\t\tCTRL.END")
    return f"k.o:\tfile format elf64-{kind}\n\n0000000000000000 <k>:\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(("words", "found"), [(341, []), (342, ["loop-cache"])])
def test_a_loop_over_the_instruction_cache(words: int, found: list[str]) -> None:
    image = DeviceImage("mp_22", "listing", _loop(words).encode(), "k.txt", "")
    (result,) = lint_images([disassemble(image, Disassemblers())], RULES)
    assert [one.rule for one in result.findings] == found


GFX = ["-x", "cl", "-cl-std=CL2.0", "-Xclang", "-finclude-default-header", "-target", "amdgcn-amd-amdhsa", "-nogpulib"]
SPILLS = """
__attribute__((amdgpu_num_vgpr(12))) __kernel void k(__global float *a) {
  float x[24];
  for (int i = 0; i < 24; i++) x[i] = a[i * 7];
  for (int r = 0; r < 3; r++) for (int i = 0; i < 24; i++) x[i] = x[i] * x[(i + 5) % 24] + x[(i + 11) % 24];
  for (int i = 0; i < 24; i++) a[i * 3] = x[i];
}
"""


def _real(tmp_path: Path, source: str, *flags: str) -> list[ImageListing]:
    if shutil.which("llvm-objdump-14") is None:
        pytest.skip("llvm-objdump-14 is not here (looked in PATH)")
    file, made = tmp_path / "k.cl", tmp_path / "k.o"
    file.write_text(source)
    subprocess.run(["clang-14", *GFX, *flags, "-c", str(file), "-o", str(made)], check=True, capture_output=True)
    return load(made, Disassemblers(stock=("llvm-objdump-14",)))


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("arch", ["gfx908", "gfx90a", "gfx1030"])
def test_real_output_without_spills_is_clean(tmp_path: Path, arch: str, level: str) -> None:
    source = SPILLS.replace("__attribute__((amdgpu_num_vgpr(12)))", "")
    (result,) = lint_images(_real(tmp_path, source, f"-mcpu={arch}", level), RULES)
    assert (result.findings, result.functions) == ((), 1)


@pytest.mark.toolchain("clang-14")
def test_real_spills_are_found(tmp_path: Path) -> None:
    (result,) = lint_images(_real(tmp_path, SPILLS, "-mcpu=gfx908", "-O2"), RULES)
    assert [one.rule for one in result.findings] == ["spill"]
