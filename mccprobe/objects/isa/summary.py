"""One function in figures: instructions, pipe mix, loops, and words and slots where bytes are at hand.

Three counts are kept apart, because the article's 55 words, 165 slots and 223 instructions are three
things: a word is 12 bytes, a slot 4 of them, an instruction one statement. Two rates as well
(section 22.1): slot packing is how many slots hold anything; how busy the matrix unit is, is measured
on the device and stands in no listing (`matrix_words` is only the share of words that feed it).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from mccprobe.objects.isa.flow import Flow, Loop, analyse, size_bytes
from mccprobe.objects.isa.mtgpu.cut import DWORD_BYTES
from mccprobe.objects.isa.mtgpu.listing import is_cut
from mccprobe.objects.isa.pipes import MATRIX_PIPES, UNKNOWN, mix
from mccprobe.objects.isa.records import Function
from mccprobe.objects.isa.words import CUT, Geometry, Word, empty_slots, geometry, words_of

INSTRUCTION_CACHE_BYTES = 4096  # article, line 182: L0 instruction cache of mp_22; for MTGPU only


@dataclass(frozen=True)
class WordCounts:
    """Words, slots, slots of zeros, words that hold a matrix instruction."""

    words: int
    slots: int
    empty_slots: int
    matrix_words: int

    @property
    def packing(self) -> float:
        """Share of slots that hold anything."""
        return (self.slots - self.empty_slots) / self.slots if self.slots else 0.0


@dataclass(frozen=True)
class Summary:
    """One function.

    instructions: statements of the disassembler, or of the cut at bit 31; None where code fits neither. words,
    slots, empty_slots: None without bytes or where the geometry is not of words. sizes: of MTGPU code that is cut
    at bit 31, dwords of an instruction -> how many instructions have so many.
    """

    name: str
    instructions: int | None
    mix: dict[str, int]
    loops: tuple[Loop, ...]
    main_loop: Loop | None
    words: int | None
    slots: int | None
    empty_slots: int | None
    geometry: Geometry
    counts: WordCounts | None
    main_loop_counts: WordCounts | None
    code_bytes: int | None
    unknown_encodings: int
    other: int
    flow: Flow
    sizes: dict[int, int] = field(default_factory=dict)


def summarise(function: Function, isa: str = "mtgpu") -> Summary:
    """The figures of one function; `isa` as `flow.isa_of(listing.format)` gives it."""
    instructions = function.instructions
    flow = analyse(function, isa)
    main = flow.main_loop()
    shape = geometry(function, isa)
    counts = loop_counts = None
    if shape.words_known:
        words = words_of(function)
        counts = _count(function, words)
        if main is not None:
            loop_counts = counts_of_loop(function, flow, main, words)
    pipes = mix(instructions)
    sizes: Counter[int] = Counter()
    if shape is CUT:
        sizes.update(len(one.data or b"") // DWORD_BYTES for one in instructions)
    known = is_cut(function) and (shape is CUT or not pipes or set(pipes) != {UNKNOWN})
    return Summary(
        name=function.name,
        instructions=len(instructions) if known else None,
        mix=pipes,
        loops=flow.loops,
        main_loop=main,
        words=counts.words if counts else None,
        slots=counts.slots if counts else None,
        empty_slots=counts.empty_slots if counts else None,
        geometry=shape,
        counts=counts,
        main_loop_counts=loop_counts,
        code_bytes=size_bytes(instructions),
        unknown_encodings=pipes.get(UNKNOWN, 0),
        other=pipes.get("other", 0),
        flow=flow,
        sizes=dict(sorted(sizes.items())),
    )


def counts_of_loop(function: Function, flow: Flow, loop: Loop, words: list[Word]) -> WordCounts:
    """The words that hold an instruction of the loop, inner loops included."""
    inside = set(flow.instructions_of(loop))
    return _count(function, [word for word in words if any(index in inside for index in word.instructions)])


def _count(function: Function, words: list[Word]) -> WordCounts:
    matrix = sum(
        any(function.instructions[index].pipe in MATRIX_PIPES for index in word.instructions) for word in words
    )
    return WordCounts(len(words), sum(len(word.slots) for word in words), empty_slots(words), matrix)
