"""What the recorder wrote, as records: launches, modules, and a line for each kernel.

Lines that are no whole JSON object (a full disk, a killed machine) are counted, never guessed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RECORD_FILE = "launches.jsonl"
MODULE_FOLDER = "modules"
Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """One launch. kernel: its mangled name, None if nobody registered it; symbol: then the host function's.

    inside: the recorded call that made it (a runtime that calls the driver), None for the program's own.
    result: of the call, 0 if it was taken. simulated: in a program of the stand-in.
    """

    api: str
    kernel: str | None
    symbol: str | None
    grid: Shape
    block: Shape
    dynamic_shared_bytes: int
    pid: int
    tid: int
    time_ns: int
    order: int
    inside: str | None
    simulated: bool
    result: int = 0

    @property
    def name(self) -> str:
        return self.kernel or self.symbol or "(unknown)"


@dataclass(frozen=True)
class Module:
    """One distinct module. file: below the folder of the trace, None if its bytes could not be told; path: as the
    program named it. loads: how often it was loaded."""

    api: str
    file: str | None
    path: str | None
    bytes: int
    sha256: str | None
    loads: int


@dataclass(frozen=True)
class KernelUse:
    """All launches of one kernel with one shape."""

    kernel: str
    grid: Shape
    block: Shape
    dynamic_shared_bytes: int
    launches: int
    refused: int


@dataclass(frozen=True)
class Record:
    """Everything recorded. unreadable: lines that are damaged."""

    launches: tuple[Launch, ...]
    modules: tuple[Module, ...]
    processes: tuple[int, ...]
    unreadable: int

    def kernels(self) -> list[KernelUse]:
        """The program's own launches by kernel and shape, in the order of their first one."""
        counts: dict[tuple[str, Shape, Shape, int], list[int]] = {}
        for one in self.launches:
            if one.inside is None:
                key = (one.name, one.grid, one.block, one.dynamic_shared_bytes)
                entry = counts.setdefault(key, [0, 0])
                entry[0] += 1
                entry[1] += one.result != 0
        return [KernelUse(*key, launches=total, refused=refused) for key, (total, refused) in counts.items()]


def read_record(folder: Path) -> Record:
    """The record below `folder`; an empty one where the recorder wrote nothing."""
    launches: list[dict[str, Any]] = []
    modules: list[dict[str, Any]] = []
    refused: dict[tuple[int, int], int] = {}
    processes: dict[int, None] = {}
    unreadable = 0
    for entry in _lines(folder / RECORD_FILE):
        try:
            processes[_number(entry["pid"])] = None
            if entry["event"] == "launch":
                _launch(entry)
                launches.append(entry)
            elif entry["event"] == "module":
                _text(entry["path"]), _text(entry["file"]), _number(entry["bytes"]), _number(entry["saved"])
                modules.append(entry)
            elif entry["event"] == "refused":
                refused[_number(entry["pid"]), _number(entry["order"])] = _number(entry["result"])
            else:
                unreadable += 1
        except (KeyError, TypeError, ValueError):
            unreadable += 1
    return Record(
        tuple(_launch(entry, refused.get((entry["pid"], entry["order"]), 0)) for entry in launches),
        tuple(_modules(modules, folder)),
        tuple(processes),
        unreadable,
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """One mapping a line; an empty one for a damaged line."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    for line in data.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = {}
        yield value if isinstance(value, dict) else {}


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no whole number")
    return value


def _shape(value: Any) -> Shape:
    x, y, z = (_number(part) for part in value)
    return x, y, z


def _text(value: Any) -> str | None:
    """The recorder writes a byte that is no ASCII as the character of that number."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError("no text")
    return value.encode("latin-1").decode("utf-8", "surrogateescape")


def _launch(entry: Mapping[str, Any], result: int = 0) -> Launch:
    return Launch(
        str(entry["api"]),
        _text(entry["kernel"]),
        _text(entry["symbol"]),
        _shape(entry["grid"]),
        _shape(entry["block"]),
        _number(entry["dynamic_shared_bytes"]),
        _number(entry["pid"]),
        _number(entry["tid"]),
        _number(entry["time_ns"]),
        _number(entry["order"]),
        _text(entry["inside"]),
        entry["simulated"] is True,
        result,
    )


def _digest(file: Path) -> str | None:
    """None where no such file is, or can be."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None


def _modules(entries: list[dict[str, Any]], folder: Path) -> Iterator[Module]:
    """Each distinct module once. A saved file that is shorter than the image is not offered as one."""
    seen: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for entry in entries:
        whole = entry.get("saved") == entry.get("bytes")
        key = (entry.get("file") if whole else None, entry.get("path"), entry.get("bytes"))
        seen.setdefault(key, []).append(entry)
    for (file, path, size), group in seen.items():
        name = f"{MODULE_FOLDER}/{Path(str(file)).name}" if file else None  # of our folder alone, whatever it says
        saved = folder / name if name else None
        digest = _digest(saved) if saved is not None else None
        own = sum(entry.get("inside") is None for entry in group)  # the rest is one load, handed on
        yield Module(
            str(group[0].get("api")),
            name if digest else None,
            _text(path),
            size if isinstance(size, int) else 0,
            digest,
            own or len(group),
        )
