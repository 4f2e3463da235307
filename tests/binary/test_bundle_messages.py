"""What is wrong with a bundle is told whole: file, problem, what was expected, offset; and the limits are exact."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from mccprobe.base.errors import BadBundle
from mccprobe.objects.binary import bundle as bundles
from mccprobe.objects.binary import compressed as packed
from mccprobe.objects.binary.bundle import MAX_ID_BYTES, is_text_bundle, parse_bundle, parse_text_bundle
from mccprobe.objects.binary.compressed import MAX_RATIO, PLAUSIBLE, expand, max_expanded

from .writer import bundle, compressed, text_bundle

INSIDE = bundle([("host-x86_64-unknown-linux-gnu", b""), ("musa-mtgpu-mt-musa-mp_22", b"object")])
ROOM = (len(INSIDE) - 32) // 24  # headers of entries that the bytes behind the count have room for
BEFORE = b"12345678"  # so that an offset is one of the file, not of the bundle


def said(read: Callable[[], object]) -> str:
    with pytest.raises(BadBundle) as caught:
        read()
    return caught.value.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"CCOC" + bytes(40), "no compressed bundle, expected CCOB (offset 0x8)"),
        (b"CCOB\x02\0", "cut off in the header of a compressed bundle (offset 0x8)"),
        (compressed(INSIDE, 2)[:23], "cut off in the header of a compressed bundle (offset 0x8)"),
        (compressed(INSIDE, 4), "compressed bundle of version 4, expected 1, 2 or 3 (offset 0xc)"),
        (compressed(INSIDE, 2, method_said=7), "compression method 7, expected 0 (zlib) or 1 (zstd) (offset 0xe)"),
        (
            compressed(INSIDE, 3, file_size=999),
            f"a compressed bundle of 999 bytes where {len(compressed(INSIDE, 3))} are left (offset 0x10)",
        ),
        (
            compressed(INSIDE, 3, file_size=31),
            f"a compressed bundle of 31 bytes where {len(compressed(INSIDE, 3))} are left (offset 0x10)",
        ),
        (
            compressed(INSIDE, 1, size=2**31),
            f"a bundle of {2**31} bytes is said to be in {len(compressed(INSIDE, 1)) - 20} compressed ones, "
            f"expected at most {max_expanded(len(compressed(INSIDE, 1)) - 20)} (offset 0x8)",
        ),
        (
            compressed(INSIDE, 3, size=len(INSIDE) - 1),
            f"a compressed bundle holds more than {len(INSIDE) - 1} bytes, "
            f"expected {len(INSIDE) - 1} as its header says (offset 0x8)",
        ),
        (
            compressed(INSIDE, 3, size=len(INSIDE) + 1),
            f"a compressed bundle holds {len(INSIDE)} bytes, "
            f"expected {len(INSIDE) + 1} as its header says (offset 0x8)",
        ),
        (
            compressed(b"", 1, md5=1),
            "the MD5 of a bundle begins with 04b2008fd98c1dd4, expected 0000000000000001 (offset 0x8)",
        ),
        (compressed(INSIDE, 1)[:-4], "the zlib data of a bundle is damaged: it ends too early (offset 0x1c)"),
    ],
)
def test_compressed(data: bytes, message: str) -> None:
    assert said(lambda: expand(BEFORE + data, 8, origin="k.o")) == f"k.o: {message}"


def test_a_size_of_the_file_that_is_the_header_alone_is_read_as_one() -> None:
    message = said(lambda: expand(compressed(INSIDE, 3, file_size=32), origin="k.o"))
    assert message == "k.o: the zlib data of a bundle is damaged: it ends too early (offset 0x20)"


def test_the_method_is_told_and_bytes_behind_are_not_used() -> None:
    for version in (1, 2, 3):
        one = compressed(INSIDE, version)
        done = expand(one + b"behind")
        assert (done.end, done.version, done.method, done.data) == (len(one), version, "zlib", INSIDE)


def test_what_looks_compressed() -> None:
    assert PLAUSIBLE.match(BEFORE + compressed(INSIDE, 2), 8)
    assert not PLAUSIBLE.match(BEFORE + compressed(INSIDE, 2), 0)
    assert not PLAUSIBLE.match(compressed(INSIDE, 4))


def test_how_large_content_may_be() -> None:
    assert max_expanded(0) == packed.FREE_BYTES
    assert max_expanded(1000) == packed.FREE_BYTES + 1000 * MAX_RATIO
    assert max_expanded(1 << 40) == packed.MAX_BYTES


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"__CLANG_OFFLOAD_BUNDLX__" + bytes(8), "no offload bundle, expected __CLANG_OFFLOAD_BUNDLE__ (offset 0x8)"),
        (INSIDE[:31], "cut off before the number of entries (offset 0x20)"),
        (
            INSIDE[:24] + struct.pack("<Q", ROOM + 1) + INSIDE[32:],
            f"{ROOM + 1} entries, expected at most {ROOM} (offset 0x20)",
        ),
        (
            INSIDE[:48] + struct.pack("<Q", MAX_ID_BYTES + 1) + bytes(MAX_ID_BYTES + 200),
            f"the id of entry 0 has {MAX_ID_BYTES + 1} bytes, expected at most {MAX_ID_BYTES} (offset 0x38)",
        ),
        (
            INSIDE[:-1],
            f"entry 1 (musa-mtgpu-mt-musa-mp_22) of 6 bytes at 0x{len(INSIDE) - 6:x} runs past the end "
            f"({len(INSIDE) - 1} bytes) (offset 0x5d)",
        ),
    ],
)
def test_plain(data: bytes, message: str) -> None:
    assert said(lambda: parse_bundle(BEFORE + data, 8, origin="k.o")) == f"k.o: {message}"


def test_an_id_of_the_greatest_length_is_read() -> None:
    name = "x" * MAX_ID_BYTES
    assert parse_bundle(bundle([(name, b"1")])).entries[0].id == name


def test_entries_that_overlap_are_told_with_the_file() -> None:
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 9)
    data = head + struct.pack("<QQQ", len(head) + 24 * 9, 1000, 0) * 9 + bytes(1000)
    assert said(lambda: parse_bundle(BEFORE + data, 8, origin="k.o")) == "k.o: the entries overlap (offset 0x8)"


def test_text(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_bundle([("a", "one"), ("b", "two"), ("c", "")]).encode()
    assert is_text_bundle(text) and not is_text_bundle(b"x" * (1 << 16) + text)
    found = parse_text_bundle(text)
    assert [(entry.id, text[entry.offset : entry.offset + entry.size]) for entry in found.entries] == [
        ("a", b"one"),
        ("b", b"two"),
        ("c", b""),
    ]
    assert (found.start, found.end) == (0, len(text))
    at = text.index(b"# __CLANG_OFFLOAD_BUNDLE____START__ c")
    message = f"k.s: the text of entry c has no end (offset 0x{at:x})"
    assert said(lambda: parse_text_bundle(text[: at + 45], "k.s")) == message
    monkeypatch.setattr(bundles, "MAX_ENTRIES", 2)
    assert said(lambda: parse_text_bundle(text, "k.s")) == f"k.s: more than 2 entries (offset 0x{at:x})"
