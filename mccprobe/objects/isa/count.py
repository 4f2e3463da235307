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
from mccprobe.objects.isa.spans import Spans, is_padding, never_falls_through

CHUNK_CHARACTERS = 1 << 20  # of a text, cut into lines at a time
AMDGPU_FORMAT = "file format elf64-amdgpu"
_SECTION = "Disassembly of section "
_NO_END = 1 << 64


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
    spans = Spans(symbols)
    found: dict[str, CodeCount] = {}
    table = pipe_table("amdgpu")
    names: list[str] = []
    section, start, end = "", 0, -1
    sized, padding = True, 0
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
                mnemonic = line[1:].partition(" ")[0]
                mnemonics.append(mnemonic)
                if not sized:
                    zeros = not line[mark + 17 :].partition("<")[0].strip(" 0")
                    padding = padding + 1 if zeros or is_padding(mnemonic, None) else 0
        elif line[-2:] == ">:":
            digits, _, rest = line.partition(" <")
            address = int(digits, 16)
            if names and start <= address < end < _NO_END:  # a label inside of the function
                continue
            _close(found, names, mnemonics, table, padding)
            names, mnemonics, start = spans.names_at(section, address) or [rest[:-2]], [], address
            end = spans.end_of(section, address)
            end, sized, padding = end if end > address else _NO_END, spans.is_sized(section, address), 0
        elif line.startswith(_SECTION):
            _close(found, names, mnemonics, table, padding)
            section, names, mnemonics = line.removeprefix(_SECTION).rstrip().removesuffix(":"), [], []
    _close(found, names, mnemonics, table, padding)
    return found


def _close(found: dict[str, CodeCount], names: list[str], mnemonics: list[str], table: PipeTable, padding: int) -> None:
    """padding: how many of the last are padding if what stands before them never falls through."""
    if padding and padding < len(mnemonics) and never_falls_through(mnemonics[-padding - 1]):
        del mnemonics[-padding:]
    if mnemonics:
        found.update(dict.fromkeys(names, _counted(mnemonics, table)))


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
