"""Stock clang as a target: ordinary C, C++ and LLVM IR."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from mccprobe.targets.inventory import Entry, entry_of
from mccprobe.targets.llvm.data_files import PASSES
from mccprobe.targets.protocol import Choice, Target, Wanted

DATA = Path(__file__).parent / "data"
SPACE = DATA / "search.toml"  # also for a target that has none


def _find(wanted: Wanted) -> Choice:
    """A compiler that calls itself the stand-in is the stand-in, also under this name."""
    from mccprobe.targets.clang.toolchain import clang_toolchain
    from mccprobe.targets.sim.toolchain import SIMULATED_MARK, SimToolchain

    toolchain = clang_toolchain(wanted.options.get("compiler"), wanted.sources)
    identity = toolchain.identify()
    return Choice(SimToolchain(identity.path) if SIMULATED_MARK in identity.version else toolchain)


def _automatic(wanted: Wanted) -> Choice | None:
    return _find(wanted) if wanted.options.get("compiler") or not wanted.device else None


def _listed(wanted: Wanted) -> list[Entry]:
    """Every clang of PATH."""
    from mccprobe.targets.clang.toolchain import ClangToolchain
    from mccprobe.targets.llvm.locate import installed_clangs

    clangs = installed_clangs().values()
    found = [entry_of(TARGET.name, partial(ClangToolchain, [str(path)])) for path in clangs]
    return found or [Entry(TARGET.name, False, notes=("Debian: apt-get install clang-14",))]


TARGET = Target(
    name="clang",
    help="any clang from 13 on, or --compiler PATH, for ordinary programs",
    offers=frozenset({"bisect", "check", "flags", "search"}),
    find=_find,
    automatic=_automatic,
    present=lambda wanted: True,
    listed=_listed,
    path_option="compiler",
    programs=True,
    stock=True,
    cxx_arguments=("--driver-mode=g++",),
    absent="C and C++ programs cannot be bisected; apt-get install clang-14",
    options_of="clang",
    flag_data=DATA / "flags.toml",
    pass_data=PASSES,
    space=SPACE,
)
