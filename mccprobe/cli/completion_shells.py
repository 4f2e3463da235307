"""Where shells split what is being completed, which click does not follow: `--flag=NAME` and `NAME=VALUE`.

bash takes `=` for the end of a word (COMP_WORDBREAKS): `--flag=a` arrives as three words, and an answer stands
for what is behind the last `=`. zsh and fish hand over the whole word and want it back whole.
"""

from __future__ import annotations

from typing import Any

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)


def join_split_words(words: list[str]) -> tuple[list[str], str]:
    """bash's words, the last one incomplete, without the breaks at `=`; and what of it bash has already.

    >>> join_split_words(["--flag", "=", "Fence", "=", "st"])
    (['--flag', 'Fence=st'], 'Fence=')
    """
    joined: list[str] = []
    for index, word in enumerate(words):
        before = joined[-1] if joined else ""
        if word == "=" and before.startswith("--") and "=" not in before:
            joined.append("")  # the value of an option
        elif (word == "=" and before) or (index and words[index - 1] == "=" and joined):
            joined[-1] += word
        else:
            joined.append(word)
    last = joined[-1] if joined else ""
    given = last.startswith("--") and "=" in last
    return joined, "" if given or "=" not in last else last.rpartition("=")[0] + "="


class _Bash(BashComplete):
    name = "bash"
    has = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        joined, self.has = join_split_words([*args, incomplete])
        return joined[:-1], joined[-1]

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return f"{item.type},{item.value.removeprefix(self.has)}"


class _WholeWord(ShellComplete):
    """Answers with the option in front where the word had it."""

    option = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        args, incomplete = super().get_completion_args()
        self.option = _option_of(incomplete)
        return args, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return super().format_completion(_with_option(item, self.option))


class _Zsh(_WholeWord, ZshComplete):
    name = "zsh"


class _Fish(_WholeWord, FishComplete):
    name = "fish"


def _option_of(word: str) -> str:
    """`--flag=` of `--flag=a`."""
    return word.partition("=")[0] + "=" if word.startswith("--") and "=" in word else ""


def _with_option(item: CompletionItem[Any], option: str) -> CompletionItem[Any]:
    if not option or item.type != "plain":
        return item
    return CompletionItem(option + item.value, help=item.help)


def register() -> None:
    """Take the place of click's classes."""
    for kind in (_Bash, _Zsh, _Fish):
        add_completion_class(kind)
