"""Real objects of clang-14 through real disassemblers: every line understood, every byte as in the object."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mccprobe.base.errors import InputError
from mccprobe.objects.binary.read import code_symbols
from mccprobe.objects.isa.count import count_amdgpu, count_function, count_x86
from mccprobe.objects.isa.disassemble import Disassemblers, load
from mccprobe.objects.isa.flow import isa_of
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.records import Listing
from mccprobe.objects.isa.summary import summarise

pytestmark = pytest.mark.toolchain("clang-14")

DEVICE = """
__kernel void dot(__global float *a, __global float *b, int n) {
  int i = get_local_id(0); float s = 0;
  for (int j = 0; j < n; j++) { s += a[j] * b[i + j]; if (s > 3) s -= b[j]; }
  a[i] = s;
}
__kernel void nest(__global float *a, __local float *l, int n) {
  int i = get_local_id(0); l[i] = a[i]; barrier(CLK_LOCAL_MEM_FENCE);
  for (int x = 0; x < n; x++) for (int y = 0; y < n; y++) a[i + x] += l[y] * 3;
}
__kernel void wide(__global float4 *a, __global long *b) { a[0] = a[0] * a[1] + a[2]; b[0] = b[1] / b[2]; }
"""
HOST = """
int f(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) { s += a[i]; if (s > 100) s /= 3; } return s; }
int g(int x) {
  switch (x) { case 0: return 3; case 1: return 7; case 2: return 99; case 3: return f(0, 0); case 9: return 4; }
  return 1;
}
double h(double *a) {
  double s = 0; for (int i = 0; i < 64; i++) for (int j = 0; j < 64; j++) s += a[i * 64 + j] * a[j]; return s;
}
const char *name(int i) { static const char *names[] = {"a", "b"}; return names[i]; }
void clear(char *p, unsigned long n) { __builtin_memset(p, 0, n); __atomic_fetch_add((long *)p, 1, 5); }
"""
GFX = ["-x", "cl", "-cl-std=CL2.0", "-Xclang", "-finclude-default-header", "-target", "amdgcn-amd-amdhsa", "-nogpulib"]
LEVELS = ["-O0", "-O1", "-O3"]
OTHERS = ("llvm-objdump-13", "llvm-objdump-16", "llvm-objdump-19")  # tried where they are installed
TOOLS = ["llvm-objdump-14", *(name for name in OTHERS if shutil.which(name))]


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not here (looked in PATH)")
    return path


def _build(folder: Path, kind: str, level: str) -> Path:
    source, made = folder / ("k.c" if kind == "x86" else "k.cl"), folder / "k.o"
    source.write_text(HOST if kind == "x86" else DEVICE)
    target = ["-mavx2"] if kind == "x86" else [*GFX, f"-mcpu={kind}"]
    subprocess.run(["clang-14", *target, level, "-c", str(source), "-o", str(made)], check=True, capture_output=True)
    return made


def _code(path: Path) -> bytes:
    with path.open("rb") as file:
        return bytes(ELFFile(file).get_section_by_name(".text").data())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["gfx908", "gfx90a", "gfx803", "gfx1030", "x86"])
@pytest.mark.parametrize("tool", TOOLS)
def test_every_line_is_understood_and_bytes_are_those_of_the_object(
    tmp_path: Path, tool: str, kind: str, level: str
) -> None:
    made = _build(tmp_path, kind, level)
    text = subprocess.run([_tool(tool), "-d", "-r", str(made)], check=True, capture_output=True, text=True).stdout
    listing = parse_listing(text)
    assert listing.unknown == ()
    pattern = r"^\s+[0-9a-f]+: (?:[0-9a-f]{2} )+" if kind == "x86" else r"// [0-9A-F]{12}: [0-9A-F]{2}"
    assert listing.instruction_count == len(re.findall(pattern, text, re.MULTILINE)) > 60
    code = _code(made)
    for function in listing.functions:
        for one in function.instructions:
            assert one.address is not None and one.data
            assert code[one.address : one.address + len(one.data)] == one.data
    first = b"".join(one.data or b"" for one in listing.functions[0].instructions)
    assert code.startswith(first)


def _bytes(listing: Listing) -> dict[int | None, bytes]:
    """Address to bytes. llvm-objdump prints a lock prefix on a line of its own: joined with what follows."""
    found: dict[int | None, bytes] = {}
    held: tuple[int | None, bytes] | None = None
    for one in (item for function in listing.functions for item in function.instructions):
        address, data = one.address, one.data or b""
        if held:
            address, data, held = held[0], held[1] + data, None
        if one.mnemonic == "lock":
            held = address, data
        else:
            found[address] = data
    return found


def test_gnu_objdump_and_llvm_give_the_same_bytes(tmp_path: Path) -> None:
    made = _build(tmp_path, "x86", "-O2")
    listings = [
        parse_listing(subprocess.run([_tool(tool), "-d", str(made)], check=True, capture_output=True, text=True).stdout)
        for tool in ("objdump", "llvm-objdump-14")
    ]
    assert [one.unknown for one in listings] == [(), ()]
    assert _bytes(listings[0]) == _bytes(listings[1])
    targets = [[one.target for f in listing.functions for one in f.instructions if one.target] for listing in listings]
    assert targets[0] == targets[1]


@pytest.mark.parametrize("kind", ["gfx908", "x86"])
def test_options_of_objdump_change_no_loop(tmp_path: Path, kind: str) -> None:
    made = _build(tmp_path, kind, "-O2")
    found = []
    for options in ([], ["--symbolize-operands"], ["--no-show-raw-insn"], ["-S", "-l", "-r"]):
        if kind == "gfx908" and "--no-show-raw-insn" in options:
            continue  # then AMDGPU's text has no addresses either
        tool = [_tool("llvm-objdump-14"), "-d", *options, str(made)]
        listing = parse_listing(subprocess.run(tool, check=True, capture_output=True, text=True).stdout)
        assert listing.unknown == ()
        summaries = [summarise(one, isa_of(listing.format)) for one in listing.functions]
        found.append([[(loop.header, loop.depth, loop.mix) for loop in one.loops] for one in summaries])
    assert all(one == found[0] for one in found)
    assert any(found[0])


def test_object_and_assembly_have_the_same_loops(tmp_path: Path) -> None:
    made = _build(tmp_path, "gfx908", "-O2")
    text = tmp_path / "k.s"
    arguments = ["clang-14", *GFX, "-mcpu=gfx908", "-O2", "-S", str(tmp_path / "k.cl"), "-o", str(text)]
    subprocess.run(arguments, check=True, capture_output=True)
    from_text = parse_listing(text.read_text())
    (from_object,) = load(made, Disassemblers(stock=(_tool("llvm-objdump-14"),)))
    assert (from_text.unknown, from_text.format, from_text.target) == ((), "amdgpu-s", "gfx908")
    shapes = []
    for listing in (from_text, from_object.listing):
        functions = {one.name: summarise(one, isa_of(listing.format)) for one in listing.functions}
        shapes.append({name: [(x.depth, x.parent, x.mix) for x in one.loops] for name, one in functions.items()})
    assert shapes[0] == shapes[1]
    assert [depth for depth, _, _ in shapes[0]["nest"]] == [1, 2, 2] or len(shapes[0]["nest"]) >= 2


def test_llvm_finds_as_many_loops_as_we_do(tmp_path: Path) -> None:
    """clang's -S names each loop header in a comment; ours come from branches alone."""
    _build(tmp_path, "gfx908", "-O2")
    text = tmp_path / "k.s"
    arguments = ["clang-14", *GFX, "-mcpu=gfx908", "-O2", "-S", str(tmp_path / "k.cl"), "-o", str(text)]
    subprocess.run(arguments, check=True, capture_output=True)
    named = re.findall(r"Loop Header: Depth=(\d+)", text.read_text())
    listing = parse_listing(text.read_text())
    found = [loop.depth for one in listing.functions for loop in summarise(one, "amdgpu").loops]
    assert sorted(found) == sorted(map(int, named))


def test_x86_goes_to_capstone_which_cuts_as_llvm_does(tmp_path: Path) -> None:
    made = _build(tmp_path, "x86", "-O2")
    text = subprocess.run([_tool("llvm-objdump-14"), "-d", str(made)], check=True, capture_output=True, text=True)
    (by_capstone,) = load(made, Disassemblers(stock=(_tool("llvm-objdump-14"),)))
    assert by_capstone.tool == "capstone"
    theirs = _bytes(parse_listing(text.stdout))
    ours = _bytes(by_capstone.listing)
    assert len(ours) > 60
    assert {address: theirs.get(address) for address in ours} == ours
    assert count_x86(code_symbols(by_capstone.image)) == {
        one.name: count_function(one) for one in by_capstone.listing.functions
    }


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("kind", ["gfx908", "gfx1030"])
def test_counts_are_those_of_the_full_listing(tmp_path: Path, tool: str, kind: str) -> None:
    made = _build(tmp_path, kind, "-O2")
    (full,) = load(made, Disassemblers(stock=(_tool(tool),)))
    text = subprocess.run([_tool(tool), "-d", str(made)], check=True, capture_output=True, text=True).stdout
    counts = count_amdgpu(text, code_symbols(full.image))
    assert counts == {one.name: count_function(one) for one in full.listing.functions}
    assert {name: one.instructions for name, one in counts.items()}.keys() == {"dot", "nest", "wide"}
    for other in (text.replace("elf64-amdgpu", "elf64-x86-64"), text.replace(" // ", " ; "), "x"):
        with pytest.raises(InputError):
            count_amdgpu(other, code_symbols(full.image))


def test_a_tool_that_fails_is_passed_over(tmp_path: Path, compiler: Callable[..., str]) -> None:
    made = _build(tmp_path, "gfx908", "-O1")
    (one,) = load(made, Disassemblers(stock=("/bin/false", _tool("llvm-objdump-14"))))
    assert one.tool.endswith("llvm-objdump-14")
    assert one.listing.target == "gfx908"
