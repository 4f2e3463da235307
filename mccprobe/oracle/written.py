"""Which files a program writes into the folder that it runs in, and what is in them.

A result that goes to a file alone is invisible in the output, so files are compared as the output is: by content. A
file whose name or content differs between two runs of the reference is no measure and is not compared.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

RUNS_FOLDER = "mccprobe-out"  # where runs go unless the user names another place
MOST_FILES = 5000  # in the folder; of a larger one nothing is compared
KEPT_BYTES = 1 << 16  # of each file, to show it and to write it into a bug report
_CHUNK_BYTES = 1 << 20
# what the system or an instrumented build leaves there: it depends on the build, not on the result
NOT_RESULTS = (
    "core",
    "core.*",
    "*.core",
    "vgcore.*",
    "gmon.out",
    "*.gcda",
    "*.gcno",
    "*.profraw",
    "perf.data",
    "perf.data.*",
    "asan.*",
    "ubsan.*",
)
State = tuple[int, int, int]  # of a file: time of change in ns, size, inode


@dataclass(frozen=True)
class Written:
    """One file that a program wrote. name: relative to the folder. head: its first bytes."""

    name: str
    sha256: str
    size: int
    head: bytes = b""

    @property
    def whole(self) -> bool:
        """True when `head` is all of it."""
        return self.size == len(self.head)


def state_of(folder: Path) -> Mapping[str, State] | None:
    """The regular files below a folder, runs of mccprobe left out; None when there are more than MOST_FILES."""
    found: dict[str, State] = {}
    for root, folders, names in os.walk(folder):
        if _is_a_run(root, folders, names) and Path(root) != folder:
            folders.clear()
            continue
        folders.sort()
        for name in sorted(names):
            path = os.path.join(root, name)  # noqa: PTH118  thousands of them: strings are enough
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                found[os.path.relpath(path, folder)] = (status.st_mtime_ns, status.st_size, status.st_ino)
        if len(found) + len(folders) > MOST_FILES:
            return None
    return found


def _is_a_run(root: str, folders: Sequence[str], names: Sequence[str]) -> bool:
    """True for a run directory of mccprobe, or the folder of all: with --run-in DIR they may lie there."""
    inside = set(folders)
    search = "journal.jsonl" in names and {"objects", "trials"} <= inside
    chain = "run.json" in names and bool({"bisect", "flags"} & inside)
    return search or chain or os.path.basename(root) == RUNS_FOLDER  # noqa: PTH119  as above


def written_since(folder: Path, before: Mapping[str, State] | None, ignored: Sequence[str] = ()) -> tuple[Written, ...]:
    """The files that are new or changed, in order of name. ignored: patterns of names or of paths in the folder."""
    now = state_of(folder) if before is not None else None
    if now is None or before is None:
        return ()
    found = []
    for name, state in sorted(now.items()):
        if before.get(name) != state and not is_ignored(name, ignored):
            written = _read(folder / name, name)
            if written is not None:
                found.append(written)
    return tuple(found)


def is_ignored(name: str, ignored: Sequence[str]) -> bool:
    """True for a file that is not compared: of the user's patterns, or no result by its name."""
    base = name.rpartition("/")[2]
    return any(fnmatch.fnmatchcase(one, pattern) for pattern in (*NOT_RESULTS, *ignored) for one in (name, base))


def _read(path: Path, name: str) -> Written | None:
    digest, size, head = hashlib.sha256(), 0, b""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
                head = head or chunk[:KEPT_BYTES]
                size += len(chunk)
    except OSError:
        return None
    return Written(name, digest.hexdigest(), size, head)


def stable(first: Sequence[Written], second: Sequence[Written]) -> tuple[tuple[Written, ...], tuple[str, ...]]:
    """What two runs of one program wrote alike, and the names of everything else that they wrote."""
    alike = tuple(one for one in first if one in second)
    names = {one.name for one in alike}
    return alike, tuple(sorted({one.name for one in (*first, *second)} - names))
