"""A flag that the compiler does not take: recognised in its own words, told in ours."""

from __future__ import annotations

from collections.abc import Sequence

from mccprobe.base.errors import MccprobeError, ToolchainError, UnknownFlag
from mccprobe.base.process import TIMED_OUT
from mccprobe.targets.protocol import Toolchain

# llvm/lib/Support/CommandLine.cpp: unknown option; bad value ("for the --x option: ..."); given twice
OPTION_COMPLAINTS = ("Unknown command line argument", "for the --", "for the -")


def not_taken(toolchain: Toolchain, argv: Sequence[str], text: str, complaint: str) -> MccprobeError:
    """The error for a flag (driver argv) that this compiler refuses with `complaint`, or gives no answer on in time."""
    if toolchain.incomplete:
        return ToolchainError(toolchain.incomplete, hint="Debian: apt-get install llvm-14-dev, then run again")
    if complaint.startswith(TIMED_OUT):
        return ToolchainError(
            f"{toolchain.driver[0]}: asked whether it takes {' '.join(argv)}, it gave no answer: {complaint}",
            hint="does it hang, or is the machine busy? give the command again",
        )
    first = next((line for line in complaint.splitlines() if line.strip()), complaint)
    return UnknownFlag(
        text,
        reason=f"{toolchain.driver[0]} does not take {' '.join(argv)}: {first}",
        hint="is it spelled as the compiler's hidden help has it (-mllvm -help-hidden), and is the value allowed?",
    )
