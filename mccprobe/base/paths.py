"""Looks at paths that a user names, and at run folders that others may have filled.

`pathlib` answers a look that is not allowed with PermissionError, follows every link, and blocks on a FIFO. Here a
look has two ends: an answer, or PathUnusable (an error of the user's input), and never waits.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from pathlib import Path

from mccprobe.base.errors import ForeignFolder, PathUnusable, UnsafeRunFolder

MOST_BYTES = 1 << 30  # of one file that is read whole
SCRATCH_FOLDER = "trials"  # of a run: what programs leave in it, links too, is removed
_CHUNK_BYTES = 1 << 20
IDLE_S = 60.0  # of a pipe: the slowest compiler prints its help in a second
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a symbolic link",
}  # fmt: skip
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def exists(path: Path | str) -> bool:
    """True if something is there; links are followed. Raises PathUnusable if that cannot be seen."""
    return _mode(path) is not None


def is_file(path: Path | str) -> bool:
    """True for a regular file; links are followed. Raises PathUnusable."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def is_folder(path: Path | str) -> bool:
    """True for a folder; links are followed. Raises PathUnusable."""
    mode = _mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def resolved(path: Path) -> Path:
    """`path` without links. Raises PathUnusable for a loop of links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # Python 3.11 and 3.12 raise RuntimeError for a loop
        number = error.errno if isinstance(error, OSError) else errno.ELOOP
        raise _unusable(path, number or errno.ELOOP) from error


def _mode(path: Path | str) -> int | None:
    try:
        return Path(path).stat().st_mode
    except ValueError:  # a NUL byte: no file has such a name
        return None
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise _unusable(path, error.errno or 0) from error


def _unusable(path: Path | str, number: int) -> PathUnusable:
    return PathUnusable(str(path), os.strerror(number), denied=number in (errno.EACCES, errno.EPERM))


def read_file(path: Path | str, most: int = MOST_BYTES, *, follow: bool = True, stream: bool = False) -> bytes:
    """All of a regular file, at once. Raises OSError, also for a FIFO, a device, and more than `most` bytes.

    follow: False if the file itself must not be a symbolic link. stream: True if a FIFO or a terminal may be read, as
    `<(command)` gives one: until its writers have closed it, or have been silent for IDLE_S.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    handle = os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    try:
        status = os.fstat(handle)
        streams = stream and (stat.S_ISFIFO(status.st_mode) or os.isatty(handle))
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode) and not streams:
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no file")
            raise OSError(errno.EINVAL, f"{kind}, expected a regular file", str(path))
        chunks, size = [], 0
        # until the end: files in /proc and /sys state no size
        while chunk := _from_stream(handle, path) if streams else os.read(handle, _CHUNK_BYTES):
            size += len(chunk)
            if size > most:
                raise OSError(errno.EINVAL, f"larger than {most} bytes", str(path))
            chunks.append(chunk)
    finally:
        os.close(handle)
    return b"".join(chunks)


def _from_stream(handle: int, path: Path | str) -> bytes:
    """b"" at its end; at once where no process writes to it."""
    try:
        return os.read(handle, _CHUNK_BYTES)
    except BlockingIOError:
        ready, _, _ = select.select([handle], [], [], IDLE_S)
    if not ready:
        raise OSError(errno.ETIMEDOUT, f"nothing to read for {IDLE_S:g} s", str(path))
    return os.read(handle, _CHUNK_BYTES)


def read_text(path: Path | str, errors: str = "strict", most: int = MOST_BYTES) -> str:
    """The same, decoded as UTF-8, with every line end as \\n. Raises OSError, UnicodeDecodeError."""
    return read_file(path, most).decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n")


def require_plain_folder(root: Path, *, skip: str = SCRATCH_FOLDER) -> None:
    """Raise UnsafeRunFolder unless everything below `root` is a regular file or a folder. No link is followed.

    A link in a run folder may lead anywhere; what mccprobe writes would go there. skip: the name of folders
    whose content is removed before they are used, and not followed for it.
    """
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError as error:
            if folder == root or error.errno in _ABSENT:  # whatever uses the root reports its error
                continue
            raise _unusable(folder, error.errno or 0) from error
        for entry in found:
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(mode):
                if entry.name != skip:
                    waiting.append(Path(entry.path))
            elif not stat.S_ISREG(mode):
                raise UnsafeRunFolder(entry.path, _KINDS.get(stat.S_IFMT(mode), "no regular file"))


def require_own(cache: Path, *names: str) -> None:
    """Raise ForeignFolder if another user owns, or can write, `cache` or what `names` lead to in it, step by step.

    For folders whose files are executed. What is not there is fine, and what root owns is trusted. In a folder with
    the sticky bit (/tmp) only the owner of an entry can exchange it.
    """
    places = [cache]
    for name in names:
        places.append(places[-1] / name)
    for place in places:
        try:
            seen = [place.lstat(), place.stat()]  # of a link: who may exchange it, and where it leads
        except OSError as error:
            if error.errno in _ABSENT:
                continue
            raise _unusable(place, error.errno or 0) from error
        for status in seen:
            owner, mode = status.st_uid, stat.S_IMODE(status.st_mode)
            if owner not in (0, os.geteuid()):
                raise ForeignFolder(str(place), f"belongs to another user (uid {owner})", owned=False)
            if mode & _WRITABLE_BY_OTHERS and not stat.S_ISLNK(status.st_mode) and not mode & stat.S_ISVTX:
                who = "every user" if mode & stat.S_IWOTH else "its group"
                raise ForeignFolder(str(place), f"can be written by {who} (mode {mode:o})", owned=True)


def make_own(cache: Path, *names: str) -> Path:
    """The folder that `names` lead to in `cache`, made for this user alone to write. Raises OSError, ForeignFolder."""
    require_own(cache, *names)
    place = cache
    for name in ("", *names):
        place = place / name
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
    require_own(cache, *names)
    return place
