"""What a file is, by its content: every shape of input, wherever it is packed."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from mccprobe.base.errors import BadBundle, BadElf, InputError
from mccprobe.objects.binary import elf, read
from mccprobe.objects.binary.read import code_symbols, images_of, is_listing, read_images, read_kernels, read_notes

from .writer import (
    BODY,
    EM_AMDGPU,
    EM_X86_64,
    ET_DYN,
    ElfWriter,
    Function,
    Part,
    archive,
    bundle,
    compressed,
    mtgpu_assembly,
    mtgpu_document,
    mtgpu_elf,
    mtgpu_kernel,
    note,
)

DEVICE = mtgpu_elf(mtgpu_document(mtgpu_kernel()))
ENTRIES = [("host-x86_64-unknown-linux-gnu", b""), ("musa-mtgpu-mt-musa-mp_22", DEVICE)]
BUNDLE = bundle(ENTRIES)
MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"


def host(*parts: Part) -> bytes:
    return ElfWriter(machine=EM_X86_64, parts=parts).build()


@pytest.mark.parametrize("name", ["kernel.o", "kernel.s", "kernel.mu", "kernel"])
@pytest.mark.parametrize(
    ("data", "kind", "target"),
    [
        (DEVICE, "mtgpu-elf", "mp_22"),
        (ElfWriter(machine=EM_AMDGPU, flags=0x530).build(), "amdgpu-elf", "gfx908"),
        (ElfWriter(machine=EM_AMDGPU, flags=0x5EF).build(), "amdgpu-elf", ""),
        (host(), "host-elf", "x86-64"),
        (ElfWriter(machine=190).build(), "unknown", ""),
        (BUNDLE, "mtgpu-elf", "mp_22"),
        (host(Part(".mt_fatbin", BUNDLE)), "mtgpu-elf", "mp_22"),
        (mtgpu_assembly(mtgpu_document(mtgpu_kernel()), BODY).encode(), "mtgpu-asm", ""),
        (BODY.encode(), "mtgpu-asm", ""),
        (b'\t.amdgcn_target "amdgcn-amd-amdhsa--gfx908"\n', "amdgpu-asm", "gfx908"),
        (b"\nk.o:\tfile format elf64-amdgpu\n\n", "listing", "amdgpu"),
        (b"__global__ void k() {}\n", "unknown", ""),
        (b"", "unknown", ""),
    ],
)
def test_content_decides(tmp_path: Path, name: str, data: bytes, kind: str, target: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    (image,) = read_images(path)
    assert (image.kind, image.target) == (kind, target)
    assert image.origin.startswith(str(path))
    read_kernels(image), read_notes(image), code_symbols(image)


@pytest.mark.parametrize("section", [".mt_fatbin", ".hip_fatbin", ".nv_fatbin", ".rodata", ".anything"])
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_bundles_in_sections(section: str, version: int) -> None:
    two = [bundle([("musa-mtgpu-mt-musa-mp_22", DEVICE), ("musa-mtgpu-mt-musa---mp_31", DEVICE)]), BUNDLE]
    packed = [compressed(data, version) if version else data for data in two]
    images = images_of(host(Part(section, bytes(40) + packed[0] + bytes(100) + packed[1])), "lib.so")
    assert [(image.target, image.data) for image in images] == [("mp_22", DEVICE), ("mp_31", DEVICE), ("mp_22", DEVICE)]
    number = "compressed bundle 2" if version else "bundle 2"
    assert images[2].origin == f"lib.so: section {section}, {number}, entry musa-mtgpu-mt-musa-mp_22"


def test_a_device_object_in_a_fat_section_without_a_bundle() -> None:
    (image,) = images_of(host(Part(".mt_fatbin", DEVICE)), "k.o")
    assert (image.kind, image.data, image.origin) == ("mtgpu-elf", DEVICE, "k.o: section .mt_fatbin")
    foreign, carrier = images_of(host(Part(".nv_fatbin", b"\x50\xed\x55\xba" + bytes(60))), "k.o")
    assert (foreign.kind, foreign.origin) == ("unknown", "k.o: section .nv_fatbin")
    assert (carrier.kind, carrier.origin) == ("host-elf", "k.o")  # what is left to look at
    (image,) = images_of(host(Part(".hip_fatbin", bytes(64))), "k.o")
    assert (image.kind, image.origin) == ("host-elf", "k.o")


def test_the_magic_as_a_text_is_no_bundle() -> None:
    constants = MAGIC + b"\0" + MAGIC + b"__START__ \0CCOB\x01\0\0\0 and more"
    (image,) = images_of(host(Part(".rodata", constants)), "bundler")
    assert image.kind == "host-elf"
    with pytest.raises(BadBundle, match=r"bundler: section \.mt_fatbin: "):
        images_of(host(Part(".mt_fatbin", constants)), "bundler")


def test_many_false_bundles_are_given_up() -> None:
    many = b"".join(compressed(bytes(1000), 1, md5=1) for _ in range(200))
    (image,) = images_of(host(Part(".rodata", many)), "x.o")
    assert image.kind == "host-elf"


def test_objects_in_objects() -> None:
    inner = host(Part(".mt_fatbin", compressed(BUNDLE, 2)))
    outer = bundle([("host-x86_64-unknown-linux-gnu", inner)])
    (image,) = images_of(outer, "k.o")
    assert image.data == DEVICE
    assert image.origin == (
        "k.o: bundle entry host-x86_64-unknown-linux-gnu, section .mt_fatbin, compressed bundle, "
        "entry musa-mtgpu-mt-musa-mp_22"
    )


def test_sections_that_are_named_like_bundle_entries() -> None:
    """What clang-offload-bundler makes of a host object with --type=o."""
    magic = MAGIC.decode()
    parts = [Part(f"{magic}host-x86_64-unknown-linux-gnu", b"\0"), Part(f"{magic}musa-mtgpu-mt-musa-mp_22", DEVICE)]
    (image,) = images_of(host(*parts), "k.o")
    assert (image.entry_id, image.data) == ("musa-mtgpu-mt-musa-mp_22", DEVICE)
    assert image.origin == "k.o: bundle entry musa-mtgpu-mt-musa-mp_22"


def test_static_libraries() -> None:
    long = "a_name_that_does_not_fit_into_sixteen_bytes.o"
    images = images_of(archive([("k.o", host(Part(".mt_fatbin", BUNDLE))), (long, DEVICE), ("h.o", host())]), "lib.a")
    assert [image.origin for image in images] == [
        "lib.a: member k.o, section .mt_fatbin, entry musa-mtgpu-mt-musa-mp_22",
        f"lib.a: member {long}",
        "lib.a: member h.o",
    ]
    assert [image.kind for image in images] == ["mtgpu-elf", "mtgpu-elf", "host-elf"]


def test_the_bundle_and_the_metadata_disagree() -> None:
    (image,) = images_of(bundle([("musa-mtgpu-mt-musa-mp_31", DEVICE)]), "k.o")
    (kernel,), _ = read_kernels(image)
    assert kernel.target == "mp_31"
    assert kernel.warnings == (".arch_id 220 says mp_22, the bundle says mp_31",)


@pytest.mark.parametrize("kind", ["folder", "absent", "fifo", "device", "nul"])
def test_what_is_no_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "nul":
        path = Path("a\0b")
    with pytest.raises(InputError, match=r"not a regular file|cannot be read"):
        read_images(path)


@pytest.mark.parametrize("kind", [1, ET_DYN])
@pytest.mark.parametrize("machine", [253, EM_X86_64])
def test_code_symbols(kind: int, machine: int) -> None:
    text = bytes(range(48))
    data = ElfWriter(
        machine=machine,
        type=kind,
        text=text,
        text_address=0x1000,
        functions=[Function("b", 24, 12), Function("a", 0, 24), Function("alias", 0, 24), Function("open", 36, 0)],
    ).build()
    base = 0x1000 if kind == ET_DYN else 0
    symbols = code_symbols(images_of(data, "k.o")[0])
    assert [(symbol.name, symbol.address - base, symbol.data, symbol.section) for symbol in symbols] == [
        ("a", 0, text[:24], ".text"),
        ("alias", 0, text[:24], ".text"),
        ("b", 24, text[24:36], ".text"),
        ("open", 36, text[36:], ".text"),
    ]
    assert symbols[0].data is symbols[1].data


def test_code_without_symbols_is_its_section() -> None:
    (symbol,) = code_symbols(images_of(ElfWriter(text=bytes(12)).build(), "k.o")[0])
    assert (symbol.name, symbol.data) == (".text", bytes(12))


@pytest.mark.parametrize(
    ("functions", "problem"),
    [
        ([Function("f", 0, 100)], "function f (0x0 to 0x64) lies outside of .text (12 bytes)"),
        ([Function("f", 50, 0)], "lies outside of .text"),
        ([Function("f", 0, 2**63)], "lies outside of .text"),
    ],
)
def test_functions_outside_of_their_section(functions: list[Function], problem: str) -> None:
    data = ElfWriter(text=bytes(12), functions=functions, notes=note("MTGPU", 0x40, b"\x80")).build()
    image = images_of(data, "k.o")[0]
    with pytest.raises(BadElf) as caught:
        code_symbols(image)
    assert problem in caught.value.message and caught.value.message.startswith("k.o: ")
    assert any("sizes of code are left out" in warning for warning in read_kernels(image)[1])


def patched(data: bytes, offset: int, fmt: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(fmt, changed, offset, value)
    return bytes(changed)


SHOFF = struct.unpack_from("<Q", DEVICE, 40)[0]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (DEVICE[:30], "cut off in the ELF header: 30 bytes, expected 64"),
        (patched(DEVICE, 4, "<B", 1), "32-bit or big-endian ELF, expected ELF64 little-endian (02 01) (offset 0x4)"),
        (patched(DEVICE, 40, "<Q", 2**63), "the section headers lie behind the end of the file"),
        (patched(DEVICE, 60, "<H", 0xFFFF), "65535 section headers run past the end of the file"),
        (patched(patched(DEVICE, 60, "<H", 0), SHOFF + 32, "<Q", 2**40), "1099511627776 section headers run past"),
        (patched(DEVICE, 58, "<H", 40), "section headers of 40 bytes, expected 64 (offset 0x3a)"),
        (patched(DEVICE, 62, "<H", 99), "section 99 of 3 is to hold the names (offset 0x3e)"),
        (patched(DEVICE, SHOFF + 64 + 32, "<Q", 2**32), "section 1 (.note) of 4294967296 bytes at 0x40 runs past"),
        (patched(patched(DEVICE, 32, "<Q", 64), 56, "<H", 9), "program headers of 0 bytes, expected 56"),
    ],
)
def test_damaged_headers(data: bytes, problem: str) -> None:
    with pytest.raises(BadElf) as caught:
        for image in images_of(data, "k.o"):
            read_notes(image)
    assert caught.value.message.startswith(f"k.o: {problem}"), caught.value.message


LISTINGS = [
    "\nk.o:\tfile format elf64-x86-64\n\n",
    "Disassembly of section .text:\n",
    "0000000000001000 <k>:\n",
    "       0:\t55                   \tpushq\t%rbp\n",
    "        /*0010*/                   MOV R1, c[0x0][0x28] ;\n",
]


@pytest.mark.parametrize("text", LISTINGS)
def test_listings(text: str) -> None:
    assert is_listing(text.encode())


@pytest.mark.parametrize(
    "text", ["int main() { return 0; }\n", "add: be quick\n", BODY, "mtgpu.kernels:\n", "\0" + LISTINGS[0]]
)
def test_other_texts_are_no_listings(text: str) -> None:
    assert not is_listing(text.encode())


def test_headers_are_parsed_once_for_all_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    image = images_of(BUNDLE, "k.o")[0]
    parsed: list[int] = []

    def counted(data: bytes, origin: str = "") -> elf.Elf:
        parsed.append(len(data))
        return parse(data, origin)

    parse = elf.parse_elf
    for module in (elf, read):
        monkeypatch.setattr(module, "parse_elf", counted)
    assert read_kernels(image)[0] and read_notes(image) and code_symbols(image) == []
    assert parsed == [len(DEVICE)]
