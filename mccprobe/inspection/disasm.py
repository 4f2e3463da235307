"""`mccprobe disasm` as one JSON document: per function the figures, the loops and the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mccprobe import __version__
from mccprobe.objects.isa.disassemble import ImageListing
from mccprobe.objects.isa.flow import Flow, Loop, isa_of
from mccprobe.objects.isa.mtgpu.listing import FORMAT as OPEN_FORMAT
from mccprobe.objects.isa.mtgpu.listing import flow_known, marks
from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import Function, Instruction
from mccprobe.objects.isa.summary import INSTRUCTION_CACHE_BYTES, Summary, WordCounts, summarise
from mccprobe.objects.isa.words import Word, words_of

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class FunctionView:
    """A function with its figures, and how deep in loops each instruction is."""

    function: Function
    summary: Summary
    depths: tuple[int, ...]
    words: tuple[Word, ...]
    flow_known: bool = True  # False where nobody told the targets of branches
    counted: bool = True  # False where a table leaves words without a name: their sizes may be wrong


@dataclass(frozen=True)
class ImageView:
    """One image's listing and its functions, as far as they were asked for."""

    source: ImageListing
    isa: str
    functions: tuple[FunctionView, ...]


def view(source: ImageListing, name: str = "") -> ImageView:
    """The functions of one image; `name` picks those of this name."""
    isa = isa_of(source.listing.format)
    chosen = [one for one in source.listing.functions if not name or one.name == name]
    told = not source.listing.format.startswith(("table-", "objdump-hexagon"))
    cut = source.listing.format == OPEN_FORMAT
    return ImageView(
        source, isa, tuple(_function(one, isa, flow_known(one) if cut else told, whole=told) for one in chosen)
    )


def _function(function: Function, isa: str, known: bool, *, whole: bool) -> FunctionView:
    """known: where branches go. whole: an instruction without a name still has a size."""
    summary = summarise(function, isa)
    words = tuple(words_of(function)) if summary.geometry.words_known else ()
    counted = whole or not summary.mix.get(UNKNOWN)
    return FunctionView(function, summary, loop_depths(function, summary.flow), words, known, counted)


def loop_depths(function: Function, flow: Flow) -> tuple[int, ...]:
    """For each instruction the number of loops that it is in."""
    depths = [0] * len(function.instructions)
    for loop in flow.loops:
        for index in flow.instructions_of(loop):
            depths[index] = max(depths[index], loop.depth)
    return tuple(depths)


def document(views: Sequence[ImageView], *, with_words: bool) -> dict[str, Any]:
    """The document that `reports/disasm.schema.json` describes."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "images": [_image(one, with_words) for one in views],
    }


def _image(one: ImageView, with_words: bool) -> dict[str, Any]:
    listing = one.source.listing
    return {
        "origin": one.source.image.origin,
        "target": listing.target or one.source.image.target,
        "isa": one.isa,
        "format": listing.format,
        "tool": one.source.tool,
        "unknown_lines": [{"line": line.number, "text": line.text} for line in listing.unknown],
        "warnings": list(one.source.warnings),
        "functions": [_function_document(function, with_words, one.isa) for function in one.functions],
    }


def _function_document(one: FunctionView, with_words: bool, isa: str) -> dict[str, Any]:
    summary = one.summary
    return {
        "name": summary.name,
        "address": one.function.address,
        "instructions": summary.instructions if one.counted else None,
        "code_bytes": summary.code_bytes,
        "mix": summary.mix,
        "marks": marks(one.function) if any(item.confidence for item in one.function.instructions) else None,
        "dwords": {str(size): times for size, times in summary.sizes.items()} or None,
        "unknown_encodings": summary.unknown_encodings,
        "other": summary.other,
        "geometry": {"state": summary.geometry.state, "reason": summary.geometry.reason},
        "words": summary.words,
        "slots": summary.slots,
        "empty_slots": summary.empty_slots,
        "slot_packing": packing(summary.counts),
        "matrix_words": summary.counts.matrix_words if summary.counts and summary.instructions is not None else None,
        "mma_utilisation": None,  # measured on the device; no listing tells it
        "loops": [loop_document(loop, isa) for loop in summary.loops] if one.flow_known else None,
        "main_loop": None if summary.main_loop is None else summary.loops.index(summary.main_loop),
        "indirect_branches": summary.flow.indirect if one.flow_known else None,
        "irreducible_edges": summary.flow.irreducible if one.flow_known else None,
        "stream": [
            _instruction(instruction, depth)
            for instruction, depth in zip(one.function.instructions, one.depths, strict=True)
        ],
        "word_list": [_word(word) for word in one.words] if with_words else None,
    }


def _word(word: Word) -> dict[str, Any]:
    return {
        "address": word.address,
        "slots": [slot.hex() for slot in word.slots],
        "instructions": list(word.instructions),
    }


def packing(counts: WordCounts | None) -> float | None:
    """Share of slots that hold anything, four digits."""
    return None if counts is None else round(counts.packing, 4)


def fits_cache(loop: Loop, isa: str) -> bool | None:
    """Whether the loop fits mp_22's instruction cache; None without bytes or on another instruction set."""
    if isa != "mtgpu" or loop.size_bytes is None:
        return None
    return loop.size_bytes <= INSTRUCTION_CACHE_BYTES


def loop_document(loop: Loop, isa: str) -> dict[str, Any]:
    """One loop."""
    return {
        "label": loop.label,
        "header": loop.header,
        "depth": loop.depth,
        "parent": loop.parent,
        "instructions": loop.instructions,
        "own_instructions": loop.own,
        "mix": loop.mix,
        "own_mix": loop.own_mix,
        "size_bytes": loop.size_bytes,
        "fits_instruction_cache": fits_cache(loop, isa),
    }


def _instruction(one: Instruction, depth: int) -> dict[str, Any]:
    return {
        "address": one.address,
        "bytes": None if one.data is None else one.data.hex(),
        "control": one.control,
        "flags": one.flags,
        "mnemonic": one.mnemonic,
        "operands": one.operands,
        "pipe": one.pipe,
        "target": one.target,
        "loop_depth": depth,
        "confidence": one.confidence or None,
    }
