"""From what a user types to what is built: the kernel, its flags, its -D parameters."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from mccprobe.base.errors import InputError, UsageError
from mccprobe.base.paths import exists, is_file, is_folder
from mccprobe.oracle.kernel.lookup import find_kernel, is_source_of
from mccprobe.oracle.kernel.shipped import FILE_NAME, hint_of_shipped
from mccprobe.oracle.kernel.spec import KernelSpec, is_shipped, shipped_kernel
from mccprobe.targets.choose import Choice, choose
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.flags.datafile import shorten
from mccprobe.targets.flags.given import refuse_twice
from mccprobe.targets.mcc.toolchain import MccPaths

_DEFINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)

Flags = tuple[tuple[str, ...], ...]


def runnable_kernel(text: str) -> KernelSpec:
    """The kernel of `find_kernel`, with a host program. Raises InputError, UsageError."""
    path = Path(text)
    kernel = find_kernel(text)
    if kernel is None:
        if exists(path):
            help_page = "see how a kernel is built, run and judged: mccprobe help kernels"
            where = "in" if is_folder(path) else "beside"
            raise InputError(f"{path}: no {FILE_NAME} {where} it", hint=hint_of_shipped(path) or help_page)
        if "/" in text:
            raise InputError(f"{path}: no such kernel", hint=hint_of_shipped(path))
        kernel = shipped_kernel(text)
    elif is_file(path) and path.name != FILE_NAME and not is_source_of(path, kernel):
        raise InputError(f"{path}: not one of the sources of {kernel.path}")
    if not kernel.host_sources:
        raise InputError(
            f"{kernel.path}: no host_sources, so nothing can be run",
            hint="see the contract of a host program: mccprobe help kernels",
        )
    return kernel


def kernel_toolchain(
    kernel: KernelSpec, name: str, *, mcc: str | None, musa_path: str | None, cache: Path, compiler: str | None = None
) -> Choice:
    """The toolchain for this kernel, as `bisect` chooses it. Raises CompilerNotFound, ToolchainError, UsageError."""
    sources = [str(source) for source in kernel.sources]
    return choose(
        name,
        sources=sources,
        shipped=is_shipped(kernel.path),
        compiler=compiler,
        mcc=MccPaths(mcc, musa_path),
        cache=cache,
    )


def resolve_flags(names: Sequence[str], sets: Sequence[str] = ()) -> Flags:
    """Driver arguments of catalogue names, of arguments as they stand, and of flag sets.

    Raises UnknownFlag, AmbiguousFlag, and UsageError for one option given twice with different values.
    """
    catalogue = load_catalogue()
    flags = [*(flag for name in sets for flag in catalogue.resolve_set(name)), *map(catalogue.resolve, names)]
    found = {flag.given: flag.text for flag in flags}
    refuse_twice(((flag.key, text) for flag, text in found.items()), "--flag")
    return tuple(flag.argv for flag in found)


def split_flags(text: str) -> Flags:
    """`resolve_flags` of one text with several names; "" or "none" for no flag at all."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{shorten(text)}: cannot be split: {error}") from error
    names: list[str] = []
    rest = iter(words)
    for word in rest:
        names.append(f"-mllvm {next(rest, '')}" if word == "-mllvm" else word)
    sets = [name for name in names if name in load_catalogue().sets]
    return resolve_flags([name for name in names if name not in sets and name != "none"], sets)


def parse_defines(kernel: KernelSpec, texts: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` of parameters that kernel.toml has. Raises UsageError."""
    known = {define.name: define for define in kernel.defines}
    found: dict[str, str] = {}
    for text in texts:
        match = _DEFINE.fullmatch(text)
        if match is None:
            raise UsageError(f"-D {text}: expected NAME=VALUE")
        if match[1] not in known:
            names = ", ".join(known) or "none"
            raise UsageError(f"kernel {kernel.name} has no parameter {match[1]}", hint=f"its [[defines]]: {names}")
        found[match[1]] = match[2]
    return found
