"""MTGPU objects: by the vendor's tool where there is one (a fake here), else by the open table."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from mccprobe.objects.isa.disassemble import Disassemblers, ImageListing, load
from mccprobe.objects.isa.summary import summarise

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    """tests/binary/writer.py, which makes MTGPU objects of invented shape."""
    spec = importlib.util.spec_from_file_location("mtgpu_writer", DATA.parents[1] / "binary" / "writer.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _load(tmp_path: Path, writer: ModuleType, vendor: str) -> ImageListing:
    name = "_Z4gemmPKtS0_Pf"
    data = writer.mtgpu_elf(
        writer.mtgpu_document(writer.mtgpu_kernel(name)),
        text=bytes(range(72)),
        functions=[writer.Function(name, 0, 72)],
    )
    file = tmp_path / "k.mubin"
    file.write_bytes(data)
    (found,) = load(file, Disassemblers(vendor=vendor))
    return found


def _fake(tmp_path: Path, body: str) -> str:
    tool = tmp_path / "llvm-objdump"
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)
    return str(tool)


def test_without_the_tool_code_that_fits_no_cut_is_unknown(tmp_path: Path, writer: ModuleType) -> None:
    found = _load(tmp_path, writer, "")
    assert (found.tool, found.listing.format) == ("open table mp_2x", "open-mtgpu")
    assert len(found.warnings) == 2 and "unknown code at 0x0 (offset 0, 72 bytes)" in found.warnings[1]
    summary = summarise(found.listing.functions[0])
    assert (summary.instructions, summary.words, summary.unknown_encodings) == (None, None, 1)
    assert {one.mnemonic for one in found.listing.functions[0].instructions} == {"<misfit>"}


def test_the_tool_is_run_on_the_object(tmp_path: Path, writer: ModuleType) -> None:
    tool = _fake(tmp_path, f'[ "$1" = -d ] && [ -s "$2" ] && cat "{DATA}/objdump-mtgpu-invented.txt"')
    found = _load(tmp_path, writer, tool)
    assert (found.tool, found.listing.format, found.listing.instruction_count) == (tool, "objdump-mtgpu", 10)


@pytest.mark.parametrize("body", ["exit 3", "echo nothing that is a listing", "kill -SEGV $$"])
def test_a_tool_that_fails_leaves_the_words(tmp_path: Path, writer: ModuleType, body: str) -> None:
    tool = _fake(tmp_path, body)
    found = _load(tmp_path, writer, tool)
    assert found.tool == "open table mp_2x"
    assert found.warnings[0].startswith(tool)
