"""A flag that the compiler does not take: recognised in its own words, told in ours."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mccprobe.base.errors import MccprobeError, ToolchainError, UnknownFlag
from mccprobe.base.process import TIMED_OUT
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.flags.datafile import nearest
from mccprobe.targets.protocol import Toolchain

# llvm/lib/Support/CommandLine.cpp: unknown option; bad value ("for the --x option: ..."); given twice
OPTION_COMPLAINTS = ("Unknown command line argument", "for the --", "for the -")

# the same file, and clang/include/clang/Basic/DiagnosticDriverKinds.td
_MEANT = re.compile(r"([Dd])id you mean '([^']+)'\?")


def meant(complaint: str, text: str) -> list[str]:
    """What the compiler would have taken for `text`: its own suggestion, else the nearest names of the catalogue."""
    bare = text.lstrip("-").partition("=")[0]
    # LLVM shows two dashes, whatever was typed, and suggests the nearest of all its options, however far it is
    own = {name.lstrip("-"): name.replace("--", "-", d == "D") for d, name in _MEANT.findall(complaint)}
    if best := nearest(bare, own, 1):
        return [own[best[0]]]
    known = load_catalogue().flags
    # of a name that the catalogue knows, the value is what the compiler refuses
    return [] if bare in known else [f"-{name}" for name in nearest(bare, known) if known[name].option == "mllvm"]


def not_taken(
    toolchain: Toolchain, argv: Sequence[str], text: str, complaint: str, *, otherwise: str = ""
) -> MccprobeError:
    """The error for a flag (driver argv) that this compiler refuses with `complaint`, or gives no answer on in time.

    otherwise: its complaint on the same text as the other kind of option.
    """
    if toolchain.incomplete:
        return ToolchainError(toolchain.incomplete, hint="Debian: apt-get install llvm-14-dev, then run again")
    if complaint.startswith(TIMED_OUT):
        return ToolchainError(
            f"{toolchain.driver[0]}: asked whether it takes {' '.join(argv)}, it gave no answer: {complaint}",
            hint="does it hang, or is the machine busy? give the command again",
        )
    near = meant(f"{complaint}\n{otherwise}", text)
    first = next((line for line in complaint.splitlines() if line.strip()), complaint)
    return UnknownFlag(
        text,
        near,
        reason=f"{toolchain.driver[0]} does not take {' '.join(argv)}: {first}",
        hint=f"did you mean {' or '.join(near)}?"
        if near
        else "is it spelled as the compiler's hidden help has it (-mllvm -help-hidden), and is the value allowed?",
    )
