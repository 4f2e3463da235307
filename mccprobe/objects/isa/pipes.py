"""Which pipe a mnemonic belongs to, and what it does to the order of execution.

The tables are data (`data/pipes-*.toml`), one for each instruction set, every entry with its source.
A mnemonic that no entry takes is `other`, an encoding that the disassembler did not know `unknown`:
both are shown and counted. Only MTGPU's pipes are MTGPU's; the classes of other instruction sets are
labelled with their owner.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

from mccprobe.objects.isa.records import OTHER, Instruction

UNKNOWN = "unknown"  # the disassembler itself did not know the encoding
ISAS = ("mtgpu", "amdgpu", "x86", "nvidia", "hexagon")
MATRIX_PIPES = frozenset({"MMA", "MFMA", "TENSOR"})  # where the matrix unit works

# how disassemblers write an encoding that they do not know, or data
_UNDECODED = frozenset({"<unknown>", "<misfit>", "(bad)", ".long", ".byte", ".short", ".word", "v_illegal", ".inst"})


@dataclass(frozen=True)
class Kind:
    """pipe: name of the pipe. flow: "", `jump`, `branch`, `call` or `end`. source: where it is known from."""

    pipe: str
    flow: str = ""
    source: str = ""


_NO_ENTRY = Kind(OTHER)
_NOT_DECODED = Kind(UNKNOWN)


class PipeTable:
    """The table of one instruction set. `find` remembers each mnemonic: a listing repeats few of them."""

    def __init__(self, document: dict[str, object]) -> None:
        self.isa = str(document["isa"])
        self.labelled = str(document["labelled"])
        self.dots = bool(document.get("dots", True))
        sources = document["sources"]
        entries = document["entry"]
        assert isinstance(sources, dict) and isinstance(entries, list)
        self.names: dict[str, Kind] = {}
        self.prefixes: dict[str, Kind] = {}
        for entry in entries:
            kind = Kind(entry["pipe"], entry.get("flow", ""), sources[entry["source"]])
            self.names.update(dict.fromkeys(entry.get("names", ()), kind))
            self.prefixes.update(dict.fromkeys(entry.get("prefixes", ()), kind))
        self.longest = max(map(len, self.prefixes), default=0)
        self._seen: dict[str, Kind] = {}

    def find(self, mnemonic: str) -> Kind:
        """The mnemonic's kind; `other` if no entry takes it, `unknown` if it is no instruction."""
        kind = self._seen.get(mnemonic)
        if kind is None:
            kind = self._seen[mnemonic] = self._look_up(mnemonic)
        return kind

    def _look_up(self, mnemonic: str) -> Kind:
        if mnemonic in _UNDECODED:
            return _NOT_DECODED
        if mnemonic in self.names:
            return self.names[mnemonic]
        length = len(mnemonic)
        if length > self.longest:  # whatever a listing calls a mnemonic: no more than the longest prefix is looked at
            length = mnemonic.rfind(".", 0, self.longest + 1) if self.dots else self.longest
        while length > 0:
            kind = self.prefixes.get(mnemonic[:length])
            if kind is not None:
                return kind
            length = mnemonic.rfind(".", 0, length) if self.dots else length - 1
        return _NO_ENTRY

    def pipes(self) -> list[str]:
        """All pipes of the table, in its order."""
        return list(dict.fromkeys(kind.pipe for kind in (*self.prefixes.values(), *self.names.values())))


@functools.cache
def pipe_table(isa: str) -> PipeTable:
    """The table of one of ISAS."""
    text = resources.files("mccprobe.objects.isa").joinpath(f"data/pipes-{isa}.toml").read_text(encoding="utf-8")
    return PipeTable(tomllib.loads(text))


def mix(instructions: Iterable[Instruction]) -> dict[str, int]:
    """Instructions of each pipe, the most frequent first, equal ones by name."""
    counts: dict[str, int] = {}
    for instruction in instructions:
        counts[instruction.pipe] = counts.get(instruction.pipe, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
