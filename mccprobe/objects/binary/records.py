"""What the binary readers hand out: frozen records.

Other packages code against these names; the readers that fill them are in `read.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mccprobe.objects.binary.elf import Elf


@dataclass(frozen=True)
class Note:
    """One entry of a note section or segment, as stored."""

    owner: str  # without the NUL; bytes that are no UTF-8 as surrogates
    type: int
    descriptor: bytes
    name: str  # registry text for (owner, type), "" if there is none
    location: str  # section or segment with the offset of the note's header in the file, in hex


@dataclass(frozen=True)
class DeviceImage:
    """One object that can be looked at by itself: a device ELF, an assembly text, a listing."""

    target: str  # "mp_22", "gfx908", "x86-64"; "" if unknown
    kind: str  # "mtgpu-elf", "amdgpu-elf", "host-elf", "mtgpu-asm", "amdgpu-asm", "listing" or "unknown"
    data: bytes
    origin: str  # "FILE", "FILE: bundle entry ID", "FILE: section .hip_fatbin, bundle 2, entry ID"
    entry_id: str  # the bundle id as stored, "" outside of a bundle

    @functools.cached_property
    def elf(self) -> Elf:
        """Its headers, parsed once for all readers. Raises BadElf for what is no ELF file."""
        from mccprobe.objects.binary.elf import parse_elf

        return parse_elf(self.data, self.origin)


@dataclass(frozen=True)
class KernelMetadata:
    """What the compiler says about one kernel. None where it says nothing."""

    name: str
    symbol: str | None
    target: str
    source_format: str  # the DeviceImage's kind
    # MTGPU: temp, attribute, shared, internal, slot, coefficient; AMDGPU: vector, scalar, accumulation
    registers: Mapping[str, int | None]
    shared_memory_bytes: int | None
    private_memory_bytes: int | None  # a thread
    # AMDGPU {"vector": n, "scalar": n}; None for MTGPU, whose metadata has no spill count
    spills: Mapping[str, int] | None
    has_barrier: bool | None
    max_block_size: int | None
    code_bytes: int | None
    unknown_keys: tuple[str, ...]
    raw: Mapping[str, Any] = field(repr=False)  # as JSON can hold it: `document.plain`
    warnings: tuple[str, ...] = ()
    const_calc: str | None = None  # MTGPU: the function that computes constants before the kernel; None without one
    const_calc_bytes: int | None = None


@dataclass(frozen=True)
class CodeSymbol:
    """A function or kernel with its bytes.

    sized: False where the symbol has no size; then `data` reaches to the next function and may end with padding.
    """

    name: str
    address: int
    data: bytes
    section: str
    sized: bool = True
