"""Numbers put in order: declared against reserved, metadata bytes against a spill, whose block size; frames."""

from __future__ import annotations

from typing import Any

import pytest

from mccprobe.objects.binary.records import KernelMetadata
from mccprobe.objects.model.frames import REGISTER_KINDS, flat_row, kernels_frame
from mccprobe.objects.model.resources import InstructionMix, KernelResources, Options, resources_of


def kernel(source_format: str = "mtgpu-asm", target: str = "mp_22", **changes: Any) -> KernelMetadata:
    given: dict[str, Any] = {
        "name": "k",
        "symbol": "k",
        "target": target,
        "source_format": source_format,
        "registers": {"temp": 126, "attribute": 2, "internal": 2, "coefficient": 0, "shared": 64, "slot": 0},
        "shared_memory_bytes": 37_396,
        "private_memory_bytes": 8,
        "spills": None,
        "has_barrier": True,
        "max_block_size": 1,
        "code_bytes": None,
        "unknown_keys": (),
        "raw": {},
    }
    return KernelMetadata(**(given | changes))


def amd(**changes: Any) -> KernelMetadata:
    given: dict[str, Any] = {
        "registers": {"vector": 64, "scalar": 20, "accumulation": None},
        "spills": {"vector": 2, "scalar": 0},
        "private_memory_bytes": 320,
        "has_barrier": None,
        "max_block_size": 1024,
    }
    return kernel("amdgpu-elf", "gfx908", **(given | changes))


def of(metadata: KernelMetadata, **given: Any) -> KernelResources:
    return resources_of(metadata, **given)


# --- shared memory --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "declared", "reserved", "certainty"),
    [
        (37_396, 37_376, 20, "inferred"),  # the article's kernel
        (20, 0, 20, "inferred"),  # a kernel without shared memory
        (0, 0, 0, "known"),
        (65_664, None, None, "unknown"),  # muBLAS: 65,536 + 128, or no reserve at all
        (100, None, None, "unknown"),
    ],
)
def test_the_reserve_is_inferred_where_it_shows(
    total: int, declared: int | None, reserved: int | None, certainty: str
) -> None:
    shared = of(kernel(shared_memory_bytes=total)).shared
    assert (shared.total, shared.declared, shared.reserved, shared.certainty) == (total, declared, reserved, certainty)


def test_hand_assembly_is_named_where_it_may_be() -> None:
    note = of(kernel(shared_memory_bytes=65_664)).shared.note
    assert "hand assembly reserves 128 [I]: 65,536 declared then" in note


@pytest.mark.parametrize(
    ("declared", "reserved", "word"), [(4864, 20, "mcc"), (4756, 128, "hand"), (4884, 0, "no reserve")]
)
def test_a_symbol_settles_it(declared: int, reserved: int, word: str) -> None:
    shared = of(kernel(shared_memory_bytes=4884), declared_shared=declared).shared
    assert (shared.declared, shared.reserved, shared.certainty) == (declared, reserved, "known")
    assert word in shared.note


@pytest.mark.parametrize(
    ("target", "total", "declared", "reserved", "certainty"),
    [
        ("mp_31", 12, 0, 12, "inferred"),
        ("mp_31", 20, None, None, "unknown"),
        ("mp_21", 20, 0, 20, "inferred"),
        ("mp_42", 20, None, None, "unknown"),  # nothing is public
        ("mp_31", 37_396, None, None, "unknown"),
    ],
)
def test_the_reserve_is_that_of_the_architecture(
    target: str, total: int, declared: int | None, reserved: int | None, certainty: str
) -> None:
    shared = of(kernel(target=target, shared_memory_bytes=total)).shared
    assert (shared.declared, shared.reserved, shared.certainty) == (declared, reserved, certainty)


@pytest.mark.parametrize(
    ("target", "total", "declared"),
    [("mp_21", 824, 800), ("mp_22", 820, 800), ("mp_31", 816, 800), ("mp_31", 412, 400)],
)
def test_a_reserve_is_rounded_up_to_the_alignment_of_what_is_declared(target: str, total: int, declared: int) -> None:
    """100 doubles and 100 floats, as in public objects."""
    shared = of(kernel(target=target, shared_memory_bytes=total), declared_shared=declared).shared
    assert shared.note.startswith("as mcc reserves")


def test_a_symbol_larger_than_the_metadata_settles_nothing() -> None:
    assert of(kernel(shared_memory_bytes=100), declared_shared=4864).shared.declared is None


def test_amd_reserves_nothing() -> None:
    shared = of(amd(shared_memory_bytes=37_376)).shared
    assert (shared.declared, shared.reserved) == (37_376, 0)


# --- private memory and spills ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "verdict"),
    [(0, "none"), (8, "metadata"), (16, "metadata"), (17, "memory"), (2080, "memory"), (None, "unknown")],
)
def test_eight_bytes_are_metadata_and_2080_are_not(size: int | None, verdict: str) -> None:
    """Section 22.2: 8 bytes are of the metadata level; section 20: 2,080 are not."""
    assert of(kernel(private_memory_bytes=size)).private.verdict == verdict


def test_the_threshold_is_the_users() -> None:
    found = of(kernel(private_memory_bytes=8), options=Options(spill_threshold_bytes=0))
    assert found.private.verdict == "memory"
    assert "no spill count" in found.private.note


def test_mtgpu_has_no_spill_count() -> None:
    raw = {".args": [{".kind": 19, ".name": "Global Spill Base"}]}
    assert of(kernel(raw=raw)).to_dict()["spills"] is None


def test_amd_spills_and_local_variables_are_told_apart() -> None:
    private = of(amd()).private
    assert private.verdict == "memory"
    assert "at most 8, the rest are local variables" in private.note


def test_amd_private_memory_is_never_metadata() -> None:
    assert of(amd(private_memory_bytes=8)).private.verdict == "memory"


# --- block size, barrier, document ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "largest", "size", "source"),
    [
        (256, 512, 256, "--block-size"),
        (None, 512, 512, "metadata: largest block"),
        (None, 1, 1024, "assumed: the largest block, 1024 threads"),
        (None, None, 1024, "assumed: the largest block, 1024 threads"),
    ],
)
def test_whose_block_size(given: int | None, largest: int | None, size: int, source: str) -> None:
    first = of(kernel(max_block_size=largest), options=Options(block_size=given)).occupancy[0]
    assert (first.block_size, first.block_size_source) == (size, source)


def test_a_barrier_of_amd_is_seen_in_the_code() -> None:
    assert of(amd()).has_barrier is None
    assert of(amd(), mix=InstructionMix(3, {"VALU": 2, "BARRIER": 1})).has_barrier is True
    assert of(amd(), mix=InstructionMix(2, {"VALU": 2})).has_barrier is False


def test_the_metadata_is_believed_first() -> None:
    assert of(kernel(has_barrier=False), mix=InstructionMix(1, {"BARRIER": 1})).has_barrier is False


def test_host_code_has_no_occupancy() -> None:
    (entry,) = of(kernel("host-elf", "x86-64")).occupancy
    assert entry.reason == "code for a host CPU has no occupancy"


@pytest.mark.parametrize(("target", "said"), [("mtgpu", "a disassembly"), ("", "a disassembly"), ("x86-64", "host")])
def test_a_listing_is_no_host_code_for_that(target: str, said: str) -> None:
    (entry,) = of(kernel("listing", target)).occupancy
    assert said in entry.reason


# --- frames -----------------------------------------------------------------------------------------


def test_a_frame_has_one_row_a_kernel_and_one_column_a_number() -> None:
    frame = kernels_frame([of(kernel()), of(amd())])
    assert list(frame["name"]) == ["k", "k"]
    assert frame["temp_registers"][0] == 126
    assert frame["temp_registers"].isna()[1]
    assert str(frame["temp_registers"].dtype) == "Int64"
    assert list(frame["blocks_per_mp"]) == [1, 1]


def test_every_target_has_the_same_columns() -> None:
    rows = [flat_row(of(kernel())), flat_row(of(amd())), flat_row(of(kernel("host-elf", "x86-64", registers={})))]
    assert list(rows[0]) == list(rows[1]) == list(rows[2])
    assert {f"{kind}_registers" for kind in REGISTER_KINDS} <= set(rows[0])
