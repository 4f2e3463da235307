"""Compressed offload bundles ("CCOB", versions 1 to 3): header, sizes, checksum, bounded expansion.

    v1  CCOB | version u16 | method u16 | size u32 | md5 u64                       20 bytes
    v2  CCOB | version u16 | method u16 | file size u32 | size u32 | md5 u64       24 bytes
    v3  CCOB | version u16 | method u16 | file size u64 | size u64 | md5 u64       32 bytes

file size: header and compressed bytes; size: of the bundle inside; md5: the first 8 bytes of the MD5
of the bundle inside; method 0 is zlib, 1 is zstd. Source: clang/lib/Driver/OffloadBundler.cpp,
CompressedOffloadBundle (LLVM 18 to 21) and llvm/Support/Compression.h.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from dataclasses import dataclass

from mccprobe.base.errors import BadBundle

MAGIC = b"CCOB"
PLAUSIBLE = re.compile(rb"CCOB[\x01-\x03]\0[\0\x01]\0")  # enough to look for it among other bytes
_HEAD = struct.Struct("<4sHH")
_REST = {1: struct.Struct("<IQ"), 2: struct.Struct("<IIQ"), 3: struct.Struct("<QQQ")}
HEADER_BYTES = {version: _HEAD.size + rest.size for version, rest in _REST.items()}
ZLIB, ZSTD = 0, 1
METHODS = {ZLIB: "zlib", ZSTD: "zstd"}

MAX_BYTES = 1 << 30  # a bundle of all kernels of a large library is some hundred MB
MAX_RATIO = 100  # kernels for many architectures shrink to a twentieth
FREE_BYTES = 64 << 20  # below this the ratio does not matter
ZSTD_STEP_BYTES = 512  # fed at a time: 4 bytes can stand for a block of 128 KiB, so at most 16 MiB come of it
MAX_WINDOW_BYTES = 1 << 27  # of zstd: its own limit for streams


@dataclass(frozen=True)
class Compressed:
    """A compressed bundle: where it ends in its bytes, and what was in it."""

    end: int
    version: int
    method: str
    data: bytes


def max_expanded(size_bytes: int) -> int:
    """How large the content of that many compressed bytes may be."""
    return min(MAX_BYTES, FREE_BYTES + MAX_RATIO * size_bytes)


def expand(data: bytes, start: int = 0, *, end: int | None = None, origin: str = "") -> Compressed:
    """Decompress the bundle at data[start:end].

    Raises BadBundle for an unknown version or method, sizes that do not fit, another checksum, and
    for more than the header announces or than a bundle can reasonably be (MAX_BYTES, MAX_RATIO).
    """
    end = len(data) if end is None else end
    if data[start : start + 4] != MAGIC:
        raise BadBundle(origin, "no compressed bundle", offset=start, expected="CCOB")
    if start + _HEAD.size > end:
        raise BadBundle(origin, "cut off in the header of a compressed bundle", offset=start)
    _, version, method = _HEAD.unpack_from(data, start)
    if version not in _REST:
        raise BadBundle(origin, f"compressed bundle of version {version}", offset=start + 4, expected="1, 2 or 3")
    if method not in METHODS:
        raise BadBundle(origin, f"compression method {method}", offset=start + 6, expected="0 (zlib) or 1 (zstd)")
    body = start + HEADER_BYTES[version]
    if body > end:
        raise BadBundle(origin, "cut off in the header of a compressed bundle", offset=start)
    *file_size, size, checksum = _REST[version].unpack_from(data, start + _HEAD.size)
    if file_size:
        if not HEADER_BYTES[version] <= file_size[0] <= end - start:
            raise BadBundle(
                origin, f"a compressed bundle of {file_size[0]} bytes where {end - start} are left", offset=start + 8
            )
        end = start + file_size[0]
    limit = max_expanded(end - body)
    if size > limit:
        raise BadBundle(
            origin,
            f"a bundle of {size} bytes is said to be in {end - body} compressed ones",
            offset=start,
            expected=f"at most {limit}",
        )
    source = memoryview(data)[body:end]
    try:
        inside, used = (_inflate if method == ZLIB else _unzstd)(source, size + 1)
    except ImportError as error:
        raise BadBundle(
            origin,
            "a bundle is compressed with zstd, and the Python package zstandard is not installed",
            offset=start,
            hint="pip install zstandard",
        ) from error
    except (zlib.error, ValueError, EOFError, MemoryError) as error:
        raise BadBundle(origin, f"the {METHODS[method]} data of a bundle is damaged: {error}", offset=body) from error
    if len(inside) != size:
        more = "more than " if len(inside) > size else ""
        raise BadBundle(
            origin,
            f"a compressed bundle holds {more}{min(len(inside), size)} bytes",
            offset=start,
            expected=f"{size} as its header says",
        )
    md5 = int.from_bytes(hashlib.md5(inside, usedforsecurity=False).digest()[:8], "little")
    if md5 != checksum:
        raise BadBundle(
            origin, f"the MD5 of a bundle begins with {md5:016x}", offset=start, expected=f"{checksum:016x}"
        )
    return Compressed(end if file_size else body + used, version, METHODS[method], inside)


def _inflate(source: memoryview, limit: int) -> tuple[bytes, int]:
    """At most `limit` bytes, and how many of the source were used."""
    stream = zlib.decompressobj()
    inside = stream.decompress(source, limit)
    if not stream.eof and len(inside) < limit:
        raise ValueError("it ends too early")
    return inside, len(source) - len(stream.unused_data) - len(stream.unconsumed_tail)


def _unzstd(source: memoryview, limit: int) -> tuple[bytes, int]:
    """At most `limit` bytes, and how many of the source were used."""
    import zstandard

    stream = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompressobj()
    parts: list[bytes] = []
    total = at = 0
    try:
        while at < len(source) and total < limit and not stream.eof:
            parts.append(stream.decompress(source[at : at + ZSTD_STEP_BYTES]))
            total += len(parts[-1])
            at += ZSTD_STEP_BYTES
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    if not stream.eof and total < limit:
        raise ValueError("it ends too early")
    return b"".join(parts)[:limit], min(at, len(source)) - len(stream.unused_data)
