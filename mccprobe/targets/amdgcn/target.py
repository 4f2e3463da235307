"""clang for an AMD GPU as a target: it compiles only."""

from __future__ import annotations

from pathlib import Path

from mccprobe.targets.protocol import Choice, Target, Wanted

DATA = Path(__file__).parent / "data"


def _find(wanted: Wanted) -> Choice:
    from mccprobe.targets.amdgcn.toolchain import amdgcn_toolchain

    return Choice(amdgcn_toolchain())


TARGET = Target(
    name="amdgcn",
    help="clang 14 for an AMD GPU, for report and disasm: compiles only",
    offers=frozenset({"report", "search"}),
    find=_find,
    device=True,
    compile_only=True,
    space=DATA / "search.toml",
    absent="no other GPU's figures for a .mu source; apt-get install clang-14 lld-14",
)
