"""One kernel's numbers put in order: what the metadata says, what of it is reserve, what is a real spill.

Flow: KernelMetadata (+ a listing's symbols, an instruction mix) -> `KernelResources`. Nothing is made up:
what the compiler does not say stays None, and what is inferred says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mccprobe.objects.binary.records import KernelMetadata
from mccprobe.objects.binary.reserve import MCC_RESERVE_BYTES as MCC_RESERVE_BYTES
from mccprobe.objects.binary.reserve import reserve_of, reserves_of
from mccprobe.objects.model.occupancy import Demand, Occupancy, disagreements, estimate

SPILL_THRESHOLD_BYTES = 16  # the article's kernel has 8 bytes "of the metadata level" and no spill (section 22.2)
ASSEMBLY_RESERVE_BYTES = 128  # 65,664 = 65,536 + 128, 9,728 + 128 in a public hand-written kernel [I]
RESERVE_ALIGNMENT = 128  # shared memory of tiles comes in multiples of it
LARGEST_BLOCK = 1024  # threads; assumed where neither the user nor the metadata says

UNITS = {
    "registers": "registers/thread (temp, attribute, internal, coefficient, vector, accumulation), "
    "registers shared by a warp or wave (shared, slot, scalar)",
    "shared_memory_bytes": "bytes/block, static: what a launch adds is not in it",
    "private_memory_bytes": "bytes/thread",
    "spills": "registers/thread",
    "max_block_size": "threads",
    "instructions": "instructions",
    "code_bytes": "bytes",
    "occupancy.blocks_per_mp": "blocks/multiprocessor",
    "occupancy.percent": "percent of the threads, in whole warps (AMD: waves), that a multiprocessor can hold",
}


@dataclass(frozen=True)
class SharedMemory:
    """total = declared + reserved. certainty: "known" (symbols), "inferred", "unknown"."""

    total: int | None
    declared: int | None
    reserved: int | None
    certainty: str
    note: str = ""


@dataclass(frozen=True)
class PrivateMemory:
    """verdict: "none", "metadata" (at or below the threshold), "memory" (real), "unknown"."""

    bytes: int | None
    threshold: int
    verdict: str
    note: str = ""


@dataclass(frozen=True)
class InstructionMix:
    """count: None with a reason. pipes: name -> instructions. source: what was counted, and by whom.

    marks: certainty -> instructions where a table named them, {} where a disassembler did. names_mma: False where the
    source has no encoding of MMA, so that 0 of them would say nothing.
    """

    count: int | None
    pipes: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    reason: str = ""
    marks: Mapping[str, int] = field(default_factory=dict)
    names_mma: bool = True


@dataclass(frozen=True)
class Options:
    """What the user can set. block_size: threads, None to take it from the metadata."""

    block_size: int | None = None
    spill_threshold_bytes: int = SPILL_THRESHOLD_BYTES


@dataclass(frozen=True)
class KernelResources:
    """Everything the report says of one kernel of one image.

    heading: of a stand-in, "" otherwise. demangled: its C++ name, "" where it has none or nobody knows.
    """

    kernel: KernelMetadata
    origin: str
    shared: SharedMemory
    private: PrivateMemory
    mix: InstructionMix
    occupancy: tuple[Occupancy, ...]
    notes: tuple[str, ...] = ()
    heading: str = ""
    demangled: str = ""

    @property
    def title(self) -> str:
        """The name for people."""
        return self.demangled or self.kernel.name

    @property
    def has_barrier(self) -> bool | None:
        """As the metadata says; where it is silent, whether the counted code has one."""
        if self.kernel.has_barrier is not None or self.mix.count is None or not is_device(self.kernel):
            return self.kernel.has_barrier
        return "BARRIER" in self.mix.pipes if self.kernel.source_format.startswith("amdgpu") else None

    def to_dict(self) -> dict[str, Any]:
        kernel = self.kernel
        return {
            "name": kernel.name,
            "demangled": self.demangled or None,
            "symbol": kernel.symbol,
            "target": kernel.target,
            "heading": self.heading,
            "origin": self.origin,
            "source_format": kernel.source_format,
            "registers": dict(kernel.registers),
            "shared_memory_bytes": self.shared.total,
            "shared_memory": {
                "declared_bytes": self.shared.declared,
                "reserved_bytes": self.shared.reserved,
                "certainty": self.shared.certainty,
                "note": self.shared.note,
            },
            "private_memory_bytes": self.private.bytes,
            "private_memory": {
                "spill_threshold_bytes": self.private.threshold,
                "verdict": self.private.verdict,
                "note": self.private.note,
            },
            "spills": None if kernel.spills is None else dict(kernel.spills),
            "has_barrier": self.has_barrier,
            "max_block_size": kernel.max_block_size,
            "max_block_size_note": largest_block_note(kernel),
            "code_bytes": kernel.code_bytes,
            "const_calc": None
            if kernel.const_calc is None
            else {"function": kernel.const_calc, "code_bytes": kernel.const_calc_bytes},
            "instructions": self.mix.count,
            "instruction_mix": {
                "pipes": dict(self.mix.pipes),
                "source": self.mix.source,
                "reason": self.mix.reason,
                "marks": dict(self.mix.marks) or None,
                "names_mma": self.mix.names_mma if is_mtgpu(kernel) and self.mix.count is not None else None,
            },
            "occupancy": [entry.to_dict() for entry in self.occupancy],
            "sources": sources(kernel, self.mix),
            "unknown_keys": list(kernel.unknown_keys),
            "raw": dict(kernel.raw),
            "notes": list(self.notes),
        }


def resources_of(
    kernel: KernelMetadata,
    *,
    origin: str = "",
    options: Options | None = None,
    mix: InstructionMix | None = None,
    declared_shared: int | None = None,
    heading: str = "",
) -> KernelResources:
    """Put one kernel's metadata in order. declared_shared: from a listing's symbols, None if not known."""
    options = options or Options()
    block_size, block_source = block_size_of(kernel, options)
    demand = Demand(kernel.target, kernel.registers, kernel.shared_memory_bytes, block_size, block_source)
    if is_device(kernel):
        found = estimate(demand)
        notes = disagreements(demand, found)
    else:
        found, notes = (Occupancy.none(demand, _no_occupancy(kernel)),), ()
    return KernelResources(
        kernel=kernel,
        origin=origin,
        shared=split_shared(kernel, declared_shared),
        private=judge_private(kernel, options.spill_threshold_bytes),
        mix=mix or InstructionMix(None, reason="not counted"),
        occupancy=found,
        notes=notes,
        heading=heading,
    )


def is_mtgpu(kernel: KernelMetadata) -> bool:
    return kernel.source_format.startswith("mtgpu")


def is_device(kernel: KernelMetadata) -> bool:
    """False for host code and for the emulation, which is host code."""
    return kernel.source_format.startswith(("mtgpu", "amdgpu", "ptxas"))


def _no_occupancy(kernel: KernelMetadata) -> str:
    if kernel.source_format == "listing" and not kernel.target.startswith(("x86", "i386")):
        return "a disassembly has no size of the shared memory"
    return "code for a host CPU has no occupancy"


def block_size_of(kernel: KernelMetadata, options: Options) -> tuple[int | None, str]:
    """Threads of a block and who says so.

    mcc writes `.max_block_size: 1` for kernels that are launched with more (both public samples), so
    1 says nothing.
    """
    if options.block_size is not None:
        return options.block_size, "--block-size"
    if kernel.max_block_size is not None and kernel.max_block_size > 1:
        return kernel.max_block_size, "metadata: largest block"
    return LARGEST_BLOCK, f"assumed: the largest block, {LARGEST_BLOCK} threads"


def largest_block_note(kernel: KernelMetadata) -> str:
    """What the largest block of the metadata is worth, "" where it may be believed."""
    if is_mtgpu(kernel) and kernel.max_block_size == 1:
        return "1 in the metadata: mcc writes it for kernels of any size, so it says nothing"
    return ""


def split_shared(kernel: KernelMetadata, declared: int | None) -> SharedMemory:
    """Declared shared memory and the toolchain's reserve. For MTGPU the metadata gives the sum alone."""
    total = kernel.shared_memory_bytes
    reserve = reserve_of(kernel.target)
    if total is None:
        return SharedMemory(None, declared, None, "unknown" if declared is None else "known")
    if not is_mtgpu(kernel):
        return SharedMemory(total, total, 0, "known")
    if declared is not None and 0 <= declared <= total:
        reserved = total - declared
        known = {
            **dict.fromkeys(reserves_of(kernel.target), "as mcc reserves, rounded up to an alignment"),
            ASSEMBLY_RESERVE_BYTES: "as hand assembly reserves",
            0: "no reserve: hand assembly, or -mtgpu-alloc-shared-memory-from-zero",
        }
        if reserved == reserve:
            known[reserved] = "as mcc reserves"
        return SharedMemory(total, declared, reserved, "known", known.get(reserved, "a reserve not seen elsewhere"))
    if total == 0:
        return SharedMemory(0, 0, 0, "known")
    if reserve is not None and total % RESERVE_ALIGNMENT == reserve:
        return SharedMemory(
            total,
            total - reserve,
            reserve,
            "inferred",
            f"a multiple of {RESERVE_ALIGNMENT} and {reserve} more, as mcc reserves [I]",
        )
    if total % RESERVE_ALIGNMENT == 0 and total > ASSEMBLY_RESERVE_BYTES:
        note = (
            f"hand assembly reserves {ASSEMBLY_RESERVE_BYTES} [I]: {total - ASSEMBLY_RESERVE_BYTES:,} declared then; "
            "with -mtgpu-alloc-shared-memory-from-zero there is no reserve"
        )
    else:
        note = f"mcc reserves {_reserve_text(kernel.target)}, hand assembly {ASSEMBLY_RESERVE_BYTES} bytes [I]"
    return SharedMemory(total, None, None, "unknown", note)


def _reserve_text(target: str) -> str:
    reserve = reserve_of(target)
    if reserve is None:
        return f"a number of bytes on {target or 'this architecture'} that is not public"
    return f"{reserve} bytes on {target}, rounded up to the alignment of what is declared"


def judge_private(kernel: KernelMetadata, threshold: int) -> PrivateMemory:
    """Whether private memory is real. A spill and a local array look alike in MTGPU metadata."""
    size = kernel.private_memory_bytes
    if size is None:
        return PrivateMemory(None, threshold, "unknown")
    if size == 0:
        return PrivateMemory(0, threshold, "none")
    if is_mtgpu(kernel):
        if size <= threshold:
            return PrivateMemory(size, threshold, "metadata", f"at most {threshold} bytes: no sign of a spill [I]")
        note = "registers spilled, or a local array: MTGPU metadata has no spill count to tell them apart"
        return PrivateMemory(size, threshold, "memory", note)
    if kernel.spills is None:
        return PrivateMemory(size, threshold, "memory", "the stack frame" if not is_device(kernel) else "")
    if "store_bytes" in kernel.spills:  # NVIDIA: bytes that a thread's spills store and load, counted in the code
        stored, loaded = kernel.spills["store_bytes"], kernel.spills.get("load_bytes", 0)
        note = f"the stack frame; spills store {stored:,} and load {loaded:,} bytes"
        return PrivateMemory(size, threshold, "memory", note)
    spilled = 4 * kernel.spills.get("vector", 0)  # bytes: a spilled vector register is 4 a thread
    if spilled >= size:
        note = "spilled vector registers" if kernel.spills.get("vector") else ""
    else:
        note = f"spilled vector registers take at most {spilled:,}, the rest are local variables, calls, scalar spills"
    return PrivateMemory(size, threshold, "memory", note)


_METADATA_SOURCES = {
    "mtgpu-asm": "YAML metadata of the assembly text",
    "mtgpu-elf": "note MTGPU, type 0x40",
    "amdgpu-elf": "note AMDGPU, type 32",
    "amdgpu-asm": "YAML metadata of the assembly text",
    "host-elf": "ELF symbols",
    "listing": "disassembly",
    "ptxas": "ptxas -v",
    "ptxas-usage": "cuobjdump -res-usage",
}


def sources(kernel: KernelMetadata, mix: InstructionMix) -> dict[str, str]:
    """Where each number of this kernel comes from."""
    metadata = _METADATA_SOURCES.get(kernel.source_format, kernel.source_format)
    if kernel.source_format == "amdgpu-asm" and any(key.startswith(".amdhsa_") for key in kernel.raw):
        metadata = ".amdhsa_kernel of the assembly text"
    return {"metadata": metadata, "instructions": mix.source or mix.reason}
