"""The run directory: where everything of one run lies.

<run>/
  run.json          what was asked: options, compiler, source hash (read by --resume)
  journal.jsonl     one line a trial (see journal.py)
  unit/             recorded jobs, pre-optimisation bitcode, host half
  objects/<sha>     every distinct object, by its SHA-256
  programs/<sha>    the program linked from that object
  trials/<id>/      scratch of one trial; gone when the trial ends
  result.json       what --json prints
  report.txt        what the terminal shows
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mccprobe.base.errors import NoRoom, RunDirectoryUnusable
from mccprobe.base.files import file_digest, remove_dead_drafts, replace_file, wanted_room
from mccprobe.base.paths import require_plain_folder
from mccprobe.build.kept import KeptFiles

RUN_FOLDERS = ("unit", "objects", "programs", "trials")
_ROOM_BYTES = 1 << 16  # less is no room for what a program prints into a file


_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than a process may write here (ulimit -f)",
    errno.EROFS: "Read-only file system",  # it may become so in the middle, after an error of the disk
    errno.EIO: "Input/output error",
}
_REMEDIES = {errno.EROFS: "make it writable", errno.EIO: "mend the disk"}  # of the others: free space
ELSEWHERE = "choose another place with -o DIR"  # the command line leaves it out where a command has no -o
TEMPORARY = "name another folder in TMPDIR"
_ERRNO = re.compile(r"\[Errno (\d{1,9})\]")


@contextlib.contextmanager
def disk_errors(what: Path, *, only_full: bool = False, elsewhere: str = ELSEWHERE, hint: str = "") -> Iterator[None]:
    """Turn what the file system says into one clear error. only_full: nothing but a disk that takes no more.

    elsewhere: what to do beside making room; hint: in the place of both.
    """
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        if isinstance(error, shutil.Error) and (told := _ERRNO.search(str(error))):  # of many files, each in words
            number = int(told[1])
        if only_full and number not in _FULL:
            raise
        text = _FULL.get(number, error.strerror or str(error))
        message = f"{what}: cannot be written: {text}"
        if number in _FULL:
            remedy = _REMEDIES.get(number, "free space")
            raise NoRoom(message, hint=hint or f"{remedy}, or {elsewhere}", remedy=remedy) from error
        raise RunDirectoryUnusable(message, hint=hint or f"{elsewhere}, or make this one writable") from error


def require_room(what: Path, complaint: bytes, returncode: int | None = None) -> None:
    """Raise NoRoom if a tool failed for want of room: that says nothing about its input."""
    if wanted_room(what, complaint, returncode):
        raise NoRoom(f"{what}: cannot be written: the disk is full", hint=f"free space, or {ELSEWHERE}")


def require_space(folder: Path) -> None:
    """Raise NoRoom if nothing more can be written there: a program that could not write either proves nothing."""
    probe = folder / ".room"
    with disk_errors(folder, only_full=True):
        try:
            probe.write_bytes(bytes(_ROOM_BYTES))
        finally:
            probe.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> Path:
    """Write a small file of a run atomically; a link of that name is replaced. Raises RunDirectoryUnusable."""
    with disk_errors(path):  # surrogates stand for the bytes of names that are no UTF-8
        return replace_file(path, text.encode("utf-8", "surrogateescape"), follow=False)


def write_synced(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file atomically, and to the disk. Raises RunDirectoryUnusable."""
    with disk_errors(path):
        replace_file(path, data, mode=mode, sync=True)


class RunDirectory:
    """One run's files. All writes are atomic: a temporary name in the same folder, then a rename."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.kept = KeptFiles(self.root)
        require_plain_folder(self.root)
        with disk_errors(root):
            for name in RUN_FOLDERS:
                (self.root / name).mkdir(parents=True, exist_ok=True)
        self._counter = itertools.count(1)

    @property
    def journal(self) -> Path:
        return self.root / "journal.jsonl"

    @property
    def unit(self) -> Path:
        return self.root / "unit"

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    @property
    def programs(self) -> Path:
        return self.root / "programs"

    def object_path(self, digest: str) -> Path:
        """Where the object with this hash lies."""
        return self.objects / digest

    @contextlib.contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """A folder for one trial, removed at its end."""
        with disk_errors(self.root):
            path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.root / "trials"))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def write_text(self, name: str, text: str) -> Path:
        """Write a small file of the run, atomically."""
        return write_text(self.root / name, text)

    def clear_trials(self) -> None:
        """Remove scratch folders and unfinished files that a killed run left. Only the holder of the journal may."""
        try:
            left = list((self.root / "trials").iterdir())
        except FileNotFoundError:  # a program or an oracle removed the run folder
            left = []
        for path in left:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()
        for folder in (self.root, *(self.root / name for name in RUN_FOLDERS)):
            remove_dead_drafts(folder)


def keep_object(path: Path, objects: Path) -> str:
    """Move a finished file into the store under its hash; returns the hash."""
    digest = file_digest(path)
    path.replace(objects / digest)  # one that lies there may not be what its name says
    return digest


def new_run_root(base: Path, stem: str, clock: str) -> Path:
    """A fresh directory below `base`, named for the source and the time of day."""
    with disk_errors(base):
        base.mkdir(parents=True, exist_ok=True)
        for suffix in itertools.chain([""], (f"-{n}" for n in itertools.count(2))):
            path = base / f"{stem}-{clock}{suffix}"
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                return path
    raise AssertionError("unreachable")
