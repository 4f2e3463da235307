"""Instructions of each function by pipe, and nothing else: for reports on whole libraries.

A listing in full costs ten times the time and a hundred times the memory; it is needed for loops, words
and differences, not for a mix. The counts are those of the full listing (the tests compare them).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mccprobe.base.errors import InputError
from mccprobe.objects.binary.records import CodeSymbol
from mccprobe.objects.isa.disassemble import iter_capstone
from mccprobe.objects.isa.mtgpu.listing import marks
from mccprobe.objects.isa.pipes import PipeTable, pipe_table
from mccprobe.objects.isa.records import Function

CHUNK_CHARACTERS = 1 << 20  # of a text, cut into lines at a time
AMDGPU_FORMAT = "file format elf64-amdgpu"


@dataclass(frozen=True)
class CodeCount:
    """Instructions of a function, and how many of them each pipe has, the most frequent first.

    marks: how many names are how certain, where a table gave them.
    """

    instructions: int
    pipes: Mapping[str, int]
    marks: Mapping[str, int] = field(default_factory=dict)


def count_function(function: Function) -> CodeCount:
    """Of a function in a full listing."""
    found = _ordered(Counter(instruction.pipe for instruction in function.instructions))
    return replace(found, marks=marks(function)) if any(one.confidence for one in function.instructions) else found


def count_x86(symbols: Sequence[CodeSymbol]) -> dict[str, CodeCount]:
    """x86-64 functions through capstone."""
    table = pipe_table("x86")
    return {
        symbol.name: _counted((word.rpartition(" ")[2] for _, _, word, _ in iter_capstone(symbol)), table)
        for symbol in symbols
    }


def count_amdgpu(text: str, symbols: Sequence[CodeSymbol]) -> dict[str, CodeCount]:
    """Functions in the text of `llvm-objdump -d`, without what stands between the end of one and the next.

    Raises InputError for the text of another target, or a line of another shape.
    """
    if AMDGPU_FORMAT not in text[:CHUNK_CHARACTERS]:
        raise InputError("no listing of AMDGPU code")
    ends = {(symbol.name, symbol.address): symbol.address + len(symbol.data) for symbol in symbols if symbol.data}
    found: dict[str, CodeCount] = {}
    table = pipe_table("amdgpu")
    name, end = "", -1
    mnemonics: list[str] = []
    for line in _lines(text):
        if line[:1] == "\t":
            if end < 0:
                continue
            mark = line.rfind("// ")
            if mark < 0 or line[mark + 15 : mark + 16] != ":":
                raise InputError(f"no instruction of AMDGPU: {line.strip()[:60]}")
            if int(line[mark + 3 : mark + 15], 16) >= end:
                end = -1
            else:
                mnemonics.append(line[1:].partition(" ")[0])
        elif line[-2:] == ">:":
            _close(found, name, mnemonics, table)
            address, _, rest = line.partition(" <")
            name, mnemonics = rest[:-2], []
            end = ends.get((name, int(address, 16)), 1 << 64)
    _close(found, name, mnemonics, table)
    return found


def _close(found: dict[str, CodeCount], name: str, mnemonics: list[str], table: PipeTable) -> None:
    if mnemonics:
        found[name] = _counted(mnemonics, table)


def _counted(mnemonics: Iterable[str], table: PipeTable) -> CodeCount:
    pipes: Counter[str] = Counter()
    for mnemonic, count in Counter(mnemonics).items():
        pipes[table.find(mnemonic).pipe] += count
    return _ordered(pipes)


def _ordered(pipes: Counter[str]) -> CodeCount:
    return CodeCount(pipes.total(), dict(sorted(pipes.items(), key=lambda item: (-item[1], item[0]))))


def _lines(text: str) -> Iterator[str]:
    """The lines, without all of them in memory at once."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + CHUNK_CHARACTERS)
        end = len(text) if end < 0 else end
        yield from text[start:end].split("\n")
        start = end + 1
