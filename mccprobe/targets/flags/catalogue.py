"""The flag catalogue: from what a user types to compiler arguments, and what is known of each flag.

Data: `flags.toml` of each target (format: reports/flag-catalogue.schema.json) and files of the user, which
replace entries of the same name. A bare name goes through the catalogue; a text with a leading dash
is taken as it stands, and whether the compiler accepts it is found out by asking the compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from mccprobe.base.errors import AmbiguousFlag, BadDataFile, UnknownFlag
from mccprobe.targets import registry
from mccprobe.targets.flags.datafile import Table, nearest, read_toml, shorten
from mccprobe.targets.flags.entries import (
    UNKNOWN,
    Flag,
    FlagSet,
    Risk,
    normalise_option,
    read_flag,
    read_flag_set,
)
from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.flags.levels import DEVICE_LEVEL, HOST_LEVEL

__all__ = [
    "UNKNOWN",
    "Catalogue",
    "Flag",
    "FlagSet",
    "ResolvedFlag",
    "Risk",
    "load_catalogue",
    "normalise_option",
]

MAX_TEXT = 4096  # characters of one flag; longer ones are no flags
AS_IT_STANDS = "a flag with a leading dash is passed to the compiler as it stands"

_FOR_DRIVERS = ("mllvm", "driver")
_BOOLEANS = frozenset({"0", "1", "true", "false", "TRUE", "FALSE", "True", "False"})  # cl::opt<bool>
# Driver arguments that are easily told from LLVM options. A wrong guess costs one probe more.
_DRIVER = re.compile(
    rf"{HOST_LEVEL}|{DEVICE_LEVEL}"
    r"|-[DUILWlx]\S.*"
    r"|-std=.+|-g(?:[0-3]|gdb|dwarf.*|line-tables-only)?"
    r"|-m(?:tgpu|32|64|arch=.+|cpu=.+|tune=.+|no-.+|avx.*|sse.*|fma|bmi2?|cmodel=.+)"
    r"|-f(?:no-|sanitize|fast-math|finite-|signed|unsigned|strict-|unroll-loops|vectorize|slp-vectorize|inline"
    r"|lto|fp-|math-|musa-|gpu-|cuda-|openmp|exceptions|rtti|PIC|pic|PIE|pie|plugin|pass-plugin|omit-|stack-pro"
    r"|wrapv|trapv|common|visibility|profile-|coverage-|data-sections|function-sections|associative|reciprocal"
    r"|honor-|rounding|trapping|merge-all|optimize-|experimental-new|legacy-pass|merge|short|jump-tables).*"
    r"|--(?:offload-|cuda-|musa-|target=|sysroot|gcc-|rocm-|hip-).*"
)


@dataclass(frozen=True)
class ResolvedFlag:
    """One flag ready for a command line.

    text: as the user typed it. given: as compiles take it.
    option_key: name without dashes and value. verbatim: taken as it stood, to be probed.
    """

    text: str
    given: CompilerFlag
    option_key: str
    value: str | None
    flag: Flag | None
    verbatim: bool

    @property
    def argv(self) -> tuple[str, ...]:
        """For the compiler driver, such as ("-mllvm", "--x=1")."""
        return self.given.argv


def promise_sentences(text: str, flag: Flag | None, value: str | None) -> list[str]:
    """What the user vouches for with a flag of this value, as sentences. text: the flag as it was typed."""
    return [
        f"{text} is a promise to the compiler ({risk.note}): a wrong result may be a broken one"
        for risk in (flag.risks_of(value) if flag else ())
        if risk.kind == "promise"
    ]


@dataclass(frozen=True)
class Catalogue:
    """Entries and sets by name, in the order of their files."""

    flags: Mapping[str, Flag]
    sets: Mapping[str, FlagSet]

    def find(self, option_key: str) -> Flag | None:
        """The entry of exactly this name, None if there is none."""
        return self.flags.get(option_key)

    def named(self, text: str) -> Flag:
        """The entry that a typed name means, any dashes and value left out. Raises UnknownFlag, AmbiguousFlag."""
        name = normalise_option(text)[0]
        if not name or len(text) > MAX_TEXT or "\0" in text:
            raise UnknownFlag(shorten(text), reason=f"not a flag: {shorten(text) or 'empty text'}")
        return self._lookup(name)

    def resolve(self, text: str) -> ResolvedFlag:
        """From a typed text to compiler arguments. Raises UnknownFlag, AmbiguousFlag."""
        if len(text) > MAX_TEXT or "\0" in text:
            raise UnknownFlag(shorten(text), reason=f"not a flag: {shorten(text)}")
        if text.startswith("-"):
            return self._verbatim(text)
        name, value = normalise_option(text)
        if not name:
            raise UnknownFlag(shorten(text), reason=f"a flag without a name: {shorten(text) or 'empty text'}")
        flag = self._lookup(name)
        _check_place(flag, text)
        _check_value(flag, value, text)
        return ResolvedFlag(text, flag.given(value), flag.name, value, flag, verbatim=False)

    def resolve_set(self, name: str) -> tuple[ResolvedFlag, ...]:
        """All flags of a named set. Raises UnknownFlag."""
        found = self.sets.get(name)
        if found is None:
            raise UnknownFlag(
                shorten(name),
                reason=f"unknown flag set: {shorten(name)}",
                hint="sets: " + (", ".join(self.sets) or "none"),
            )
        return tuple(self.resolve(text) for text in found.flags)

    def _lookup(self, name: str) -> Flag:
        """Exact name, else the one entry that ends in -NAME; then the same without regard to case."""
        for fold in (str, str.casefold):
            wanted = fold(name)
            exact = [key for key in self.flags if fold(key) == wanted]
            found = exact or [key for key in self.flags if fold(key).endswith(f"-{wanted}")]
            if len(found) == 1:
                return self.flags[found[0]]
            if found:
                raise AmbiguousFlag(shorten(name), sorted(found))
        taking = [f"{key}={name}" for key, flag in self.flags.items() if flag.type == "enum" and name in flag.values]
        raise UnknownFlag(shorten(name), self._nearest(name), hint=f"a value: {', '.join(taking)}" if taking else "")

    def _nearest(self, name: str) -> list[str]:
        """By whole names and by endings; names that hold the text come first."""
        holding = sorted(key for key in self.flags if len(name) > 2 and name.casefold() in key.casefold())
        endings = {
            "-".join(parts[start:]): key
            for key in self.flags
            for parts in [key.split("-")]
            for start in range(len(parts))
        }
        near = [endings[ending] for ending in nearest(name, endings)]
        return list(dict.fromkeys([*holding, *near]))[:5]

    def _verbatim(self, text: str) -> ResolvedFlag:
        option, joined = text, ""
        for start in ("-mllvm=", "-mllvm ", "-Xclang "):
            if text.startswith(start):
                joined, option = start.rstrip(" ="), text[len(start) :].strip()
        key, value = normalise_option(option)
        if not key or text in ("-mllvm", "-Xclang"):
            hint = "for example --flag=-mllvm\\ -x=1, or --flag=-x=1"
            raise UnknownFlag(shorten(text), reason=f"not a flag: {shorten(text)}", hint=hint)
        flag = self.find(key)
        if flag is not None and flag.option not in _FOR_DRIVERS:
            flag = None  # another option of the same name: -march of the driver is not llc's
        if joined == "-Xclang":
            given = CompilerFlag(words=(joined, option))
        elif not joined and (_DRIVER.fullmatch(option) or (flag is not None and flag.option == "driver")):
            given = CompilerFlag(words=(option,))
        else:
            given = CompilerFlag(option)
        return ResolvedFlag(text, given, key, value, flag, verbatim=True)


def _check_place(flag: Flag, text: str) -> None:
    """Refuse what cannot stand on a driver's command line."""
    if flag.option == "attribute":
        value = "" if flag.type == "bool" else "(N)"
        raise UnknownFlag(
            shorten(text),
            reason=f"{flag.name} is an attribute of a kernel, not a flag",
            hint=f"write __attribute__(({flag.spelling}{value})) before the kernel",
        )
    if flag.option == "llc":
        raise UnknownFlag(
            shorten(text), reason=f"{flag.spelling} is an option of llc, not of the compiler driver", hint=AS_IT_STANDS
        )


def _check_value(flag: Flag, value: str | None, text: str) -> None:
    problem = ""
    if flag.type == "bool":
        if value is not None and value not in _BOOLEANS:
            problem = "takes true or false"
    elif not value:
        seen = f" ({', '.join(flag.values)})" if flag.values else ""
        problem = f"needs a value{seen}: {flag.name}=VALUE"
    elif flag.type == "enum" and value not in flag.values:
        problem = f"takes one of {', '.join(flag.values)}"
    elif flag.type == "int" and not re.fullmatch(r"-?[0-9]{1,18}", value):
        problem = "takes an integer"
    if problem:
        near = nearest(value or "", flag.values, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UnknownFlag(
            shorten(text), reason=f"flag {shorten(text)}: {flag.name} {problem}{meant}", hint=AS_IT_STANDS
        )


def load_catalogue(extra: Sequence[Path] = ()) -> Catalogue:
    """The shipped catalogue and `extra` files, whose entries replace shipped ones. Raises BadDataFile."""
    return _load(tuple(extra))


def shipped_files() -> tuple[Path, ...]:
    """The flag data of all targets, by the targets' names."""
    ordered = sorted(registry.targets(), key=lambda target: target.name)
    return tuple(target.flag_data for target in ordered if target.flag_data is not None)


@cache
def _shipped(files: tuple[Path, ...]) -> Catalogue:
    return _merge(Catalogue({}, {}), files, replace=False)


def _load(extra: tuple[Path, ...]) -> Catalogue:
    shipped = _shipped(shipped_files())
    return _merge(shipped, extra, replace=True) if extra else shipped


def _merge(base: Catalogue, paths: Iterable[Path], *, replace: bool) -> Catalogue:
    flags, sets = dict(base.flags), dict(base.sets)
    places: list[tuple[Table, Flag | FlagSet]] = []
    for path in paths:
        top = read_toml(path)
        seen: set[str] = set()
        for table in top.tables("flag"):
            flag = read_flag(table)
            if flag.name in seen or (flag.name in flags and not replace):
                table.fail("name", f"{flag.name} is there twice")
            seen.add(flag.name)
            flags[flag.name] = flag
            places.append((table, flag))
        seen.clear()
        for table in top.tables("set"):
            flag_set = read_flag_set(table)
            if flag_set.name in seen or (flag_set.name in sets and not replace):
                table.fail("name", f"{flag_set.name} is there twice")
            seen.add(flag_set.name)
            sets[flag_set.name] = flag_set
            places.append((table, flag_set))
        top.finish()
    catalogue = Catalogue(MappingProxyType(flags), MappingProxyType(sets))
    for table, entry in places:
        _check_references(catalogue, table, entry)
    return catalogue


def _check_references(catalogue: Catalogue, table: Table, entry: Flag | FlagSet) -> None:
    """Names of other flags exist; a set's texts can be resolved."""
    if isinstance(entry, FlagSet):
        for index, text in enumerate(entry.flags):
            try:
                catalogue.resolve(text)
            except (UnknownFlag, AmbiguousFlag) as error:
                place = f"{table.path}: {table.at}.flags[{index}]"
                raise BadDataFile(f"{place}: {error.message}", hint=error.hint) from error
        return
    for key in ("requires", "bundle_members", "exclusive_with"):
        for index, name in enumerate(getattr(entry, key)):
            if name.partition("=")[0] not in catalogue.flags:
                table.fail(f"{key}[{index}]", f"no flag {shorten(name)} in the catalogue")
