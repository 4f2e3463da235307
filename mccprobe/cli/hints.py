"""Hints name only options that the command has: a library below knows its error, not the command that met it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

_BETWEEN = re.compile(r"(; |, or | or )")  # what stands between the alternatives of a hint
_OPTION = re.compile(r"(?<![^\s(])(--[a-z][\w-]*|-o (?:DIR|FILE))")  # of mccprobe: a compiler's have one dash
_WHOLE_COMMAND = re.compile(r"\b(?:mccprobe|dask|pip|pipx|uv) ")  # whose options are its own
_EVERYWHERE = ("--help", "--debug", "--quiet", "--json", "--color")


def command_of(root: click.Group, argv: Sequence[str]) -> click.Command:
    """The command that these arguments call, as far as they name one."""
    command: click.Command = root
    for word in argv:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(click.Context(command), word) or command
    return command


def hint_for(hint: str, command: click.Command) -> str:
    """The hint without those of its alternatives that name an option which this command has not."""
    first, *rest = _BETWEEN.split(hint)
    parts = [("", first), *zip(rest[::2], rest[1::2], strict=True)]
    kept = [part for part in parts if not foreign_options(part[1], command)]
    return "".join((between if number else "") + text for number, (between, text) in enumerate(kept))


def foreign_options(text: str, command: click.Command) -> list[str]:
    """Options in this text that the command has not; -o FILE is no -o DIR."""
    if _WHOLE_COMMAND.search(text):
        return []
    found = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    own = {*_EVERYWHERE, *(name for one in found for name in one.opts)}
    own |= {f"-o {one.metavar}" for one in found if "-o" in one.opts}
    return [name for name in _OPTION.findall(text) if name not in own]
