"""`-flto`: its passes run inside of the linker. The error that shows how to bisect the linked bitcode instead."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from mccprobe.base.errors import UsageError
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.targets import registry
from mccprobe.targets.llvm.command import Arguments, compile_options, is_cxx, is_source, link_options, split_arguments
from mccprobe.targets.llvm.locate import which
from mccprobe.targets.protocol import Toolchain

WHOLE = "whole.bc"
# of the front end alone: a compile of bitcode calls them unused
_FRONT_END = ("-D", "-U", "-I", "-isystem", "-include", "-iquote", "-idirafter", "-imacros", "-std", "-W", "-x")


def refuse_lto(options: BisectOptions, arguments: Arguments, source: Path, toolchain: Toolchain) -> None:
    """Raise UsageError for a link-time optimised build, with the commands that make FILE.bc of the program."""
    if not registry.target(toolchain.name).stock or not _last_says_lto(arguments.flat):
        return
    driver = options.compiler or toolchain.driver[0]
    names = [str(source), *(name for name in arguments.inputs if is_source(name))]
    rest = [name for name in arguments.inputs if not is_source(name)]
    compiled = [(name, f"{Path(name).stem}.bc") for name in names]
    flags = [*toolchain.driver[1:], *compile_options(arguments)]
    commands = [[driver, *flags, "-c", name, "-o", bitcode] for name, bitcode in compiled]
    whole = compiled[0][1]
    if len(compiled) > 1:
        whole = WHOLE
        commands.append([_linker(toolchain), *(bitcode for _, bitcode in compiled), "-o", whole])
    library = ["-lstdc++"] if any(map(is_cxx, names)) else []
    kept = [*_without_front_end(compile_options(arguments)), *rest, *link_options(_without_lto(arguments)), *library]
    commands.append(["mccprobe", "bisect", whole, "--compiler", driver, *_again(options), "--", *kept])
    raise UsageError(
        "-flto: link-time passes run inside of the linker, where they cannot be limited",
        hint="bisect the linked bitcode: " + " && ".join(map(shlex.join, commands)),
    )


def _is_lto(option: str) -> bool:
    return option == "-flto" or option.startswith("-flto=")


def _last_says_lto(options: Sequence[str]) -> bool:
    said = [option for option in options if _is_lto(option) or option == "-fno-lto"]
    return bool(said) and said[-1] != "-fno-lto"


def _without_lto(arguments: Arguments) -> Arguments:
    """Without the options of a link-time optimiser; its linker need not be the one that a plain link takes."""
    return Arguments(tuple(one for one in arguments.options if not one[0].startswith(("-flto", "-fuse-ld="))), ())


def _without_front_end(options: Sequence[str]) -> tuple[str, ...]:
    groups = _without_lto(split_arguments(options)).options
    return tuple(word for group in groups if not group[0].startswith(_FRONT_END) for word in group)


def _linker(toolchain: Toolchain) -> str:
    """llvm-link of this LLVM: another one may not read its bitcode."""
    identity = toolchain.identify()
    named = f"llvm-link-{identity.clang_major}"
    found = which(named) or which(str(identity.resolved.parent / "llvm-link"))
    return named if found is None or found.name == named else str(found)


def _again(options: BisectOptions) -> list[str]:
    """The options of the question. The reference of a plain build is -O0: the whole program is one file now."""
    words = [word for flag in options.flags for word in (f"--flag={flag}",)]
    reference = options.reference
    if reference is None and not options.flags and options.oracle is None:
        reference = "-O0"
    given = (
        ("--reference", reference),
        ("--oracle", options.oracle),
        ("--run-args", options.run_args),
        ("--run-in", options.run_in),
        ("--stdin", options.stdin),
    )
    return [*words, *(f"{name}={value}" for name, value in given if value is not None)]
