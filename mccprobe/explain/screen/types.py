"""Can the source of a program access memory as another type than it has? Read in clang's tree of it.

Without a conversion of a pointer, a union or assembly no C or C++ program can, so a switch of strict aliasing that
turns it right only keeps a pass from firing. Declarations of system headers do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mccprobe.base.process import RunSpec, run
from mccprobe.explain.screen.build import PlainBuilder, plain_options
from mccprobe.targets.llvm.command import CXX_SUFFIXES
from mccprobe.targets.llvm.locate import QUERY_TIMEOUT_S

_SUFFIXES = frozenset((".c", ".i", *CXX_SUFFIXES)) - {".mm"}
# clang's names of conversions in its tree; a call without a prototype and an alias are conversions that it does not
# show, and placement new gives memory another type
_CONVERSION = re.compile(
    r"<(?:BitCast|LValueBitCast|LValueToRValueBitCast|IntegralToPointer|ReinterpretMemberPointer"
    r"|BaseToDerived)(?: \([^)]*\))?>"
    r"|\b(?:VAArgExpr|AliasAttr|WeakRefAttr) "
    r"|CXXNewExpr .*'void \*\([^']*, void \*\)"
)
_NO_PROTOTYPE = re.compile(r"\(\*\)\(\)' <FunctionToPointerDecay>")  # in C; in C++ it takes no arguments
_TO_TYPE = re.compile(r"> '(?P<named>[^']*)'(?::'(?P<real>[^']*)')?.* <BitCast>")
# what may look at memory of every type, or is converted again before it is looked at
_ANY_MEMORY = re.compile(
    r"(?:(?:const|volatile) )*(?:void|(?:unsigned |signed )?char|std::byte) \*(?:const|__restrict)?"
)
_FRESH = re.compile(r"'(?:malloc|calloc|aligned_alloc)' '")
_OTHER_TYPE = re.compile(r"\bunion\b|\b(?:__)?asm(?:__)?\b")
_MARKER = re.compile(r'# \d+ "(?P<name>(?:\\.|[^"\\])*)"(?P<flags>(?: \d)*)')  # flag 3: a system header
_PLACE = re.compile(r"(?:<|, |> )(?P<file>[^<>:,\s'][^<>:,']*):\d+(?::\d+)?(?=[,> ])")
_LOOKED_AT_BYTES = 64 << 20  # of a printed tree or a preprocessed text; more is not looked through
_STRICT = tuple(
    f"-Werror={name}"
    for name in ("incompatible-pointer-types", "int-conversion", "format", "implicit-function-declaration")
)


def keeps_types(builder: PlainBuilder) -> bool:
    """True if the source of the program cannot access memory as another type; only where it is all there.

    Of two sources one may declare the other's objects with another type, which no tree shows.
    """
    if len(builder.sources) != 1 or any(Path(name).suffix not in _SUFFIXES for name in builder.sources):
        return False
    [source] = builder.sources
    options = plain_options(builder.workspace.request.args)
    text = _printed(builder, *options, "-E", source)
    if text is None or _OTHER_TYPE.search(own_text(text)):
        return False
    tree = _printed(builder, *options, "-fsyntax-only", *_STRICT, "-Xclang", "-ast-dump", source)
    return tree is not None and not converts(tree, system_files(text), cxx=Path(source).suffix in CXX_SUFFIXES)


def converts(tree: str, system: frozenset[str], *, cxx: bool) -> bool:
    """True if a declaration outside of these files converts a pointer so that memory may get another type."""
    lines = list(_own_lines(tree, system))
    if not cxx and any(_NO_PROTOTYPE.search(line) for line in lines):
        return True
    return any(
        _CONVERSION.search(line) and not _keeps_type(line, lines[index + 1 : index + 5])
        for index, line in enumerate(lines)
    )


def _keeps_type(line: str, below: list[str]) -> bool:
    found = _TO_TYPE.search(line)
    if not found:
        return False
    if _ANY_MEMORY.fullmatch(found["real"] or found["named"]):
        return True
    # memory that was just allocated has no type yet
    return bool(below) and "CallExpr" in below[0] and any(_FRESH.search(one) for one in below)


def _own_lines(tree: str, system: frozenset[str]) -> Iterator[str]:
    """The lines of declarations that do not begin in one of these files; a place names its file where it changes."""
    file, own = "", True
    for line in tree.splitlines():
        first = True
        for place in _PLACE.finditer(line):
            if place["file"] not in ("line", "col"):
                file = place["file"]
            if first and line.startswith(("|-", "`-")):
                own = file not in system
            first = False
        if own:
            yield line


def _printed(builder: PlainBuilder, *args: str) -> str | None:
    """All that the compiler prints, None if it fails or prints too much."""
    result = run(RunSpec([*builder.driver, *args], timeout_s=QUERY_TIMEOUT_S, capture_bytes=_LOOKED_AT_BYTES))
    return result.stdout_text if result.ok and result.stdout_bytes == len(result.stdout) else None


def own_text(preprocessed: str) -> str:
    """What is not of system headers."""
    kept, own = [], True
    for line in preprocessed.splitlines():
        marker = _MARKER.fullmatch(line)
        if marker:
            own = "3" not in marker["flags"].split()
        elif own:
            kept.append(line)
    return "\n".join(kept)


def system_files(preprocessed: str) -> frozenset[str]:
    """Names of the system headers, as the tree has them."""
    found = (_MARKER.fullmatch(line) for line in preprocessed.splitlines() if line.startswith("# "))
    return frozenset(marker["name"] for marker in found if marker and "3" in marker["flags"].split())
