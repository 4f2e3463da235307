"""The recorder's library, compiled on first use and found again afterwards.

One file for each fingerprint of source and compiler below `cache/trace`, made beside and renamed into place.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from mccprobe.base.errors import CompilerNotFound, InputError, ToolchainError
from mccprobe.base.files import remove_dead_drafts, replace_file
from mccprobe.base.paths import make_own, require_own
from mccprobe.base.process import RunSpec, run
from mccprobe.targets.llvm import locate

SOURCE = Path(__file__).resolve().parent / "preload" / "recorder.c"
COMPILERS = ("cc", "gcc", "clang", "clang-14")  # the first that is here; any C compiler will do
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")
COMPILE_TIMEOUT_S = 120.0  # it takes a fraction of a second; this only ends a hung one


def recorder_library(cache: Path) -> Path:
    """The library, compiled now if it is not there. Raises CompilerNotFound, ToolchainError, InputError."""
    compiler = next((found for name in COMPILERS if (found := locate.which(name)) is not None), None)
    if compiler is None:
        raise CompilerNotFound("C compiler for the recorder", COMPILERS, hint="install gcc or clang")
    resolved = compiler.resolve()
    status = resolved.stat()
    about = f"{resolved}\0{status.st_size}\0{status.st_mtime_ns}\0{' '.join(FLAGS)}\0"
    digest = hashlib.sha256(about.encode() + SOURCE.read_bytes()).hexdigest()[:16]
    folder = cache / "trace"
    library = folder / f"recorder-{digest}.so"
    require_own(cache, folder.name, library.name)
    if library.is_file():
        return library
    try:
        make_own(cache, folder.name)
        remove_dead_drafts(folder)
        with tempfile.TemporaryDirectory(prefix="mccprobe-trace-") as scratch:
            made = Path(scratch) / library.name
            argv = [str(compiler), *FLAGS, "-o", str(made), str(SOURCE), "-ldl", "-pthread"]
            result = run(RunSpec(argv, env={**os.environ, "LC_ALL": "C"}, timeout_s=COMPILE_TIMEOUT_S))
            if not result.ok or not made.is_file():
                raise ToolchainError(
                    f"the recorder does not compile with {compiler}: {result.describe()}",
                    detail=result.stderr_text[-4000:],
                    hint="a C compiler with the C library's headers is needed",
                )
            replace_file(library, made.read_bytes(), mode=0o755)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written: {error.strerror or error}", hint="MCCPROBE_CACHE names another cache folder"
        ) from error
    return library
