"""A group whose commands are imported when they are used, so that `--version` and `--help` stay fast."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from mccprobe.base.console import Console

COMPLETE = "_MCCPROBE_COMPLETE"  # set by a shell that asks what could follow (click names it by the program)
COLORS = ("auto", "always", "never")
JSON_BEFORE = "mccprobe.json"  # in a context's meta: --json was given before the command


def add_common_options(command: click.Command) -> None:
    """`--json`, `-q` and `--color` mean the same before and after every command, and between a group and its command.

    Every command declares its own `--json`; the other two are added here.
    """
    if any("--color" in parameter.opts for parameter in command.params):
        return  # done at an earlier look-up
    of_group = isinstance(command, click.Group)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            add_common_options(inner)
        command.params.append(_common(["--json"], _choose_json, is_flag=True, hidden=True))
    else:
        for parameter in command.params:
            if "--json" in parameter.opts:
                parameter.callback = _json_or_before(parameter.callback)
    # where unknown options are names, `-q` would be found inside of them: those commands translate it
    takes_names = command.context_settings.get("ignore_unknown_options") and command.context_settings.get(
        "allow_interspersed_args", True
    )
    command.params += [
        _common(
            ["--quiet"] if takes_names else ["-q", "--quiet"],
            _choose_quiet,
            is_flag=True,
            hidden=of_group,
            help="no progress on standard error",
        ),
        _common(
            ["--color"],
            _choose_color,
            type=click.Choice(COLORS),
            hidden=of_group,
            help="colour of the result (default: auto, on a terminal)",
        ),
    ]


def _common(names: list[str], callback: Callable[..., None], **how: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=callback, **how)


def _choose_color(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None and isinstance(ctx.obj, Console):
        ctx.obj.color = value


def _choose_quiet(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and isinstance(ctx.obj, Console):
        ctx.obj.quiet = True


def _choose_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[JSON_BEFORE] = True


def _json_or_before(own: Callable[..., Any] | None) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """The callback of a command's `--json`: it counts before the command as well."""

    def callback(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
        chosen = bool(value) or bool(ctx.meta.get(JSON_BEFORE))
        return chosen if own is None else own(ctx, parameter, chosen)

    return callback


class AliasedOption(click.Option):
    """An option with a second spelling that still works and is not shown: `aliases`."""

    def __init__(self, *args: Any, aliases: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.aliases = tuple(aliases)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        shown = self.opts
        self.opts = [*shown, *self.aliases]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


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
            add_common_options(command)
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
