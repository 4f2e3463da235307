"""One door to all inputs: a file to images, an image to kernels, notes and code.

What a file is, its content tells and never its suffix: mcc writes raw bundles to .o files. A container
(a host object with a fat binary, a bundle, a compressed bundle) is taken apart until nothing in it is
a container; what carries nothing is an image itself.
"""

from __future__ import annotations

import heapq
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mccprobe.base.errors import BadBinary, BadBundle, BadElf, InputError
from mccprobe.base.paths import read_file
from mccprobe.objects.binary import archive, assembly, bundle, compressed
from mccprobe.objects.binary.amdgpu import amdgpu_target
from mccprobe.objects.binary.document import read_messagepack
from mccprobe.objects.binary.elf import (
    EM_AMDGPU,
    EM_MTGPU,
    HOSTS,
    SHT_NOBITS,
    flags_of,
    is_elf,
    machine_of,
    parse_elf,
    read_code_symbols,
)
from mccprobe.objects.binary.metadata import (
    AMDGPU,
    MTGPU,
    Dialect,
    iter_documents_of,
    kernel_of_descriptor,
    read_document,
)
from mccprobe.objects.binary.notes import AMDGPU_METADATA, MTGPU_METADATA, read_elf_notes
from mccprobe.objects.binary.records import CodeSymbol, DeviceImage, KernelMetadata, Note

MAX_FILE_BYTES = 4 << 30  # the largest libraries have about one
MAX_NESTING = 4  # a bundle in a compressed one in a section of an object in a bundle
MAX_IMAGES = 16_384
MAX_SCAN_FACTOR = 4  # bytes of sections over bytes of the file
# .mt_fatbin: fatbinary_section.h of the MUSA SDK; .hip_fatbin, .nv_fatbin: clang's CGCUDANV.cpp
BUNDLE_SECTION = bundle.MAGIC.decode()  # and the id behind it
FATBIN_SECTIONS = frozenset((".mt_fatbin", ".hip_fatbin", ".nv_fatbin", "__nv_fatbin", ".nvFatBin"))
SIMULATED = "SIMULATED x86-64 code, not MP22"  # before everything that is said of a stand-in's device image
MAX_FAILURES = 16  # of what only looks like a bundle among other bytes, before no more is tried


def read_images(path: Path, *, carriers: bool = False) -> list[DeviceImage]:
    """The images in a file; none of a bundle that holds nothing but the host's empty entry.

    carriers: host objects that carry device objects as well, each behind what it carries.

    Raises InputError if it cannot be read, BadElf or BadBundle if a container in it is damaged.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path}: not a regular file", hint="name an object, a bundle or an assembly text")
        if status.st_size > MAX_FILE_BYTES:
            raise InputError(f"{path}: {status.st_size} bytes, more than the {MAX_FILE_BYTES} that are read")
        data = read_file(path, MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return images_of(data, str(path), carriers=carriers)


def images_of(data: bytes, origin: str, *, carriers: bool = False) -> list[DeviceImage]:
    """`read_images` of bytes that are in memory; origin: what messages call them."""
    opener = _Opener(origin, len(data), carriers)
    images = list(opener.open(data, "", "", 0))
    if not images and not opener.empty:
        return [DeviceImage("", "unknown", data, origin, "")]
    return images


class _Opener:
    """Takes containers apart, within the bounds of one file."""

    def __init__(self, file: str, size_bytes: int, carriers: bool) -> None:
        self.file = file
        self.carriers = carriers
        self.room = compressed.max_expanded(size_bytes)  # of all compressed bundles together
        self.size_bytes = size_bytes
        self.count = 0
        self.failures = 0
        self.empty = False  # a bundle without a single object in it was seen

    def _image(self, target: str, kind: str, data: bytes, where: str, entry_id: str) -> DeviceImage:
        self.count += 1
        if self.count > MAX_IMAGES:
            raise BadBundle(self.file, f"more than {MAX_IMAGES} objects")
        return DeviceImage(target, kind, data, self._origin(where), entry_id)

    def _origin(self, where: str) -> str:
        return f"{self.file}: {where}" if where else self.file

    def open(self, data: bytes, where: str, entry_id: str, depth: int) -> Iterator[DeviceImage]:
        """The images in these bytes, which lie at `where` in the file."""
        if depth > MAX_NESTING:
            raise BadBundle(self._origin(where), f"objects in objects more than {MAX_NESTING} deep")
        packed = data[:4] == compressed.MAGIC and not assembly.is_text(data[:8])
        if packed or bundle.starts_at(data, 0):
            yield from self._bundles(data, where, depth, strict=True)
        elif archive.is_archive(data):
            for name, content in archive.iter_members(data, self._origin(where)):
                yield from self.open(content, _join(where, f"member {name}"), entry_id, depth + 1)
        elif is_elf(data):
            yield from self._elf(data, where, entry_id, depth)
        elif assembly.is_text(data) and bundle.is_text_bundle(data):
            parsed = bundle.parse_text_bundle(data, self._origin(where))
            yield from self._entries(data, parsed, where, 0, depth)
        else:
            target = bundle.target_of(entry_id)
            kind = assembly.assembly_kind(data)
            if kind:
                target = target or assembly.assembly_target(data)
            elif assembly.is_listing(data):
                kind, target = "listing", target or assembly.listing_target(data)
            yield self._image(target, kind or "unknown", data, where, entry_id)

    def _bundles(self, data: bytes, where: str, depth: int, *, strict: bool) -> Iterator[DeviceImage]:
        """All bundles one after the other; what lies between them is padding.

        strict: what looks like a bundle must be one. Elsewhere (a program that only has the magic as
        a text among its constants) it is passed over.
        """
        number, at = 0, 0
        for start, packed in _bundle_starts(data):
            if start < at:
                continue
            if self.failures > MAX_FAILURES and not strict:
                return
            try:
                if packed:
                    inside = compressed.expand(data, start, origin=self._origin(where))
                else:
                    parsed = bundle.parse_bundle(data, start, origin=self._origin(where))
            except BadBundle:
                self.failures += 1
                if strict:
                    raise
                continue
            number += 1
            if packed:
                at = inside.end
                self.room -= len(inside.data)
                if self.room < 0:
                    raise BadBundle(self.file, f"too much in compressed bundles for a file of {self.size_bytes} bytes")
                place = _join(where, f"compressed bundle {number}" if number > 1 else "compressed bundle")
                yield from self.open(inside.data, place, "", depth + 1)
            else:
                at = parsed.end
                yield from self._entries(data, parsed, where, number, depth)
        if number == 0 and strict:  # of another version or method: it says which
            compressed.expand(data, origin=self._origin(where))

    def _entries(
        self, data: bytes, parsed: bundle.Bundle, where: str, number: int, depth: int
    ) -> Iterator[DeviceImage]:
        place = _join(where, f"bundle {number}") if number > 1 else where
        self.empty = True
        for entry in parsed.entries:
            if entry.size:  # the host's is empty, it only holds the place
                inside = data[entry.offset : entry.offset + entry.size]
                named = f"entry {entry.id}" if place else f"bundle entry {entry.id}"
                yield from self.open(inside, _join(place, named), entry.id, depth + 1)

    def _elf(self, data: bytes, where: str, entry_id: str, depth: int) -> Iterator[DeviceImage]:
        machine = machine_of(data)
        target = bundle.target_of(entry_id)
        if machine == EM_MTGPU:
            yield self._image(target or mtgpu_target(data), "mtgpu-elf", data, where, entry_id)
            return
        if machine == EM_AMDGPU:
            yield self._image(target or amdgpu_target(data), "amdgpu-elf", data, where, entry_id)
            return
        found = False
        if machine in HOSTS:
            for image in self._carried(data, where, depth):
                found = found or image.kind != "unknown"  # of another vendor: then the host code is what there is
                yield image
        if not found or self.carriers:
            kind = "host-elf" if machine in HOSTS else "unknown"
            yield self._image(target or HOSTS.get(machine or 0, ""), kind, data, where, entry_id)

    def _carried(self, data: bytes, where: str, depth: int) -> Iterator[DeviceImage]:
        """Device objects in the sections of a host object."""
        elf = parse_elf(data, self._origin(where))
        seen: set[tuple[int, int]] = set()
        room = MAX_SCAN_FACTOR * len(data)
        for section in elf.sections:
            if section.type == SHT_NOBITS or not section.size or (section.offset, section.size) in seen:
                continue
            seen.add((section.offset, section.size))
            room -= section.size
            if room < 0:
                raise BadElf(self._origin(where), "the sections overlap many times", offset=section.offset)
            named = section.name in FATBIN_SECTIONS
            if section.name.startswith(BUNDLE_SECTION):  # the bundler's own shape for objects (--type=o)
                entry_id = section.name.removeprefix(BUNDLE_SECTION)
                if section.size > 1:  # the host's holds one zero
                    content = elf.section_bytes(section)
                    yield from self.open(content, _join(where, f"bundle entry {entry_id}"), entry_id, depth + 1)
                continue
            starts = _bundle_starts(data, section.offset, section.offset + section.size)
            carries = next(starts, None) is not None
            if not carries and not named:
                continue
            content = elf.section_bytes(section)
            place = _join(where, f"section {section.name}")
            if carries:
                yield from self._bundles(content, place, depth + 1, strict=named)
            elif content.strip(b"\0"):  # another container: a device object as it stands, NVIDIA's own format
                yield from self.open(content, place, "", depth + 1)


def _bundle_starts(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bool]]:
    """(offset, whether it is compressed) of everything that looks like a bundle in data[start:end], in order."""
    end = len(data) if end is None else end
    plain = ((match.start(), False) for match in bundle.BINARY.finditer(data, start, end))
    packed = ((match.start(), True) for match in compressed.PLAUSIBLE.finditer(data, start, end))
    return heapq.merge(plain, packed)


def _join(where: str, part: str) -> str:
    return f"{where}, {part}" if where else part


def mtgpu_target(data: bytes) -> str:
    """From `.arch_id` of the first kernel: e_flags of MTGPU are 0 for every architecture. "" where nothing tells."""
    try:
        for note in read_elf_notes(parse_elf(data)):
            if (note.owner, note.type) == MTGPU_METADATA:
                for kernel in iter_documents_of(read_messagepack(note.descriptor)):
                    arch = kernel.get(".arch_id", kernel.get("arch_id"))
                    if type(arch) is int and arch and arch % 10 == 0:
                        return f"mp_{arch // 10}"
    except BadBinary:  # told when it is read for itself
        return ""
    return ""


def is_simulated(image: DeviceImage) -> bool:
    """True for host code under a vendor's bundle id: a stand-in's device image."""
    return image.kind == "host-elf" and bundle.target_of(image.entry_id).startswith("mp_")


def read_kernels(image: DeviceImage) -> tuple[list[KernelMetadata], list[str]]:
    """The kernels of an image, and warnings about it.

    Raises BadElf, BadNote or BadMetadata if what describes them is damaged.
    """
    if image.kind in ("mtgpu-asm", "amdgpu-asm"):
        return _kernels_of_text(image)
    if machine_of(image.data) not in (EM_MTGPU, EM_AMDGPU):
        return [], []
    elf = image.elf
    code: dict[str, int] = {}
    warnings: list[str] = []
    try:
        code = {symbol.name: len(symbol.data) for symbol in read_code_symbols(elf)}
    except BadElf as error:  # the metadata may still be right
        warnings.append(f"{error.message}; sizes of code are left out")
    notes = [note for note in read_elf_notes(elf) if dialect_of_note(note)]
    if machine_of(image.data) == EM_MTGPU and flags_of(image.data):
        warnings.append(
            f"{image.origin}: e_flags is 0x{flags_of(image.data):x}, and 0 in every public object: their meaning is "
            "unknown, the architecture is read from the bundle id and .arch_id"
        )
    if not notes:
        expected = "MTGPU type 0x40" if machine_of(image.data) == EM_MTGPU else "AMDGPU type 0x20"
        warnings.append(f"{image.origin}: no metadata note ({expected}) is in it")
    documents = [
        (dialect_of_note(note), read_messagepack(note.descriptor, f"{image.origin}: {note.location}")) for note in notes
    ]
    kernels, told = kernels_of(image, documents, code)
    return kernels, warnings + told


def dialect_of_note(note: Note) -> Dialect | None:
    """Whose metadata is in a note, None for notes of other kinds."""
    return {MTGPU_METADATA: MTGPU, AMDGPU_METADATA: AMDGPU}.get((note.owner, note.type))


def kernels_of(
    image: DeviceImage, documents: Iterable[tuple[Dialect | None, Any]], code_bytes: Mapping[str, int]
) -> tuple[list[KernelMetadata], list[str]]:
    """The kernels of metadata documents that were read from an image; those without a dialect have none."""
    kernels: list[KernelMetadata] = []
    warnings: list[str] = []
    for dialect, document in documents:
        if dialect is not None:
            more, told = read_document(
                document,
                dialect,
                target=image.target,
                source_format=image.kind,
                origin=image.origin,
                code_bytes=code_bytes,
            )
            kernels += more
            warnings += told
    return kernels, warnings


def dialect_of_text(text: assembly.MetadataText) -> Dialect:
    """Whose metadata stands in an assembly text."""
    return MTGPU if text.vendor == "mtgpu" else AMDGPU


def _kernels_of_text(image: DeviceImage) -> tuple[list[KernelMetadata], list[str]]:
    texts = assembly.read_metadata_texts(image.data, image.origin)
    kernels, warnings = kernels_of(image, [(dialect_of_text(text), text.document) for text in texts], {})
    described = assembly.read_descriptors(image.data, image.origin) if image.kind == "amdgpu-asm" else []
    if not texts and not described:
        return [], [f"{image.origin}: the assembly text has no metadata"]
    known = {kernel.symbol for kernel in kernels}
    kernels += [kernel_of_descriptor(one, image) for one in described if f"{one.name}.kd" not in known]
    return kernels, warnings


def read_notes(image: DeviceImage) -> list[Note]:
    """Every note of an image that is an ELF file, none of others. Raises BadElf or BadNote."""
    return read_elf_notes(image.elf) if is_elf(image.data) else []


def code_symbols(image: DeviceImage) -> list[CodeSymbol]:
    """Functions and kernels with their bytes, by section and address; none of texts. Raises BadElf."""
    return read_code_symbols(image.elf) if is_elf(image.data) else []


def is_listing(data: bytes) -> bool:
    """True for the text of a disassembler."""
    return assembly.is_listing(data)
