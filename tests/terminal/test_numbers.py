"""Options that take a number with a point take numbers only: found by walking the commands."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from mccprobe import cli


def numbers(command: click.Command, path: str = "mccprobe") -> Iterator[tuple[str, click.Parameter]]:
    context = click.Context(command)
    for parameter in command.params:  # get_params would keep the help option of this bare context
        if isinstance(parameter.type, click.types.FloatParamType):
            yield f"{path} {parameter.opts[0]}", parameter
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        inner = command.get_command(context, name)
        assert inner is not None
        yield from numbers(inner, f"{path} {name}")


NUMBERS = dict(numbers(cli.root))


def test_the_walk_finds_them() -> None:
    assert {"mccprobe bisect --timeout", "mccprobe flags search --timeout", "mccprobe plan --clock-ghz"} <= set(NUMBERS)


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "infinity", "1e999"])
@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_no_number_is_refused(name: str, text: str) -> None:
    parameter = NUMBERS[name]
    with pytest.raises(click.BadParameter):
        parameter.type.convert(text, parameter, None)
