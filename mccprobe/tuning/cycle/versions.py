"""Versions of a kernel's files: what belongs to one, its digest, keeping it, putting it back.

    <kernel folder>/.mccprobe-edit/
      versions/<digest>.tar   the files of one version; digest: of this archive
      good.json            the last good version: digest, and what its gate said
      open.json            only while an edit is open: where it began, and the last test
      lock                 held while a command works

Every file is replaced by a rename, so that a kill at any moment leaves the last good version whole and the command
can be given again; it removes the drafts.

Who gets a kernel from others may get this folder with it: what it names outside of the kernel's own files is
not written. No git: the configuration of a repository that came with a kernel could run programs.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import stat
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe.base.console import json_text
from mccprobe.base.errors import BadDataFile, EditState, InputError
from mccprobe.base.files import remove_dead_drafts, sync_folder
from mccprobe.base.paths import read_file
from mccprobe.build.store import disk_errors, write_synced
from mccprobe.oracle.kernel.spec import KernelSpec
from mccprobe.targets.flags.datafile import shorten

FOLDER = ".mccprobe-edit"
MAX_BYTES = 64 << 20  # of one version: sources, not builds
_LEFT_OUT = ("mccprobe-out", "build", "__pycache__")
_DIGEST = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Version:
    """The files of a kernel at one moment: path -> content and mode. archive: the same; digest: of the archive."""

    digest: str
    files: Mapping[Path, tuple[bytes, int]]
    archive: bytes


def read_version(kernel: KernelSpec) -> Version:
    """What the kernel is now: its folder, and what it takes from others (host program, headers beside it).

    Raises InputError.
    """
    found = {*_below(kernel.folder), *(path for source in _outside(kernel) for path in _beside(source))}
    paths = sorted(path for path in found if _real(path) == path or _real(path) not in found)
    files: dict[Path, tuple[bytes, int]] = {}
    total = 0
    for path in paths:
        try:
            data, mode = path.read_bytes(), stat.S_IMODE(path.stat().st_mode)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
        total += len(data)
        if total > MAX_BYTES:
            raise InputError(
                f"{kernel.folder}: more than {MAX_BYTES >> 20} MiB of files",
                hint="move what is no source out of the folder",
            )
        files[path] = (data, mode)
    return version_of(kernel, files)


def version_of(kernel: KernelSpec, files: Mapping[Path, tuple[bytes, int]]) -> Version:
    """Equal files give an equal archive."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:", format=tarfile.GNU_FORMAT) as archive:
        for path, (data, mode) in sorted(files.items()):
            member = tarfile.TarInfo(os.path.relpath(path, kernel.folder))
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    return Version(_digest(made.getvalue()), files, made.getvalue())


def _digest(archive: bytes) -> str:
    return hashlib.sha256(archive).hexdigest()[:32]


def _below(folder: Path, top: Path | None = None) -> Iterator[Path]:
    top = top or folder
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in _LEFT_OUT:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _below(path, top)
        elif path.is_file():
            yield _inside(path, top)


def _inside(path: Path, folder: Path) -> Path:
    """Where it leads, but for a link that leads out of the folder: that stands for what it leads to."""
    real = _real(path)
    return real if real.is_relative_to(folder) else path


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))  # resolve() raises in a loop of links


def _outside(kernel: KernelSpec) -> list[Path]:
    return [path for path in (*kernel.sources, *kernel.host_sources) if not path.is_relative_to(kernel.folder)]


def _beside(source: Path) -> Iterator[Path]:
    files = (path for path in source.parent.iterdir() if path.is_file() and not path.name.startswith("."))
    return (_inside(path, source.parent) for path in files)


class EditStore:
    """The folder above."""

    def __init__(self, kernel: KernelSpec) -> None:
        self.kernel = kernel
        self.root = kernel.folder / FOLDER
        self.versions = self.root / "versions"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One command at a time. Raises EditState, RunDirectoryUnusable."""
        for path in (self.root, self.versions):
            if path.is_symlink():
                raise EditState(f"{path}: is a link; edit writes only below the kernel's folder", hint="remove it")
        with disk_errors(self.root):
            self.versions.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise EditState(
                    f"{self.kernel.folder}: another mccprobe edit is at work", hint="wait for it"
                ) from error
            self._clear()
            ignore = self.root / ".gitignore"
            if not ignore.exists():
                write_synced(ignore, b"*\n")
            yield
        finally:
            os.close(handle)

    def _clear(self) -> None:
        """Remove the drafts that a killed command left."""
        remove_dead_drafts(self.root)
        remove_dead_drafts(self.versions)
        with contextlib.suppress(OSError):
            folders = {path.parent for path in _below(self.kernel.folder)}
            for folder in {self.kernel.folder, *folders, *(path.parent for path in _outside(self.kernel))}:
                remove_dead_drafts(folder)

    def place(self, digest: str) -> Path:
        """Where a version is stored."""
        return self.versions / f"{digest}.tar"

    def keep(self, version: Version) -> None:
        """Store a version; nothing happens if it is there."""
        place = self.place(version.digest)
        if not place.exists():
            write_synced(place, version.archive)

    def load(self, digest: str) -> Version:
        """A stored version. Raises BadDataFile if it is damaged, or names what `keep` would not have taken."""
        place = self.place(digest)
        files = {}
        try:
            data = read_file(place, 2 * MAX_BYTES)
            if _digest(data) != digest:
                raise BadDataFile(f"{place}: the kept version was changed since")
            with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
                for member in archive:
                    content = archive.extractfile(member) if _is_ours(member) else None
                    if content is None:
                        raise BadDataFile(f"{place}: names {shorten(repr(member.name))}, which is no file of a kernel")
                    path = Path(os.path.normpath(self.kernel.folder / member.name))
                    files[path] = content.read(), stat.S_IMODE(member.mode)
        except (OSError, ValueError, OverflowError, RecursionError, tarfile.TarError) as error:
            raise BadDataFile(f"{place}: the kept version cannot be read: {shorten(str(error))}") from error
        return Version(digest, files, data)

    def restore(self, version: Version) -> list[Path]:
        """Put these files back; returns those that differed. Files that the version does not have stay.

        Raises EditState, before anything is written, if one lies neither in the kernel's folder nor beside a source
        that kernel.toml names.
        """
        changed = [path for path, (data, mode) in version.files.items() if not _is_same(path, data, mode)]
        for path in changed:
            self._require_own(path, version)
        for path in changed:
            data, mode = version.files[path]
            with disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            write_synced(path, data, mode)
        return changed

    def _require_own(self, path: Path, version: Version) -> None:
        folder, real = self.kernel.folder, _real(path)
        if real.is_relative_to(folder) or real.parent in {source.parent for source in _outside(self.kernel)}:
            return
        leads = "" if real == path else f", which is {real},"
        raise EditState(
            f"{os.path.relpath(path, folder)}{leads} lies outside of {folder}, and kernel.toml names no source beside "
            "it; nothing was put back",
            hint=f"name it in kernel.toml, or copy it yourself from {self.place(version.digest)}",
        )

    def state(self, name: str) -> dict[str, Any] | None:
        """good.json or open.json; None if it is not there. Raises BadDataFile."""
        path = self.root / name
        try:
            value = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise BadDataFile(f"{path}: cannot be read: {shorten(str(error))}") from error
        if not isinstance(value, dict):
            raise BadDataFile(f"{path}: not an object")
        return value

    def good(self) -> str | None:
        """The digest of the last good version; None before the first. Raises BadDataFile."""
        state = self.state("good.json")
        if state is None:
            return None
        digest = state.get("digest")
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise BadDataFile(f"{self.root / 'good.json'}: digest: expected 32 hexadecimal digits")
        return digest

    def write_state(self, name: str, value: Mapping[str, Any]) -> None:
        write_synced(self.root / name, _json(value))

    def close_edit(self) -> None:
        (self.root / "open.json").unlink(missing_ok=True)
        sync_folder(self.root)


def _is_ours(member: tarfile.TarInfo) -> bool:
    """True for a plain file at a relative path without hidden parts: `read_version` takes no other."""
    parts = Path(os.path.normpath(member.name)).parts
    return (
        member.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
        and not member.issparse()
        and "\0" not in member.name
        and not Path(member.name).is_absolute()
        and all(part == ".." or not part.startswith(".") for part in parts)
    )


def _is_same(path: Path, data: bytes, mode: int) -> bool:
    try:
        return path.read_bytes() == data and stat.S_IMODE(path.stat().st_mode) == mode
    except OSError:
        return False


def _json(value: Any) -> bytes:
    return json_text(value).encode("utf-8", "surrogateescape")
