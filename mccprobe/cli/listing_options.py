"""What `disasm`, `diff` and `lint` share: which disassemblers there are."""

from __future__ import annotations

import os
import shutil

from mccprobe.isa.disassemble import Disassemblers, find_stock


def disassemblers(mcc: str | None, musa_path: str | None) -> Disassemblers:
    """The vendor's llvm-objdump beside mcc (or MCCPROBE_OBJDUMP), and the stock ones in PATH."""
    named = os.environ.get("MCCPROBE_OBJDUMP")
    if named:
        return Disassemblers(vendor=shutil.which(named) or named, stock=find_stock())
    from mccprobe.toolchain.mcc import MccPaths, find_mcc

    found = find_mcc(MccPaths(mcc, musa_path))
    vendor = None
    if found.path is not None:
        for folder in dict.fromkeys((found.path.parent, found.path.resolve().parent)):
            vendor = vendor or shutil.which("llvm-objdump", path=str(folder))
    vendor = vendor or shutil.which("llvm-objdump-mtgpu")
    return Disassemblers(vendor=vendor or "", stock=find_stock())
