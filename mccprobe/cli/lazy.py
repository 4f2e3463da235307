"""A group whose commands are imported when they are used, so that `--version` and `--help` stay fast."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


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
            return command
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {name: command.get_short_help_str(90) for name, command in self.commands.items()}
        rows |= {name: text for name, (_, _, text) in self.later.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows.items()))
