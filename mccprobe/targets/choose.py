"""Which toolchain a command uses, and why; a stand-in is never chosen silently for a user's kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mccprobe.base.errors import UsageError
from mccprobe.targets import registry
from mccprobe.targets.mcc.target import not_found
from mccprobe.targets.mcc.toolchain import MccPaths
from mccprobe.targets.protocol import Choice, Wanted

__all__ = ["Choice", "choose", "wanted_of"]


def wanted_of(mcc: MccPaths, cache: Path, *, compiler: str | None = None) -> Wanted:
    """The paths that the user gave, for a command that has no source."""
    given = {"compiler": compiler, "mcc": mcc.mcc, "musa_path": mcc.musa_path}
    return Wanted(cache, options={name: value for name, value in given.items() if value})


def choose(
    name: str,
    *,
    sources: Sequence[str],
    shipped: bool,
    compiler: str | None,
    mcc: MccPaths,
    cache: Path,
    language: str = "",
) -> Choice:
    """Resolve `--toolchain`.

    shipped: the source is one of the kernels that come with mccprobe. language: what `-x` makes of the sources.
    A compiler that the user names is the one that is used: mcc for any source with --mcc or --musa-path.
    Raises CompilerNotFound (exit 3) when the compiler is not there, UsageError for options that contradict.
    """
    device = language == "musa" or any(map(registry.is_device_source, sources))
    named = "--mcc" if mcc.mcc else "--musa-path" if mcc.musa_path else ""
    if named and compiler:
        raise UsageError(f"--compiler does not go with {named}", hint="name one compiler, with either option")
    options = wanted_of(mcc, cache, compiler=compiler).options
    wanted = Wanted(cache, tuple(sources), shipped, device, options)
    if name != registry.AUTO:
        target = registry.target(name)
        if compiler and target.path_option != "compiler":
            raise UsageError(
                f"--compiler does not go with --toolchain {name}",
                hint="name mcc with --mcc PATH; sim brings its own, nvcc comes from PATH",
            )
        if named and sources and target.path_option != "mcc":
            raise UsageError(
                f"{named} does not go with --toolchain {name}", hint=f"leave out --toolchain {name}: {named} means mcc"
            )
        return target.find(wanted)
    # those of MCCPROBE_TARGETS first: clang takes every source that is no device code
    every = sorted(registry.targets(), key=lambda target: target in registry.SHIPPED)
    rules = [target.automatic for target in every if target.automatic is not None]
    for rule in rules:
        choice = rule(wanted)
        if choice is not None:
            return choice
    raise not_found(
        wanted,
        "install the MUSA SDK or name it with --mcc PATH; to try your kernel on the stand-in, say so: --toolchain sim",
    )
