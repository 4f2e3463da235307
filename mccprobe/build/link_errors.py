"""Why a link failed, from what the linker prints (GNU ld and lld, LC_ALL=C), with the files as the user named them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# ld/ldmain.c (multiple_definition, undefined_symbol); lld/ELF/SymbolTable.cpp, Relocations.cpp
_TWICE = re.compile(r"multiple definition of [`']([^']+)'|duplicate symbol: (.+)")
_NO_MAIN = re.compile(r"undefined reference to [`']main'|undefined symbol: main$", re.MULTILINE)
_ARCHIVE_MEMBER = re.compile(r"\([^()\s]+\)")  # libx.a(member.o)


@dataclass(frozen=True)
class LinkError:
    """What failed, and what to do about it; both "" where only the linker's own words help."""

    what: str = ""
    hint: str = ""


def link_error(stderr: str, source: str, object_path: str, inputs: Mapping[str, str]) -> LinkError:
    """Read a failed link. object_path: the object of FILE, `source`; inputs: each other file of the link -> its name.

    Only two mistakes are recognised: a symbol defined twice, and no main.
    """
    twice = _TWICE.search(stderr)
    if twice:
        symbol = (twice[1] or twice[2]).strip()
        block = _block(stderr, twice)
        others = [name for path, name in inputs.items() if _mentions(block, path)]
        first = [source] if _mentions(block, object_path) or len(others) == 1 else []
        places = [*first, *others]
        if len(places) < 2:
            return LinkError(f"{symbol} is defined twice")
        hint = f"leave {others[0]} out" if first else f"leave {' or '.join(others)} out"
        if first:
            hint += f" if it was compiled from {source}: mccprobe compiles FILE itself"
        return LinkError(f"{symbol} is defined in {' and in '.join(places)}", hint)
    if _NO_MAIN.search(stderr):
        also = " and the files after --" if inputs else ""
        verb = "define" if inputs else "defines"
        return LinkError(
            f"no main: {source}{also} {verb} no function main",
            f"give the file that defines main after --: mccprobe bisect {source} ... -- main.c",
        )
    return LinkError()


def _block(stderr: str, found: re.Match[str]) -> str:
    """The lines on this symbol: GNU ld names a file on the line before, lld on those after."""
    start = stderr.rfind("\n", 0, stderr.rfind("\n", 0, found.start()) if "\n" in stderr[: found.start()] else 0)
    following = _TWICE.search(stderr, found.end())
    return stderr[max(start, 0) : following.start() if following else len(stderr)]


def _mentions(text: str, path: str) -> bool:
    at = text.find(path)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(path) :]
        if (not before or before in " \t\n:'`(") and (not after or after[0] in ":\n '" or _ARCHIVE_MEMBER.match(after)):
            return True
        at = text.find(path, at + 1)
    return False
