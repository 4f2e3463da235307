"""What `disasm`, `diff` and `lint` share: which disassemblers there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mccprobe.objects.isa.disassemble import Disassemblers


def disassemblers(mcc: str | None, musa_path: str | None) -> Disassemblers:
    """The vendor's llvm-objdump beside mcc (or MCCPROBE_OBJDUMP), and the stock ones in PATH."""
    from mccprobe.inspection.instructions import disassemblers as found_for
    from mccprobe.targets.mcc.toolchain import MccPaths

    return found_for(MccPaths(mcc, musa_path))
