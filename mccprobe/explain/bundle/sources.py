"""The files of a user's build that a compile needs, and the same build from a folder that holds only them.

Headers are found by reading the `#include` lines and following the search folders of the arguments, for
host and device compiles alike; what lies in the compiler's or the system's folders stays there. Lines
inside `#if` are followed too: one header too many does no harm. That none is missing is proved by
building from the copy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.targets.llvm.command import split_arguments

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*(?:include|include_next|import)[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
_SEARCH = ("-I", "-iquote", "-isystem", "-idirafter")
_FILES = ("-include", "-imacros")
# options whose value is a file or folder, joined or as the next argument (clang/include/clang/Driver/Options.td)
_PATHS = (*_SEARCH, *_FILES, "-L", "-B", "-T", "-isysroot", "-resource-dir", "-rpath", "-cxx-isystem", "-c-isystem")
_JOINED = ("--sysroot=", "--ld-path=", "-fprofile-use=", "-fplugin=", "--libomptarget-", "-fsanitize-ignorelist=")
_SYSTEM = ("/usr/include", "/usr/lib", "/usr/local/include", "/usr/local/lib", "/usr/share", "/lib", "/opt/musa")


def map_paths(args: Sequence[str], change: Callable[[str], str]) -> tuple[str, ...]:
    """The arguments with every file or folder in an option replaced by `change` of it."""
    mapped: list[str] = []
    for group in split_arguments(args).options:
        option = group[0]
        if len(group) == 2 and option in _PATHS:
            mapped += [option, change(group[1])]
            continue
        joined = next((name for name in (*_JOINED, *_PATHS) if option.startswith(name) and option != name), "")
        if joined and len(group) == 1 and option[len(joined) :]:
            mapped.append(joined + change(option[len(joined) :]))
        else:
            mapped += group
    return tuple(mapped)


def absolute_paths(args: Sequence[str], here: Path) -> tuple[str, ...]:
    """The arguments with relative files and folders made absolute."""
    return map_paths(args, lambda value: str(here / value))


def search_folders(args: Sequence[str], here: Path) -> list[Path]:
    """Folders of -I and its kin, in order."""
    found: list[Path] = []

    def note(value: str) -> str:
        found.append(here / value)
        return value

    for group in split_arguments(args).options:
        if group[0].startswith(_SEARCH):
            map_paths(group, note)
    return found


def forced_includes(args: Sequence[str], here: Path) -> list[Path]:
    """Files of -include and -imacros."""
    groups = split_arguments(args).options
    return [here / group[1] for group in groups if group[0] in _FILES and len(group) == 2]


def needed_files(sources: Iterable[Path], args: Sequence[str], here: Path, further: Sequence[Path] = ()) -> list[Path]:
    """The sources and every header of the user's that they include, each once, sources first.

    further: folders that are searched as well.
    """
    folders = [*search_folders(args, here), *further]
    waiting = [path.absolute() for path in (*sources, *forced_includes(args, here))]
    found: dict[Path, None] = {}
    while waiting:
        path = Path(os.path.normpath(waiting.pop(0)))
        if path in found or not path.is_file() or is_system(path):
            continue
        found[path] = None
        for kind, raw in _INCLUDE.findall(path.read_bytes()):
            name = os.fsdecode(raw)
            places = [path.parent, *folders] if kind == b'"' else folders
            for place in places:
                if (place / name).is_file():
                    waiting.append(place / name)
                    break
    return list(found)


def is_system(path: Path) -> bool:
    """True for what comes with a system or a compiler and is not the user's to send."""
    return str(path).startswith(tuple(f"{folder}/" for folder in _SYSTEM))


@dataclass(frozen=True)
class Layout:
    """Where each of the user's files lies in the bundle, below `source/`.

    names: absolute path -> path in the bundle. Files keep their places relative to each other, so that
    `#include "../common/x.h"` holds; folders above what they share are left out.
    """

    base: Path
    names: dict[Path, str]

    def place(self, path: Path) -> str:
        """The path in the bundle of a file or a folder of files in it; as it was for anything else."""
        normal = Path(os.path.normpath(path))
        if normal in self.names:
            return self.names[normal]
        inside = normal.is_relative_to(self.base) and any(file.is_relative_to(normal) for file in self.names)
        relative = normal.relative_to(self.base) if inside else None
        return str(path) if relative is None else str(Path("source") / relative)


def lay_out(files: Sequence[Path]) -> Layout:
    """A place for every file."""
    base = Path(os.path.commonpath([str(path.parent) for path in files]))
    return Layout(base, {path: str(Path("source") / path.relative_to(base)) for path in files})
