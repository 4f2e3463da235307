"""Versions of a kernel's files: what belongs to one, its digest, keeping it, putting it back.

    <kernel folder>/.mccprobe-edit/
      versions/<digest>/   manifest.json and the files of one version, under numbers
      good.json            the last good version: digest, and what its gate said
      open.json            only while an edit is open: where it began, and the last test
      lock                 held while a command works

A version is complete before it has its name, and every other file is replaced by a rename, so that a kill
at any moment leaves the last good version whole and the command can be given again; it removes the drafts.

Who gets a kernel from others may get this folder with it: what it names outside of the kernel's own files is
not written.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe.base.console import json_text
from mccprobe.base.errors import BadDataFile, EditState, InputError
from mccprobe.base.files import remove_dead_drafts, sync_folder
from mccprobe.build.store import disk_errors, write_synced
from mccprobe.oracle.kernel.spec import KernelSpec
from mccprobe.targets.flags.datafile import shorten

FOLDER = ".mccprobe-edit"
MAX_BYTES = 64 << 20  # of one version: sources, not builds
_LEFT_OUT = ("mccprobe-out", "build", "__pycache__")
_DIGEST = re.compile(r"[0-9a-f]{32}")
_NUMBER = re.compile(r"[0-9]{1,9}")
_MODES = 0o7777
_NEW, _OPEN = ".new-", ".open."  # a version, an open.json that is being made


@dataclass(frozen=True)
class Version:
    """The files of a kernel at one moment: path -> content and mode. digest: over all of it."""

    digest: str
    files: Mapping[Path, tuple[bytes, int]]


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
    return Version(digest_of(kernel, files), files)


def digest_of(kernel: KernelSpec, files: Mapping[Path, tuple[bytes, int]]) -> str:
    """Over names, modes and contents."""
    digest = hashlib.sha256()
    for path, (data, mode) in sorted(files.items()):
        name = os.fsencode(os.path.relpath(path, kernel.folder))
        digest.update(b"%d:%s:%o:%d:" % (len(name), name, mode, len(data)))
        digest.update(data)
    return digest.hexdigest()[:32]


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
        """Remove what a killed command left. Its lock is ours now, so whose versions and open.json these were is dead;
        files beside sources may be another kernel's too, and are asked each."""
        for path in self.versions.glob(f"{_NEW}*"):
            shutil.rmtree(path, ignore_errors=True)
        for path in self.root.glob(f"{_OPEN}*"):
            with contextlib.suppress(OSError):
                path.unlink()
        remove_dead_drafts(self.root)
        with contextlib.suppress(OSError):
            folders = {path.parent for path in _below(self.kernel.folder)}
            for folder in {self.kernel.folder, *folders, *(path.parent for path in _outside(self.kernel))}:
                remove_dead_drafts(folder)

    def keep(self, version: Version) -> None:
        """Store a version; nothing happens if it is there."""
        target = self.versions / version.digest
        if target.is_dir():
            return
        with disk_errors(self.versions):
            place = Path(tempfile.mkdtemp(prefix=_NEW, dir=self.versions))
            try:
                manifest = []
                for number, (path, (data, mode)) in enumerate(sorted(version.files.items())):
                    write_synced(place / str(number), data)
                    relative = os.path.relpath(path, self.kernel.folder)
                    manifest.append({"file": str(number), "path": relative, "mode": mode})
                write_synced(place / "manifest.json", _json(manifest))
                with contextlib.suppress(OSError):  # the same version, kept by another command meanwhile
                    place.rename(target)
                sync_folder(self.versions)
            finally:
                shutil.rmtree(place, ignore_errors=True)

    def load(self, digest: str) -> Version:
        """A stored version. Raises BadDataFile if it is damaged, or names what `keep` would not have taken."""
        place = self.versions / digest
        try:
            manifest = json.loads((place / "manifest.json").read_bytes())
            entries = [(entry["path"], entry["file"], int(entry["mode"])) for entry in manifest]
            for path, file, mode in entries:
                if not _is_ours(path) or not _NUMBER.fullmatch(file) or mode != mode & _MODES:
                    raise BadDataFile(f"{place}: names {shorten(repr(path))}, which is no file of a kernel")
            files = {
                Path(os.path.normpath(self.kernel.folder / path)): ((place / file).read_bytes(), mode)
                for path, file, mode in entries
            }
            unchanged = digest_of(self.kernel, files) == digest
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise BadDataFile(f"{place}: the kept version cannot be read: {shorten(str(error))}") from error
        if not unchanged:
            raise BadDataFile(f"{place}: the kept version was changed since")
        return Version(digest, files)

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
            hint=f"name it in kernel.toml, or copy it yourself from {self.versions / version.digest}",
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

    def open_edit(self, value: Mapping[str, Any]) -> None:
        """Make open.json; exactly one can. Raises EditState."""
        place = self.root / f"{_OPEN}{os.getpid()}"
        write_synced(place, _json(value))
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


def _is_ours(path: Any) -> bool:
    """True for a relative path without hidden parts: `read_version` takes no other."""
    if not isinstance(path, str) or Path(path).is_absolute():
        return False
    parts = Path(os.path.normpath(path)).parts
    return "\0" not in path and all(part == ".." or not part.startswith(".") for part in parts)


def _is_same(path: Path, data: bytes, mode: int) -> bool:
    try:
        return path.read_bytes() == data and stat.S_IMODE(path.stat().st_mode) == mode
    except OSError:
        return False


def _json(value: Any) -> bytes:
    return json_text(value).encode("utf-8", "surrogateescape")
