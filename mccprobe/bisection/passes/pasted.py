"""A compile command pasted from a build log after `--`: what mccprobe sets itself is left out, with a note."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.targets.llvm.command import Arguments, is_source, language, without_output

# the first word of a compile command: a launcher, or a compiler by its usual names, with a target or a version
_LAUNCHER = re.compile(r"ccache|sccache|distcc|icecc")
_CLANG = re.compile(r"(?:[\w.]+-)*clang(?:\+\+)?(?:-[\d.]+)?")
_MCC = re.compile(r"mcc(?:-[\d.]+)?")
_OTHER = re.compile(r"(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|mcc)(?:-[\d.]+)?")


def begins_a_command(word: str) -> bool:
    """True for a compiler or a launcher of one, as the first word of a compile command."""
    name = Path(word).name
    return any(known.fullmatch(name) for known in (_LAUNCHER, _CLANG, _OTHER))


def without_compiler(options: BisectOptions) -> tuple[BisectOptions, tuple[str, ...]]:
    """The options without the compiler at the head of the arguments, and a note on it.

    A clang or an mcc is taken where no compiler is named.
    """
    args = list(options.args)
    while args and _LAUNCHER.fullmatch(Path(args[0]).name):
        del args[0]
    head = args[0] if args else ""
    name = Path(head).name
    if not begins_a_command(head):
        return options, ()
    options = replace(options, args=tuple(args[1:]))
    if (options.compiler, options.mcc, options.musa_path, options.toolchain) == (None, None, None, "auto"):
        if _CLANG.fullmatch(name):
            return replace(options, compiler=head), (f"compiler: {head}, from the command after --",)
        if _MCC.fullmatch(name):
            return replace(options, mcc=head), (f"compiler: {head}, from the command after --",)
    return options, (f"{head} is left out of the arguments after --: --compiler PATH names the compiler",)


def without_own_output(arguments: Arguments) -> tuple[Arguments, tuple[str, ...]]:
    """The arguments without `-c` and `-o FILE`, and a note on them."""
    kept, dropped = without_output(arguments)
    if not dropped:
        return arguments, ()
    return kept, (f"left out of the arguments after --: {', '.join(dropped)} (mccprobe sets them itself)",)


def without_file(arguments: Arguments, source: Path) -> tuple[Arguments, tuple[str, ...]]:
    """The arguments without FILE itself, and a note on it: linked twice, its symbols would be there twice."""
    forced = language(arguments)
    again = [name for name in arguments.inputs if is_source(name, forced) and _same(name, source)]
    if not again:
        return arguments, ()
    inputs = tuple(name for name in arguments.inputs if name not in again)
    return replace(arguments, inputs=inputs), (f"left out of the arguments after --: {again[0]} (it is FILE)",)


def _same(name: str, source: Path) -> bool:
    try:
        return source.samefile(name)
    except OSError:
        return False


def several_files(command: str, front: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    """Message and hint for more than one FILE. front: the words before `--`; after: those that follow it."""
    shown = ", ".join(front[:6]) + (", ..." if len(front) > 6 else "")
    rest = " ".join([*front[1:4], *(["..."] if len(front) > 4 else []), *after[:4]])
    return (
        f"{command} takes one FILE, and {len(front)} are given: {shown}",
        f"give one file to {command} and the others after --: mccprobe {command} {front[0]} OPTIONS -- {rest}",
    )
