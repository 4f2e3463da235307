"""Find compilers and LLVM tools by running them; nothing here guesses from a file's name."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from mccprobe.base.errors import CompilerChanged, CompilerNotFound, ToolchainError
from mccprobe.base.process import RunSpec, run
from mccprobe.targets.protocol import Identity, Toolchain

QUERY_TIMEOUT_S = 30.0
_CLANG_VERSION = re.compile(r"clang version (\d{1,9})\.")
# mcc prints clang's line first and its own below it (mtgpu.md section 6); its own is the one to show
_OWN_VERSION = re.compile(r"^(?:mcc|mccprobe-sim) version .*$", re.MULTILINE)
_CONFIGURATION = re.compile(r"^Configuration file: (.+)$", re.MULTILINE)  # clang/lib/Driver/Driver.cpp, PrintVersion
WRAPPER_MARK = b"# mccprobe wrapper {"  # first kilobyte of the generated wrapper holds this line
DEFAULT_CLANG = ("clang-14", "clang")
CLANG_MAJORS = tuple(range(13, 20))


def which(name: str) -> Path | None:
    """A program by path or through PATH."""
    found = shutil.which(name)
    return Path(found) if found else None


def installed_clangs() -> dict[str, Path]:
    """The clangs of PATH by the name that starts them, each program once; none is run."""
    found: dict[str, Path] = {}
    seen = set()
    for name in (*(f"clang-{major}" for major in CLANG_MAJORS), "clang"):
        path = which(name)
        if path is not None and path.resolve() not in seen:
            seen.add(path.resolve())
            found[name] = path
    return found


def is_program(path: Path) -> bool:
    """True for a file that may be run; False also where a folder of PATH may not be looked into."""
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113  Path.is_file raises PermissionError


def require_program(name: str, *, what: str, hint: str) -> Path:
    """A program by path or through PATH. Raises CompilerNotFound."""
    found = which(name)
    if found is None:
        raise CompilerNotFound(what, [name], hint=hint)
    return found


def is_our_wrapper(path: Path) -> bool:
    """True for the wrapper that mccprobe itself generates: never take it for the compiler."""
    try:
        with path.open("rb") as file:
            return WRAPPER_MARK in file.read(1024)
    except OSError:
        return False


def identify(driver: Sequence[str]) -> Identity:
    """Run `--version`. Raises ToolchainError when that does not work."""
    path = require_program(driver[0], what=f"compiler {driver[0]}", hint="name it with --compiler PATH, or install it")
    result = run(RunSpec([str(path), *driver[1:], "--version"], timeout_s=QUERY_TIMEOUT_S))
    text = result.stdout_text.strip()
    if not result.ok or not text:
        raise ToolchainError(
            f"{path} --version does not work: {result.describe()}",
            detail=result.stderr_text.strip(),
            hint="check the installation of the compiler",
        )
    resolved = path.resolve()
    found = _CLANG_VERSION.search(text)
    own = _OWN_VERSION.search(text)
    stat = resolved.stat()
    about = os.fsencode(f"{resolved}\0{text}\0{stat.st_size}\0{stat.st_mtime_ns}")
    digest = hashlib.sha256(about).hexdigest()
    return Identity(
        path=path,
        resolved=resolved,
        version=(own.group() if own else text.splitlines()[0]).strip(),
        clang_major=int(found.group(1)) if found else None,
        fingerprint=digest[:16],
        configuration=configured.group(1).strip() if (configured := _CONFIGURATION.search(text)) else "",
    )


def require_unchanged(toolchain: Toolchain) -> None:
    """Ask the compiler once more who it is: answers of two compilers accuse the innocent. Raises CompilerChanged."""
    before, now = toolchain.identify(), identify(toolchain.driver)
    if before.fingerprint != now.fingerprint:
        raise CompilerChanged(str(now.path), before.version, now.version)


@functools.cache
def fixed_addresses_prefix() -> tuple[str, ...]:
    """`setarch -R` where it works here (it may be forbidden in a container), else nothing.

    With address-space randomisation a compiler that orders by pointer gives different objects for
    one command line (llvm-project issue 66484).
    """
    if which("setarch") is None:
        return ()
    prefix = ("setarch", "-R")
    return prefix if run(RunSpec([*prefix, "true"], timeout_s=QUERY_TIMEOUT_S)).ok else ()


def demangle(name: str) -> str:
    """A C++ name for people; the name itself where it is not mangled or no demangler is here."""
    if not name.startswith("_Z"):
        return name
    for tool in ("c++filt", "llvm-cxxfilt", "llvm-cxxfilt-14"):
        if which(tool) is not None:
            result = run(RunSpec([tool, name], timeout_s=QUERY_TIMEOUT_S))
            if result.ok and result.stdout_text.strip():
                return result.stdout_text.strip()
    return name
