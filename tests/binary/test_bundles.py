"""Offload bundles: ids, layout, compression in three versions, and bombs."""

from __future__ import annotations

import hashlib
import struct
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import BadBundle
from mccprobe.objects.binary.bundle import foreign_ids, parse_bundle, parse_text_bundle, target_of
from mccprobe.objects.binary.compressed import expand
from mccprobe.objects.binary.read import images_of

from .writer import bundle, compressed, mtgpu_document, mtgpu_elf, mtgpu_kernel, text_bundle

relaxed = settings(deadline=None)  # a busy machine is no failure

HOST = ("host-x86_64-unknown-linux-gnu", b"")
DEVICE = mtgpu_elf(mtgpu_document(mtgpu_kernel()))
TWO = bundle([HOST, ("musa-mtgpu-mt-musa-mp_22", DEVICE), ("musa-mtgpu-mt-musa--mp_31", DEVICE)])


@pytest.mark.parametrize(
    ("entry_id", "target"),
    [
        ("musa-mtgpu-mt-musa-mp_31", "mp_31"),
        ("musa-mtgpu-mt-musa--mp_22", "mp_22"),
        ("musa-mtgpu-mt-musa---mp_21", "mp_21"),
        ("musa-mthg-mt-musa-mp_42", "mp_42"),
        ("mthg-mt-musa--mp_42", "mp_42"),
        ("hip-amdgcn-amd-amdhsa--gfx908", "gfx908"),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-"),
        ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", "gfx9-4-generic"),
        ("openmp-amdgcn-amd-amdhsa-gfx1030", "gfx1030"),
        ("host-x86_64-unknown-linux-gnu", "x86-64"),
        ("host-aarch64-unknown-linux-gnu", "aarch64"),
        ("musa-mtgpu-mt-musamp_22", ""),
        ("musa-mtgpu-mt-musa-mp_22/../../x", ""),
        ("", ""),
    ],
)
def test_ids(entry_id: str, target: str) -> None:
    assert target_of(entry_id) == target


@pytest.mark.parametrize(
    ("entry_id", "foreign"),
    [
        ("musa-mtgpu-mt-musa--mp_22", False),
        ("musa-mtgpu-mt-musa-mp_31", False),
        ("musa-mthg-mt-musa--mp_42", False),
        ("host-x86_64-unknown-linux", False),
        ("host-x86_64-unknown-linux-gnu", False),
        ("mtgpu-mt-cuda--mp_22", True),
        ("musa-mthg-mt-musa--mp_22", True),
        ("musa-mtgpu-mt-musa--mp_42", True),
        ("musa-mtgpu-mt-musa----mp_22", True),
        ("hip-amdgcn-amd-amdhsa--gfx908", True),
        ("host-x86_64", True),
        ("host-x86_64-unknown-linux-musl", True),
    ],
)
def test_ids_of_mccs_own_family(entry_id: str, foreign: bool) -> None:
    assert foreign_ids([entry_id]) == [entry_id] * foreign


def test_the_host_entry_of_real_objects_is_read_as_the_others() -> None:
    assert target_of("host-x86_64-unknown-linux") == "x86-64"


def test_objects_of_a_bundle() -> None:
    images = images_of(TWO, "k.o")
    assert [(image.target, image.kind, image.origin) for image in images] == [
        ("mp_22", "mtgpu-elf", "k.o: bundle entry musa-mtgpu-mt-musa-mp_22"),
        ("mp_31", "mtgpu-elf", "k.o: bundle entry musa-mtgpu-mt-musa--mp_31"),
    ]
    assert [image.data for image in images] == [DEVICE, DEVICE]
    assert images[1].entry_id == "musa-mtgpu-mt-musa--mp_31"


def test_ids_are_names_and_never_paths() -> None:
    odd = b"musa-../../etc/\xff\x00\n-mp_22"
    (image,) = images_of(bundle([(odd, DEVICE)]), "k.o")
    assert image.entry_id.encode("utf-8", "surrogateescape") == odd
    assert image.target == "mp_22"  # from the metadata: the id names none


def test_several_bundles_one_after_the_other() -> None:
    images = images_of(TWO + bytes(4096 - len(TWO) % 4096) + bundle([HOST, ("a-b", b"text")]), "k.o")
    assert [image.origin for image in images][2:] == ["k.o: bundle 2, entry a-b"]
    assert [image.kind for image in images] == ["mtgpu-elf", "mtgpu-elf", "unknown"]


def test_a_bundle_without_an_object_has_no_images() -> None:
    assert images_of(bundle([HOST]), "k.o") == []
    assert images_of(bundle([]), "k.o") == []


def test_bundled_text() -> None:
    text = text_bundle(
        [("host-x86_64-unknown-linux-gnu", "\t.text"), ("musa-mtgpu-mt-musa-mp_22", "\t\t[N-sD---]\t\tX\n")]
    )
    host, device = images_of(text.encode(), "k.s")
    assert (device.kind, device.target, device.data) == ("mtgpu-asm", "mp_22", b"\t\t[N-sD---]\t\tX\n")
    assert host.data == b"\t.text"
    with pytest.raises(BadBundle, match=r"k\.s: the text of entry musa-mtgpu-mt-musa-mp_22 has no end"):
        parse_text_bundle(text[: text.rindex("#")].encode(), "k.s")


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [0, 1])
def test_compressed_bundles(version: int, method: int) -> None:
    packed = compressed(TWO, version, method)
    images = images_of(packed + bytes(3) + packed, "k.o")
    assert [image.data for image in images] == [DEVICE] * 4
    assert images[0].origin == "k.o: compressed bundle, entry musa-mtgpu-mt-musa-mp_22"
    assert images[2].origin == "k.o: compressed bundle 2, entry musa-mtgpu-mt-musa-mp_22"


def _changed(data: bytes, offset: int, fmt: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(fmt, changed, offset, value)
    return bytes(changed)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (TWO[:20], "no known kind"),
        (TWO[:28], "cut off before the number of entries (offset 0x18)"),
        (_changed(TWO, 24, "<Q", 2**32), "4294967296 entries, expected at most"),
        (_changed(TWO, 24, "<Q", 2**64 - 1), "18446744073709551615 entries, expected at most"),
        (_changed(TWO, 32 + 16, "<Q", 2**40), "the id of entry 0 has 1099511627776 bytes, expected"),
        (TWO[:-1], "entry 2 (musa-mtgpu-mt-musa--mp_31) of "),
        (_changed(TWO, 85 + 8, "<Q", 2**63), "entry 1 (musa-mtgpu-mt-musa-mp_22) of 9223372036854775808 bytes"),
        (compressed(TWO, 4), "compressed bundle of version 4, expected 1, 2 or 3 (offset 0x4)"),
        (compressed(TWO, 2, method_said=2), "compression method 2, expected 0 (zlib) or 1 (zstd) (offset 0x6)"),
        (compressed(TWO, 2, method_said=1), "the zstd data of a bundle is damaged"),
        (compressed(TWO, 2, md5=1), "expected 0000000000000001 (offset 0x0)"),
        (compressed(TWO, 3, size=len(TWO) - 1), f"holds more than {len(TWO) - 1} bytes, expected {len(TWO) - 1}"),
        (compressed(TWO, 3, size=len(TWO) + 1), f"holds {len(TWO)} bytes, expected {len(TWO) + 1}"),
        (compressed(TWO, 3, size=2**60), "a bundle of 1152921504606846976 bytes is said to be in"),
        (compressed(TWO, 3, file_size=2**60), "a compressed bundle of 1152921504606846976 bytes where"),
        (compressed(TWO, 2, file_size=3), "a compressed bundle of 3 bytes where"),
        (compressed(TWO, 1)[:-4], "the zlib data of a bundle is damaged: it ends too early"),
        (compressed(TWO, 1, 1)[:-4], "the zstd data of a bundle is damaged: it ends too early"),
        (compressed(TWO, 3)[:20], "cut off in the header of a compressed bundle"),
    ],
)
def test_damage_is_one_clear_error(data: bytes, problem: str) -> None:
    if problem == "no known kind":
        (image,) = images_of(data, "k.o")
        assert image.kind == "unknown"
        return
    with pytest.raises(BadBundle) as caught:
        images_of(data, "k.o")
    assert caught.value.message.startswith("k.o: ") and problem in caught.value.message, caught.value.message


@pytest.mark.parametrize("method", [0, 1])
def test_a_bomb_is_refused_in_bounded_memory(method: int) -> None:
    bomb = compressed(bytes(80 << 20), 1, method)
    for size, problem in ((80 << 20, "is said to be in"), (1000, "holds more than 1000 bytes")):
        said = bomb[:8] + struct.pack("<I", size) + bomb[12:]
        tracemalloc.start()
        with pytest.raises(BadBundle, match=problem):
            expand(said)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 24 << 20


def test_bundles_in_bundles_end() -> None:
    data = DEVICE
    for _ in range(10):
        data = bundle([("a-b", data)])
    with pytest.raises(BadBundle, match="objects in objects more than 4 deep"):
        images_of(data, "k.o")


def test_overlapping_entries_are_refused() -> None:
    count = 1000
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", count)
    start = len(head) + 24 * count
    data = head + struct.pack("<QQQ", start, 100_000, 0) * count + bytes(100_000)
    with pytest.raises(BadBundle, match="the entries overlap"):
        parse_bundle(data)


IDS = st.sampled_from(["musa-mtgpu-mt-musa-mp_22", "host-x", ""]) | st.text(max_size=12).filter(
    lambda text: not any("\ud800" <= char <= "\udfff" for char in text)
)
ENTRIES = st.lists(st.tuples(IDS, st.binary(max_size=50)), max_size=5)


@relaxed
@given(ENTRIES, st.sampled_from([1, 8, 4096]), st.binary(max_size=20))
def test_round_trip(entries: list[tuple[str, bytes]], align: int, behind: bytes) -> None:
    data = bundle(entries, align=align)
    parsed = parse_bundle(data + behind)
    assert [(entry.id, data[entry.offset : entry.offset + entry.size]) for entry in parsed.entries] == entries


@relaxed
@given(st.binary(max_size=300), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1]), st.integers(0, 9))
def test_compressed_round_trip(content: bytes, version: int, method: int, before: int) -> None:
    found = expand(bytes(before) + compressed(content, version, method), before)
    assert (found.data, found.version) == (content, version)


def test_the_checksum_is_the_low_half_of_md5() -> None:
    content = b"abc"
    packed = compressed(content, 1)
    assert packed[12:20] == hashlib.md5(content).digest()[:8]
    assert zlib.decompress(packed[20:]) == content
