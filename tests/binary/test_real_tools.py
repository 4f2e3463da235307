"""Against the real tools: gfx908 objects of clang-14, llvm-readelf-14, the offload bundlers.

AMD's are the only MessagePack device notes that stock LLVM can make; MTGPU's are read by the same code.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from mccprobe.objects.binary.amdgpu import PROCESSORS
from mccprobe.objects.binary.document import read_messagepack, read_yaml
from mccprobe.objects.binary.elf import parse_elf
from mccprobe.objects.binary.read import code_symbols, images_of, read_images, read_kernels, read_notes

from .writer import mtgpu_assembly, mtgpu_document, mtgpu_kernel

TARGETS = "host-x86_64-unknown-linux-gnu,hip-amdgcn-amd-amdhsa--gfx908,hip-amdgcn-amd-amdhsa--gfx90a"
KERNELS = """
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
extern "C" __global__ void no(float *a, const float *b, int n) {
  __shared__ float s[64];
  int t = __builtin_amdgcn_workitem_id_x();
  s[t] = b[t];
  __builtin_amdgcn_s_barrier();
  for (int i = 0; i < n; ++i) a[t + i] += s[(t + i) % 64];
}
extern "C" __global__ void y(int *a) { int v[40]; for (int i = 0; i < 40; ++i) v[a[i] % 40] = i; a[0] = v[a[1] % 40]; }
template <int N> __global__ void many(double *a) { for (int i = 0; i < N; ++i) a[i] *= N; }
template __global__ void many<3>(double *);
template __global__ void many<4>(double *);
"""

pytestmark = pytest.mark.toolchain("clang-14")


def tool(name: str) -> str:
    """The path of a tool, or a skip that names it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (tried to find it on PATH)")
    return found


def run(*argv: str | Path, cwd: Path) -> str:
    done = subprocess.run([*map(str, argv)], cwd=cwd, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`built("k.o")`, `built("k.so")`, `built("k.s")`: gfx908 code of KERNELS, made once."""
    folder = tmp_path_factory.mktemp("gfx908")
    (folder / "k.hip").write_text(KERNELS)
    front = ["-x", "hip", "-nogpulib", "-nogpuinc", "--cuda-device-only", "--offload-arch=gfx908"]
    back = ["clang-14", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx908", "-O2", "-nogpulib"]

    def build(name: str) -> Path:
        path = folder / name
        if not path.exists():
            if not (folder / "k.bc").exists():
                run(
                    "clang-14",
                    *front,
                    "--rocm-path=/nonexistent",
                    "-O2",
                    "-emit-llvm",
                    "-c",
                    "k.hip",
                    "-o",
                    "k.bc",
                    cwd=folder,
                )
            if name.endswith(".so"):
                run(tool("ld.lld-14"), "-shared", build("k.o"), "-o", name, cwd=folder)
            else:
                run(*back, "-S" if name.endswith(".s") else "-c", "k.bc", "-o", name, cwd=folder)
        return path

    return build


@pytest.mark.parametrize("name", ["k.o", "k.so"])
def test_notes_as_llvm_readelf_shows_them(built: Callable[[str], Path], name: str) -> None:
    path = built(name)
    shown = run(tool("llvm-readelf-14"), "--notes", path, cwd=path.parent)
    (image,) = read_images(path)
    (note,) = read_notes(image)
    listed = re.findall(r"^ +(\S+) +0x([0-9a-f]+)\t(\S+)", shown, re.MULTILINE)
    assert listed == [(note.owner, f"{len(note.descriptor):08x}", "NT_AMDGPU_METADATA")]
    theirs = shown[shown.index("---\n") : shown.index("\n...\n") + 1]
    assert read_messagepack(note.descriptor) == read_yaml(theirs)


def test_object_library_and_assembly_agree(built: Callable[[str], Path]) -> None:
    found = {}
    for name in ("k.o", "k.so", "k.s"):
        (image,) = read_images(built(name))
        kernels, warnings = read_kernels(image)
        assert not warnings and image.target == "gfx908"
        found[name] = kernels
    assert [kernel.name for kernel in found["k.s"]] == ["no", "y", "_Z4manyILi3EEvPd", "_Z4manyILi4EEvPd"]
    for other in ("k.so", "k.s"):
        for left, right in zip(found["k.o"], found[other], strict=True):
            assert left.raw == right.raw
            assert (left.name, left.registers, left.spills, left.target) == (
                right.name,
                right.registers,
                right.spills,
                right.target,
            )
    no, y, *_ = found["k.o"]
    assert no.shared_memory_bytes == 256 and y.private_memory_bytes and y.shared_memory_bytes == 0
    assert no.registers["vector"] and no.spills == {"vector": 0, "scalar": 0}
    assert not any(kernel.unknown_keys or kernel.warnings for kernel in found["k.o"])
    assert all(kernel.code_bytes for kernel in found["k.o"])


@pytest.mark.parametrize("name", ["k.o", "k.so"])
def test_code_as_pyelftools_sees_it(built: Callable[[str], Path], name: str) -> None:
    path = built(name)
    data = path.read_bytes()
    table = ELFFile(io.BytesIO(data)).get_section_by_name(".symtab")
    theirs = {
        (symbol.name, symbol["st_value"], symbol["st_size"])
        for symbol in table.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC"
    }
    ours = code_symbols(images_of(data, "k")[0])
    assert {(symbol.name, symbol.address, len(symbol.data)) for symbol in ours} == theirs
    assert len(ours) == 4


@pytest.mark.parametrize("name", ["k.o", "k.so"])
def test_sections_as_pyelftools_sees_them(built: Callable[[str], Path], name: str) -> None:
    data = built(name).read_bytes()
    theirs = ELFFile(io.BytesIO(data))
    ours = parse_elf(data)
    assert [(section.name, section.offset, section.address, section.align) for section in ours.sections] == [
        (section.name, section["sh_offset"], section["sh_addr"], section["sh_addralign"])
        for section in theirs.iter_sections()
    ]
    assert [(segment.offset, segment.size) for segment in ours.segments] == [
        (segment["p_offset"], segment["p_filesz"]) for segment in theirs.iter_segments()
    ]


def test_host_objects(tmp_path: Path) -> None:
    (tmp_path / "h.c").write_text("int f(int x) { return x + 1; }\nint g(void) { return 2; }\n")
    run("clang-14", "-O1", "-c", "h.c", cwd=tmp_path)
    (image,) = read_images(tmp_path / "h.o")
    assert (image.kind, image.target) == ("host-elf", "x86-64")
    assert [(symbol.name, symbol.data[-1:]) for symbol in code_symbols(image)] == [("f", b"\xc3"), ("g", b"\xc3")]


def _inputs(folder: Path, device: bytes, host: bytes) -> list[Path]:
    contents = {"host": host, "a": device, "b": device + bytes(5)}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


@pytest.mark.parametrize(
    ("bundler", "options"),
    [
        ("clang-offload-bundler-14", ()),
        ("clang-offload-bundler-14", ("--bundle-align=4096",)),
        ("clang-offload-bundler-19", ()),
        ("clang-offload-bundler-19", ("--compress",)),
        ("clang-offload-bundler-19", ("--compress", "--compression-level=1")),
    ],
)
@pytest.mark.parametrize("kind", ["bc", "o"])
def test_bundles_of_the_real_bundler(
    built: Callable[[str], Path], tmp_path: Path, bundler: str, options: tuple[str, ...], kind: str
) -> None:
    _, a, b = inputs = _inputs(tmp_path, built("k.o").read_bytes(), b"")
    tool(bundler)
    many = (
        [f"--inputs={','.join(map(str, inputs))}"] if bundler.endswith("14") else [f"--input={path}" for path in inputs]
    )
    output = "--outputs=fat" if bundler.endswith("14") else "--output=fat"
    run(bundler, f"--type={kind}", f"--targets={TARGETS}", *many, output, *options, cwd=tmp_path)
    fat = tmp_path / "fat"
    assert fat.read_bytes().startswith(b"CCOB" if options[:1] == ("--compress",) else b"__CLANG_OFFLOAD_BUNDLE__")
    images = read_images(fat)
    assert [image.data for image in images] == [a.read_bytes(), b.read_bytes()]
    one = "--inputs" if bundler.endswith("14") else "--input"
    listed = run(bundler, f"--type={kind}", "--list", f"{one}=fat", cwd=tmp_path).split()
    assert sorted(image.entry_id for image in images) == sorted(name for name in listed if not name.startswith("host-"))
    for image in images:
        run(
            bundler,
            f"--type={kind}",
            "--unbundle",
            f"--targets={image.entry_id}",
            f"{one}=fat",
            f"{one.replace('in', 'out')}=out",
            cwd=tmp_path,
        )
        assert (tmp_path / "out").read_bytes() == image.data
    assert [image.target for image in images] == ["gfx908", "gfx90a"]


def test_a_host_object_as_carrier(built: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "h.c").write_text("int f(void) { return 1; }\n")
    run("clang-14", "-c", "h.c", cwd=tmp_path)
    _, a, b = inputs = _inputs(tmp_path, built("k.o").read_bytes(), (tmp_path / "h.o").read_bytes())
    # it looks for llvm-objcopy in its own folder and in PATH, where that may have a version in its name
    bundler = Path(tool("clang-offload-bundler-14")).resolve()
    listed = ",".join(map(str, inputs))
    run(bundler, "--type=o", f"--targets={TARGETS}", f"--inputs={listed}", "--outputs=fat.o", cwd=tmp_path)
    images = read_images(tmp_path / "fat.o")
    assert (tmp_path / "fat.o").read_bytes().startswith(b"\x7fELF")
    assert [(image.target, image.data) for image in images] == [("gfx908", a.read_bytes()), ("gfx90a", b.read_bytes())]


RUNTIME = """
#define __global__ __attribute__((global))
struct dim3 { unsigned x, y, z; };
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void *);
"""


def test_host_objects_with_several_architectures_and_several_bundles(tmp_path: Path) -> None:
    """What clang itself makes of HIP sources, and what a linker makes of two of them."""
    tool("clang-offload-bundler-14")
    linker = tool("ld.lld-14")
    for name in "ab":
        (tmp_path / f"{name}.hip").write_text(RUNTIME + f"__global__ void {name}(int *p) {{ *p = 1; }}\n")
        run(
            "clang-14",
            "-x",
            "hip",
            "-nogpulib",
            "-nogpuinc",
            "--offload-arch=gfx908",
            "--offload-arch=gfx90a",
            "--rocm-path=/nonexistent",
            "-O2",
            "-c",
            f"{name}.hip",
            "-o",
            f"{name}.o",
            cwd=tmp_path,
        )
    run(linker, "-r", "a.o", "b.o", "-o", "ab.o", cwd=tmp_path)
    images = read_images(tmp_path / "ab.o")
    assert [(image.target, read_kernels(image)[0][0].name) for image in images] == [
        ("gfx908", "_Z1aPi"),
        ("gfx90a", "_Z1aPi"),
        ("gfx908", "_Z1bPi"),
        ("gfx90a", "_Z1bPi"),
    ]
    assert [image.origin.partition("ab.o: ")[2].partition(", entry")[0] for image in images] == [
        "section .hip_fatbin",
        "section .hip_fatbin",
        "section .hip_fatbin, bundle 2",
        "section .hip_fatbin, bundle 2",
    ]


def test_text_bundles_of_the_real_bundler(tmp_path: Path) -> None:
    text = mtgpu_assembly(mtgpu_document(mtgpu_kernel("no")), "\t.text\n")
    _, a, b = inputs = _inputs(tmp_path, text.encode(), b"\t.text\n")
    bundler = tool("clang-offload-bundler-14")
    targets = TARGETS  # LLVM's bundler takes no musa ids
    b.write_text("\t.text")
    listed = ",".join(map(str, inputs))
    run(bundler, "--type=s", f"--targets={targets}", f"--inputs={listed}", "--outputs=fat.s", cwd=tmp_path)
    host, first, second = read_images(tmp_path / "fat.s")
    assert (host.data, first.data, second.data) == (b"\t.text\n", a.read_bytes(), b"\t.text")
    assert (first.kind, first.target) == ("mtgpu-asm", "gfx908")
    assert [kernel.name for kernel in read_kernels(first)[0]] == ["no"]


def test_static_libraries_of_the_real_ar(built: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copy(built("k.o"), tmp_path / "a_long_name_for_a_member.o")
    shutil.copy(built("k.so"), tmp_path / "k.so")
    run(tool("llvm-ar-14"), "rcs", "lib.a", "k.so", "a_long_name_for_a_member.o", cwd=tmp_path)
    images = read_images(tmp_path / "lib.a")
    assert [image.origin.rpartition(": ")[2] for image in images] == [
        "member k.so",
        "member a_long_name_for_a_member.o",
    ]
    assert [len(read_kernels(image)[0]) for image in images] == [4, 4]


def test_assembled_notes_as_readelf_shows_them(tmp_path: Path) -> None:
    """A section that llvm-mc makes of text: owner, type and size of each note."""
    (tmp_path / "n.s").write_text(
        '\t.section .note.vendor,"a",@note\n\t.p2align 2\n'
        '\t.long 6, 3, 0x40\n\t.asciz "MTGPU"\n\t.p2align 2\n\t.byte 0x81, 0xa1, 0x61\n\t.p2align 2\n'
        '\t.long 4, 0, 7\n\t.asciz "ABC"\n'
    )
    run("clang-14", "-c", "n.s", cwd=tmp_path)
    shown = run(tool("llvm-readelf-14"), "--notes", "n.o", cwd=tmp_path)
    (image,) = read_images(tmp_path / "n.o")
    ours = [(note.owner, f"{len(note.descriptor):08x}", note.type) for note in read_notes(image)]
    assert [(owner, size) for owner, size, _ in ours] == re.findall(r"^ +(\S+) +0x([0-9a-f]{8})", shown, re.MULTILINE)
    assert [kind for *_, kind in ours] == [0x40, 7]


def test_processors_are_llvms() -> None:
    header = Path("/usr/lib/llvm-19/include/llvm/BinaryFormat/ELF.h")
    if not header.exists():
        pytest.skip(f"llvm-19-dev is not installed (tried {header})")
    rows = re.findall(r"EF_AMDGPU_MACH_AMDGCN_GFX(\w+)\s+= 0x([0-9a-f]+)", header.read_text())
    ours = {number: name.removeprefix("gfx").replace("-", "_") for number, name in PROCESSORS.items()}
    theirs = {int(number, 16): name.lower() for name, number in rows}
    assert rows and theirs.items() <= ours.items()
    assert not set(theirs.values()) & {ours[number] for number in ours.keys() - theirs.keys()}  # the newer ones
