"""What `--toolchain` takes: the targets that offer this command, asked for when the option is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # before 8.2 it takes no type

Command = TypeVar("Command", bound=Callable[..., Any])


class Toolchains(_Choice):
    """Names from the registry. offer: the command, as targets name it. auto: the word "auto" as well."""

    def __init__(self, offer: str, *, auto: bool = True) -> None:
        self._offer, self._auto = offer, auto
        super().__init__(())

    @property
    def choices(self) -> tuple[str, ...]:
        from mccprobe.targets import registry

        return (*((registry.AUTO,) if self._auto else ()), *registry.names(self._offer))

    @choices.setter
    def choices(self, value: Sequence[str]) -> None:
        """click.Choice sets it."""


class Compilers(Toolchains):
    """Whose options a catalogue describes."""

    def __init__(self) -> None:
        super().__init__("flags", auto=False)

    @property
    def choices(self) -> tuple[str, ...]:
        from mccprobe.targets import registry

        return registry.compilers()

    @choices.setter
    def choices(self, value: Sequence[str]) -> None:
        """click.Choice sets it."""


def toolchain_option(offer: str, help_text: str | None = None) -> Callable[[Command], Command]:
    """`--toolchain` with auto as its default."""
    return click.option("--toolchain", type=Toolchains(offer), default="auto", show_default=True, help=help_text)
