"""A metadata document to kernel records: MTGPU and AMDGPU, keys with or without their leading dot.

The set of keys changes with the compiler's release, so every key is optional, unknown ones are kept
and named, and what is not as expected becomes a warning and never a failure.

Sources: MTGPU: shared keys of two public `mcc -S` outputs and of hand-written assembly (mp_22), see
reports/notes.schema.json for how raw keys are shown; AMDGPU: LLVM AMDGPUUsage, "Code Object V3 to V5
Metadata".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mccprobe.base.errors import BadMetadata
from mccprobe.objects.binary.arguments import unknown_kinds
from mccprobe.objects.binary.assembly import KernelDescriptor
from mccprobe.objects.binary.records import DeviceImage, KernelMetadata

ALL_ONES = frozenset((0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF))  # "none" in 32 and 64 bits
MAX_WARNINGS = 100  # of one document; more say nothing new
MAX_KERNELS = 100_000  # of one document; large libraries have some thousands an object


@dataclass(frozen=True)
class Dialect:
    """Names of one vendor's keys, without the leading dot."""

    prefix: str  # of the keys of the document itself
    versions: frozenset[tuple[int, ...]]  # those seen or documented; another one is told
    registers: Mapping[str, str]  # our kind -> key
    shared: str
    private: str
    spills: Mapping[str, str]  # our kind -> key; empty where the vendor has no count
    barrier: str
    max_block: str
    others: frozenset[str]  # known, and only shown raw

    def known(self) -> frozenset[str]:
        """Every key of a kernel that is no surprise."""
        named = {"name", "symbol", self.shared, self.private, self.barrier, self.max_block}
        return self.others | named | set(self.registers.values()) | set(self.spills.values())


MTGPU = Dialect(
    prefix="mtgpu",
    versions=frozenset({(1, 0), (2, 2)}),
    registers={
        "temp": "temp_reg_count",
        "attribute": "attr_reg_count",
        "shared": "shared_reg_count",
        "internal": "internal_reg_count",
        "slot": "slot_reg_count",
        "coefficient": "coef_reg_count",
    },
    shared="shared_memory_size",
    private="private_memory_size",
    spills={},
    barrier="has_barrier",
    max_block="max_block_size",
    others=frozenset(
        "arch_id args attrs barrier_coef call_flag has_cluster_barrier has_sqmma_conv indirect_call_flag has_texture "
        "shared_atomic_lock_idx async_bar_count global_atomic_count local_mem_used_in_cluster clusterX clusterY "
        "clusterZ wave_mode const_calc_kernel constcalc_attr_reg_count constcalc_temp_reg_count imms imm_info".split()
    ),
)
AMDGPU = Dialect(
    prefix="amdhsa",
    versions=frozenset({(1, 0), (1, 1), (1, 2)}),
    registers={"vector": "vgpr_count", "scalar": "sgpr_count", "accumulation": "agpr_count"},
    shared="group_segment_fixed_size",
    private="private_segment_fixed_size",
    spills={"vector": "vgpr_spill_count", "scalar": "sgpr_spill_count"},
    barrier="",
    max_block="max_flat_workgroup_size",
    others=frozenset(
        "args language language_version kernarg_segment_size kernarg_segment_align wavefront_size kind "
        "reqd_workgroup_size workgroup_size_hint vec_type_hint device_enqueue_symbol uses_dynamic_stack "
        "workgroup_processor_mode uniform_work_group_size".split()
    ),
)
DIALECTS = (MTGPU, AMDGPU)


def _find(table: Mapping[str, Any], *names: str) -> Any:
    for name in names:
        for spelling in ("." + name, name):
            if spelling in table:
                return table[spelling]
    return None


def read_document(
    document: Any, dialect: Dialect, *, target: str, source_format: str, origin: str, code_bytes: Mapping[str, int]
) -> tuple[list[KernelMetadata], list[str]]:
    """All kernels of a document, and warnings that concern the whole of it.

    target: what is known from elsewhere, "" if nothing. code_bytes: size of each function's code.
    Raises BadMetadata if the document is no map or its kernels are no list.
    """
    if not isinstance(document, Mapping):
        raise BadMetadata(origin, f"the metadata is {_describe(document)}", expected="a map")
    warnings: list[str] = []
    kernels = _find(document, f"{dialect.prefix}.kernels", "kernels")
    if kernels is None:
        warnings.append(f"{origin}: the metadata names no kernels (no key {dialect.prefix}.kernels)")
        kernels = []
    if not isinstance(kernels, list):
        raise BadMetadata(origin, f"{dialect.prefix}.kernels is {_describe(kernels)}", expected="a list")
    if len(kernels) > MAX_KERNELS:
        raise BadMetadata(origin, f"{len(kernels)} kernels", expected=f"at most {MAX_KERNELS}")
    version = _find(document, f"{dialect.prefix}.version", "version")
    if version is not None and _version(version) not in dialect.versions:
        seen = ", ".join(".".join(map(str, known)) for known in sorted(dialect.versions))
        warnings.append(f"{origin}: {dialect.prefix}.version is {_shown(version)}; known are {seen}: keys may differ")
    told = _find(document, f"{dialect.prefix}.target")
    if isinstance(told, str) and "--" in told:
        told = told.rpartition("--")[2]
        if target and told != target and told.partition(":")[0] != target.partition(":")[0]:
            warnings.append(f"{origin}: the metadata is for {told}, the object for {target}")
        target = told if ":" in told or not target else target
    top = {"kernels", "version", "target", "printf"}
    unknown = sorted(key for key in document if str(key).lstrip(".").removeprefix(dialect.prefix + ".") not in top)
    if unknown:
        warnings.append(f"{origin}: unknown keys of the document: {', '.join(unknown)}")
    known = dialect.known()
    read = []
    for number, raw in enumerate(kernels):
        if not isinstance(raw, Mapping):
            warnings.append(f"{origin}: kernel {number} is {_describe(raw)}, expected a map; left out")
            continue
        read.append(_Kernel(raw, dialect, number).record(target, source_format, known, code_bytes))
    return read, few(warnings, origin)


def few(warnings: list[str], origin: str) -> list[str]:
    """The first of them, and how many more there are."""
    left_out = len(warnings) - MAX_WARNINGS
    return warnings if left_out <= 0 else [*warnings[:MAX_WARNINGS], f"{origin}: {left_out} more warnings"]


def _version(value: Any) -> tuple[int, ...] | None:
    return tuple(value) if isinstance(value, list) and all(type(part) is int for part in value) else None


class _Kernel:
    """One kernel's map while it is read; collects what is odd about it."""

    def __init__(self, raw: Mapping[str, Any], dialect: Dialect, number: int) -> None:
        self.raw, self.dialect, self.number = raw, dialect, number
        self.keys: dict[str, Any] = {}
        self.warnings: list[str] = []
        for key, value in raw.items():
            name = key.removeprefix(".")
            if name in self.keys:
                self.warnings.append(f".{name} and {name} are both there; the dotted one counts")
                value = raw["." + name]
            self.keys[name] = value

    def _count(self, key: str) -> int | None:
        value = self.keys.get(key)
        if value is None:
            return None
        if type(value) is not int or value < 0:
            self.warnings.append(f".{key} is {_describe(value)}, expected a count")
            return None
        return None if value in ALL_ONES else value

    def _text(self, key: str) -> str | None:
        value = self.keys.get(key)
        if value is None or isinstance(value, str):
            return value
        self.warnings.append(f".{key} is {_describe(value)}, expected a name")
        return None

    def _target(self, target: str) -> str:
        """`.arch_id` is `__MUSA_ARCH__`: 210, 220, 310 for mp_21, mp_22, mp_31 (inferred from samples)."""
        arch = self._count("arch_id") if self.dialect is MTGPU else None
        if arch is None:
            return target
        if arch == 0 or arch % 10:
            self.warnings.append(f".arch_id {arch} is no number of the form NN0 (220 is mp_22)")
            return target
        told = f"mp_{arch // 10}"
        if target and target != told:
            self.warnings.append(f".arch_id {arch} says {told}, the bundle says {target}")
            return target
        return told

    def record(
        self, target: str, source_format: str, known: frozenset[str], code_bytes: Mapping[str, int]
    ) -> KernelMetadata:
        """The kernel's record; never fails."""
        dialect = self.dialect
        name = self._text("name")
        if not name:
            name = f"(kernel {self.number} without a name)"
            self.warnings.append("the kernel has no .name")
        if dialect is MTGPU and (kinds := unknown_kinds(self.keys)):
            self.warnings.append(f"arguments of unknown kind: {', '.join(map(str, kinds))}")
        const_calc = (self._text("const_calc_kernel") or None) if dialect is MTGPU else None
        if const_calc is not None and code_bytes and const_calc not in code_bytes:
            self.warnings.append(f".const_calc_kernel {const_calc} is not among the functions of the object")
        barrier = self.keys.get(dialect.barrier) if dialect.barrier else None
        if barrier is not None and not isinstance(barrier, bool):
            self.warnings.append(f".{dialect.barrier} is {_describe(barrier)}, expected true or false")
            barrier = bool(barrier) if barrier in (0, 1) else None
        spills: dict[str, int] | None = None
        if dialect.spills:
            counts = {kind: self._count(key) for kind, key in dialect.spills.items()}
            spills = {kind: count for kind, count in counts.items() if count is not None} or None
        return KernelMetadata(
            name=name,
            symbol=self._text("symbol") if dialect is AMDGPU else self._text("symbol") or self._text("name"),
            target=self._target(target),
            source_format=source_format,
            registers={kind: self._count(key) for kind, key in dialect.registers.items()},
            shared_memory_bytes=self._count(dialect.shared),
            private_memory_bytes=self._count(dialect.private),
            spills=spills,
            has_barrier=barrier,
            max_block_size=self._count(dialect.max_block),
            code_bytes=code_bytes.get(name),
            unknown_keys=tuple(key for key in self.raw if key.removeprefix(".") not in known),
            raw=self.raw,
            const_calc=const_calc,
            const_calc_bytes=code_bytes.get(const_calc) if const_calc is not None else None,
            warnings=tuple(dict.fromkeys(self.warnings)),
        )


def kernel_of_descriptor(one: KernelDescriptor, image: DeviceImage) -> KernelMetadata:
    """The record of a kernel that only an `.amdhsa_kernel` block describes; what it leaves out has LLVM's default."""

    def count(key: str, default: int | None = None) -> int | None:
        value = one.values.get(key, default)
        return value if isinstance(value, int) else None

    return KernelMetadata(
        name=one.name,
        symbol=f"{one.name}.kd",
        target=image.target,
        source_format=image.kind,
        registers={"vector": count("next_free_vgpr"), "scalar": count("next_free_sgpr"), "accumulation": None},
        shared_memory_bytes=count("group_segment_fixed_size", 0),
        private_memory_bytes=count("private_segment_fixed_size", 0),
        spills=None,
        has_barrier=None,
        max_block_size=None,
        code_bytes=None,
        unknown_keys=(),
        raw={f".amdhsa_{key}": value for key, value in one.values.items()},
        warnings=(
            "no metadata: the figures are those of its .amdhsa_kernel block, whose scalar registers do not include "
            "VCC, FLAT_SCRATCH and XNACK_MASK",
        ),
    )


def iter_documents_of(value: Any) -> Iterator[Mapping[str, Any]]:
    """The kernels' maps of a document, for those that only want to look."""
    if isinstance(value, Mapping):
        for key, kernels in value.items():
            if str(key).endswith("kernels") and isinstance(kernels, list):
                yield from (kernel for kernel in kernels if isinstance(kernel, Mapping))


def _describe(value: Any) -> str:
    names = {dict: "a map", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a fraction"}
    kind = names.get(type(value), "null" if value is None else "a value")
    return f"{kind} ({_shown(value)})" if not isinstance(value, dict | list) else f"{kind} of {len(value)}"


def _shown(value: Any) -> str:
    """Short, and in the words of JSON."""
    text = ".".join(map(str, value)) if isinstance(value, list) and len(value) < 8 else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
