"""Harvested options as a catalogue file: what `load_catalogue` reads (reports/flag-catalogue.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from mccprobe.targets.flags.entries import UNKNOWN, ValueType
from mccprobe.targets.flags.harvest import HarvestedOption, ValueKind

HEAD = "default: as -print-all-options prints it; 0 of a boolean may also mean that the target decides"
NOT_TOLD = "not told"  # purpose of an option whose help is empty
_TYPES: dict[ValueKind, ValueType] = {
    "bool": "bool", "switch": "bool", "enum": "enum", "int": "int", "uint": "int", "number": "string",
    "string": "string", "unknown": "string",
}  # fmt: skip


def catalogue_type(option: HarvestedOption) -> ValueType:
    """The catalogue's type of this option; an enum whose only value is the empty text is a string there."""
    kind = _TYPES[option.value_kind]
    return "string" if kind == "enum" and not any(option.values) else kind


def catalogue_text(options: Iterable[HarvestedOption], *, source: str, compiler: str) -> str:
    """A TOML catalogue. source: said of every entry. compiler: "mcc" or "clang"."""
    head = f"# {HEAD}\n\nschema_version = 1\n"
    return "".join([head, *(_entry(option, source, compiler) for option in options)])


def _entry(option: HarvestedOption, source: str, compiler: str) -> str:
    kind = catalogue_type(option)
    keys: dict[str, str | list[str]] = {
        "name": option.name,
        "option": "mllvm",
        "spelling": option.spelling,
        "type": kind,
    }
    if kind == "enum":
        keys["values"] = [value for value in option.values if value]
    keys |= {
        "default": UNKNOWN if option.default is None else option.default,
        "purpose": option.description or NOT_TOLD,
        "source": source,
        "confidence": "S",
        "compilers": [compiler],
    }
    return "\n[[flag]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in keys.items())


def _toml(value: str | list[str]) -> str:
    """A TOML basic string is a JSON string without surrogate escapes; the texts are printable already."""
    return json.dumps(value, ensure_ascii=False)
