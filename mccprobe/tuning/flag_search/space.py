"""What a search may change: compiler flags and -D parameters, each with the values that it may take.

File format (`--space`), TOML:

    schema_version = 1
    [[flag]]
    flag = "FenceSetting"            # as `mccprobe flags` takes it: catalogue name, or as it stands
    values = ["strict", "mixed"]     # default: the flag alone, for an enum all values of the catalogue
    group = "memory"                 # scheduling, memory or ir: the order of the article's search (section 16)
    [[define]]
    name = "GEMM_PAD_A"              # of kernel.toml
    values = [0, 16]                 # default: those of kernel.toml

A point is one index for each dimension; 0 leaves it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import UsageError
from mccprobe.oracle.kernel.spec import KernelSpec
from mccprobe.targets import registry
from mccprobe.targets.clang.target import SPACE as CLANG_SPACE
from mccprobe.targets.flags.catalogue import Catalogue, ResolvedFlag, load_catalogue, normalise_option
from mccprobe.targets.flags.datafile import Table, read_toml, shorten
from mccprobe.targets.llvm.jobs import option_key

GROUPS = ("scheduling", "memory", "ir", "define")
MAX_DIMENSIONS = 200  # singles alone are a trial each

Point = tuple[int, ...]


@dataclass(frozen=True)
class Setting:
    """One value of a dimension. text: for people; argv: driver arguments; define: name and value of a -D."""

    text: str
    argv: tuple[str, ...] = ()
    define: tuple[str, str] | None = None


AS_IT_IS = Setting("")


@dataclass(frozen=True)
class Dimension:
    """choices[0] is AS_IT_IS. key: the option's name. exclusive: keys that must not be set beside it."""

    name: str
    group: str
    choices: tuple[Setting, ...]
    key: str
    exclusive: tuple[str, ...] = ()


@dataclass(frozen=True)
class Space:
    """All dimensions, those of higher priority first."""

    dimensions: tuple[Dimension, ...]
    source: str

    @property
    def baseline(self) -> Point:
        return (0,) * len(self.dimensions)

    @property
    def size(self) -> int:
        """Points, the invalid ones with them."""
        return math.prod(len(one.choices) for one in self.dimensions)

    def chosen(self, point: Point) -> tuple[Setting, ...]:
        """What the point sets."""
        pairs = zip(self.dimensions, point, strict=True)
        return tuple(dimension.choices[index] for dimension, index in pairs if index)

    def flags(self, point: Point) -> tuple[tuple[str, ...], ...]:
        return tuple(choice.argv for choice in self.chosen(point) if choice.define is None)

    def defines(self, point: Point) -> tuple[tuple[str, str], ...]:
        return tuple(choice.define for choice in self.chosen(point) if choice.define is not None)

    def texts(self, point: Point) -> tuple[str, ...]:
        """As on a command line, one text each: `-mllvm -x=1`, `-DPAD=8`."""
        return tuple(choice.text for choice in self.chosen(point))

    def set_at(self, point: Point) -> tuple[int, ...]:
        """Indices of the dimensions that the point sets."""
        return tuple(at for at, index in enumerate(point) if index)

    def with_choice(self, point: Point, at: int, index: int) -> Point:
        return (*point[:at], index, *point[at + 1 :])

    def conflict(self, point: Point) -> str:
        """Why this point makes no sense, "" if it does."""
        keys = {self.dimensions[at].key for at in self.set_at(point)}
        for at in self.set_at(point):
            for other in self.dimensions[at].exclusive:
                if other in keys:
                    return f"{self.dimensions[at].name} excludes {other}"
        return ""

    def named(self, point: Point) -> dict[str, str]:
        """Dimension -> text of what is set, for the journal."""
        pairs = zip(self.dimensions, point, strict=True)
        return {dimension.name: dimension.choices[index].text for dimension, index in pairs if index}

    def point_of(self, named: Mapping[str, str]) -> Point:
        """Back from `named`. Raises KeyError, ValueError for what this space does not hold."""
        texts = {one.name: [choice.text for choice in one.choices] for one in self.dimensions}
        if not named.keys() <= texts.keys():
            raise KeyError(", ".join(named))
        return tuple(texts[one.name].index(named.get(one.name, "")) for one in self.dimensions)


def default_space(toolchain: str, kernel: KernelSpec | None) -> Space:
    """The shipped space for this toolchain, without -D parameters."""
    target = registry.find(toolchain)
    file = target.space if target is not None and target.space is not None else CLANG_SPACE
    return load_space(file, kernel, name=file.parent.parent.name)


def load_space(path: Path, kernel: KernelSpec | None, *, name: str = "") -> Space:
    """Read a space file. kernel: whose parameters may be searched, None for none.

    name: of the space, the file's where it is empty.

    Raises BadDataFile, UnknownFlag, AmbiguousFlag, UsageError.
    """
    top = read_toml(path)
    catalogue = load_catalogue()
    found = [_flag(table, catalogue) for table in top.tables("flag")]
    found += [_define(table, kernel) for table in top.tables("define")]
    top.finish()
    if not found:
        top.fail("flag", "is missing; expected one [[flag]] or [[define]] at least")
    if len(found) > MAX_DIMENSIONS:
        top.fail("flag", f"{len(found)} dimensions; at most {MAX_DIMENSIONS} can be searched")
    for at, dimension in enumerate(found):
        if any(dimension.key == other.key for other in found[:at]):
            top.fail("flag", f"{dimension.name} is there twice", hint="its values go into one entry: values = [...]")
    found.sort(key=lambda one: GROUPS.index(one.group))  # stable: the file's order inside a group
    return Space(tuple(found), name or path.stem)


def _flag(table: Table, catalogue: Catalogue) -> Dimension:
    text, values = table.text("flag"), table.texts("values")
    group = table.choice("group", GROUPS[:3], "ir")
    table.finish()
    name = normalise_option(text.removeprefix("-mllvm "))[0] if text.startswith("-") else text
    if not text.startswith("-"):
        entry = catalogue.named(text)
        name = entry.name
        values = values or (entry.values if entry.type == "enum" else ())
    if values and "=" in text:
        table.fail("values", f"does not go with the value in {shorten(text)}")
    resolved = [catalogue.resolve(f"{text}={value}") for value in values] or [catalogue.resolve(text)]
    first = resolved[0]
    exclusive = first.flag.exclusive_with if first.flag is not None else ()
    key = option_key(first.option_key)
    return Dimension(name, group, (AS_IT_IS, *map(_choice, resolved)), key, tuple(exclusive))


def _choice(flag: ResolvedFlag) -> Setting:
    return Setting(" ".join(flag.argv), flag.argv)


def _define(table: Table, kernel: KernelSpec | None) -> Dimension:
    name, values = table.text("name"), table.scalars("values")
    table.finish()
    known = {define.name: define for define in kernel.defines} if kernel is not None else {}
    if name not in known:
        table.fail("name", f"{shorten(name)} is no parameter of the kernel", hint=", ".join(known) or "it has none")
    default = str(known[name].default)
    texts = [str(value) for value in values or known[name].values]
    choices = tuple(Setting(f"-D{name}={text}", (), (name, text)) for text in texts if text != default)
    if not choices:
        table.fail("values", "holds nothing but the default")
    return Dimension(name, "define", (AS_IT_IS, *choices), f"D{name}")


def require_bounded(space: Space, bound: int) -> None:
    """Raise UsageError if all points are more than `bound`."""
    if space.size > bound:
        raise UsageError(
            f"the space has {space.size} points, more than --bound {bound}",
            hint="leave out flags, or take --strategy article or tpe",
        )
