"""Probes of what mcc writes: bundle, device ELF, note, metadata, assembly text, listing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mccprobe.base.console import number_of
from mccprobe.base.errors import MccprobeError
from mccprobe.doctor.probes import probe
from mccprobe.doctor.subject import ProbeAnswer, Subject, Unasked, answer, no, parse_text, why, yes
from mccprobe.objects.binary.assembly import read_metadata_texts
from mccprobe.objects.binary.bundle import MAGIC, Bundle, foreign_ids, parse_bundle, target_of
from mccprobe.objects.binary.document import read_messagepack
from mccprobe.objects.binary.elf import EM_MTGPU, machine_of, read_code_symbols
from mccprobe.objects.binary.metadata import MTGPU, iter_documents_of, read_document
from mccprobe.objects.binary.notes import MTGPU_METADATA, read_elf_notes
from mccprobe.objects.binary.read import images_of
from mccprobe.objects.binary.records import KernelMetadata, Note
from mccprobe.objects.binary.reserve import SPILL_BASE, SPILL_BASE_KIND, reserve_of
from mccprobe.objects.isa.lint_rules import SHARED_SYMBOLS
from mccprobe.objects.isa.listing import objdump_format, parse_listing
from mccprobe.objects.isa.mtgpu.cut import cut
from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import OTHER, Function, Listing
from mccprobe.objects.isa.registers import registers_of
from mccprobe.targets.llvm.jobs import DEVICE_TRIPLES, JobKind
from mccprobe.targets.llvm.probe import BUNDLE_ID, METADATA_MARK
from mccprobe.targets.mcc.target import ISA

IDENT = bytes.fromhex("7f454c46 02 01 01 00")  # ELF64, little-endian, version 1, OSABI 0


def _bundle(subject: Subject) -> Bundle:
    data = subject.object.require("a device object")
    if not data.startswith(MAGIC):
        raise Unasked(f"the device object is no bundle: it begins with {data[:8].hex(' ')}")
    try:
        return parse_bundle(data, 0, origin="the device object")
    except MccprobeError as error:
        raise Unasked(f"its bundle cannot be read: {error.message}") from error


@probe
def raw_bundle(subject: Subject) -> ProbeAnswer:
    subject.object.require("a device object")
    try:
        found = _bundle(subject)
    except Unasked as reason:
        return no(str(reason))
    filled = sum(entry.size > 0 for entry in found.entries)
    return yes(f"{number_of(len(found.entries), 'entry', 'entries')}, {filled} not empty")


@probe
def bundle_ids(subject: Subject) -> ProbeAnswer:
    ids = [entry.id for entry in _bundle(subject).entries]
    named = [one for one in ids if target_of(one).startswith("mp_")]
    foreign = foreign_ids(ids)
    told = f"ids: {', '.join(ids)}" + (f"; not of mcc's family: {', '.join(foreign)}" if foreign else "")
    return answer(bool(named) and not foreign, told[:300])


@probe
def bundler_options(subject: Subject) -> ProbeAnswer:
    data = subject.object
    data.require("a device object")
    jobs = [job.argv[0] for job in subject.jobs if job.kind is JobKind.BUNDLE]
    beside = subject.beside("clang-offload-bundler")
    if not jobs and beside is None:
        return no("clang-offload-bundler: neither in a job nor beside mcc")
    result = subject.run([jobs[0] if jobs else str(beside), "--type=o", f"--inputs={data.path}", "--list"])
    listed = " ".join(result.stdout_text.split())
    return answer(result.ok and BUNDLE_ID.search(result.stdout_text) is not None, listed[:300] or why(result))


@probe
def fat_section(subject: Subject) -> ProbeAnswer:
    data = subject.whole.require("a host object")
    try:
        found = [image for image in images_of(data, "object") if "section" in image.origin]
    except MccprobeError as error:
        return no(error.message)
    return yes(found[0].origin) if found else no("no section of the host object holds a device image")


@probe
def device_elf(subject: Subject) -> ProbeAnswer:
    data = subject.image.data
    evidence = f"e_ident {data[:8].hex(' ')}, e_machine {machine_of(data)}, {subject.whose_code}"
    return answer(data.startswith(IDENT) and machine_of(data) == EM_MTGPU, evidence)


@probe
def code_symbols(subject: Subject) -> ProbeAnswer:
    try:
        found = read_code_symbols(subject.image.elf)
    except MccprobeError as error:
        return no(error.message)
    kernels = [symbol for symbol in found if "mccprobe_probe" in symbol.name]
    if kernels:
        return yes(f"{kernels[0].name}: {len(kernels[0].data)} bytes in {kernels[0].section}")
    return no(f"functions: {', '.join(symbol.name for symbol in found) or 'none'}"[:300])


def _notes(subject: Subject) -> list[Note]:
    try:
        return read_elf_notes(subject.image.elf)
    except MccprobeError as error:
        raise Unasked(f"its notes cannot be read: {error.message}") from error


@probe
def metadata_note(subject: Subject) -> ProbeAnswer:
    notes = _notes(subject)
    listed = ", ".join(f"{note.owner} type {note.type:#x} in {note.location}" for note in notes)
    return answer(any((note.owner, note.type) == MTGPU_METADATA for note in notes), listed or "no note at all")


@probe
def note_messagepack(subject: Subject) -> ProbeAnswer:
    note = next((note for note in _notes(subject) if (note.owner, note.type) == MTGPU_METADATA), None)
    if note is None:
        raise Unasked("there is no MTGPU note")
    try:
        kernels = list(iter_documents_of(read_messagepack(note.descriptor, "note")))
    except MccprobeError as error:
        return no(error.message)
    return answer(bool(kernels), f"{len(note.descriptor)} bytes, {number_of(len(kernels), 'kernel')}")


@probe
def assembly_text(subject: Subject) -> ProbeAnswer:
    data = subject.text.data
    if not data:
        return no(f"-S: {subject.text.problem}")
    if METADATA_MARK.encode() not in data:
        return no(f"{len(data)} bytes of text without {METADATA_MARK}")
    try:
        return answer(bool(read_metadata_texts(data, "-S text")), f"{len(data)} bytes of text, its metadata is read")
    except MccprobeError as error:
        return no(error.message)


@probe
def metadata_keys(subject: Subject) -> ProbeAnswer:
    kernel = subject.require_kernel()
    values: dict[str, Any] = {
        **kernel.registers,
        "shared memory": kernel.shared_memory_bytes,
        "private memory": kernel.private_memory_bytes,
    }
    missing = [name for name, value in values.items() if value is None]
    if "mccprobe_probe" not in kernel.name:
        missing.append(f"the name ({kernel.name})")
    told = ", ".join(f"{name} {value}" for name, value in values.items())
    return no(f"missing: {', '.join(missing)}") if missing else yes(told)


def _documents(subject: Subject) -> Iterator[Mapping[str, Any]]:
    """The whole documents of both carriers, as far as they are there."""
    try:
        for note in _notes(subject):
            if (note.owner, note.type) == MTGPU_METADATA:
                yield read_messagepack(note.descriptor, "note")
    except (MccprobeError, Unasked):
        pass
    try:
        yield from (text.document for text in read_metadata_texts(subject.text.data, "-S text"))
    except MccprobeError:
        return


@probe
def metadata_version(subject: Subject) -> ProbeAnswer:
    subject.require_kernel()
    warnings: list[str] = []
    new: list[str] = []
    versions = []
    for document in _documents(subject):
        kernels, told = read_document(document, MTGPU, target="", source_format="", origin="it", code_bytes={})
        warnings += told
        new += [key for kernel in kernels for key in kernel.unknown_keys]
        versions.append(".".join(map(str, document.get("mtgpu.version", ("?",)))))
    if new:
        warnings.append(f"new keys: {', '.join(dict.fromkeys(new))}")
    if warnings:
        return no("; ".join(dict.fromkeys(warnings)))
    return yes(f"version {', '.join(dict.fromkeys(versions))}, every key is known")


def _raw(kernel: KernelMetadata, key: str) -> Any:
    return kernel.raw.get(f".{key}", kernel.raw.get(key))


@probe
def arch_id(subject: Subject) -> ProbeAnswer:
    told = _raw(subject.require_kernel(), "arch_id")
    if not subject.arch:
        raise Unasked("no --offload-arch was taken, so the target is not known")
    return answer(told == int(subject.arch.removeprefix("mp_")) * 10, f".arch_id {told}, {subject.whose_code}")


def _there(kernel: KernelMetadata | None) -> str:
    return "none" if kernel is None else "yes"


@probe
def two_carriers(subject: Subject) -> ProbeAnswer:
    first, second = subject.note_kernel, subject.text_kernel
    if first is None or second is None:
        raise Unasked(f"metadata in the note: {_there(first)}; in -S text: {_there(second)}")
    differ = [
        key
        for key in {**first.raw, **second.raw}
        if key not in ("args", ".args") and _raw(first, key.lstrip(".")) != _raw(second, key.lstrip("."))
    ]
    return no(f"they differ in {', '.join(sorted(differ))}") if differ else yes("equal")


@probe
def shared_reserve(subject: Subject) -> ProbeAnswer:
    told = subject.require_kernel().shared_memory_bytes
    expected = reserve_of(subject.arch)
    evidence = f".shared_memory_size {told} of a kernel without shared memory, {subject.whose_code}"
    if expected is None:
        raise Unasked(f"no public reserve of this architecture: {evidence}")
    return answer(told == expected, f"{evidence}; expected {expected}")


def _function(listing: Listing) -> Function:
    found = next((function for function in listing.functions if "mccprobe" in function.name), None)
    if found is None or not found.instructions:
        raise Unasked("the listing has no function of that name")
    return found


@probe
def temp_registers(subject: Subject) -> ProbeAnswer:
    kernel = subject.text_kernel
    if kernel is None:
        raise Unasked("it takes body and metadata of one -S text")
    used = [
        register.first + register.size
        for one in _function(subject.listing).instructions
        for register in registers_of(one.operands, ISA)
        if register.bank == "R"
    ]
    told = kernel.registers.get("temp")
    return answer(max(used, default=0) == told, f".temp_reg_count {told}, highest R index {max(used, default=0) - 1}")


@probe
def spill_base(subject: Subject) -> ProbeAnswer:
    kernel = subject.require_kernel()
    arguments = _raw(kernel, "args") or ()
    kinds = [one.get(".kind", one.get("kind")) for one in arguments if isinstance(one, Mapping)]
    counts = [key for key in kernel.raw if "spill" in key.lower()]
    if counts:
        return no(f"there is a key about spills: {', '.join(counts)}")
    evidence = f"argument kinds: {', '.join(map(str, kinds)) or 'none'}; {subject.whose_code}"
    if subject.arch not in SPILL_BASE:
        raise Unasked(f"nothing public about this architecture: {evidence}")
    return answer((SPILL_BASE_KIND in kinds) == SPILL_BASE[subject.arch], evidence)


@probe
def listing_lines(subject: Subject) -> ProbeAnswer:
    listing = subject.listing
    if listing.format != "mcc-s":
        return no(f"it reads as {listing.format}")
    unread = "; ".join(line.text.strip() for line in listing.unknown[:3])
    evidence = f"{listing.instruction_count} instructions, {number_of(len(listing.unknown), 'line')} unread"
    return answer(listing.instruction_count > 0 and not listing.unknown, f"{evidence}{unread and ': '}{unread}"[:300])


@probe
def pipe_names(subject: Subject) -> ProbeAnswer:
    found = _function(subject.listing).instructions
    other = sorted({one.mnemonic for one in found if one.pipe in (OTHER, UNKNOWN)})
    pipes = ", ".join(sorted({one.pipe for one in found} - {OTHER, UNKNOWN}))
    return no(f"of no known pipe: {', '.join(other)}"[:300]) if other else yes(f"pipes: {pipes}")


@probe
def shared_symbol(subject: Subject) -> ProbeAnswer:
    symbols = parse_text(subject.shared_text.require("-S text of a kernel with shared memory")).symbols
    kernel = next((name for name in symbols if "mccprobe_shared" in name), "")
    begin, end = SHARED_SYMBOLS[0].split("{}")
    return answer(kernel.startswith(begin) and kernel.endswith(end), f"symbols: {', '.join(symbols) or 'none'}"[:300])


def _objdump(subject: Subject) -> str:
    tool = subject.beside("llvm-objdump")
    if tool is None:
        raise Unasked("llvm-objdump is not beside mcc")
    path = subject.folder / "image.o"
    path.write_bytes(subject.image.data)
    result = subject.run([str(tool), "-d", str(path)])
    return result.stdout_text if result.ok else f"error: {why(result)}"


@probe
def vendor_objdump(subject: Subject) -> ProbeAnswer:
    text = _objdump(subject)
    if text.startswith("error:"):
        return no(text)
    told = objdump_format(text)
    try:
        listing = parse_listing(text)
    except MccprobeError as error:
        return no(error.message)
    decoded = sum(one.pipe != UNKNOWN for function in listing.functions for one in function.instructions)
    evidence = f"file format {told or 'not told'}, {decoded} instructions of {listing.instruction_count} decoded"
    return answer(ISA in told and decoded > 0, evidence)


@probe
def instruction_dwords(subject: Subject) -> ProbeAnswer:
    """Read in the bytes of the kernel, not in a listing: a disassembler's lines may be of any width."""
    try:
        symbols = read_code_symbols(subject.image.elf)
    except MccprobeError as error:
        raise Unasked(f"its code cannot be read: {error.message}") from error
    kernel = next((symbol for symbol in symbols if "mccprobe_probe" in symbol.name and symbol.data), None)
    if kernel is None:
        raise Unasked("the device object has no code of the probe kernel")
    found = cut(kernel.data)
    if not found.fits:
        misfit = found.misfits[0]
        return no(f"{len(kernel.data)} bytes, at offset {misfit.offset}: {misfit.misfit}; {subject.whose_code}")
    sizes = ", ".join(f"{count} of {number_of(size, 'dword')}" for size, count in found.sizes().items())
    return yes(f"{number_of(len(found.pieces), 'instruction')} ({sizes}), {subject.whose_code}")


@probe
def device_ir(subject: Subject) -> ProbeAnswer:
    made = subject.device("-S", "-emit-llvm", name="probe.ll")
    if not made.data:
        return no(made.problem)
    triple = made.data.partition(b'target triple = "')[2].partition(b'"')[0].decode("utf-8", "replace")
    ours = subject.toolchain.simulated or triple.startswith(DEVICE_TRIPLES)
    return answer(bool(triple) and ours, f"target triple {triple or 'missing'}")
