"""Which file a compile really reads for an #include: asked of the compiler's own dependency output."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from mccprobe.base.errors import InputError, SourceDoesNotCompile
from mccprobe.base.process import RunSpec, run
from mccprobe.targets.protocol import Toolchain

DEPENDENCY_TIMEOUT_S = 120.0  # preprocessing takes a second; this only ends a hung one
_WORD = re.compile(r"(?:\\.|[^ \t\\])+")
_QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def dependencies(toolchain: Toolchain, options: Sequence[str], source: Path, scratch: Path) -> list[Path]:
    """Every file that compiling `source` reads, as the compiler names it. Raises SourceDoesNotCompile."""
    argv = [*toolchain.driver, *options, "-M", str(source)]
    spec = RunSpec(argv, cwd=scratch, env=toolchain.environment(scratch), timeout_s=DEPENDENCY_TIMEOUT_S)
    result = run(spec)
    if not result.ok:
        raise SourceDoesNotCompile(
            f"{source}: {toolchain.name} -M does not work: {result.describe()}",
            detail=result.stderr_text[-4000:],
            hint="without it nobody can tell which header is read",
        )
    text = os.fsdecode(result.stdout).replace("\\\n", " ")  # names need not be UTF-8
    return [scratch / _plain(word) for rule in text.split("\n") for word in _WORD.findall(rule.partition(": ")[2])]


def require_rule(path: Path, hint: str) -> None:
    """Raise InputError for a name that no Makefile rule can carry, and so no answer of `dependencies`."""
    if "\n" in str(path) or "\\" in str(path):  # clang makes a slash of a backslash (llvm::sys::path::native)
        told = "has a line end or a backslash in its name, which a Makefile rule (-M) cannot carry"
        raise InputError(f"{path}: {told}", hint=hint)


def _plain(word: str) -> str:
    """A name of a Makefile rule without what stands for make."""
    return re.sub(r"\\([ #\\])", r"\1", word).replace("$$", "$")


def find_header(read: Sequence[Path], name: str, source: Path, included: Callable[[], Sequence[Path]]) -> Path:
    """The file among those read that is included as `name`, as the compiler spells its path. Raises InputError.

    included: what a file reads that includes nothing but <name>; asked where several files end in that name.
    """
    parts = Path(name).parts
    found: dict[Path, Path] = {}
    for path in read:
        if path.parts[-len(parts) :] == parts:
            found.setdefault(path.resolve(), path)
    if not found:
        near = sorted({path.name for path in read if path.name == parts[-1]}) if parts else []
        raise InputError(
            f"{source} reads no header {name}",
            hint=f"it reads another {near[0]}: give more or less of its path" if near else "name it as it is included",
        )
    if len(found) > 1:
        first = next((path.resolve() for path in included() if path.resolve() in found), None)
        if first is None:
            listed = ", ".join(map(str, found))
            raise InputError(f"{source} reads {len(found)} files {name}: {listed}", hint="give more of its path")
        return found[first]
    return next(iter(found.values()))


def quoted_beside(header: Path, text: str) -> bool:
    """True if the header includes a neighbour by quotes, which a copy elsewhere would not find."""
    return any((header.parent / name).is_file() for name in _QUOTED.findall(text))
