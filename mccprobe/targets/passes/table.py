"""The pass table: what the bisect log calls a pass, its argument, and what switches it off.

Data: `pass_data` of each target (collected from real compilers, see there). The files are read when a title
is first looked up, the likely one first: a class name of the new pass manager needs only the first. The data
ships with mccprobe, so a damaged entry is found by the tests; at run time it is a BadDataFile all the same.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from mccprobe.base.errors import BadDataFile
from mccprobe.targets import registry

Kind = Literal["ir", "codegen-ir", "isel", "machine"]

SCHEMA_VERSION = 1

_CLASS_NAME = re.compile(r"(?:\w+::)*[A-Z]\w*Pass(?:<.*>)?")
_LIST_KEYS = frozenset({"titles", "neutralisers", "partial"})
_FLAG_KEYS = frozenset({"scheduler", "attributes_only"})
_TEXT_KEYS = frozenset({"argument", "kind", "note"})
_REQUIRED_KEYS = frozenset({"titles", "argument", "kind"})


@dataclass(frozen=True)
class PassInfo:
    """One pass.

    title: as it was looked up. argument: for opt -passes=, llc -stop-after=; "" where there is none.
    kind: "ir" (may run in the mid-end), "codegen-ir" (IR pass of the code generator only), "isel"
    (counted, never absent), "machine". scheduler: it reorders; a later step may be guilty.
    attributes_only: it changes attributes or metadata, no instruction.
    neutralisers: LLVM options, each of which switches off this pass and no other.
    partial: options that switch off a part of this pass and touch no other.
    """

    title: str
    argument: str
    kind: Kind
    scheduler: bool = False
    attributes_only: bool = False
    neutralisers: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    note: str = ""


class PassTable:
    """Lookup by title over data files that are read one after the other, as needed.

    files: the first has the passes of the mid-end, the second those of the code generator.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        self._read: dict[Path, dict[str, PassInfo]] = {}

    def find(self, title: str) -> PassInfo | None:
        """The pass of this title, also without "(anonymous namespace)::" and template arguments."""
        names = _spellings(title)
        likely = self.files if _CLASS_NAME.fullmatch(names[-1]) else (*self.files[1:2], *self.files[:1])
        for file in dict.fromkeys((*likely, *self.files)):
            entries = self._entries(file)
            for name in names:
                if name in entries:
                    return entries[name]
        return None

    def passes(self) -> Iterator[PassInfo]:
        """Every title of every file."""
        for file in self.files:
            yield from self._entries(file).values()

    def _entries(self, file: Path) -> dict[str, PassInfo]:
        if file not in self._read:
            self._read[file] = _read(file)
        return self._read[file]


def load_pass_table(toolchain: str = "") -> PassTable:
    """The passes of one toolchain, or of all where it is not named; reads nothing until a title is looked up."""
    named = registry.find(toolchain)
    data = named.pass_data if named is not None else ()
    return _table(data or tuple(dict.fromkeys(file for target in registry.targets() for file in target.pass_data)))


@cache
def _table(files: tuple[Path, ...]) -> PassTable:
    return PassTable(files)


def guess_kind(title: str) -> Kind:
    """The kind of a pass that is not in the table. Inferred from the title, not known.

    New-PM class names ("FooPass") run in the mid-end; selectors say so; all other titles are the
    legacy pass manager's, which runs the code generator.
    """
    if _CLASS_NAME.fullmatch(_spellings(title)[-1]):
        return "ir"
    if title.endswith("Instruction Selection"):
        return "isel"
    return "machine"


def _spellings(title: str) -> list[str]:
    """The title as it is, without the anonymous namespace, and without template arguments."""
    plain = title.strip().replace("(anonymous namespace)::", "")
    bare = plain.split("<", 1)[0] if "<" in plain and " " not in plain.split("<", 1)[0] else plain
    return list(dict.fromkeys([title, plain, bare]))


def _read(path: Path) -> dict[str, PassInfo]:
    """All entries of one file by title. Raises BadDataFile."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadDataFile(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise BadDataFile(f"{path}: not TOML: {str(error)[:120]}") from error
    if data.get("schema_version") != SCHEMA_VERSION:
        raise BadDataFile(f"{path}: schema_version: this mccprobe reads {SCHEMA_VERSION}")
    entries = data.get("pass")
    if not isinstance(entries, list) or set(data) != {"schema_version", "pass"}:
        raise BadDataFile(f"{path}: expected schema_version and [[pass]] tables, nothing else")
    found: dict[str, PassInfo] = {}
    for index, entry in enumerate(entries):
        problem = _problem(entry)
        if problem:
            raise BadDataFile(f"{path}: pass[{index}].{problem}")
        for title in entry["titles"]:
            if title in found:
                raise BadDataFile(f"{path}: pass[{index}].titles: {title[:60]} is there twice")
            found[title] = _info(title, entry)
    return found


def _info(title: str, entry: dict[str, Any]) -> PassInfo:
    return PassInfo(
        title=title,
        argument=entry["argument"],
        kind=entry["kind"],
        scheduler=entry.get("scheduler", False),
        attributes_only=entry.get("attributes_only", False),
        neutralisers=tuple(entry.get("neutralisers", ())),
        partial=tuple(entry.get("partial", ())),
        note=entry.get("note", ""),
    )


def _problem(entry: object) -> str:
    """What is wrong with one [[pass]] table, "" if nothing."""
    if not isinstance(entry, dict):
        return "is not a table"
    missing = sorted(_REQUIRED_KEYS - set(entry))
    if missing:
        return f"{missing[0]}: is missing"
    for key, value in entry.items():
        if key in _LIST_KEYS:
            if not _is_texts(value):
                return f"{key}: expected a list of strings"
        elif key in _FLAG_KEYS:
            if not isinstance(value, bool):
                return f"{key}: expected true or false"
        elif key in _TEXT_KEYS:
            if not isinstance(value, str):
                return f"{key}: expected a string"
        else:
            return f"{key[:60]}: unknown key"
    if entry["kind"] not in get_args(Kind):
        return f"kind: not one of {', '.join(get_args(Kind))}"
    return "" if entry["titles"] else "titles: is empty"


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
