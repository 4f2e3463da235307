"""The options of `mccprobe bisect` as one record; also what a recipe file and run.json hold."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mccprobe.base.errors import BadDataFile, JournalUnreadable
from mccprobe.base.paths import read_text
from mccprobe.oracle.kernel.shipped import find_shipped_kernels
from mccprobe.targets.flags.datafile import MAX_BYTES, parse_toml, shorten

# what is read back is in these ranges, as the command line has them; above, no system call takes a time
_RANGES = {
    "seed": (0, 1 << 63),
    "count": (2, 1 << 31),
    "spot_checks": (0, 1 << 31),
    "confidence": (0.5, 0.999999),
    "max_runs": (1, 1 << 63),
    "timeout": (0.1, 2e6),
    "compile_timeout": (1, 2e6),
}
RECIPE_VERSION = 1
RUN_VERSION = 2  # of run.json; 1 held one source without its build
RECIPES = Path(__file__).resolve().parents[2] / "_recipes"  # bisect/, in the wheel too
_LISTS = ("flags", "args")


@dataclass(frozen=True)
class BisectOptions:
    """As the user gave them; nothing is interpreted here. Times in seconds."""

    file: str | None = None
    flags: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    toolchain: str = "auto"
    compiler: str | None = None
    mcc: str | None = None
    musa_path: str | None = None
    reference: str | None = None
    reference_exact: bool = False
    oracle: str | None = None
    run_args: str | None = None
    run_in: str | None = None
    stdin: str | None = None
    ignore_files: tuple[str, ...] = ()
    case: str | None = None
    seed: int = 1
    arch: str = ""
    count: int = 2
    spot_checks: int = 4
    confidence: float = 0.99
    max_runs: int | None = None
    profile: bool = False
    timeout: float = 60.0
    compile_timeout: float = 300.0
    bad_if: tuple[str, ...] = ()
    fixed_addresses: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Plain data for run.json."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in dataclasses.asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any], where: str) -> BisectOptions:
        """Read back. Raises BadDataFile for an unknown or ill-typed key."""
        known = {field.name: field for field in dataclasses.fields(cls)}
        clean: dict[str, Any] = {}
        for key, value in values.items():
            if key not in known:
                raise BadDataFile(f"{where}: unknown key {shorten(key)}", hint="known: " + ", ".join(sorted(known)))
            default = known[key].default
            if isinstance(default, tuple):
                if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                    raise BadDataFile(f"{where}: {key} must be a list of strings")
                clean[key] = tuple(value)
                continue
            wanted: tuple[type, ...] = (type(default),)
            if default is None:
                wanted = (int,) if key == "max_runs" else (str,)
            if isinstance(default, float):
                wanted = (int, float)
            fits = isinstance(value, wanted) and isinstance(value, bool) == isinstance(default, bool)
            if not fits and (value is not None or default is not None):
                kinds = "/".join(kind.__name__ for kind in wanted)
                raise BadDataFile(f"{where}: {key} must be {kinds}, got {shorten(repr(value))}")
            low, high = _RANGES.get(key, (None, None))
            if low is not None and value is not None and not low <= value <= high:  # so nan is refused too
                raise BadDataFile(f"{where}: {key} must be from {low} to {high:g}, got {shorten(repr(value))}")
            clean[key] = value
        texts = [text for value in clean.values() for text in (value if isinstance(value, tuple) else (value,))]
        if any("\0" in text for text in texts if isinstance(text, str)):
            raise BadDataFile(f"{where}: holds a NUL byte, which no argument can hold")
        return cls(**clean)


def read_recipe(path: Path) -> BisectOptions:
    """A recipe file, or the name of a shipped one: the options of one bisection under their names.

    `file` is relative to the recipe, or the name of a shipped kernel; `stdin` is relative to the recipe.

    Raises BadDataFile.
    """
    shipped = {file.stem: file for file in sorted(RECIPES.glob("*.toml"))}
    try:
        try:
            text = read_text(path, most=MAX_BYTES)
        except FileNotFoundError:
            path = shipped.get(str(path), path)
            text = read_text(path, most=MAX_BYTES)
        document = parse_toml(text)
    except OSError as error:
        hint = f"shipped recipes: {', '.join(shipped)}"
        raise BadDataFile(f"{path}: {error.strerror or error}", hint=hint) from error
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, a number of 5,000 digits, nested too deeply
        raise BadDataFile(f"{path}: not a recipe: {shorten(str(error), 120)}") from error
    version = document.pop("schema_version", None)
    if version != RECIPE_VERSION:
        raise BadDataFile(f"{path}: schema_version must be {RECIPE_VERSION}, got {shorten(repr(version))}")
    document.pop("title", None)
    options = BisectOptions.from_dict(document, str(path))
    kernels = {folder.name for folder in find_shipped_kernels()}
    if options.file is not None and (options.file not in kernels or (path.parent / options.file).exists()):
        relative = os.path.relpath(path.parent / options.file)
        options = dataclasses.replace(options, file=relative)
    if options.stdin is not None:
        options = dataclasses.replace(options, stdin=os.path.relpath(path.parent / options.stdin))
    return options


def require_run_version(data: Any, where: Path) -> None:
    """Raise JournalUnreadable for a run that another version of mccprobe began: its journal has other keys."""
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != RUN_VERSION:
        raise JournalUnreadable(
            f"{where}: the run has format {shorten(repr(version))} and cannot be resumed; expected {RUN_VERSION}",
            hint="start a new run; mccprobe bug-report still reads the old one when it is finished",
        )


def read_run_options(data: Any, where: Path) -> BisectOptions:
    """The options kept in run.json. Raises JournalUnreadable."""
    if not isinstance(data, dict) or not isinstance(data.get("options"), dict):
        raise JournalUnreadable(f"{where}: holds no options of a bisection", hint="is this a run directory?")
    require_run_version(data, where)
    try:
        return BisectOptions.from_dict(data["options"], str(where))
    except BadDataFile as error:
        raise JournalUnreadable(error.message, hint="it was written by another version of mccprobe") from error
