"""Entries of the flag catalogue: the records and how they are read from a data file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from mccprobe.targets import registry
from mccprobe.targets.flags.datafile import Table, shorten
from mccprobe.targets.flags.given import CompilerFlag

OptionKind = Literal["mllvm", "driver", "llc", "attribute"]
ValueType = Literal["bool", "enum", "int", "string"]
RiskKind = Literal["promise", "unsafe", "ineffective", "fault"]
Confidence = Literal["S", "I", "A"]

UNKNOWN = "unknown"  # default of a flag where none is public

_OPTION_KINDS = ("mllvm", "driver", "llc", "attribute")
_SEPARATORS = ("=", " ")
_TYPES = ("bool", "enum", "int", "string")
_RISKS = ("promise", "unsafe", "ineffective", "fault")
CONFIDENCES = {"S": "seen in source, log or document", "I": "inferred", "A": "the article alone says it"}
_NAME = re.compile(r"###|[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Risk:
    """A told drawback. promise: the user vouches for something; a wrong result may be a broken promise.

    value: the flag's value that it is told of, "" for all of them.
    """

    kind: RiskKind
    note: str
    source: str
    value: str = ""


@dataclass(frozen=True)
class Flag:
    """One catalogue entry.

    name: canonical, no dashes in front. option: "mllvm" (needs -mllvm for a driver), "driver", "llc"
    (llc alone takes it) or "attribute" (of a kernel, in the source; its spelling has no dashes).
    spelling: as it is passed, without a value; separator: "=" or " " between it and its value.
    values: all allowed ones of an enum, else those seen.
    default: UNKNOWN where not public. confidence: S seen, I inferred, A the article alone.
    bundle_members: the public ones of a bundle, each with its value (all are public if clang has the bundle).
    requires, exclusive_with: names of other flags.
    """

    name: str
    option: OptionKind
    spelling: str
    type: ValueType
    values: tuple[str, ...]
    default: str
    purpose: str
    source: str
    confidence: Confidence
    risks: tuple[Risk, ...] = ()
    requires: tuple[str, ...] = ()
    bundle_members: tuple[str, ...] = ()
    exclusive_with: tuple[str, ...] = ()
    compilers: tuple[str, ...] = ("mcc",)
    separator: str = "="

    def given(self, value: str | None = None) -> CompilerFlag:
        """The flag with this value (option "llc": for llc)."""
        if self.option == "mllvm":
            return CompilerFlag(self.spelling if value is None else f"{self.spelling}={value}")
        if value is None:
            return CompilerFlag(words=(self.spelling,))
        return CompilerFlag(words=(self.spelling, value) if self.separator == " " else (f"{self.spelling}={value}",))

    def risks_of(self, value: str | None) -> tuple[Risk, ...]:
        """What is told of the flag with this value."""
        return tuple(risk for risk in self.risks if risk.value in ("", value))


@dataclass(frozen=True)
class FlagSet:
    """A named set; `flags` are texts as `Catalogue.resolve` takes them, in the source's own spelling."""

    name: str
    summary: str
    source: str
    flags: tuple[str, ...]


def normalise_option(text: str) -> tuple[str, str | None]:
    """-x, --x, -x=v and x=v -> ("x", None or "v"): the key by which two spellings are the same option."""
    name, equals, value = text.strip().lstrip("-").partition("=")
    return name.strip(), value if equals else None


def read_flag(table: Table) -> Flag:
    """One [[flag]] table. Raises BadDataFile."""
    name = table.text("name")
    if not _NAME.fullmatch(name):
        table.fail("name", f"{shorten(name)} is not a flag name without dashes in front")
    flag = Flag(
        name=name,
        option=cast(OptionKind, table.choice("option", _OPTION_KINDS)),
        spelling=table.text("spelling"),
        type=cast(ValueType, table.choice("type", _TYPES)),
        values=table.texts("values"),
        default=table.text("default", UNKNOWN),
        purpose=table.text("purpose"),
        source=table.text("source"),
        confidence=cast(Confidence, table.choice("confidence", tuple(CONFIDENCES))),
        risks=tuple(_risk(item) for item in table.tables("risks")),
        requires=table.texts("requires"),
        bundle_members=table.texts("bundle_members"),
        exclusive_with=table.texts("exclusive_with"),
        compilers=table.texts("compilers") or ("mcc",),
        separator=table.choice("separator", _SEPARATORS, "="),
    )
    table.finish()
    if flag.option == "attribute":
        if flag.spelling != flag.name:
            table.fail("spelling", f"{shorten(flag.spelling)} is not {flag.name}, the attribute's name")
    elif not flag.spelling.startswith("-") or normalise_option(flag.spelling) != (flag.name, None):
        table.fail("spelling", f"{shorten(flag.spelling)} is not {flag.name} with dashes in front")
    told = [risk.value for risk in flag.risks if risk.value and risk.value not in flag.values]
    if told:
        table.fail("risks", f"a risk of the value {shorten(told[0])}, which is not among values")
    if flag.type == "enum" and not flag.values:
        table.fail("values", "is empty; an enum lists what it allows")
    for index, compiler in enumerate(flag.compilers):
        if compiler not in registry.compilers():
            known = ", ".join(registry.compilers())
            table.fail(f"compilers[{index}]", f"{shorten(compiler)} is not one of {known}")
    return flag


def _risk(table: Table) -> Risk:
    kind = cast(RiskKind, table.choice("kind", _RISKS))
    risk = Risk(kind, table.text("note"), table.text("source"), table.text("value", ""))
    table.finish()
    return risk


def read_flag_set(table: Table) -> FlagSet:
    """One [[set]] table. Raises BadDataFile."""
    name, summary, source = (table.text(key) for key in ("name", "summary", "source"))
    found = FlagSet(name, summary, source, table.texts("flags", required=True))
    table.finish()
    return found
