"""Reading our TOML data files: every damage is a BadDataFile with the file and the key path.

`read_toml` gives a Table; each getter checks one key, and `finish` refuses keys that nobody asked
for, with the nearest known one. Messages are bounded: a value is shown in at most SHOWN characters.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from mccprobe.base.errors import BadDataFile, InputError
from mccprobe.base.paths import read_file

MAX_BYTES = 1 << 20  # a data file of ours has some 10 kB; more is a mistaken path
SHOWN = 60  # characters of a value in a message
_DOTTED = re.compile(r"""(?<![\w"'-])(?:["'\w-]++[ \t]*+\.[ \t]*+){64}""")


def shorten(text: str, limit: int = SHOWN) -> str:
    """One printable line of at most `limit` characters."""
    line = "".join(c if c.isprintable() else "?" for c in text[: limit + 1])
    return line if len(line) <= limit else line[: limit - 3] + "..."


def nearest(name: str, known: Collection[str], count: int = 3) -> list[str]:
    """Known names most like `name`, best first."""
    return difflib.get_close_matches(name[:200], sorted(known), n=count, cutoff=0.6)


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "a list"}
    return "a table" if isinstance(value, dict) else names.get(type(value), "a date or time")


class Table:
    """One TOML table with its place in the file. `at` is the key path, for messages."""

    def __init__(self, data: Mapping[str, Any], path: Path, at: str = "") -> None:
        self._data = data
        self._asked: set[str] = set()
        self.path = path
        self.at = at

    def fail(self, key: str, problem: str, hint: str = "") -> NoReturn:
        """Raise BadDataFile for `key` of this table ("" for the table itself)."""
        place = ".".join(part for part in (self.at, shorten(key)) if part)
        raise BadDataFile(f"{self.path}: {place + ': ' if place else ''}{problem}", hint=hint)

    def __contains__(self, key: str) -> bool:
        self._asked.add(key)
        return key in self._data

    def _get(self, key: str, kinds: tuple[type, ...], wanted: str, default: Any) -> Any:
        self._asked.add(key)
        if key not in self._data:
            if default is None:
                self.fail(key, f"is missing; expected {wanted}")
            return default
        value = self._data[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            self.fail(key, f"expected {wanted}, got {_kind(value)}")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string; required without a default, and then not empty."""
        value = str(self._get(key, (str,), "a string", default))
        if default is None and not value.strip():
            self.fail(key, "is empty")
        return value

    def choice(self, key: str, allowed: Collection[str], default: str | None = None) -> str:
        """One of `allowed`."""
        value = self.text(key, default)
        if value not in allowed:
            self.fail(key, f"{shorten(value)} is not one of {', '.join(sorted(allowed))}")
        return value

    def boolean(self, key: str, default: bool | None = None) -> bool:
        return bool(self._get(key, (bool,), "true or false", default))

    def integer(self, key: str, default: int | None = None, *, low: int = 0, high: int = 1 << 62) -> int:
        """An integer from low to high."""
        value = int(self._get(key, (int,), "an integer", default))
        if not low <= value <= high:
            self.fail(key, f"{shorten(str(value))} is not in {low} to {high}")
        return value

    def scalar(self, key: str) -> int | float | str:
        """An integer, a number or a string."""
        value: int | float | str = self._get(key, (int, float, str), "a number or a string", None)
        return value

    def scalars(self, key: str) -> tuple[int | float | str, ...]:
        """A list of integers, numbers and strings; () if it is not there."""
        return tuple(self._items(key, (int, float, str), "numbers or strings"))

    def numbers(self, key: str, *, low: float, high: float) -> tuple[float, ...]:
        """A list of numbers from low to high; () if it is not there."""
        values = tuple(self._items(key, (int, float), "numbers"))
        for index, value in enumerate(values):
            if not low <= value <= high:  # so nan is refused too
                self.fail(f"{key}[{index}]", f"{shorten(str(value))} is not in {low:g} to {high:g}")
        return tuple(map(float, values))

    def texts(self, key: str, *, required: bool = False) -> tuple[str, ...]:
        """A list of strings; () if it is not there, at least one if required."""
        if required and key not in self:
            self.fail(key, "is missing; expected a list of strings")
        values = tuple(self._items(key, (str,), "strings"))
        if required and not values:
            self.fail(key, "is empty")
        return values

    def _items(self, key: str, kinds: tuple[type, ...], wanted: str) -> Iterator[Any]:
        for index, value in enumerate(self._get(key, (list,), f"a list of {wanted}", [])):
            if not isinstance(value, kinds) or isinstance(value, bool):
                self.fail(f"{key}[{index}]", f"expected a list of {wanted}, got {_kind(value)}")
            yield value

    def table(self, key: str) -> Table:
        """A sub-table; required."""
        return Table(self._get(key, (dict,), "a table", None), self.path, self._below(key))

    def tables(self, key: str) -> list[Table]:
        """An array of tables; [] if it is not there."""
        items = self._get(key, (list,), f"[[{key}]] tables", [])
        for index, value in enumerate(items):
            if not isinstance(value, dict):
                self.fail(f"{key}[{index}]", f"expected a table, got {_kind(value)}")
        return [Table(value, self.path, self._below(f"{key}[{index}]")) for index, value in enumerate(items)]

    def _below(self, key: str) -> str:
        return f"{self.at}.{key}" if self.at else key

    def finish(self) -> None:
        """Refuse keys that no getter asked for."""
        for key in self._data:
            if key not in self._asked:
                near = nearest(key, self._asked, 1)
                self.fail(
                    key,
                    "unknown key" + (f"; did you mean {near[0]}?" if near else ""),
                    hint="known keys: " + ", ".join(sorted(self._asked)),
                )


def parse_toml(text: str) -> dict[str, Any]:
    """As tomllib, whose work grows with the square of the parts of a dotted key. Raises ValueError, RecursionError."""
    if _DOTTED.search(text):
        raise ValueError("a key of too many parts")
    return tomllib.loads(text)


def read_toml(path: Path, *, schema_version: int = 1) -> Table:
    """The file's top table, its schema_version checked. Raises BadDataFile."""
    try:
        raw = read_file(path, MAX_BYTES)
    except OSError as error:
        told = f"{path}: cannot be read: {error.strerror or error}"
        raise BadDataFile(told, hint=InputError.usual_hint) from error
    except ValueError as error:
        raise BadDataFile(f"{shorten(str(path))}: not a file name") from error
    try:
        data = parse_toml(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadDataFile(f"{path}: not UTF-8 text (byte {error.start})") from error
    except ValueError as error:  # TOMLDecodeError, and int() on numbers with thousands of digits
        raise BadDataFile(f"{path}: not TOML: {shorten(str(error), 120)}") from error
    except RecursionError as error:
        raise BadDataFile(f"{path}: not TOML: nested too deeply") from error
    table = Table(data, path)
    version = table.integer("schema_version")
    if version != schema_version:
        table.fail("schema_version", f"is {version}; this mccprobe reads {schema_version}")
    return table
