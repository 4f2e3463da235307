"""Put the wrapper in front of the compiler, and take it away again.

One file, PREFIX/bin/mcc, and nothing beside it: what `remove` must know (folders that the install made) stands in the
file itself. It is written in full or not at all; two installs at once wait for each other at a lock on its folder, so
that the later one sees what the earlier one made, and removes what a killed one left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import (
    CompilerNotFound,
    InputError,
    NoHomeFolder,
    NotOurWrapper,
    ToolchainError,
    UsageError,
    WrapperNotInstalled,
)
from mccprobe.base.files import create_file, remove_dead_drafts, replace_file
from mccprobe.base.paths import is_folder, read_file
from mccprobe.base.process import RunSpec, run
from mccprobe.build.wrapper.flagset import WrapperSets
from mccprobe.build.wrapper.script import Stamp, generate, read_stamp
from mccprobe.targets import registry
from mccprobe.targets.llvm import locate
from mccprobe.targets.mcc.toolchain import MccPaths, find_mcc
from mccprobe.targets.protocol import Identity

COMMAND = next(target.wrapped for target in registry.SHIPPED if target.wrapped)
ACCEPT_TIMEOUT_S = 60.0  # of an empty compile
# programs that stand under a compiler's name and look for the next one of that name in PATH: behind the wrapper they
# would find the wrapper. In front of it they are fine.
LAUNCHERS = frozenset(("ccache", "sccache", "distcc", "icecc", "colorgcc"))
MOST_BYTES = 1 << 20  # of a wrapper: some kilobytes
_TRIES = 20  # a remove may take the folder away between our making it and our lock on it


@dataclass(frozen=True)
class Installed:
    """One installed wrapper. replaced: what stood there before, ours as well."""

    path: Path
    stamp: Stamp
    replaced: Stamp | None = None


@dataclass(frozen=True)
class WrappedCompiler:
    """The compiler behind the wrapper. passed_over: launchers and wrappers in PATH that are no compiler."""

    path: Path
    identity: Identity
    passed_over: tuple[str, ...] = ()
    is_script: bool = False


def default_prefix() -> Path:
    """~/.local: its bin is in PATH on most systems (file-hierarchy(7)), and it needs no root."""
    try:
        return Path.home() / ".local"
    except RuntimeError as error:
        raise NoHomeFolder("name the folder: --prefix DIR") from error


def wrapper_path(prefix: Path, command: str = COMMAND) -> Path:
    """Where the wrapper of this prefix lies. command: the name that builds call."""
    try:
        return prefix.expanduser().absolute() / "bin" / command
    except RuntimeError as error:
        raise UsageError(f"{prefix}: no such home folder is known", hint="write --prefix without ~") from error


def find_compiler(mcc: str | None, clang: str | None = None) -> WrappedCompiler:
    """The compiler to put the wrapper before: as named, else the first real mcc. It is asked what it is (--version).

    clang: name or path of a clang, instead of mcc. Raises CompilerNotFound, ToolchainError, UsageError.
    """
    if clang is not None:
        return _find_clang(clang, mcc)
    found = find_mcc(MccPaths(mcc))
    passed = list(found.wrappers)
    path = found.path
    if path is not None and is_launcher(path):
        if mcc is not None:
            raise ToolchainError(
                f"{path} is {path.resolve().name}, which looks for mcc in PATH and would find the wrapper",
                hint="name the compiler itself with --mcc PATH; a launcher goes in front of the wrapper",
            )
        path = _next_in_path(COMMAND, passed)
    if path is None:
        looked = (*found.looked, *(f"{name} (no compiler)" for name in passed))
        raise CompilerNotFound("mcc", looked, hint="install the MUSA SDK, or name the compiler with --mcc PATH")
    path = path.absolute()
    identity = locate.identify([str(path)])
    if not identity.is_mcc:
        raise ToolchainError(
            f"{path} is not mcc: it calls itself {identity.version}",
            hint=f"for a clang: --compiler {path}" if identity.clang_major is not None else "name mcc with --mcc PATH",
        )
    return WrappedCompiler(path, identity, tuple(passed), _starts_with(path, b"#!"))


def _find_clang(name: str, mcc: str | None) -> WrappedCompiler:
    if mcc is not None:
        raise UsageError("--mcc and --compiler do not go together", hint="name one compiler")
    passed: list[str] = []
    path = Path(name) if "/" in name and locate.is_program(Path(name)) else None
    if "/" not in name:
        path = _next_in_path(name, passed)
    if path is None:
        raise CompilerNotFound("clang", [name, *passed], hint="install it, or name its path with --compiler PATH")
    path = path.absolute()
    if locate.is_our_wrapper(path):
        raise ToolchainError(f"{path} is mccprobe's wrapper, not the compiler", hint="name the compiler itself")
    identity = locate.identify([str(path)])
    if identity.clang_major is None or identity.is_mcc:
        hint = "name it with --mcc PATH" if identity.is_mcc else "the wrapper goes in front of mcc or a clang"
        raise ToolchainError(f"{path} is not a clang: it calls itself {identity.version}", hint=hint)
    return WrappedCompiler(path, identity, tuple(passed), _starts_with(path, b"#!"))


def require_accepted(compiler: WrappedCompiler, sets: WrapperSets) -> None:
    """The compiler takes the chosen set on an empty source. Raises ToolchainError with its message."""
    words = [word for one in sets.chosen.additions for word in one.words]
    argv = [str(compiler.path), *words, "-x", "c", "-c", os.devnull, "-o", os.devnull]
    result = run(RunSpec(argv, timeout_s=ACCEPT_TIMEOUT_S))
    if not result.ok:
        raise ToolchainError(
            f"{compiler.path} does not take the set {sets.chosen.name}",
            detail=result.stderr_text.strip()[:2000],
            hint="name a set for this compiler with --set FILE (mccprobe flags search writes one)",
        )


def is_launcher(path: Path) -> bool:
    """True for a link to ccache or its like."""
    return Path(os.path.realpath(path)).name in LAUNCHERS


def _next_in_path(command: str, passed: list[str]) -> Path | None:
    for folder in filter(None, os.environ.get("PATH", "").split(os.pathsep)):
        path = Path(folder) / command
        if not locate.is_program(path):
            continue
        if not is_launcher(path) and not locate.is_our_wrapper(path):
            return path
        if str(path) not in passed:
            passed.append(str(path))
    return None


def _starts_with(path: Path, mark: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(mark)) == mark
    except OSError:
        return False


def read_installed(path: Path) -> Stamp | None:
    """What the wrapper at `path` says of itself, None where nothing is. Raises NotOurWrapper, InputError."""
    if path.is_symlink():
        raise NotOurWrapper(str(path), f"is a link to {path.readlink()}")
    try:
        data = read_file(path, MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    stamp, untouched = read_stamp(data)
    if stamp is None:
        raise NotOurWrapper(str(path), "was not written by mccprobe")
    if not untouched:
        raise NotOurWrapper(str(path), "is a wrapper of mccprobe that was edited since")
    return stamp


def install(prefix: Path, compiler: Path, sets: WrapperSets, *, command: str = COMMAND, version: str = "") -> Installed:
    """Write PREFIX/bin/COMMAND. version: what the compiler says of itself, for `status`.

    Raises NotOurWrapper when that is somebody else's, InputError when it cannot be written.
    """
    target = wrapper_path(prefix, command)
    with contextlib.suppress(OSError):
        if target.exists() and compiler.samefile(target):
            raise NotOurWrapper(str(target), "is the compiler itself")
    made: list[str] = []
    try:
        for _ in range(_TRIES):
            _make_folders(target.parent, made)
            with contextlib.suppress(FileNotFoundError), _lock(target.parent):
                remove_dead_drafts(target.parent)
                before = read_installed(target)
                created = tuple(dict.fromkeys((*(before.created if before else ()), *made)))
                data = generate(compiler, sets, tuple(sorted(created, key=len)), version=version)
                _write(target, data, replace=before is not None)
                stamp, _ = read_stamp(data)
                assert stamp is not None
                return Installed(target, stamp, before)
    except OSError as error:
        _remove_folders(made)
        raise InputError(
            f"{target}: cannot be written: {error.strerror or error}", hint="choose another place with --prefix DIR"
        ) from error
    except NotOurWrapper:
        _remove_folders(made)
        raise
    raise InputError(f"{target.parent}: somebody removes it again and again")


def remove(prefix: Path, command: str = COMMAND) -> Stamp:
    """Undo `install`: the file, and the folders that it made as far as they are empty.

    Raises WrapperNotInstalled, NotOurWrapper, InputError.
    """
    target = wrapper_path(prefix, command)
    try:
        with _lock(target.parent):
            stamp = read_installed(target)
            if stamp is None:
                raise WrapperNotInstalled(str(target))
            target.unlink()
            remove_dead_drafts(target.parent)
            _remove_folders(stamp.created)
            return stamp
    except FileNotFoundError:
        raise WrapperNotInstalled(str(target)) from None
    except OSError as error:
        raise InputError(f"{target}: cannot be removed: {error.strerror or error}") from error


def _make_folders(folder: Path, made: list[str]) -> None:
    """Make what is missing, and note in `made` what this call made."""
    missing = []
    while not is_folder(folder):
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            made.append(str(path))


def _remove_folders(folders: tuple[str, ...] | list[str]) -> None:
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):  # somebody else put something into it, or took it away
            Path(folder).rmdir()


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """An exclusive lock on the folder itself: no lock file is left. Raises FileNotFoundError if it went away."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if not folder.exists() or os.fstat(descriptor).st_ino != folder.stat().st_ino:
            raise FileNotFoundError(folder)
        yield
    finally:
        os.close(descriptor)


def _write(target: Path, data: bytes, *, replace: bool) -> None:
    """All of it or nothing. Without `replace` a file that came up meanwhile stays (NotOurWrapper)."""
    write = replace_file if replace else create_file
    try:
        write(target, data, mode=0o755, sync=True)
    except FileExistsError:
        raise NotOurWrapper(str(target), "appeared while the wrapper was written") from None


def found_in_path(command: str = COMMAND) -> Path | None:
    """What `command -v mcc` finds, None for nothing."""
    found = shutil.which(command)
    return Path(found).absolute() if found else None
