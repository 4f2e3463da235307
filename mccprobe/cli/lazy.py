"""A group whose commands are imported when they are used, so that `--version` and `--help` stay fast."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from mccprobe.base.console import Console

COMPLETE = "_MCCPROBE_COMPLETE"  # set by a shell that asks what could follow (click names it by the program)
COLORS = ("auto", "always", "never")


def add_color_option(command: click.Command) -> None:
    """`--color` means the same behind every command as before it; once is enough."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            add_color_option(inner)
    elif not any("--color" in parameter.opts for parameter in command.params):
        command.params.append(
            click.Option(
                ["--color"], type=click.Choice(COLORS), expose_value=False, callback=_choose_color,
                help="colour of the result (default: auto, on a terminal)",
            )
        )  # fmt: skip


def _choose_color(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None and isinstance(ctx.obj, Console):
        ctx.obj.color = value


class LazyGroup(click.Group):
    """later: command name -> module, attribute in it, one line for the help."""

    def __init__(self, *args: Any, later: Mapping[str, tuple[str, str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.later = later

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*self.later, *super().list_commands(ctx)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.later:
            module, attribute, _ = self.later[cmd_name]
            command: click.Command = getattr(importlib.import_module(module), attribute)
            add_color_option(command)
            if COMPLETE in os.environ:
                from mccprobe.cli.completion_values import attach

                attach(command)
            return command
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """click looks for similar names among the imported commands alone."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            import difflib

            if near := difflib.get_close_matches(name, known):
                raise click.UsageError(f"No such command {name!r}. Did you mean {' or '.join(near)}?", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands' names from the table: click would import every one of them for its help."""
        rows = {name: text for name, (_, _, text) in self.later.items()}
        rows |= {name: command.get_short_help_str(90) for name, command in self.commands.items()}
        found = [CompletionItem(name, help=text) for name, text in sorted(rows.items()) if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {name: command.get_short_help_str(90) for name, command in self.commands.items()}
        rows |= {name: text for name, (_, _, text) in self.later.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows.items()))
