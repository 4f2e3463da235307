"""A bug report as a `.tar.gz` that is the same bytes each time, and the careful way back.

An archive from outside is not trusted: only plain files and folders with relative names below one folder
are taken, within limits. They are written here: tarfile's own "data" filter came with Python 3.11.4, and without
a filter its extract() follows links and keeps modes and owners.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import shutil
import tarfile
import zlib
from pathlib import Path

from mccprobe.base.errors import BadReport
from mccprobe.base.files import replace_file

MAX_FILES = 2000  # a report holds a few dozen; a bomb of names holds millions
MAX_BYTES = 256 << 20  # unpacked: sources and bitcode, with room
MAX_ARCHIVE_BYTES = 128 << 20
MAX_HEADER_BYTES = 1 << 20  # of one member; a long name has some hundred
MAX_DEPTH = 40  # folders in a name; a report has four, and what creates or removes a tree may be recursive


def write_archive(folder: Path, archive: Path) -> None:
    """Pack a folder without times, owners or the machine's order of names; atomically."""
    data = io.BytesIO()
    # level 6 of zlib; mtime 0 and no name in the header
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=data, mtime=0, compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in (folder, *sorted(folder.rglob("*"))):
            member = tarfile.TarInfo(path.relative_to(folder.parent).as_posix())
            # not os.access: for root every file would be executable that is so for anybody
            member.mode = 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644
            content = b"" if path.is_dir() else path.read_bytes()
            member.type = tarfile.DIRTYPE if path.is_dir() else tarfile.REGTYPE
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    replace_file(archive, data.getvalue())


def unpack(archive: Path, target: Path) -> Path:
    """Unpack a report below `target`; returns its folder. Raises BadReport for whatever is not one."""
    try:
        if archive.stat().st_size > MAX_ARCHIVE_BYTES:
            raise BadReport(f"{archive}: larger than {MAX_ARCHIVE_BYTES >> 20} MiB")
        with _Stream(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as tar:
            return _unpack(tar, stream, archive, target)
    except BadReport:
        raise
    except (OSError, EOFError, tarfile.TarError, zlib.error, ValueError, OverflowError) as error:
        raise BadReport(f"{archive}: cannot be unpacked: {error}") from error


class _Stream(gzip.GzipFile):
    """What is inside of the gzip, within bounds: tarfile keeps headers in memory, whatever size they say.

    room: bytes that may be read before it is set anew.
    """

    def __init__(self, archive: Path) -> None:
        super().__init__(archive, mode="rb")
        self.archive = archive
        self.room = MAX_HEADER_BYTES

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= self.room:
            raise BadReport(f"{self.archive}: a header of more than {MAX_HEADER_BYTES >> 10} KiB")
        self.room -= size
        return super().read(size)


def _unpack(tar: tarfile.TarFile, stream: _Stream, archive: Path, target: Path) -> Path:
    size = 0
    roots: set[str] = set()
    target = target.resolve()
    for count, member in enumerate(tar, 1):  # one after the other: a bomb is stopped before it is held
        if not (member.isreg() or member.isdir()):
            raise BadReport(f"{archive}: {member.name} is no plain file or folder")
        parts = Path(member.name).parts
        if not parts or member.name.startswith("/") or ".." in parts:
            raise BadReport(f"{archive}: {member.name} leads out of its folder")
        if len(parts) > MAX_DEPTH:
            raise BadReport(f"{archive}: holds folders more than {MAX_DEPTH} deep", hint="this is not a bug report")
        size += max(0, member.size)
        if count > MAX_FILES or size > MAX_BYTES:
            raise BadReport(
                f"{archive}: holds more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB", hint="this is no bug report"
            )
        roots.add(parts[0])
        stream.room = MAX_HEADER_BYTES + max(0, member.size)
        _write(tar, member, target.joinpath(*parts))
        stream.room = MAX_HEADER_BYTES
    if len(roots) != 1:
        raise BadReport(f"{archive}: holds {len(roots)} top folders, expected one")
    return target / roots.pop()


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Write one file or folder with our own modes; never through a link, never over a file that exists."""
    folder = place if member.isdir() else place.parent
    if folder.resolve() != folder:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    source = None if member.isdir() else tar.extractfile(member)
    if source is None:
        return
    mode = 0o755 if member.mode & 0o100 else 0o644
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with source, os.fdopen(descriptor, "wb") as written:
        shutil.copyfileobj(source, written)
