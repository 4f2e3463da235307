"""Files that a program may look for in the user's folder while it runs in an empty one."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from mccprobe.targets.llvm.command import is_source

MOST_BYTES = 16 << 20  # read of a program
MOST_SHOWN = 3
_LITERAL = re.compile(rb"(?<=\0)[\x21-\x7e]{3,200}(?=\0)")  # a string of C, as it is in the program
_WORD = re.compile(r"[^\s'\"`:,;()<>\[\]]+")
_HEADERS = frozenset((".h", ".hh", ".hpp", ".hxx", ".inc", ".o"))  # of assertions and debug information


def named_in_arguments(run_args: Sequence[str], here: Path) -> str:
    """A note on run arguments that are files of this folder, "" if none is."""
    words = (part for word in run_args for part in (word, word.partition("=")[2]))
    found = [word for word in dict.fromkeys(words) if _is_here(word, here)]
    if not found:
        return ""
    verb = "exists" if len(found) == 1 else "exist"
    return (
        f"--run-args names {_shown(found)}, which {verb} here, but the program runs in an empty folder; run it here: "
        "--run-in ."
    )


def named_by_program(program: Path, stderr: str, ran_in: Path, here: Path, known: Collection[str] = ()) -> str:
    """A note on files of this folder that the program names and did not find or write where it ran; "" without one.

    stderr: what it printed there. known: files of the build, which debug information names.
    """
    with program.open("rb") as file:
        literals = (found.decode() for found in _LITERAL.findall(file.read(MOST_BYTES)))
    own = {Path(name).name for name in known}
    named = [
        *_WORD.findall(stderr),
        # a name without a dot or a slash may be one of a symbol
        *(text for text in literals if "." in text.strip(".") or "/" in text),
    ]
    found = [
        name
        for name in dict.fromkeys(named)
        if _is_here(name, here)
        and not (ran_in / name).exists()
        and Path(name).name not in own
        and not is_source(name)
        and Path(name).suffix not in _HEADERS
    ]
    if not found:
        return ""
    verb, them = ("exists", "it") if len(found) == 1 else ("exist", "them")
    return (
        f"the program names {_shown(found)}, which {verb} here but not in the empty folder that it runs in; if it "
        f"reads {them}, run it here: --run-in ."
    )


def _is_here(name: str, here: Path) -> bool:
    """True for a relative name of a file or folder; False also where it cannot be looked at."""
    if not name or name.startswith("/") or len(name) > 1000 or not name.strip("./"):
        return False
    return os.path.exists(here / name)  # noqa: PTH110  Path.exists raises PermissionError


def _shown(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:MOST_SHOWN]) + (", ..." if len(every) > MOST_SHOWN else "")
