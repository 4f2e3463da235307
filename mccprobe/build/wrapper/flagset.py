"""From a flag set of the catalogue to what the wrapper adds, with the name by which each option counts as given.

The wrapper compares names, not texts: `--x`, `-x=1` and `-Xclang -mllvm -Xclang -x` are one option. `driver_key`
and `llvm_key` are the rules of `mccp_key` and `mccp_llvm` in wrappers/mcc; a test holds them together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import UsageError
from mccprobe.base.paths import exists
from mccprobe.targets.flags.catalogue import Catalogue, ResolvedFlag, load_catalogue
from mccprobe.targets.flags.given import refuse_twice
from mccprobe.targets.flags.levels import is_device_level, is_level
from mccprobe.targets.llvm.command import (
    TAKES_NEXT,
    link_options,
    own_to_set,
    split_arguments,
)

DEFAULT_SET = "gemm-s4000"  # the article's seven flags, section 18
NO_SET = "none"  # MCCPROBE_SET=none
LEVEL_BUNDLE = "mtgpu-opt-level"  # what -Od3 is told to be (FlagTree compiler.py, FlagGems#2965; mtgpu.md 5.2)
_NO = re.compile(r"-([fmW])no-")
_DEBUG = re.compile(r"-g(?:[0-3]?|gdb.*|dwarf.*|line-.*)")
_LISTS = ("-fplugin=", "-fpass-plugin=", "-fplugin-arg-")  # may be given as often as one likes
_ONE_VALUE = ("-target", "-isysroot", "-sysroot")  # the value is no part of the name


@dataclass(frozen=True)
class Addition:
    """One flag as the wrapper adds it. key: see the module; words: driver argv; llvm: behind -mllvm."""

    key: str
    words: tuple[str, ...]
    llvm: bool


@dataclass(frozen=True)
class WrapperSet:
    """A named set; risks: what its flags promise or are told to break, one line each."""

    name: str
    summary: str
    additions: tuple[Addition, ...]
    risks: tuple[str, ...] = ()

    @property
    def compares_drivers(self) -> bool:
        """True if an option of the driver is in it: then those of each command line must be compared."""
        return any(not addition.llvm for addition in self.additions)


@dataclass(frozen=True)
class WrapperSets:
    """Every set that a wrapper knows, and the one that it adds by itself."""

    chosen: WrapperSet
    known: tuple[WrapperSet, ...]


def llvm_key(option: str) -> str:
    """`--x=1` -> "x": LLVM's cl::opt takes one or two dashes."""
    return option.removeprefix("-").removeprefix("-").partition("=")[0]


def driver_key(option: str, value: str = "") -> str:
    """The name of a driver option; value: its next argument. Opposites (-fx, -fno-x) have one name."""
    if is_device_level(option):
        return LEVEL_BUNDLE
    if is_level(option):
        return "-O"
    if found := _NO.match(option):
        key = f"-{found.group(1)}{option[found.end() :]}"
    elif option in ("-D", "-U"):
        key = f"-D{value}"
    elif option.startswith(("-D", "-U")):
        key = f"-D{option[2:]}"
    elif _DEBUG.fullmatch(option):
        return "-g"
    elif option.startswith(_LISTS):
        return option
    elif option.startswith("--cuda-gpu-arch="):
        return "-offload-arch"
    elif option.startswith("--"):
        key = option[1:]
    else:
        key = option if option in _ONE_VALUE else option + value
    return key.partition("=")[0]


def wrapper_sets(chosen: str) -> WrapperSets:
    """The sets of the catalogue and of the file, with the chosen one.

    chosen: a name of the catalogue, or a file in its format with one [[set]] (what `mccprobe flags search` writes).
    Raises UnknownFlag, BadDataFile, UsageError.
    """
    catalogue = load_catalogue()
    name = chosen
    if chosen not in catalogue.sets and ("/" in chosen or chosen.endswith(".toml") or exists(chosen)):
        shipped = catalogue.sets
        catalogue = load_catalogue([Path(chosen)])
        own = [key for key, entry in catalogue.sets.items() if shipped.get(key) is not entry]
        if len(own) != 1:
            held = ", ".join(own) or "none"
            raise UsageError(f"{chosen} must hold exactly one [[set]], and holds {len(own)}: {held}")
        name = own[0]
    first = _compile(catalogue, name)
    others = [_compile(catalogue, other) for other in catalogue.sets if other != name]
    return WrapperSets(first, (first, *others))


def _compile(catalogue: Catalogue, name: str) -> WrapperSet:
    resolved = catalogue.resolve_set(name)  # raises for an unknown name
    entry = catalogue.sets[name]
    additions = [_addition(flag, name) for flag in resolved]
    refuse_twice(((one.key, flag.text) for one, flag in zip(additions, resolved, strict=True)), f"set {name}")
    if name == NO_SET or "\n" in name:
        raise UsageError(f"a set cannot be called {name}", hint=f"MCCPROBE_SET={NO_SET} means no set")
    risks = [
        f"{flag.flag.name}: {risk.kind}: {risk.note}"
        for flag in resolved
        if flag.flag is not None
        for risk in flag.flag.risks
        if risk.kind in ("promise", "unsafe", "fault") and risk.value in ("", flag.value)
    ]
    return WrapperSet(name, entry.summary, tuple(additions), tuple(risks))


def _addition(flag: ResolvedFlag, name: str) -> Addition:
    arguments = split_arguments(flag.argv)
    # a text with a leading dash that is no known flag was taken for LLVM's: -c has become -mllvm -c
    typed = split_arguments((flag.text,)) if flag.text.startswith("-") else arguments
    own = own_to_set(arguments) or (own_to_set(typed) and not flag.text.startswith("-o"))
    problem = ""
    if arguments.inputs:
        problem = "names an input"
    elif own or flag.argv[0] in ("-x", "--language"):
        problem = "says what the command does; that is the build's"
    elif link_options(arguments) or link_options(typed):
        problem = "is for the linker; only compiles get the set"
    elif flag.text in TAKES_NEXT or (len(flag.argv) == 1 and flag.argv[0] in TAKES_NEXT):
        problem = "lacks its value"
    elif any("\0" in word for word in flag.argv):
        problem = "has a zero byte"
    if problem:
        raise UsageError(f"set {name}: {flag.text} {problem}", hint="a set holds flags of the compile")
    if flag.given.option:
        return Addition(llvm_key(flag.given.option), flag.argv, llvm=True)
    return Addition(driver_key(flag.argv[0], *flag.argv[1:2]), tuple(flag.argv), llvm=False)


def describe(additions: Sequence[Addition]) -> list[str]:
    """Each addition as one text, as on a command line."""
    return [" ".join(addition.words) for addition in additions]
