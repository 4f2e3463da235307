"""Each assumption on mcc's files: confirmed by files of the documented shape, contradicted by one changed thing.

The files are made by tests/binary/writer.py: no real one is public, so what is confirmed here is only that
the probes read the documented shape.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mccprobe.doctor.subject import CONFIRMED, CONTRADICTED, UNCHECKED, ProbeAnswer

Ask = Callable[..., Mapping[str, ProbeAnswer]]
Make = Callable[..., Path]
FAKES = Path(__file__).resolve().parents[1] / "fakes"
KERNEL = "_Z14mccprobe_probePfi"

# forms of public samples, put together for this test
BODY = f"""\
\t.text
\t.protected\t{KERNEL}
\t.globl\t{KERNEL}
\t.p2align\t8
\t.type\t{KERNEL},@function
{KERNEL}:
\t\t[N-sD---]\t\tFOP.MOV R4, SH23
\t\t[N-wD--o]\t\tDMA.LD.B32 R1, SH[16:17], R1, 4, 1, 1, chrnt=l2_l3, slc=new, persist=0, stride_add_first=0
\t\t[N-wD---]\t\tCTRL.END
.Lfunc_end0:
\t.size\t{KERNEL}, .Lfunc_end0-{KERNEL}
\t.type\tllvm.musa.kernel._Z15mccprobe_sharedPf.sm,@object
\t.local\tllvm.musa.kernel._Z15mccprobe_sharedPf.sm
\t.comm\tllvm.musa.kernel._Z15mccprobe_sharedPf.sm,256,1
"""
# invented bytes: counters, no encodings
LISTING = f"\nimage.o:\tfile format elf64-mtgpu\n\n\nDisassembly of section .text:\n\n0000000000000000 <{KERNEL}>:\n"
LINE = "\t[N-sD---]\t\tFOP.MOV R1, SH23 // {0:012X}: 00000001 00000002 00000003\n"
GOOD = (
    "version-line", "clang-version", "device-source", "offload-arch", "raw-bundle", "bundle-ids", "device-elf",
    "code-symbols", "metadata-note", "note-messagepack", "assembly-text", "metadata-keys", "metadata-version",
    "arch-id", "two-carriers", "shared-reserve", "temp-registers", "spill-base", "listing-lines", "pipe-names",
    "shared-symbol", "vendor-objdump", "instruction-dwords", "bundler-options", "max-block", "all-ones",
)  # fmt: skip


@pytest.fixture(scope="session")
def writer() -> ModuleType:
    """tests/binary/writer.py."""
    path = Path(__file__).resolve().parents[1] / "binary" / "writer.py"
    spec = importlib.util.spec_from_file_location("mccprobe_doctor_writer", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def dwords(*sizes: int) -> bytes:
    """Instructions of so many dwords; invented bits but for bit 31 of the last one."""
    return b"".join(bytes(4 * (size - 1)) + bytes.fromhex("1c030080") for size in sizes)


CODE = dwords(1, 2, 3, 2, 1)


def spill_base() -> list[dict[str, Any]]:
    return [{".kind": 18, ".offset": 14}, {".kind": 19, ".offset": 20}]


@pytest.fixture
def sdk_that_writes(writer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """`sdk_that_writes(elf={...}, kernel={...}, ...)`: an SDK whose mcc writes these files."""

    def make(
        *,
        kernel: Mapping[str, Any] | None = None,
        text_kernel: Mapping[str, Any] | None = None,
        body: str = BODY,
        descriptor: bytes | None = None,
        owner: str = "MTGPU",
        kind: int = 0x40,
        elf: Mapping[str, Any] | None = None,
        entry: str = "musa-mtgpu-mt-musa-mp_22",
        bare: bool = False,
        listing: str | None = None,
        version: tuple[int, ...] = (1, 0),
        fake: str = "mcc_writes_assembly",
        only: str = "",
        device: str = "",
    ) -> Path:
        import msgpack

        values = writer.mtgpu_kernel(KERNEL, **{"args": spill_base(), **(kernel or {})})
        document = writer.mtgpu_document(values, version=version)
        note = writer.note(owner, kind, msgpack.packb(document) if descriptor is None else descriptor)
        shape = {"notes": note, "text": CODE, "functions": [writer.Function(KERNEL, 0, 36)], **(elf or {})}
        image = writer.ElfWriter(**shape).build()
        bundle = writer.bundle([("host-x86_64-unknown-linux-gnu", b""), (entry, image)])
        text = writer.mtgpu_document({**values, **(text_kernel or {})}, version=version)
        (tmp_path / "k.s").write_text(writer.mtgpu_assembly(text, body), "utf-8")
        (tmp_path / "k.o").write_bytes(image if bare else bundle)
        monkeypatch.setenv("FAKE_ASSEMBLY", str(tmp_path / "k.s"))
        monkeypatch.setenv("FAKE_BUNDLE", str(tmp_path / "k.o"))
        monkeypatch.setenv("FAKE_ONLY", only)
        monkeypatch.setenv("FAKE_DEVICE", device)
        folder = tmp_path / "sdk" / "bin"
        folder.mkdir(parents=True, exist_ok=True)
        lines = LISTING + "".join(LINE.format(12 * number) for number in range(8)) if listing is None else listing
        (tmp_path / "listing").write_text(lines, "utf-8")
        tools = {
            "mcc": f". {FAKES}/{fake}" if fake == "mcc_writes_assembly" else f'exec {FAKES}/{fake} "$@"',
            "llvm-objdump": f"cat {tmp_path}/listing",
            "clang-offload-bundler": f'case "$*" in "--type=o --inputs="*" --list") echo {entry} ;; *) exit 1 ;; esac',
        }
        for name, text_of_tool in tools.items():
            (folder / name).write_text(f"#!/bin/sh\n{text_of_tool}\n", encoding="utf-8")
            (folder / name).chmod(0o755)
        return folder / "mcc"

    return make


def test_files_of_the_documented_shape_confirm_all(sdk_that_writes: Make, ask: Ask) -> None:
    found = ask(sdk_that_writes(), *GOOD)
    assert {name: one.state for name, one in found.items()} == dict.fromkeys(GOOD, CONFIRMED), found


CHANGES: dict[str, dict[str, Any]] = {
    "raw-bundle": {"bare": True},
    "bundle-ids": {"entry": "musa-other-mp_22"},
    "bundler-options": {"entry": "musa-other-mp_22"},
    "device-elf": {"elf": {"machine": 224}},
    "code-symbols": {"elf": {"functions": []}},
    "metadata-note": {"kind": 0x20},
    "note-messagepack": {"descriptor": b"\xc1 no messagepack"},
    "assembly-text": {"fake": "mcc_refuses_assembly"},
    "metadata-keys": {"kernel": {"temp_reg_count": None}, "text_kernel": {}},
    "metadata-version": {"version": (9, 9)},
    "arch-id": {"kernel": {"arch_id": 310}},
    "two-carriers": {"text_kernel": {".temp_reg_count": 9}},
    "shared-reserve": {"kernel": {"shared_memory_size": 128}},
    "temp-registers": {"kernel": {"temp_reg_count": 9}},
    "spill-base": {"kernel": {"args": [{".kind": 18}]}},
    "max-block": {"kernel": {"max_block_size": 1024}},
    "all-ones": {"kernel": {"barrier_coef": 4}},
    "listing-lines": {"body": BODY.replace("\t.text\n", "\t.text\n?? what is this\n")},
    "pipe-names": {"body": BODY.replace("CTRL.END", "XYZZY.END")},
    "shared-symbol": {"body": BODY.replace("llvm.musa.kernel.", "other.")},
    "vendor-objdump": {"listing": "image.o: file format not recognised\n"},
    "instruction-dwords": {"elf": {"text": dwords(1, 5, 1, 1, 1)}},
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_one_changed_thing_is_contradicted(name: str, sdk_that_writes: Make, ask: Ask) -> None:
    found = ask(sdk_that_writes(**CHANGES[name]), name)[name]
    assert found.state == CONTRADICTED, found
    assert found.evidence


def test_a_key_about_spills_would_be_a_better_sign(sdk_that_writes: Make, ask: Ask) -> None:
    found = ask(sdk_that_writes(kernel={"spill_count": 3}), "spill-base", "metadata-version")
    assert found["spill-base"] == ProbeAnswer(CONTRADICTED, "there is a key about spills: .spill_count")
    assert found["metadata-version"] == ProbeAnswer(CONTRADICTED, "new keys: .spill_count")


def test_the_cut_is_read_in_the_bytes_whatever_a_listing_shows(sdk_that_writes: Make, ask: Ask) -> None:
    mcc = sdk_that_writes(listing=LISTING)
    found = ask(mcc, "instruction-dwords")["instruction-dwords"]
    assert found.state == CONFIRMED
    assert found.evidence.startswith("5 instructions (2 of 1 dword, 2 of 2 dwords, 1 of 3 dwords), code for mp_22")
    broken = ask(sdk_that_writes(elf={"text": bytes(36)}), "instruction-dwords")["instruction-dwords"]
    assert broken.evidence.startswith("36 bytes, at offset 0: no dword with bit 31 ends it")


OF_MP_31 = {
    "entry": "musa-mtgpu-mt-musa--mp_31",
    "kernel": {"arch_id": 310, "shared_memory_size": 12, "args": [{".kind": 18, ".offset": 14}]},
    "only": "mp_31",
}
BY_ARCHITECTURE = ("arch-id", "shared-reserve", "spill-base", "device-elf")


def test_facts_are_those_of_the_architecture(sdk_that_writes: Make, ask: Ask) -> None:
    """mp_31 reserves 12 bytes and has no Global Spill Base; the other way round it is contradicted."""
    found = ask(sdk_that_writes(**OF_MP_31), *BY_ARCHITECTURE)
    assert {one.state for one in found.values()} == {CONFIRMED}, found
    assert all("code for mp_31 (no device answers)" in one.evidence for one in found.values()), found
    old = {"arch_id": 310, "shared_memory_size": 20, "args": spill_base()}
    found = ask(sdk_that_writes(**{**OF_MP_31, "kernel": old}), "shared-reserve", "spill-base")
    assert {one.state for one in found.values()} == {CONTRADICTED}, found


def test_the_code_of_the_device_is_examined(sdk_that_writes: Make, ask: Ask) -> None:
    """mp_22 comes first where no device answers; here the runtime names an mp_31."""
    found = ask(sdk_that_writes(**{**OF_MP_31, "only": ""}, device="mp_31"), *BY_ARCHITECTURE)
    assert {one.state for one in found.values()} == {CONFIRMED}, found
    assert all("code for mp_31, the architecture of the device" in one.evidence for one in found.values()), found


def test_of_an_architecture_without_public_facts_nothing_is_said(sdk_that_writes: Make, ask: Ask) -> None:
    unknown = {"entry": "musa-mthg-mt-musa-mp_42", "kernel": {"arch_id": 420}, "device": "mp_42", "only": "mp_42"}
    found = ask(sdk_that_writes(**unknown), "shared-reserve", "spill-base")
    assert {one.state for one in found.values()} == {UNCHECKED}, found


def test_without_metadata_nothing_is_said_of_its_keys(sdk_that_writes: Make, ask: Ask) -> None:
    mcc = sdk_that_writes(kind=0x20, fake="mcc_refuses_assembly")
    ids = (
        "metadata-keys",
        "metadata-version",
        "arch-id",
        "shared-reserve",
        "spill-base",
        "two-carriers",
        "temp-registers",
        "listing-lines",
        "pipe-names",
    )
    found = ask(mcc, *ids)
    assert {name: one.state for name, one in found.items()} == dict.fromkeys(ids, UNCHECKED), found


@pytest.mark.toolchain("clang-14")
def test_device_ir_of_a_device_triple(sdk: Path, tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_SDK", str(sdk))
    mcc = tmp_path / "mcc"
    mcc.write_text(
        f". {FAKES}/driver.sh\n"
        'driver_call() { while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done\n'
        'echo \'target triple = "mtgpu-mt-musa"\' > "$out"; }\nmain "$@"\n',
        encoding="utf-8",
    )
    mcc.write_text("#!/bin/sh\n" + mcc.read_text("utf-8"), encoding="utf-8")
    mcc.chmod(0o755)
    assert ask(mcc, "device-ir")["device-ir"] == ProbeAnswer(CONFIRMED, "target triple mtgpu-mt-musa")
