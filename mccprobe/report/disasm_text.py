"""`mccprobe disasm` as text: figures first, then the stream, by instructions or by words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mccprobe.inspection.disasm import FunctionView, ImageView, fits_cache
from mccprobe.inspection.lines import joined
from mccprobe.objects.isa.flow import Loop
from mccprobe.objects.isa.mtgpu.cut import dwords_of
from mccprobe.objects.isa.mtgpu.listing import marks
from mccprobe.objects.isa.pipes import pipe_table
from mccprobe.objects.isa.records import Instruction
from mccprobe.objects.isa.summary import INSTRUCTION_CACHE_BYTES, Summary, WordCounts

SHOWN_UNKNOWN_LINES = 5
OPEN_LABEL = "classes of the open table, no mnemonics"
REAL_OBJECTS = (
    "real objects have instructions of 1 to 4 dwords, bit 31 marks the last; 12-byte words are one article's view, and "
    "any cut at 12 bytes gives its 165 of 165 slots"
)


def render(views: Sequence[ImageView], *, words: bool, loops: bool) -> str:
    """words: one line a word with its slots. loops: the loops instead of the stream."""
    lines: list[str] = []
    for one in views:
        if lines:
            lines.append("")
        lines += _image(one, words, loops)
    return joined(lines)


def _image(one: ImageView, words: bool, loops: bool) -> Iterator[str]:
    listing = one.source.listing
    target = listing.target or one.source.image.target or "target unknown"
    yield f"{one.source.image.origin}: {target}, {listing.format}, {_tool(one.source.tool)}"
    yield from (f"  warning: {text}" for text in one.source.warnings)
    if listing.unknown:
        yield f"  {_count(len(listing.unknown), 'line')} of the listing not understood:"
        yield from (f"    {line.number}: {line.text}" for line in listing.unknown[:SHOWN_UNKNOWN_LINES])
        if len(listing.unknown) > SHOWN_UNKNOWN_LINES:
            yield f"    ({len(listing.unknown) - SHOWN_UNKNOWN_LINES} more)"
    for function in one.functions:
        yield ""
        yield from _function(function, one.isa, words, loops)


def _tool(tool: str) -> str:
    return {"text": "read as text", "none": "not disassembled"}.get(tool, f"by {tool}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _function(one: FunctionView, isa: str, words: bool, loops: bool) -> Iterator[str]:
    summary = one.summary
    yield f"{summary.name}:"
    yield from figures(one, isa)
    if loops:
        yield from loop_lines(summary, isa)
        return
    yield ""
    yield from _word_lines(one) if words and one.words else _stream(one)


def figures(view: FunctionView, isa: str) -> Iterator[str]:
    """Words, slots and instructions: three counts; slot packing and MMA: two rates."""
    summary = view.summary
    if summary.instructions is None:
        yield "  instructions   unknown"
    elif not view.counted:
        yield f"  instructions   unknown; steps {sum(summary.mix.values())}  ({shares(summary.mix)})"
    else:
        labelled = OPEN_LABEL if _marked(view) else pipe_table(isa).labelled
        yield f"  instructions   {summary.instructions}  ({shares(summary.mix)})  [{labelled}]"
    if _marked(view):
        yield f"  certainty      {shares(marks(view.function))}"
    if summary.unknown_encodings:
        yield f"  unknown        {_count(summary.unknown_encodings, 'encoding')} that nobody decoded"
    if summary.code_bytes is not None:
        yield f"  code           {summary.code_bytes} bytes"
    if summary.sizes:
        each = ", ".join(
            f"{_count(times, 'instruction')} of {_count(size, 'dword')}" for size, times in summary.sizes.items()
        )
        yield f"  sizes          {each}; bit 31 marks the last dword of an instruction"
    elif isa == "mtgpu":
        state, reason = summary.geometry.state, summary.geometry.reason
        yield f"  geometry       12-byte words of three 4-byte slots: {state} ({reason})"
        if summary.geometry.words_known:
            yield f"                 {REAL_OBJECTS}"
        if summary.counts is not None:
            yield f"  words          {_words(summary.counts)}"
            if summary.instructions is not None:
                yield f"  matrix unit    {_matrix(summary.counts)}"
    main = summary.main_loop
    if main is None:
        yield f"  loops          {'none' if view.flow_known else 'unknown: nobody told where branches go'}"
        return
    yield f"  loops          {len(summary.loops)}, main loop at {main.label}: {_loop_figures(main, isa)}"
    if summary.main_loop_counts is not None:
        yield f"  main loop      {_words(summary.main_loop_counts)}"
        yield f"                 {_matrix(summary.main_loop_counts)}"
    if summary.flow.indirect:
        yield f"  control flow   {_count(summary.flow.indirect, 'branch')} without a known target"
    if summary.flow.irreducible:
        yield f"  control flow   {_count(summary.flow.irreducible, 'edge')} of irreducible loops, not counted as loops"


def _words(counts: WordCounts) -> str:
    full = counts.slots - counts.empty_slots
    return (
        f"{_count(counts.words, 'word')}, {_count(counts.slots, 'slot')}, {counts.empty_slots} empty (four zero bytes)"
        f"; slot packing {full}/{counts.slots} = {counts.packing:.0%}"
    )


def _matrix(counts: WordCounts) -> str:
    share = counts.matrix_words / counts.words if counts.words else 0.0
    return (
        f"{counts.matrix_words} of {_count(counts.words, 'word')} hold MMA ({share:.0%}); "
        "MMA utilisation is measured on the device, no listing tells it"
    )


def shares(mix: Mapping[str, int]) -> str:
    """`MMA 16, INT 7`."""
    return ", ".join(f"{pipe} {count}" for pipe, count in mix.items()) or "nothing"


def _loop_figures(loop: Loop, isa: str) -> str:
    text = f"{_count(loop.instructions, 'instruction')} ({shares(loop.mix)})"
    if loop.size_bytes is None:
        return text
    text += f", {loop.size_bytes} bytes"
    fits = fits_cache(loop, isa)
    if fits is None:
        return text
    return text + f" ({'fit' if fits else 'do not fit'} the {INSTRUCTION_CACHE_BYTES}-byte instruction cache [article])"


def loop_lines(summary: Summary, isa: str) -> Iterator[str]:
    """Each loop, indented by its depth."""
    for loop in summary.loops:
        mark = "  <- main loop" if loop is summary.main_loop else ""
        yield f"  {'  ' * loop.depth}{loop.label}  depth {loop.depth}: {_loop_figures(loop, isa)}{mark}"
        if loop.own != loop.instructions:
            yield f"  {'  ' * loop.depth}  without inner loops: {loop.own} ({shares(loop.own_mix)})"


def _labels(one: FunctionView) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for name, index in one.function.labels.items():
        found.setdefault(index, []).append(name)
    return found


def _stream(one: FunctionView) -> Iterator[str]:
    labels = _labels(one)
    instructions = one.function.instructions
    dwords = [_dwords(item) if one.summary.sizes else "" for item in instructions]
    raw = max(map(len, dwords), default=0)
    width = max((len(f"{item.address or 0:x}") for item in instructions), default=1)
    pipe_width = max((len(item.pipe) for item in instructions), default=1)
    deepest = max(one.depths, default=0)
    for index, (item, depth) in enumerate(zip(instructions, one.depths, strict=True)):
        yield from (f"{name}:" for name in labels.get(index, ()))
        where = " " * width if item.address is None else f"{item.address:>{width}x}"
        code = f"{dwords[index]:<{raw}}  " if raw else ""
        text = statement(item, with_bytes=not raw)
        yield f"  {where}  {code}{item.pipe:<{pipe_width}}  {'|' * depth:<{deepest}}  {text}".rstrip()
    yield from (f"{name}:" for name in labels.get(len(instructions), ()))


def _marked(one: FunctionView) -> bool:
    """True if the open table names its instructions."""
    return bool(one.summary.sizes) and any(item.confidence for item in one.function.instructions)


def _dwords(one: Instruction) -> str:
    return " ".join(f"{dword:08x}" for dword in dwords_of(one.data or b""))


def statement(one: Instruction, *, with_bytes: bool = True) -> str:
    """Control field, flags, mnemonic and operands; the bytes where the encoding is unknown."""
    parts = [f"[{one.control}]" if one.control else "", one.flags, one.text]
    if one.confidence:
        parts.append(f"({one.confidence})")
    if one.pipe == "unknown" and one.data is not None and with_bytes:
        parts.append(one.data.hex(" "))
    return " ".join(part for part in parts if part)


def _word_lines(one: FunctionView) -> Iterator[str]:
    instructions = one.function.instructions
    labels = _labels(one)
    width = max((len(f"{word.address:x}") for word in one.words), default=1)
    for word in one.words:
        for index in word.instructions:
            yield from (f"{name}:" for name in labels.get(index, ()))
        slots = " | ".join(f"{slot.hex():<8}" for slot in word.slots)
        texts = [f"{instructions[index].pipe}: {instructions[index].text}" for index in word.instructions]
        yield f"  {word.address:>{width}x}  {slots}  {'  ||  '.join(texts)}".rstrip()
