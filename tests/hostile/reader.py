"""One reader of the table, and what its inputs and calls are made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PARTS = b"\n=== next file ===\n"  # between the files of an input that is several

Call = Callable[[bytes, Path], object]


@dataclass(frozen=True)
class Reader:
    """One row. kind: which edits suit its inputs; reads: the functions that it covers; allowed: errors beside ours.

    grows: pieces that an input is grown from (head, piece, tail) to see that twice as much costs twice as much.
    """

    name: str
    kind: str
    reads: tuple[str, ...]
    call: Call
    seeds: Callable[[], list[bytes]]
    allowed: tuple[type[Exception], ...] = ()
    grows: tuple[tuple[bytes, bytes, bytes], ...] = ()


def text_of(data: bytes) -> str:
    """As mccprobe decodes the output of a program."""
    return data.decode("utf-8", "replace")


def as_file(name: str) -> Callable[[Callable[[Path], object]], Call]:
    """A reader of a file of this name in a folder."""

    def made(read: Callable[[Path], object]) -> Call:
        def call(data: bytes, scratch: Path) -> object:
            path = scratch / name
            path.write_bytes(data)
            return read(path)

        return call

    return made


def files(*patterns: str) -> Callable[[], list[bytes]]:
    """The samples of the repository that match."""

    def found() -> list[bytes]:
        paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
        assert paths, patterns
        return [path.read_bytes()[: 1 << 15] for path in paths]

    return found


def listings(*patterns: str) -> Callable[[], list[bytes]]:
    """Whole lines of the samples, the beginning and the middle: what is short is tried more often."""

    def found() -> list[bytes]:
        pieces = []
        for data in files(*patterns)():
            lines = data.split(b"\n")
            pieces += [b"\n".join(lines[:60]), b"\n".join(lines[:5] + lines[len(lines) // 2 :][:40])]
        return pieces

    return found


def jsons(*values: Any) -> Callable[[], list[bytes]]:
    return lambda: [json.dumps(value).encode() for value in values]


def lines_of(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)
