"""The generated sh file: from the template wrappers/mcc and a set, and back to what it says of itself.

The template is sh with lines `#@ NAME`; each is replaced here. The second line of the result is

    # mccprobe wrapper {"format": 1, "compiler": ..., "set": ..., "created": [...], "digest": ...}

digest: SHA-256 of all behind that line, so that a file that somebody edited is not taken for ours.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from mccprobe import __version__
from mccprobe.base.errors import InputError
from mccprobe.build.wrapper.flagset import Addition, WrapperSet, WrapperSets, describe
from mccprobe.targets.llvm.command import SOURCE_SUFFIXES, TAKES_NEXT

FORMAT = 1
FIRST_LINE = b"#!/bin/sh\n"
MARK = b"# mccprobe wrapper "  # holds locate.WRAPPER_MARK, by which the search for mcc passes wrappers over
PACKAGE = Path(__file__).resolve().parents[2]
# what clang compiles beside command.SOURCE_SUFFIXES (clang/include/clang/Driver/Types.def)
_MORE_SOURCES = frozenset((".cp", ".CPP", ".CXX", ".c++m", ".cppm", ".ccm", ".cxxm", ".cui", ".cu", ".M", ".mii", ".mi",
                           ".hipi", ".clcpp", ".rs"))  # fmt: skip
_ASSEMBLER = frozenset((".s", ".S"))
_HEADERS = (".h", ".H", ".hh", ".hpp", ".hxx", ".h++", ".tcc", ".muh", ".cuh")
_PREFIXES = ("-Xarch_", "-Xopenmp-target=", "-Xoffload-linker-")  # as command.split_arguments knows them
_PLACE = re.compile(r"^( *)#@ (\w+)\n", re.MULTILINE)


@dataclass(frozen=True)
class Stamp:
    """What a wrapper file says of itself. created: folders that its install made, the topmost first.

    compiler_version, compiler_digest: of the compiler at install, "" where nobody asked it.
    """

    compiler: str
    set: str
    flags: tuple[str, ...]
    created: tuple[str, ...] = ()
    tool_version: str = __version__
    compiler_version: str = ""
    compiler_digest: str = ""


def template() -> str:
    """The text of wrappers/mcc, from the source tree or the wheel. Raises InputError."""
    places = (PACKAGE.parent / "wrappers" / "mcc", PACKAGE / "_wrappers" / "mcc")
    for place in places:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise InputError(f"the wrapper's template is missing: {places[0]}", hint="install mccprobe again")


def digest_of(compiler: Path) -> str:
    """SHA-256 of a compiler's file, "" where it cannot be read."""
    try:
        with compiler.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def generate(compiler: Path, sets: WrapperSets, created: tuple[str, ...] = (), *, version: str = "") -> bytes:
    """The whole file. version: what the compiler says of itself; then its digest is noted as well."""
    stamp = Stamp(
        str(compiler),
        sets.chosen.name,
        tuple(describe(sets.chosen.additions)),
        created,
        compiler_version=version,
        compiler_digest=digest_of(compiler) if version else "",
    )
    parts: dict[str, Callable[[], list[str]]] = {
        "header": lambda: [],
        "settings": lambda: [
            f"mccp_compiler={shlex.quote(str(compiler))}",
            f"mccp_set={shlex.quote(sets.chosen.name)}",
            f"mccp_known={shlex.quote(' '.join(one.name for one in sets.known))}",
        ],
        "drivers": lambda: _drivers(sets),
        "plain": lambda: [_plain_call(sets.chosen)],
        "takes": _takes_next,
        "suffixes": _suffixes,
        "installed": lambda: _set_lines(sets.chosen),
        "others": lambda: [line for one in sets.known if one is not sets.chosen for line in _set_lines(one)],
    }

    def fill(found: re.Match[str]) -> str:
        return "".join(f"{found.group(1)}{line}\n" for line in parts[found.group(2)]())

    text = _PLACE.sub(fill, template())
    body = os.fsencode(text)[len(FIRST_LINE) :]
    about = {"format": FORMAT, **asdict(stamp), "digest": hashlib.sha256(body).hexdigest()}
    return FIRST_LINE + MARK + json.dumps(about).encode("ascii") + b"\n" + body


def read_stamp(data: bytes) -> tuple[Stamp | None, bool]:
    """(what the file says, is it as it was written): (None, False) for a file that is none of ours."""
    if not data.startswith(FIRST_LINE + MARK):
        return None, False
    line, _, body = data[len(FIRST_LINE + MARK) :].partition(b"\n")
    try:
        about = json.loads(line)
        stamp = Stamp(
            str(about["compiler"]),
            str(about["set"]),
            tuple(map(str, about["flags"])),
            tuple(map(str, about["created"])),
            str(about["tool_version"]),
            str(about.get("compiler_version", "")),
            str(about.get("compiler_digest", "")),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None, False
    return stamp, about.get("digest") == hashlib.sha256(body).hexdigest()


def _drivers(sets: WrapperSets) -> list[str]:
    names = [shlex.quote(one.name) for one in sets.known if one.compares_drivers]
    return [f"case $mccp_set in {' | '.join(names)}) mccp_drivers=1 ;; esac"] if names else []


def _takes_next() -> list[str]:
    """Patterns of the options whose value is the next argument, by first letter: sh tries one after the other."""
    by_letter: dict[str, list[str]] = {}
    for option in sorted(TAKES_NEXT):
        by_letter.setdefault(option[1], []).append(option)
    for prefix in _PREFIXES:
        by_letter[prefix[1]].append(f"{prefix}*")
    single = "".join(letter for letter, options in by_letter.items() if options == [f"-{letter}"])
    lines = [f"-[{single}]) return 0 ;;"]
    for letter, options in by_letter.items():
        if letter not in single:
            lines.append(f"-{letter}*) case $1 in {' | '.join(options)}) return 0 ;; esac ;;")
    return lines


def _suffixes() -> list[str]:
    sources = sorted((SOURCE_SUFFIXES | _MORE_SOURCES) - _ASSEMBLER)
    return [
        f"{' | '.join('*' + suffix for suffix in sources)}) mccp_sources=1 ;;",
        f"{' | '.join('*' + suffix for suffix in _HEADERS)}) mccp_headers=1 ;;",
    ]


def _plain_call(one: WrapperSet) -> str:
    """The compile that gives none of the set's options. A set with options of the driver never comes to it."""
    words = [shlex.quote(word) for addition in one.additions for word in addition.words]
    return " ".join(['exec "$mccp_compiler"', *words, '"$@"'])


def _set_lines(one: WrapperSet) -> list[str]:
    """One arm of the case on the set's name. Each line puts its flag before the arguments, so the last comes first."""
    llvm = [addition for addition in reversed(one.additions) if addition.llvm]
    driver = [addition for addition in reversed(one.additions) if not addition.llvm]
    lines = [f"{shlex.quote(one.name)})"]
    if llvm:
        lines.append('  if [ "$mccp_kind" != preprocess ]; then')
        lines += [f"    {_addition_line(addition)}" for addition in llvm]
        lines.append("  fi")
    lines += [f"  {_addition_line(addition)}" for addition in driver]
    return [*lines, "  ;;"]


def _addition_line(addition: Addition) -> str:
    key, name = shlex.quote(f"|{addition.key}|"), shlex.quote(addition.key)
    words = " ".join(shlex.quote(word) for word in addition.words)
    return f'case $mccp_seen in *{key}*) mccp_kept=${{mccp_kept}}{name}$mccp_nl ;; *) set -- {words} "$@" ;; esac'
