"""A label inside of a function does not end it: in assembly text, in objects, in a listing without its object."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mccprobe.inspection.resources import ReportRequest, report_on
from mccprobe.objects.binary.read import code_symbols, read_images, read_kernels
from mccprobe.objects.isa.count import count_amdgpu, count_function
from mccprobe.objects.isa.disassemble import Disassemblers, load
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.records import Listing
from mccprobe.objects.isa.spans import without_tail
from mccprobe.objects.isa.summary import summarise

TEXT = Path(__file__).parent / "data" / "labels-gfx908.s"
TRUTH = {"first": 9, "second": 5, "helper": 3}
LOOPS = {"first": 1, "second": 1, "helper": 0}
COMPILERS = [pytest.param(name, marks=pytest.mark.toolchain(name)) for name in ("clang-14", "clang-16")]
DEVICE = """
__kernel void marked(__global float *a, int n) {
  int i = get_local_id(0);
  #pragma nounroll
  for (int j = 0; j < n; j++) { __asm__ volatile("label_one:\\n s_nop 0"); a[i] += a[j]; }
  barrier(CLK_LOCAL_MEM_FENCE);
  __asm__ volatile(".globl shown\\nshown:\\ns_nop 1");
  a[i] += 1;
}
__attribute__((noinline)) float inner(float x) { __asm__ volatile("l_two:\\n s_nop 2"); return x * 3; }
__kernel void caller(__global float *a) { a[get_local_id(0)] = inner(a[1]); }
"""
GFX = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx908"]


def _counts(listing: Listing) -> dict[str, int]:
    return {one.name: len(one.instructions) for one in listing.functions}


def _loops(listing: Listing) -> dict[str, int]:
    return {one.name: len(summarise(one, "amdgpu").loops) for one in listing.functions}


def _object(folder: Path, compiler: str, *source: str) -> tuple[Path, str]:
    made = folder / "k.o"
    subprocess.run([compiler, *GFX, "-c", *source, "-o", str(made)], check=True, capture_output=True)
    tool = compiler.replace("clang", "llvm-objdump")
    return made, shutil.which(tool) or shutil.which("llvm-objdump-14") or "llvm-objdump"


def _dumped(tool: str, made: Path) -> str:
    return subprocess.run([tool, "-d", str(made)], check=True, capture_output=True, text=True).stdout


def test_labels_in_assembly_text() -> None:
    listing = parse_listing(TEXT.read_text())
    assert (_counts(listing), _loops(listing), listing.unknown) == (TRUTH, LOOPS, ())


@pytest.mark.parametrize("compiler", COMPILERS)
def test_labels_in_an_object(tmp_path: Path, compiler: str) -> None:
    made, tool = _object(tmp_path, compiler, str(TEXT))
    (full,) = load(made, Disassemblers(stock=(tool,)))
    assert (_counts(full.listing), _loops(full.listing)) == (TRUTH, LOOPS)
    counts = count_amdgpu(_dumped(tool, made), code_symbols(full.image))
    assert counts == {one.name: count_function(one) for one in full.listing.functions}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_labels_in_a_listing_without_its_object(tmp_path: Path, compiler: str) -> None:
    made, tool = _object(tmp_path, compiler, str(TEXT))
    listing = parse_listing(_dumped(tool, made))
    kept = {one.name: len(without_tail(one.instructions)) for one in listing.functions}  # the text shows padding too
    assert (kept, _loops(listing)) == (TRUTH, LOOPS)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_functions_are_those_of_readelf(tmp_path: Path, compiler: str, level: str) -> None:
    source = tmp_path / "k.cl"
    source.write_text(DEVICE)
    options = ["-x", "cl", "-cl-std=CL2.0", "-Xclang", "-finclude-default-header", "-nogpulib", level]
    made, tool = _object(tmp_path, compiler, *options, str(source))
    table = subprocess.run(
        [tool.replace("objdump", "readelf"), "-sW", str(made)], check=True, capture_output=True, text=True
    ).stdout
    told = re.findall(r"^\s*\d+: ([0-9a-f]{16})\s+(\d+) FUNC\s+\S+\s+\S+\s+\d+ (\S+)$", table, re.MULTILINE)
    (full,) = load(made, Disassemblers(stock=(tool,)))
    found = {
        one.name: (one.address, sum(len(x.data or b"") for x in one.instructions)) for one in full.listing.functions
    }
    assert found == {name: (int(start, 16), int(size)) for start, size, name in told} and len(found) == 3
    assert any(name == "shown" for one in full.listing.functions for name in one.labels)


def test_kernels_without_metadata_are_read_from_their_descriptors() -> None:
    (image,) = read_images(TEXT)
    kernels, warnings = read_kernels(image)
    assert [(k.name, k.registers["vector"], k.shared_memory_bytes, k.private_memory_bytes) for k in kernels] == [
        ("first", 6, 64, 0),
        ("second", 2, 0, 16),
    ]
    assert (image.kind, image.target, warnings) == ("amdgpu-asm", "gfx908", [])
    found = report_on(ReportRequest([TEXT]))
    assert [(one.mix.count, one.has_barrier) for one in found.kernels] == [(9, True), (5, True)]


def test_a_text_is_amdgpu_by_its_descriptor_alone(tmp_path: Path) -> None:
    text = tmp_path / "k.s"
    text.write_text("k:\n" + "  s_nop 0\n" * 9000 + ".amdhsa_kernel k\n.amdhsa_next_free_vgpr N\n.end_amdhsa_kernel\n")
    (kernel,) = report_on(ReportRequest([text])).kernels
    assert (kernel.kernel.name, kernel.kernel.registers["vector"], kernel.mix.count) == ("k", None, 9000)


MTGPU = """\t.text
\t.type\tk,@function
k:
\t\t[N-sD---]\tFOP.MOV R0, SH23
HOT_LOOP_START:
\t\t[N-sD---]\tMOV.ST.LM.B16 LM0[R3], R6.l
\t\t[Nw-D---]\tCTRL.BR.ALLP0T HOT_LOOP_START
\t\t[N-wD---]\tCTRL.END
{between}other:
\t\t[N-wD---]\tCTRL.END
"""


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("", {"k": 5}),
        ("\t.size\tother, 1\n", {"k": 4, "other": 1}),
        ("\t.globl\tother\n", {"k": 4, "other": 1}),
        ("\t.type\tother,@function\n", {"k": 4, "other": 1}),
        ("\t.size\tk, .-k\n", {"k": 4, "other": 1}),
    ],
)
def test_named_labels_of_mtgpu_text(between: str, expected: dict[str, int]) -> None:
    listing = parse_listing(MTGPU.format(between=between))
    assert (_counts(listing), listing.unknown) == (expected, ())
    assert [loop.label for loop in summarise(listing.functions[0], "mtgpu").loops] == ["HOT_LOOP_START"]
