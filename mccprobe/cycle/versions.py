"""Versions of a kernel's files: what belongs to one, its digest, keeping it, putting it back.

    <kernel folder>/.mccprobe-edit/
      versions/<digest>/   manifest.json and the files of one version, under numbers
      good.json            the last good version: digest, and what its gate said
      open.json            only while an edit is open: where it began, and the last test
      lock                 held while a command works

A version is complete before it has its name, and every other file is replaced by a rename, so that a kill
at any moment leaves the last good version whole and the command can be given again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe.compilation.store import disk_errors
from mccprobe.console import json_text
from mccprobe.cycle.files import sync_folder, write_atomically
from mccprobe.errors import BadDataFile, EditState, InputError
from mccprobe.flags.datafile import shorten
from mccprobe.kernel.spec import KernelSpec

FOLDER = ".mccprobe-edit"
MAX_BYTES = 64 << 20  # of one version: sources, not builds
_LEFT_OUT = ("mccprobe-out", "build", "__pycache__")


@dataclass(frozen=True)
class Version:
    """The files of a kernel at one moment: path -> content and mode. digest: over all of it."""

    digest: str
    files: Mapping[Path, tuple[bytes, int]]


def read_version(kernel: KernelSpec) -> Version:
    """What the kernel is now: its folder, and what it takes from others (host program, headers beside it).

    Raises InputError.
    """
    paths = sorted({*_below(kernel.folder), *(path for source in _outside(kernel) for path in _beside(source))})
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
    return Version(_digest(kernel, files), files)


def _digest(kernel: KernelSpec, files: Mapping[Path, tuple[bytes, int]]) -> str:
    digest = hashlib.sha256()
    for path, (data, mode) in sorted(files.items()):
        name = os.fsencode(os.path.relpath(path, kernel.folder))
        digest.update(b"%d:%s:%o:%d:" % (len(name), name, mode, len(data)))
        digest.update(data)
    return digest.hexdigest()[:32]


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in _LEFT_OUT:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        elif path.is_file():
            yield path.resolve()


def _outside(kernel: KernelSpec) -> list[Path]:
    return [path for path in (*kernel.sources, *kernel.host_sources) if not path.is_relative_to(kernel.folder)]


def _beside(source: Path) -> Iterator[Path]:
    return (path.resolve() for path in source.parent.iterdir() if path.is_file() and not path.name.startswith("."))


class EditStore:
    """The folder above."""

    def __init__(self, kernel: KernelSpec) -> None:
        self.kernel = kernel
        self.root = kernel.folder / FOLDER
        self.versions = self.root / "versions"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One command at a time. Raises EditState, RunDirectoryUnusable."""
        with disk_errors(self.root):
            self.versions.mkdir(parents=True, exist_ok=True)
            ignore = self.root / ".gitignore"
            if not ignore.exists():
                write_atomically(ignore, b"*\n")
            handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise EditState(
                    f"{self.kernel.folder}: another mccprobe edit is at work", hint="wait for it"
                ) from error
            yield
        finally:
            os.close(handle)

    def keep(self, version: Version) -> None:
        """Store a version; nothing happens if it is there."""
        target = self.versions / version.digest
        if target.is_dir():
            return
        with disk_errors(self.versions):
            place = Path(tempfile.mkdtemp(prefix=".new-", dir=self.versions))
            try:
                manifest = []
                for number, (path, (data, mode)) in enumerate(sorted(version.files.items())):
                    write_atomically(place / str(number), data)
                    relative = os.path.relpath(path, self.kernel.folder)
                    manifest.append({"file": str(number), "path": relative, "mode": mode})
                write_atomically(place / "manifest.json", _json(manifest))
                with contextlib.suppress(OSError):  # the same version, kept by another command meanwhile
                    place.rename(target)
                sync_folder(self.versions)
            finally:
                shutil.rmtree(place, ignore_errors=True)

    def load(self, digest: str) -> Version:
        """A stored version. Raises BadDataFile if it is damaged."""
        place = self.versions / digest
        try:
            manifest = json.loads((place / "manifest.json").read_bytes())
            files = {
                Path(os.path.normpath(self.kernel.folder / entry["path"])): (
                    (place / entry["file"]).read_bytes(), int(entry["mode"])
                )
                for entry in manifest
            }  # fmt: skip
            unchanged = _digest(self.kernel, files) == digest
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise BadDataFile(f"{place}: the kept version cannot be read: {shorten(str(error))}") from error
        if not unchanged:
            raise BadDataFile(f"{place}: the kept version was changed since")
        return Version(digest, files)

    def restore(self, version: Version) -> list[Path]:
        """Put these files back; returns those that differed. Files that the version does not have stay."""
        changed = []
        for path, (data, mode) in version.files.items():
            with contextlib.suppress(OSError):
                if path.read_bytes() == data and stat.S_IMODE(path.stat().st_mode) == mode:
                    continue
            with disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data, mode)
            changed.append(path)
        return changed

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

    def write_state(self, name: str, value: Mapping[str, Any]) -> None:
        write_atomically(self.root / name, _json(value))

    def open_edit(self, value: Mapping[str, Any]) -> None:
        """Make open.json; exactly one can. Raises EditState."""
        place = self.root / f".open.{os.getpid()}"
        write_atomically(place, _json(value))
        try:
            os.link(place, self.root / "open.json")
        except OSError as error:
            if error.errno != errno.EEXIST:
                raise
            raise EditState(f"{self.kernel.folder}: an edit is open already", hint="keep or revert it first") from error
        finally:
            place.unlink(missing_ok=True)

    def close_edit(self) -> None:
        (self.root / "open.json").unlink(missing_ok=True)
        sync_folder(self.root)


def _json(value: Any) -> bytes:
    return json_text(value).encode("utf-8", "surrogateescape")
