"""A compiler's own list of its LLVM options as typed records: text in, records out, no process.

Texts: `-mllvm -help-hidden` or `-mllvm -help-list-hidden` (names, value kinds, enum values, meaning)
and, for the defaults, `-mllvm -print-all-options`. The shapes are those of llvm/lib/Support/CommandLine.cpp,
seen in clang 13 to 19. The text is an installed compiler's and may hold anything: what is no option
is counted and left out, nothing raises, and all that is kept is printable and bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mccprobe.targets.flags.datafile import shorten

ValueKind = Literal["bool", "switch", "enum", "int", "uint", "number", "string", "unknown"]

MAX_TEXT = 16 << 20  # characters of a help text that are read; clang-19's has 400 kB
MAX_LINE = 4096  # characters; the longest line of clang-19 has 582
MAX_OPTIONS = 50_000  # clang-19 has 2,600
MAX_VALUES = 1000  # of one enum; debug counters of clang-19 are 60
MAX_DESCRIPTION = 1000  # characters kept

# "  --name=<uint>   - text", "  -o <filename>  - text" (llc-19); at six spaces the alternatives of a nameless option
_OPTION = re.compile(r"( {2,6})(--?)([A-Za-z0-9][\w.-]{0,199})(\[?=<.*?>\]?| <[^>]*>)? +-(?: (.*))?", re.ASCII)
_VALUE = re.compile(r" {4}=(\S.*?|)(?: +- +(.*))? *")
_TITLE = re.compile(r"  (?! )([^-=].*)")
_CONTINUED = re.compile(r" {8,}(\S.*)")
_SETTING = re.compile(r" +--?([A-Za-z0-9][\w.-]{0,199}) += (.*)", re.ASCII)
_BOOLEANS = frozenset(("0", "1", "2"))  # 2: cl::boolOrDefault, switched off
_KINDS: Mapping[str, ValueKind] = {
    "int": "int", "long": "int", "uint": "uint", "ulong": "uint", "number": "number", "string": "string",
}  # fmt: skip
EMPTY_VALUE = "<empty>"  # how the help shows an enum value without text


@dataclass(frozen=True)
class HarvestedOption:
    """One LLVM option as its compiler describes it.

    name: without dashes. value_kind: "bool" takes =true and =false or nothing; "switch" takes no value;
    "unknown" takes a value that the compiler does not describe. values: of an enum, value -> meaning.
    default: as printed by -print-all-options, None where it is not printed. A bool's "0" can also mean
    "not set, the target decides" (cl::boolOrDefault prints both alike).
    value_name: what the help has between = and the end, such as "uint". value_optional: `--x` alone is allowed.
    group: title of the alternatives that it is one of, "" for most.
    """

    name: str
    value_kind: ValueKind
    values: Mapping[str, str]
    default: str | None
    description: str
    spelling: str = ""
    value_name: str = ""
    value_optional: bool = False
    group: str = ""


@dataclass(frozen=True)
class Harvest:
    """All options, in the order of the text. unread: lines with a dash in front that are no option."""

    options: tuple[HarvestedOption, ...]
    unread: tuple[str, ...] = ()

    def find(self, name: str) -> HarvestedOption | None:
        """The option of this name (no dashes)."""
        return next((option for option in self.options if option.name == name), None)


@dataclass
class _Draft:
    name: str
    spelling: str
    value_name: str
    takes_value: bool
    group: str
    description: list[str]
    values: dict[str, list[str]] = field(default_factory=dict)
    bare: bool = False  # seen without a value


def harvest(help_text: str, all_options_text: str = "") -> tuple[HarvestedOption, ...]:
    """Options by the two texts; see the module's head. Never raises."""
    return read_help(help_text, all_options_text).options


def read_help(help_text: str, all_options_text: str = "") -> Harvest:
    """As `harvest`, with the lines that look like options and are none."""
    drafts: dict[str, _Draft] = {}
    unread: list[str] = []
    title, current, into = "", None, None  # into: the text that a continued line goes on
    for line in _lines(help_text):
        if option := _OPTION.fullmatch(line):
            indent, dashes, name, value, text = option.groups("")
            if name not in drafts and len(drafts) >= MAX_OPTIONS:
                unread.append(shorten(line))
                continue
            alternative = title if len(indent) > 2 else ""
            value_name = value.strip(" []=<>")
            into = [text]  # of a name that was there already, the text is not kept
            current = drafts.setdefault(name, _Draft(name, dashes + name, value_name, bool(value), alternative, into))
            current.bare |= not value or value.startswith("[")
            if value and not current.takes_value:  # `--x` and `--x=<value>` stand one after the other
                current.takes_value, current.value_name = True, value_name
            title = alternative
        elif current is not None and (value_line := _VALUE.fullmatch(line)):
            value = "" if value_line[1] == EMPTY_VALUE else shorten(value_line[1], 200)
            if value in current.values or len(current.values) < MAX_VALUES:
                into = current.values.setdefault(value, [value_line[2] or ""])
        elif into is not None and (continued := _CONTINUED.fullmatch(line)):
            into.append(continued[1])
        elif heading := _TITLE.fullmatch(line):
            title, current, into = shorten(heading[1], 200), None, None
        else:
            if line.lstrip().startswith("-"):
                unread.append(shorten(line))
            title, current, into = "", None, None
    settings = _settings(all_options_text)
    return Harvest(tuple(_finished(draft, settings) for draft in drafts.values()), tuple(unread[:MAX_VALUES]))


def _lines(text: str) -> Iterator[str]:
    for line in text[:MAX_TEXT].split("\n"):
        yield line[:MAX_LINE].rstrip("\r")


@dataclass(frozen=True)
class _Setting:
    """What -print-all-options tells of one option; None where it cannot print it."""

    value: str | None
    default: str | None


def _settings(text: str) -> dict[str, _Setting]:
    found: dict[str, _Setting] = {}
    for line in _lines(text):
        if setting := _SETTING.fullmatch(line):
            value, told, default = setting[2].rpartition(" (default: ")
            if not told:
                value, default = default, ""
            found.setdefault(setting[1], _Setting(_printed(value.strip()), _printed(default.removesuffix(")"))))
    return found


def _printed(text: str) -> str | None:
    """None for *no default*, *unknown option value*, *cannot print option value*."""
    return None if not text or re.fullmatch(r"\*[a-z ]+\*", text) else shorten(text, 200)


def _finished(draft: _Draft, settings: Mapping[str, _Setting]) -> HarvestedOption:
    setting = settings.get(draft.name)
    return HarvestedOption(
        name=draft.name,
        value_kind=_kind(draft, setting, told=bool(settings)),
        values={value: _text(meaning) for value, meaning in draft.values.items()},
        default=setting.default if setting else None,
        description=_text(draft.description),
        spelling=draft.spelling,
        value_name=shorten(draft.value_name, 200),
        value_optional=draft.takes_value and draft.bare,
        group=draft.group,
    )


def _kind(draft: _Draft, setting: _Setting | None, *, told: bool) -> ValueKind:
    """told: there was a text with settings, so an option that is not in it has none."""
    if not draft.takes_value:
        if draft.values:  # --debug-counter: the list says what may stand in the text
            return "string"
        if draft.group or (told and (setting is None or setting.value not in _BOOLEANS)):
            return "switch"
        return "switch" if _text(draft.description).startswith("Alias for ") else "bool"
    if draft.values:
        return "enum"
    if draft.value_name in _KINDS:
        return _KINDS[draft.value_name]
    if draft.value_name == "value":
        return "unknown"
    if setting and setting.default and re.fullmatch(r"-?[0-9]{1,20}", setting.default):
        return "int"  # cl::value_desc replaces the kind's own name: <N>, <x>
    return "string"


def _text(parts: list[str]) -> str:
    return shorten(" ".join(part.strip() for part in parts if part.strip()), MAX_DESCRIPTION)
