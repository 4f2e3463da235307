"""What a shell is offered for the values of options and arguments; nothing here runs a compiler.

`attach` is called only while a shell asks. A value that has names of its own (flags, sets, kernels, runs)
is found by the option's or argument's name, which means the same in every command.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from mccprobe.targets.flags.entries import Flag

RUNS = "mccprobe-out"  # where runs go without -o
MAX_RUNS = 200  # offered; the newest
Offer = Callable[[click.Context, str], Iterator[CompletionItem]]


def _plain(names: Iterator[tuple[str, str]], incomplete: str) -> Iterator[CompletionItem]:
    return (CompletionItem(name, help=about or None) for name, about in names if name.startswith(incomplete))


def flags(_: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Names of the catalogue; behind NAME= its values."""
    from mccprobe.targets.flags.catalogue import load_catalogue

    known = [flag for flag in load_catalogue().flags.values() if flag.option in ("mllvm", "driver")]
    name, equals, _value = incomplete.partition("=")
    if equals:
        values = [f"{name}={value}" for flag in known if flag.name == name for value in flag.values]
        return _plain(((value, "") for value in values), incomplete)
    found = ((_named(flag.name, incomplete, known), flag.purpose.partition(".")[0][:70]) for flag in known)
    return _plain(found, incomplete)


def _named(name: str, incomplete: str, known: Sequence[Flag]) -> str:
    """The name, or its longest end that begins so and means it alone: flags are taken by either."""
    ends = [name[at:] for at in range(len(name)) if at == 0 or name[at - 1] == "-"]
    fits = (end for end in ends if end.startswith(incomplete))
    alone = (end for end in fits if sum(f"-{one.name}".endswith(f"-{end}") for one in known) == 1)
    return next(alone, name)


def catalogue_names(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Flags and sets."""
    yield from flags(ctx, incomplete)
    yield from (item for item in sets(ctx, incomplete) if item.type == "plain")


def sets(_: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Names of flag sets, or a file with one."""
    from mccprobe.targets.flags.catalogue import load_catalogue

    yield CompletionItem(incomplete, type="file")  # first: bash forgets what came before it
    yield from _plain(((one.name, one.summary[:70]) for one in load_catalogue().sets.values()), incomplete)


def kernels(_: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Names of shipped kernels."""
    from mccprobe.oracle.kernel.shipped import find_shipped_kernels

    return _plain(((folder.name, "") for folder in find_shipped_kernels()), incomplete)


def kernels_or_files(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    yield CompletionItem(incomplete, type="file")
    yield from kernels(ctx, incomplete)


def runs(_: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Run directories below mccprobe-out, the newest first; where none begins so, any folder."""
    found: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError):
        found = [(path.parent.stat().st_mtime, path.parent) for path in Path(RUNS).glob("*/run.json")]
    newest = sorted(found, key=lambda item: -item[0])[:MAX_RUNS]
    named = list(_plain(((str(path), "") for _, path in newest), incomplete))
    yield from named or [CompletionItem(incomplete, type="dir")]  # both: zsh would find one thing twice


def files(_: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    yield CompletionItem(incomplete, type="file")


def folders(_: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    yield CompletionItem(incomplete, type="dir")


# names of parameters, as the commands declare them
BY_OPTION: dict[str, Offer] = {
    "--flag": flags, "--set": sets, "--also": kernels_or_files, "--resume": runs, "--compiler": files, "--mcc": files,
    "--musa-path": files, "--kernel": kernels_or_files, "--compare": kernels, "--catalogue": files, "--header": files,
    "--replace": files, "--program": files, "--csv": files, "--parquet": files, "--from": files,
    "--journal": files, "--output": files, "--defaults": files, "--storage": files, "--run-in": folders,
    "--stdin": files, "--probe": files, "--probe-object": files, "--object": files, "--against": kernels_or_files,
}  # fmt: skip
BY_ARGUMENT: dict[str, Offer] = {
    "kernel": kernels_or_files, "file": kernels_or_files, "args": files, "command": files, "flag_names": flags,
    "name": catalogue_names, "run": runs, "table": files, "more": files, "reports": files,
}  # fmt: skip


def attach(command: click.Command) -> None:
    """Let the parameters of a command and of its subcommands offer their values."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            attach(inner)
    for parameter in command.params:
        if isinstance(parameter.type, click.Choice):
            continue
        if isinstance(parameter, click.Argument):
            offer = BY_ARGUMENT.get(parameter.name or "")
        else:
            offer = next((BY_OPTION[name] for name in parameter.opts if name in BY_OPTION), None)
        if offer is not None and not (offer is files and isinstance(parameter.type, click.Path)):  # it knows its kind
            _offer(parameter, offer)


def _offer(parameter: click.Parameter, offer: Offer) -> None:
    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return list(offer(ctx, incomplete))

    parameter.shell_complete = complete  # type: ignore[method-assign]
