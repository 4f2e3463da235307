"""Files that are there in full or not at all: a draft beside the place, then a rename.

For whatever may be written over a file that is there: on a full disk, at Ctrl-C and at kill -9 the old content stays.
A draft is locked while it is written, so what a killed process left is told from what a living one writes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mccprobe.base.errors import NoRoom

STREAMS = ("/dev/std", "/dev/fd/", "/proc/")  # names of open files: whoever opened one wants the bytes there
DRAFT = ".mccprobe-draft-"  # in the name of a file that is being written
TEMPORARY = ("TMPDIR", "TEMP", "TMP")  # variables that name a folder for temporary files, as tempfile reads them
_FOLDERS = ("/tmp", "/var/tmp", "/usr/tmp", ".")  # where none of them does
_NO_ROOM = re.compile(rb"No space left on device|Disk quota exceeded")
_MAPPED_BYTES = 1 << 24  # less may be too little for a program; the linker has removed what it wrote of it
_SHELL = 128  # how a shell or a driver tells of a child's signal: 128 + number
_NAME_BYTES = 200  # of the file's own name in that of its draft: a name has at most 255
_HASH_CHUNK_BYTES = 1 << 20
_TRIES = 20  # somebody may take a draft away between our making it and our lock on it


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_HASH_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def replace_file(path: Path, data: bytes, *, mode: int | None = None, sync: bool = False, follow: bool = True) -> Path:
    """Write all of `data` to `path`, or leave it as it is. Returns `path`. Raises OSError.

    A symbolic link stays one. What holds nothing to lose (a pipe, a terminal, /dev/null) is written to, not replaced.
    mode: rights of the file; None: those of the file that is there, or of any new file. sync: on the disk at the end.
    follow: False where nothing but a regular file belongs: a link (or whatever has the name) is replaced itself.
    """
    place = Path(os.path.realpath(path)) if follow else path
    there = place.is_file() and not place.is_symlink() if not follow else place.exists()
    if follow and there and (not place.is_file() or str(path.absolute()).startswith(STREAMS)):
        _write_stream(path, data)
        return path
    if there and not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if mode is None and there:
        mode = place.stat().st_mode & 0o777
    with _drafted(place, data, mode, sync=sync) as draft:
        draft.replace(place)
    return path


def _write_stream(path: Path, data: bytes) -> None:
    """Raises OSError: ENXIO for a FIFO that no process reads, which would block for ever."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "a FIFO or device that no process reads", str(path)) from error
        raise
    with os.fdopen(handle, "wb") as file:
        os.set_blocking(handle, True)
        file.write(data)


def create_file(path: Path, data: bytes, *, mode: int | None = None, sync: bool = False) -> Path:
    """The same for a file that is not there yet. Raises FileExistsError if it is by then; OSError."""
    with _drafted(path, data, mode, sync=sync) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if path.exists() or path.is_symlink():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
            draft.replace(path)
        else:
            draft.unlink()
    return path


@contextlib.contextmanager
def _drafted(place: Path, data: bytes, mode: int | None, *, sync: bool) -> Iterator[Path]:
    """A draft of `place` with all of `data`, to be given its name inside; it goes if that fails."""
    handle, draft = _new_draft(place)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if sync:
                os.fsync(file.fileno())
            if mode is not None:
                draft.chmod(mode)
            yield draft
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if sync:
        sync_folder(place.parent)


def _new_draft(path: Path, *, folder: bool = False) -> tuple[int, Path]:
    """An empty file or folder beside `path` with a lock that ends with this process."""
    name = os.fsdecode(os.fsencode(path.name)[:_NAME_BYTES])
    for _ in range(_TRIES):
        draft = path.with_name(f".{name}{DRAFT}{os.urandom(4).hex()}")
        try:
            if folder:
                draft.mkdir()
                handle = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            else:
                handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            if folder and path.parent.is_dir():  # taken away before it was opened
                continue
            raise
        with contextlib.suppress(OSError):  # a file system without locks: its drafts stay
            fcntl.flock(handle, fcntl.LOCK_EX)
        if draft.exists():
            return handle, draft
        os.close(handle)
    raise FileExistsError(errno.EEXIST, "each draft of it is taken away by others", str(path))


@contextlib.contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, which takes its name and its place at the end; it goes if anything fails."""
    handle, draft = _new_draft(path, folder=True)
    try:
        yield draft
        if path.exists():
            shutil.rmtree(path)
        draft.rename(path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    finally:
        os.close(handle)


def is_draft(path: Path) -> bool:
    """What `replace_file` or `replace_folder` is writing, or had not finished."""
    return (
        path.name.startswith(".") and DRAFT in path.name and (path.is_file() or path.is_dir()) and not path.is_symlink()
    )


def remove_dead_drafts(folder: Path) -> None:
    """Remove what a killed writer left in this folder; a draft whose writer lives is locked, and stays."""
    for path in _drafts(folder):
        with contextlib.suppress(OSError):
            _remove_if_dead(path)


def _drafts(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from filter(is_draft, folder.iterdir())


def _remove_if_dead(path: Path) -> None:
    """Raises BlockingIOError if the writer lives."""
    of_folder = path.is_dir()
    handle = os.open(path, (os.O_RDONLY if of_folder else os.O_RDWR) | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if of_folder:
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Names in it reach the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def wanted_room(folder: Path, complaint: bytes, returncode: int | None = None) -> bool:
    """True if a tool that wrote into `folder` failed for want of room, by what it said and how it ended.

    A linker that maps its output into memory (ld.lld) ends by SIGBUS where the file system has no page for it.
    """
    if _NO_ROOM.search(complaint):
        return True
    bus_error = returncode in (-signal.SIGBUS, _SHELL + signal.SIGBUS) or b"Bus error" in complaint
    return bus_error and shutil.disk_usage(folder).free < _MAPPED_BYTES


def temporary_folder() -> str:
    """Where temporary files go: the folder that `tempfile.gettempdir` takes, found without writing to it.

    That one writes a few bytes into each folder it considers, which a kill -9 leaves behind. A full or read-only
    folder is passed over, as there. Raises NoRoom if there is none.
    """
    if tempfile.tempdir is not None:
        return os.fsdecode(tempfile.tempdir)
    named = [os.environ[name] for name in TEMPORARY if os.environ.get(name)]
    tried = [*named, *_FOLDERS]
    for folder in map(os.path.abspath, tried):
        with contextlib.suppress(OSError):
            if Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK) and _has_room(folder):
                return folder
    raise NoRoom(
        "no folder for temporary files can be written to",
        detail=f"tried {', '.join(tried)}",
        hint="name one with room: TMPDIR=DIR mccprobe ...",
    )


def _has_room(folder: str) -> bool:
    """False on a full file system. Some count no blocks or no files at all: both numbers are 0 there."""
    room = os.statvfs(folder)
    return (room.f_bavail > 0 or not room.f_blocks) and (room.f_favail > 0 or not room.f_files)
