"""Metadata in both carriers: keys, spellings, drift, and the traps of YAML and MessagePack."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import BadMetadata
from mccprobe.objects.binary.document import MAX_DEPTH, plain, read_messagepack, read_yaml
from mccprobe.objects.binary.read import images_of, read_kernels
from mccprobe.objects.binary.records import KernelMetadata

from .writer import (
    BODY,
    EM_AMDGPU,
    NONE32,
    ElfWriter,
    Function,
    bundle,
    mtgpu_assembly,
    mtgpu_document,
    mtgpu_elf,
    mtgpu_kernel,
    note,
)

relaxed = settings(deadline=None)  # a busy machine is no failure


def kernels_of(data: bytes | str) -> tuple[list[KernelMetadata], list[str]]:
    (image,) = images_of(data.encode() if isinstance(data, str) else data, "x")
    return read_kernels(image)


def the_kernel(data: bytes | str) -> KernelMetadata:
    (kernel,), warnings = kernels_of(data)
    assert not warnings
    return kernel


def test_elf_and_assembly_say_the_same() -> None:
    document = mtgpu_document(mtgpu_kernel(private_memory_size=8, has_barrier=True))
    binary, text = the_kernel(mtgpu_elf(document)), the_kernel(mtgpu_assembly(document, BODY))
    assert binary.name == binary.symbol == "_Z5demo1Pf"
    assert binary.target == text.target == "mp_22"
    assert binary.registers == {
        "temp": 5,
        "attribute": 2,
        "shared": 25,
        "internal": 2,
        "slot": 0,
        "coefficient": 0,
    }
    assert (binary.shared_memory_bytes, binary.private_memory_bytes, binary.has_barrier) == (20, 8, True)
    assert (binary.spills, binary.max_block_size, binary.unknown_keys, binary.warnings) == (None, 1, (), ())
    assert (binary.source_format, text.source_format) == ("mtgpu-elf", "mtgpu-asm")
    assert binary.raw == text.raw
    for field in ("registers", "shared_memory_bytes", "private_memory_bytes", "has_barrier", "max_block_size"):
        assert getattr(binary, field) == getattr(text, field)


def test_undotted_keys_are_the_same_keys() -> None:
    dotted, bare = (the_kernel(mtgpu_elf(mtgpu_document(mtgpu_kernel(dotted=d)))) for d in (True, False))
    assert bare.registers == dotted.registers and bare.name == dotted.name and bare.unknown_keys == ()
    assert "temp_reg_count" in bare.raw and ".temp_reg_count" in dotted.raw


def test_where_both_spellings_are_there_the_dotted_one_counts_and_it_is_told() -> None:
    for order in (1, -1):
        items = [(".temp_reg_count", 5), ("temp_reg_count", 7)][::order]
        (kernel,), _ = kernels_of(mtgpu_elf(mtgpu_document({".name": "k", **dict(items)})))
        assert kernel.registers["temp"] == 5
        assert kernel.warnings == (".temp_reg_count and temp_reg_count are both there; the dotted one counts",)


@pytest.mark.parametrize("key", sorted(key.lstrip(".") for key in mtgpu_kernel()))
def test_every_key_is_optional(key: str) -> None:
    (kernel,), _ = kernels_of(mtgpu_elf(mtgpu_document(mtgpu_kernel(**{key: None}))))
    assert kernel.unknown_keys == ()
    assert bool(kernel.warnings) is (key == "name")


def test_an_empty_kernel_is_a_record_of_unknowns() -> None:
    (kernel,), _ = kernels_of(mtgpu_elf(mtgpu_document({})))
    assert set(kernel.registers.values()) == {None}
    assert (kernel.shared_memory_bytes, kernel.has_barrier, kernel.symbol, kernel.target) == (None, None, None, "")
    assert kernel.warnings == ("the kernel has no .name",)


def test_unknown_keys_are_kept_and_named() -> None:
    (kernel,), _ = kernels_of(mtgpu_elf(mtgpu_document(mtgpu_kernel(warp_schedule=3))))
    assert kernel.unknown_keys == (".warp_schedule",)
    assert kernel.raw[".warp_schedule"] == 3


def test_keys_and_argument_kinds_of_real_objects_are_known() -> None:
    """`.call_flag` on every kernel, and the kinds 9, 10 and 25."""
    arguments = [{".kind": kind, ".argBase": {".reg_bank": 3}} for kind in (1, 2, 3, 5, 6, 7, 9, 10, 18, 19, 23, 25)]
    (kernel,), warnings = kernels_of(mtgpu_elf(mtgpu_document(mtgpu_kernel("k", call_flag=False, args=arguments))))
    assert (kernel.unknown_keys, kernel.warnings, warnings) == ((), (), [])
    (kernel,), _ = kernels_of(mtgpu_elf(mtgpu_document(mtgpu_kernel("k", args=[{".kind": 77}]))))
    assert kernel.warnings == ("arguments of unknown kind: 77",)


def test_e_flags_are_0_and_the_architecture_is_in_the_bundle_id_and_arch_id() -> None:
    document = mtgpu_document(mtgpu_kernel("k", arch_id=220))
    assert kernels_of(mtgpu_elf(document, flags=0))[1] == []
    _, warnings = kernels_of(mtgpu_elf(document, flags=0x22))
    assert len(warnings) == 1 and "e_flags is 0x22" in warnings[0]
    (kernel,), _ = kernels_of(bundle([("musa-mtgpu-mt-musa--mp_31", mtgpu_elf(document))]))
    assert kernel.target == "mp_31" and kernel.warnings == (".arch_id 220 says mp_22, the bundle says mp_31",)


def test_drift_is_told() -> None:
    kernel = mtgpu_kernel(temp_reg_count="5", has_barrier=3, arch_id=221, max_block_size=-1)
    document = mtgpu_document(kernel, version=(3, 0)) | {"mtgpu.extra": 1}
    (read,), warnings = kernels_of(mtgpu_elf(document))
    assert read.registers["temp"] is None and read.has_barrier is None and read.max_block_size is None
    assert read.warnings == (
        ".has_barrier is a number (3), expected true or false",
        ".arch_id 221 is no number of the form NN0 (220 is mp_22)",
        ".temp_reg_count is a text (5), expected a count",
        ".max_block_size is a number (-1), expected a count",
    )
    assert warnings == [
        "x: mtgpu.version is 3.0; known are 1.0, 2.2: keys may differ",
        "x: unknown keys of the document: mtgpu.extra",
    ]


@pytest.mark.parametrize(
    ("value", "barrier", "told"),
    [
        (True, True, ()),
        (False, False, ()),
        (1, True, (".has_barrier is a number (1), expected true or false",)),
        (0, False, (".has_barrier is a number (0), expected true or false",)),
        (2, None, (".has_barrier is a number (2), expected true or false",)),
        (-1, None, (".has_barrier is a number (-1), expected true or false",)),
        ("1", None, (".has_barrier is a text (1), expected true or false",)),
        ([], None, (".has_barrier is a list of 0, expected true or false",)),
        (None, None, ()),
    ],
    ids=str,
)
def test_a_barrier_is_a_boolean_or_0_or_1(value: Any, barrier: bool | None, told: tuple[str, ...]) -> None:
    (kernel,), _ = kernels_of(mtgpu_elf(mtgpu_document(mtgpu_kernel(has_barrier=value))))
    assert kernel.has_barrier is barrier and kernel.warnings == told


def test_all_ones_mean_none_and_stay_in_raw() -> None:
    kernel = the_kernel(mtgpu_elf(mtgpu_document(mtgpu_kernel(max_block_size=NONE32, slot_reg_count=2**64 - 1))))
    assert kernel.max_block_size is None and kernel.registers["slot"] is None
    assert kernel.raw[".barrier_coef"] == NONE32


@pytest.mark.parametrize("name", ["no", "on", "nan", "y", "True", "null", "12", "0x10", "~"])
def test_kernels_with_names_that_yaml_takes_for_something_else(name: str) -> None:
    text = mtgpu_assembly(mtgpu_document(mtgpu_kernel(name)))
    assert "!str" in text
    assert the_kernel(text).name == name


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", False),
        ("y", True),
        ("4294967295", NONE32),
        ("0x10", 16),
        ("010", 8),
        ("09", "09"),
        ("-3", -3),
        ("12:30", "12:30"),
        ("2026-11-30", "2026-11-30"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("nan", "nan"),
        ("_Z5demo1Pf", "_Z5demo1Pf"),
        ("''", ""),
        ("'12'", "12"),
        ("!str 12", "12"),
        ("!int 12", 12),
        ("!bool y", True),
        ("{}", {}),
        ("<<", "<<"),
        ("", None),
    ],
)
def test_scalars_follow_llvms_rule(text: str, value: Any) -> None:
    got = read_yaml(f"a: {text}\n")["a"]
    assert got == value and type(got) is type(value)


# a: &a [x, x, ...], b: &b [*a, *a, ...], ...: 8 ** 11 values
ALIASES = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + below] * 8)}]\n" for below, name in itertools.pairwise("abcdefghijkl")
)


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system [id]",
        "a: !mystery 1",
        "a: !str [1]",
        "{" * 300,
        "[" * 100_000,
        "a: b: c",
        "? [1]\n: 2",
        "--- 1\n--- 2\n",
        "a: *x",
        "a: \x00",
        "\t- 1",
        ALIASES,
        "a: &a\n  b: *a\n",
    ],
)
def test_other_yaml_is_one_clear_error(text: str) -> None:
    with pytest.raises(BadMetadata):
        read_yaml(text, "x.s")


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x81\xa1a",
        b"\x80\x80",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xdd\x00\x0f\xff\xff" * 3000,
        b"\xdc\xff\xff" * 3000 + bytes(70_000),
        nested(100),
        nested(5000),
        b"\xc7\xff\x01",
        b"\x82" + b"\xdd\x00\x10\x00\x00" * 2 + bytes(1 << 20),
    ],
)
def test_hostile_messagepack_is_one_clear_error(data: bytes) -> None:
    with pytest.raises(BadMetadata):
        read_messagepack(data, "x.o")


def test_long_lists_are_read_after_a_scan() -> None:
    document = {"a": list(range(100_000)), "b": [{"c": b"\x01", 3: 1.5}] * 5000, "d": msgpack.ExtType(7, b"x")}
    assert read_messagepack(msgpack.packb(document)) == {
        "a": list(range(100_000)),
        "b": [{"c": "0x01", "3": 1.5}] * 5000,
        "d": "extension 7: 0x78",
    }


def test_a_document_that_is_no_map_or_whose_kernels_are_no_list() -> None:
    for document in ([1], 3, "x", {"mtgpu.kernels": {"a": 1}}, {"mtgpu.kernels": 3}):
        with pytest.raises(BadMetadata, match=r"expected a (map|list)"):
            kernels_of(mtgpu_elf(document))
    kernels, warnings = kernels_of(mtgpu_elf({"mtgpu.kernels": [3, mtgpu_kernel()]}))
    assert len(kernels) == 1 and warnings == ["x: kernel 0 is a number (3), expected a map; left out"]
    assert kernels_of(mtgpu_elf({}))[1] == ["x: the metadata names no kernels (no key mtgpu.kernels)"]


def test_sizes_of_code_come_from_the_symbols() -> None:
    document = mtgpu_document(mtgpu_kernel("a"), mtgpu_kernel("b"), mtgpu_kernel("c"))
    data = mtgpu_elf(document, text=bytes(96), functions=[Function("a", 0, 36), Function("b", 36, 0)])
    kernels, _ = kernels_of(data)
    assert [kernel.code_bytes for kernel in kernels] == [36, 60, None]


def test_several_notes_and_several_documents_add_up() -> None:
    two = [note("MTGPU", 0x40, msgpack.packb(mtgpu_document(mtgpu_kernel(name)))) for name in "ab"]
    assert [kernel.name for kernel in kernels_of(ElfWriter(notes=b"".join(two)).build())[0]] == ["a", "b"]
    text = "".join(mtgpu_assembly(mtgpu_document(mtgpu_kernel(name)), BODY) for name in "ab")
    assert [kernel.name for kernel in kernels_of(text)[0]] == ["a", "b"]


def test_an_object_without_metadata_says_so() -> None:
    assert kernels_of(ElfWriter(text=bytes(12)).build()) == (
        [],
        ["x: no metadata note (MTGPU type 0x40) is in it"],
    )
    assert kernels_of(BODY) == ([], ["x: the assembly text has no metadata"])


def test_metadata_without_an_end() -> None:
    with pytest.raises(BadMetadata, match=r"x: line 2: \.mtgpu_metadata\.start has no end \(offset 0xa\)"):
        kernels_of("\t.addrsig\n\t.mtgpu_metadata.start\n---\n")


def amdgpu_kernel(**changes: Any) -> dict[str, Any]:
    values = {
        ".name": "k",
        ".symbol": "k.kd",
        ".vgpr_count": 17,
        ".sgpr_count": 41,
        ".agpr_count": 0,
        ".vgpr_spill_count": 2,
        ".sgpr_spill_count": 0,
        ".group_segment_fixed_size": 76,
        ".private_segment_fixed_size": 16,
        ".max_flat_workgroup_size": 1024,
        ".wavefront_size": 64,
    }
    return values | changes


def test_amdgpu_keys() -> None:
    document = {
        "amdhsa.kernels": [amdgpu_kernel()],
        "amdhsa.version": [1, 1],
        "amdhsa.target": "amdgcn-amd-amdhsa--gfx908:xnack+",
    }
    elf = ElfWriter(machine=EM_AMDGPU, flags=0x30, notes=note("AMDGPU", 32, msgpack.packb(document))).build()
    kernel = the_kernel(elf)
    assert (kernel.name, kernel.symbol, kernel.target) == ("k", "k.kd", "gfx908:xnack+")
    assert kernel.registers == {"vector": 17, "scalar": 41, "accumulation": 0}
    assert kernel.spills == {"vector": 2, "scalar": 0}
    assert (kernel.shared_memory_bytes, kernel.private_memory_bytes, kernel.max_block_size) == (76, 16, 1024)
    assert kernel.has_barrier is None and kernel.unknown_keys == ()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=8) | st.binary(max_size=8)
    | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=25,
)  # fmt: skip


def as_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_plain(item) for item in value]
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@relaxed
@given(VALUES)
def test_messagepack_round_trip(value: Any) -> None:
    read = read_messagepack(msgpack.packb(value))
    assert read == as_plain(value)
    json.dumps(read, allow_nan=False)


NAMES = st.text("abyn0189.~_-:'\"#!&*{}[],%@` ", min_size=1, max_size=10)


@relaxed
@given(st.dictionaries(NAMES, NAMES | st.integers(0, 2**32), max_size=5))
def test_yaml_round_trip_of_quoted_texts(value: dict[str, Any]) -> None:
    def quoted(item: Any) -> str:
        return str(item) if isinstance(item, int) else "!str '" + item.replace("'", "''") + "'"

    text = "".join(f"? {quoted(key)}\n: {quoted(item)}\n" for key, item in value.items()) or "{}"
    assert read_yaml(text) == value


@relaxed
@given(st.binary(max_size=60) | st.text(max_size=60))
def test_any_document_is_read_or_refused(data: bytes | str) -> None:
    try:
        value = read_messagepack(data) if isinstance(data, bytes) else read_yaml(data)
    except BadMetadata:
        return
    json.dumps(value, allow_nan=False)


def test_plain_counts_depth() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH + 1):
        value = [value]
    with pytest.raises(BadMetadata, match="nested deeper than 64 levels"):
        plain(value)
