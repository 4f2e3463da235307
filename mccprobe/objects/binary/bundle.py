"""Offload bundles: several objects in one file, as clang-offload-bundler writes them.

    "__CLANG_OFFLOAD_BUNDLE__" | count u64 | count x (offset u64 | size u64 | id bytes u64 | id)

all little-endian, offsets from the magic. Text inputs (assembly, IR) are bundled as text, between
comment lines. Source: clang/lib/Driver/OffloadBundler.cpp; that MUSA's bundles look so is inferred
from what its bundler lists (julia-musa S2 C13). Ids are names and nothing else: no path is made of one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from mccprobe.base.errors import BadBundle

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
BINARY = re.compile(re.escape(MAGIC) + rb"(?!__(?:START|END)__)")  # else it is bundled text
COUNT = struct.Struct("<Q")
ENTRY = struct.Struct("<QQQ")
MAX_ENTRIES = 4096  # real ones: one an architecture
MAX_ID_BYTES = 4096

# "# __CLANG_OFFLOAD_BUNDLE____START__ id"; the comment mark depends on the language: #, ;, //
TEXT_START = re.compile(rb"^(?:#|;|//) __CLANG_OFFLOAD_BUNDLE____START__ ([^\n]{1,4096})\n", re.MULTILINE)
TEXT_END = re.compile(rb"^(?:#|;|//) __CLANG_OFFLOAD_BUNDLE____END__ ", re.MULTILINE)

# musa-mtgpu-mt-musa-mp_31, musa-mtgpu-mt-musa--mp_22 (one to three hyphens seen), mthg-mt-musa;
# clang's own: hip-amdgcn-amd-amdhsa--gfx908:xnack+, hipv4-..., openmp-...; host-x86_64-unknown-linux-gnu
_MUSA = re.compile(r"^(?:musa-)?(?:mtgpu|mthg)-mt-(?:musa|cuda)-+(mp_[0-9A-Za-z_]+)$")
_AMD = re.compile(r"^[a-z0-9]+-amdgcn-amd-amdhsa-*(gfx[0-9a-z-]+(?::[a-z]+[+-])*)$")
_HOST = re.compile(r"^host-([A-Za-z0-9_]+)")


# ids exactly as mcc writes them: the mtgpu triple for mp_1x to mp_3x, mthg for mp_4x (julia-musa S2 C07); two hyphens
# in real objects, one in the list of SDK 5.2.0, three in XLA's tests; the host with -gnu (5.2.0) and without (objects)
_MCC_DEVICE = re.compile(r"^musa-(?:mtgpu-mt-musa-{1,3}mp_[1-3]\d|mthg-mt-musa-{1,3}mp_4\d)$")
_MCC_HOST = re.compile(r"^host-(?:x86_64|aarch64)-unknown-linux(?:-gnu)?(?:-{1,2})?$")


@dataclass(frozen=True)
class Entry:
    """One object in a bundle. offset: in the bytes that hold the bundle."""

    id: str  # as stored; bytes that are no UTF-8 as surrogates
    offset: int
    size: int


@dataclass(frozen=True)
class Bundle:
    """Where a bundle lies in its bytes, and what is in it."""

    start: int
    end: int
    entries: tuple[Entry, ...]


def target_of(entry_id: str) -> str:
    """The architecture that an id names: mp_31, gfx908:xnack+, x86-64; "" if it is none we know."""
    if match := _MUSA.match(entry_id) or _AMD.match(entry_id):
        return match[1]
    if match := _HOST.match(entry_id):
        return match[1].replace("x86_64", "x86-64")
    return ""


def foreign_ids(ids: Iterable[str]) -> list[str]:
    """Those that mcc does not write, of an object that is said to be its own."""
    return [one for one in ids if not _MCC_DEVICE.match(one) and not _MCC_HOST.match(one)]


def starts_at(data: bytes, offset: int) -> bool:
    """True if a bundle (not of text) seems to begin there."""
    return BINARY.match(data, offset) is not None


def parse_bundle(data: bytes, start: int = 0, *, end: int | None = None, origin: str = "") -> Bundle:
    """The bundle at data[start:end]. Raises BadBundle if an entry is not inside of it."""
    end = len(data) if end is None else end
    if data[start : start + len(MAGIC)] != MAGIC:
        raise BadBundle(origin, "no offload bundle", offset=start, expected=MAGIC.decode())
    at = start + len(MAGIC)
    if at + COUNT.size > end:
        raise BadBundle(origin, "cut off before the number of entries", offset=at)
    count = COUNT.unpack_from(data, at)[0]
    at += COUNT.size
    if count > MAX_ENTRIES or count * ENTRY.size > end - at:
        raise BadBundle(
            origin, f"{count} entries", offset=at - COUNT.size, expected=f"at most {min(MAX_ENTRIES, (end - at) // 24)}"
        )
    entries = []
    last = at
    for number in range(count):
        if at + ENTRY.size > end:
            raise BadBundle(origin, f"cut off in the header of entry {number}", offset=at)
        offset, size, id_size = ENTRY.unpack_from(data, at)
        if id_size > MAX_ID_BYTES or id_size > end - at - ENTRY.size:
            raise BadBundle(
                origin,
                f"the id of entry {number} has {id_size} bytes",
                offset=at + 16,
                expected=f"at most {MAX_ID_BYTES}",
            )
        raw = data[at + ENTRY.size : at + ENTRY.size + id_size]
        name = raw.decode("utf-8", "surrogateescape")
        if size and offset + size > end - start:
            raise BadBundle(
                origin,
                f"entry {number} ({name}) of {size} bytes at 0x{offset:x} runs past the end ({end - start} bytes)",
                offset=at,
            )
        entries.append(Entry(name, start + offset, size))
        at += ENTRY.size + id_size
        last = max(last, at, start + offset + size if size else 0)
    if sum(entry.size for entry in entries) > 2 * (last - start):
        raise BadBundle(origin, "the entries overlap", offset=start)
    return Bundle(start, last, tuple(entries))


def is_text_bundle(data: bytes) -> bool:
    """True for bundled text."""
    return TEXT_START.search(data, 0, 1 << 16) is not None


def parse_text_bundle(data: bytes, origin: str = "") -> Bundle:
    """The entries of bundled text. Raises BadBundle if one has no end."""
    entries = []
    at = 0
    while match := TEXT_START.search(data, at):
        closing = TEXT_END.search(data, match.end())
        name = match[1].decode("utf-8", "surrogateescape")
        end = closing.start() - 1 if closing and closing.start() > match.end() else match.end()  # its own newline
        if closing is None:
            raise BadBundle(origin, f"the text of entry {name} has no end", offset=match.start())
        entries.append(Entry(name, match.end(), end - match.end()))
        at = closing.end()
        if len(entries) > MAX_ENTRIES:
            raise BadBundle(origin, f"more than {MAX_ENTRIES} entries", offset=match.start())
    return Bundle(0, len(data), tuple(entries))
