"""Any clang or clang++ (13 to 19) on ordinary C, C++ and LLVM IR."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mccprobe.base.errors import CompilerNotFound, SourceDoesNotCompile, ToolchainError
from mccprobe.targets.llvm import locate
from mccprobe.targets.llvm.command import is_cxx
from mccprobe.targets.llvm.driver import ClangDriver


class ClangToolchain(ClangDriver):
    """Stock clang; the user's own program is run on this machine."""

    name = "clang"

    def check_driver(self) -> None:
        """Also asks it for its jobs: any program may have been named with --compiler."""
        super().check_driver()
        with tempfile.TemporaryDirectory(prefix="mccprobe-probe-") as folder:
            try:
                self.record(["-x", "c", "-c", os.devnull, "-o", os.devnull], Path(folder))
            except SourceDoesNotCompile as error:
                hint = "is this a clang-style driver?"
                raise ToolchainError(error.message, detail=error.detail, hint=hint) from error
            except ToolchainError as error:
                identity = self.identify()
                if identity.clang_major is not None:
                    raise
                here = " or ".join(locate.installed_clangs()) or "PATH"
                raise ToolchainError(
                    f"{identity.path} is not clang ({identity.version}), and only clang can limit its passes",
                    hint=f"name a clang: --compiler {here}",
                ) from error


def clang_toolchain(compiler: str | None, sources: Sequence[str]) -> ClangToolchain:
    """The clang that was named, else clang-14, else clang. C++ sources switch its driver to C++.

    Raises CompilerNotFound.
    """
    names = (compiler,) if compiler else locate.DEFAULT_CLANG
    for name in names:
        path = locate.which(name)
        if path is not None:
            driver = [str(path)]
            if "++" not in Path(name).name and any(is_cxx(source) for source in sources):
                driver.append("--driver-mode=g++")
            return ClangToolchain(driver)
    here = ", ".join(locate.installed_clangs())
    hint = "install clang-14 (Debian: apt-get install clang-14) or name one with --compiler PATH"
    raise CompilerNotFound("clang", names, hint=f"here are {here}: --compiler NAME" if here else hint)
