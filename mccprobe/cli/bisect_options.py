"""The options that bisect and why share, as click sees them and as one record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import click

from mccprobe.base.errors import UsageError
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.pasted import begins_a_command, several_files
from mccprobe.cli.common import FiniteRange
from mccprobe.cli.lazy import AliasedOption
from mccprobe.cli.toolchain_option import toolchain_option

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.argument("file", required=False),
    click.argument("args", nargs=-1, type=click.UNPROCESSED),
    click.option("--flag", "flags", multiple=True, metavar="NAME", help="catalogue name, NAME=VALUE, or as it stands"),
    toolchain_option("bisect"),
    click.option("--compiler", metavar="PATH", help="the clang to use"),
    click.option("--mcc", metavar="PATH", help="the mcc to use"),
    click.option("--musa-path", metavar="DIR", help="the MUSA toolkit to pin"),
    click.option("--reference", metavar="ARGS", help="compile arguments of the right build (-l -L -Wl, -I -D stay)"),
    click.option("--reference-exact", is_flag=True, help="--reference replaces all arguments"),
    click.option("--oracle", metavar="CMD", help="judge by CMD ({exe}, or appended): 0 good, 1-124 bad, 125 skip"),
    click.option("--run-args", metavar="ARGS", help="arguments of the program"),
    click.option("--stdin", metavar="FILE", help="what the program reads from standard input (default: nothing)"),
    click.option("--run-in", metavar="DIR", help="folder that programs run in (default: an empty one for each run)"),
    click.option(
        "--ignore-file",
        "ignore_files",
        multiple=True,
        metavar="PATTERN",
        help="a file that the program writes, not to be compared",
    ),
    click.option(
        "--case",
        cls=AliasedOption,
        aliases=("--cases",),
        metavar="NAME|MxNxK",
        help="case of a kernel's own host program",
    ),
    click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="inputs and spot checks"),
    click.option("--arch", default="", metavar="ARCH", help="device architecture to bisect, of several"),
    click.option("--count", type=click.IntRange(2), default=2, show_default=True, help="runs of each end"),
    click.option("--spot-checks", type=click.IntRange(0), default=4, show_default=True, help="extra objects to test"),
    click.option("--confidence", type=FiniteRange(0.5, 0.999999), default=0.99, show_default=True),
    click.option("--max-runs", type=click.IntRange(1), help="budget of oracle runs"),
    click.option("--profile", is_flag=True, help="test every distinct object and list every edge"),
    click.option("--jobs", type=click.IntRange(1), help="compiles at once (default: CPUs)"),
    click.option("--scheduler", default="", metavar="tcp://HOST:PORT", help="compile on this Dask cluster"),
    click.option("--timeout", type=FiniteRange(0.1), default=60.0, show_default=True, metavar="S", help="of one run"),
    click.option("--compile-timeout", type=FiniteRange(1), default=300.0, show_default=True, metavar="S"),
    click.option("--bad-if", multiple=True, type=click.Choice(["timeout", "crash"]), help="BAD, not UNRESOLVED"),
    click.option("--no-fixed-addresses", is_flag=True, help="leave address randomisation on for compiles"),
)
_AFTER = "mccprobe.after"  # in a context's meta: the words after --
_NAMES = frozenset(field.name for field in dataclasses.fields(BisectOptions))


class BuildCommand(click.Command):
    """Notes the words after `--`: they go to the compiler, and only a word before it is a FILE."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_AFTER] = args[args.index("--") + 1 :] if "--" in args else []
        return super().parse_args(ctx, args)


def bisect_options(command: Command) -> Command:
    """Put the shared arguments and options in front of the command's own."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_options(ctx: click.Context, values: dict[str, Any], *, fixed_addresses: bool) -> dict[str, Any]:
    """The fields of BisectOptions that stood on the command line, by name. Raises UsageError for several FILEs."""
    after = ctx.meta[_AFTER]
    words = [word for word in (values["file"], *values["args"]) if word is not None]
    front = words[: len(words) - len(after)]
    if len(front) > 1:
        message, hint = several_files(str(ctx.command.name), front, after)
        raise UsageError(message, hint=hint)
    given = {
        name: tuple(value) if isinstance(value, list | tuple) else value
        for name, value in values.items()
        if name in _NAMES and ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    if words and (words[0].startswith("-") or (not front and begins_a_command(words[0]))):
        # everything stood after --: there is no FILE, the shipped kernel takes the arguments
        given["args"] = (values["file"], *values["args"])
        given.pop("file", None)
    if not fixed_addresses:
        given["fixed_addresses"] = False
    return given
