"""Any bytes whatever: records or one clear error, in bounded time and memory."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import MccprobeError
from mccprobe.objects.binary.listed import shown_image
from mccprobe.objects.binary.read import code_symbols, images_of, read_kernels, read_notes

from .writer import (
    BODY,
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
    text_bundle,
)

relaxed = settings(deadline=None)  # a busy machine is no failure

DOCUMENT = mtgpu_document(mtgpu_kernel("a"), mtgpu_kernel("b"))
ASSEMBLY = mtgpu_assembly(DOCUMENT, BODY)
DEVICE = mtgpu_elf(
    DOCUMENT, type=ET_DYN, note_segment=True, text=bytes(24), functions=[Function("a", 0, 12), Function("b", 12, 12)]
)
BUNDLE = bundle([("host-x86_64-unknown-linux-gnu", b""), ("musa-mtgpu-mt-musa--mp_22", DEVICE)])
HOST = ElfWriter(machine=EM_X86_64, parts=[Part(".mt_fatbin", BUNDLE), Part(".data", compressed(BUNDLE, 3))]).build()
SHAPES = {
    "device": DEVICE,
    "assembly": ASSEMBLY.encode(),
    "bundle": BUNDLE,
    "text-bundle": text_bundle([("host-x", "x"), ("musa-mtgpu-mt-musa-mp_22", ASSEMBLY)]).encode(),
    "compressed": compressed(BUNDLE, 2),
    "zstd": compressed(BUNDLE, 1, 1),
    "host": HOST,
    "archive": archive([("a.o", DEVICE), ("a name that is too long.o", b"")]),
}


def read_all(data: bytes) -> int:
    """Everything that there is to read; how many kernels."""
    count = 0
    try:
        images = images_of(data, "x")
    except MccprobeError as error:
        assert error.message.startswith("x: "), error.message
        return 0
    for image in images:
        for reader in (read_kernels, read_notes, code_symbols, shown_image):
            try:
                found = reader(image)
            except MccprobeError as error:
                assert error.message.startswith("x: "), error.message
                continue
            if reader is read_kernels:
                count += len(found[0])
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_the_shapes_are_whole(shape: str) -> None:
    assert read_all(SHAPES[shape]) == (4 if shape == "host" else 2)


@settings(max_examples=250, deadline=None)
@given(
    st.sampled_from(sorted(SHAPES)),
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)), max_size=6),
    st.floats(0, 1) | st.just(1.0),
)
def test_damaged_copies(shape: str, changes: list[tuple[float, int]], keep: float) -> None:
    data = bytearray(SHAPES[shape])
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    read_all(bytes(data[: int(keep * len(data))]))


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 20), st.integers(0, 7), st.sampled_from([0, 1, 2**16, 2**31, 2**32 - 1, 2**63, 2**64 - 1]))
def test_headers_with_numbers_that_are_too_large(word: int, shift: int, value: int) -> None:
    """Eight bytes anywhere in the ELF header, the program header, the bundle's header."""
    for shape in ("device", "bundle", "compressed"):
        data = bytearray(SHAPES[shape])
        at = 8 * word + shift
        data[at : at + 8] = value.to_bytes(8, "little")
        read_all(bytes(data))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 8 * 24), st.sampled_from([0, 1, 5, 2**32 - 1, 2**63, 2**64 - 1]))
def test_section_headers_with_odd_numbers(offset: int, value: int) -> None:
    data = bytearray(DEVICE)
    at = int.from_bytes(DEVICE[40:48], "little") + offset
    data[at : at + 8] = value.to_bytes(8, "little")
    read_all(bytes(data))


STARTS = (b"", b"\x7fELF\x02\x01\x01", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB\x02\0\0\0", b"\t.mtgpu_metadata.start\n")


@relaxed
@given(st.sampled_from(STARTS), st.binary(max_size=400))
def test_any_bytes(start: bytes, rest: bytes) -> None:
    read_all(start + rest)


@relaxed
@given(st.binary(max_size=200), st.sampled_from([("MTGPU", 0x40), ("AMDGPU", 32), ("AMD", 10), ("GNU", 1)]))
def test_any_descriptor(descriptor: bytes, key: tuple[str, int]) -> None:
    read_all(ElfWriter(notes=note(*key, descriptor), machine=253 if key[0] == "MTGPU" else 224).build())


def _many_sections(count: int, kind: int) -> bytes:
    """Every section over the whole content, each one byte shorter than the one before."""
    content = note("MTGPU", 0x40, bytes(60_000))
    data = bytearray(
        ElfWriter(machine=EM_X86_64 if kind == 1 else 253, parts=[Part(".a", content, type=kind)] * count).build()
    )
    start = int.from_bytes(data[40:48], "little")
    for index in range(count):
        at = start + 64 * (index + 1)
        data[at + 24 : at + 32] = (64).to_bytes(8, "little")
        data[at + 32 : at + 40] = (len(content) * count - index).to_bytes(8, "little")
    return bytes(data)


@pytest.mark.parametrize("kind", [1, 7])
def test_overlapping_sections_are_bounded(kind: int) -> None:
    data = _many_sections(60, kind)
    tracemalloc.start()
    read_all(data)
    assert tracemalloc.get_traced_memory()[1] < 10 * len(data)
    tracemalloc.stop()


def test_names_that_overlap_are_bounded() -> None:
    functions = [Function(f"{index:05d}", 0, 1) for index in range(2000)]
    data = bytearray(ElfWriter(text=b"x", functions=functions).build())
    table = data.index(b"00000\0") - 1
    data[table : table + 12_000] = b"n" * 12_000  # each name reaches from its place to the end
    tracemalloc.start()
    read_all(bytes(data))
    assert tracemalloc.get_traced_memory()[1] < 40 * len(data)
    tracemalloc.stop()


def test_floods_of_kernels_and_of_warnings_are_bounded() -> None:
    flood = b"\x81\xadmtgpu.kernels\xdd" + (200_000).to_bytes(4, "big")
    (image,) = images_of(mtgpu_elf(flood + b"\x80" * 200_000), "x")
    with pytest.raises(MccprobeError, match="x: 200000 kernels, expected at most 100000"):
        read_kernels(image)
    (image,) = images_of(mtgpu_elf(flood[:-4] + (50_000).to_bytes(4, "big") + b"\xc0" * 50_000), "x")
    kernels, warnings = read_kernels(image)
    assert not kernels and len(warnings) == 101 and warnings[-1] == "x: 49900 more warnings"


def test_many_compressed_bundles_are_bounded_by_the_file() -> None:
    data = compressed(bytes(40 << 20), 1) * 4
    with pytest.raises(MccprobeError, match="x: too much in compressed bundles for a file of"):
        images_of(data, "x")
