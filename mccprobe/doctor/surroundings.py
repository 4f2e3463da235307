"""What is on this machine beside the compiler: parts, what a missing one costs, the cache.

The table is `data/parts.toml`. Programs are run, libraries are only looked up: importing them costs seconds.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from mccprobe.base.extras import install_command
from mccprobe.base.process import RunSpec, run

ASK_TIMEOUT_S = 20.0  # of one `--version`; nvidia-smi takes some seconds on a machine that sleeps
MAX_CACHE_FILES = 200_000  # that are looked at


@dataclass(frozen=True)
class Part:
    """One part. detail: its version or place, or why it counts as missing."""

    name: str
    kind: str
    found: bool
    detail: str
    costs: str
    install: str


@dataclass(frozen=True)
class Cache:
    """The one folder outside of run directories. writable: also true where it can be made."""

    path: Path
    exists: bool
    writable: bool
    files: int
    bytes: int


def parts_table() -> list[dict[str, Any]]:
    """The table as it stands."""
    text = resources.files("mccprobe.doctor").joinpath("data/parts.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["part"])


def find_parts() -> list[Part]:
    """Every part of the table, asked."""
    found = []
    for entry in parts_table():
        there, detail = _ASKED[entry["kind"]](entry)
        brings = entry.get("install") or install_command(entry["extra"])
        found.append(Part(entry["name"], entry["kind"], there, detail, entry["costs"], brings))
    return found


def _program(entry: Mapping[str, Any]) -> tuple[bool, str]:
    why = ""
    for argv in entry["asks"]:
        if shutil.which(argv[0]) is None:
            why = why or f"{argv[0]} is not in PATH"
            continue
        result = run(RunSpec(argv, env={**os.environ, "LC_ALL": "C"}, timeout_s=ASK_TIMEOUT_S))
        lines = [line.strip() for line in result.stdout_text.splitlines() if line.strip()]
        if result.ok:
            told = next((line for line in lines if any(c.isdigit() for c in line)), "") if len(argv) > 1 else ""
            return True, told[:100] or argv[0]
        why = f"{' '.join(argv)}: {result.describe()}"
    return False, why


def _library(entry: Mapping[str, Any]) -> tuple[bool, str]:
    missing = [name for name in entry["modules"] if importlib.util.find_spec(name) is None]
    if missing:
        return False, f"no module {', '.join(missing)}"
    return True, ", ".join(f"{name} {_version(name)}".strip() for name in entry["modules"])


def _version(module: str) -> str:
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _file(entry: Mapping[str, Any]) -> tuple[bool, str]:
    for pattern in entry["files"]:
        found = sorted(Path("/").glob(pattern.replace("{machine}", platform.machine()).lstrip("/")))
        if found:
            return True, str(found[0])
    return False, f"not there: {entry['files'][0]}"


_ASKED = {"program": _program, "library": _library, "file": _file}


def look_at_cache(path: Path) -> Cache:
    """How much lies in it; never fails."""
    files = size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            if files >= MAX_CACHE_FILES:
                break
            try:
                size += Path(folder, name).lstat().st_size
            except OSError:
                continue
            files += 1
    nearest = next((place for place in (path, *path.parents) if place.exists()), Path("/"))
    return Cache(path, path.is_dir(), os.access(nearest, os.W_OK | os.X_OK), files, size)
