"""Resources drawn: blocks a multiprocessor by each limit, instructions by pipe, the main loop in its order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mccprobe.base.console import number_of
from mccprobe.inspection.disasm import FunctionView
from mccprobe.objects.isa.pipes import MATRIX_PIPES
from mccprobe.objects.isa.records import Instruction
from mccprobe.objects.isa.words import EMPTY_SLOT, SLOTS_PER_WORD
from mccprobe.objects.model.estimate import Limit, Occupancy
from mccprobe.report.disasm_text import statement
from mccprobe.report.pages.blocks import Cell, Figure, Kind, Size, Table, code, number
from mccprobe.report.pages.canvas import rectangles
from mccprobe.report.pages.theme import LIGHT, PIPES, pipe_colour, pipe_hatch

ROW = 24  # pixels of a bar with its room
TILES = 600  # instructions of a loop that are drawn
WORDS = 96  # words of a loop that are drawn
NAMED_TILES = 200  # up to so many instructions carry their pipe's name


def occupancy_figure(key: str, models: Sequence[Occupancy]) -> Figure | None:
    """Bars of blocks, a group for each model that has numbers; what limits is set apart by colour and word."""
    drawn = [model for model in models if any(limit.blocks is not None for limit in model.limits)]
    if not drawn:
        return None
    rows = sum(len(model.limits) + 1 for model in drawn)
    told = "; ".join(
        f"{model.title}: {number_of(model.blocks_per_mp or 0, 'block')}, limited by {model.limiter or 'nothing known'}"
        for model in drawn
    )
    height = ROW * rows + 50
    return Figure(
        f"{key}-occupancy",
        "Blocks a multiprocessor, by what limits them",
        f"{told}.",
        Size((912, height), (350, height)),
        lambda canvas, narrow: _occupancy(canvas, drawn, narrow=narrow),
        _limits(drawn),
    )


def _limits(models: Sequence[Occupancy]) -> Table:
    rows = tuple(
        (
            Cell(f"{model.title}: {limit.resource}", note=limit.what),
            number(limit.per_block),
            number(limit.per_mp.value),
            Cell(limit.per_mp.unit),
            number(limit.blocks),
            Cell(limit.per_mp.source),
        )
        for model in models
        for limit in model.limits
    )
    return Table("Limits", ("limit", "a block", "a multiprocessor", "unit", "blocks", "source"), rows)


def _occupancy(canvas: Any, models: Sequence[Occupancy], *, narrow: bool) -> None:
    axes = canvas.subplots()
    most = max(limit.blocks for model in models for limit in model.limits if limit.blocks is not None)
    places: list[float] = []
    names: list[str] = []
    at = 0.0
    for model in models:
        title = model.title if not narrow or len(model.title) < 40 else model.title[:38] + "…"
        axes.text(0, at, title, va="center", fontweight="bold", fontsize=11)
        for limit in model.limits:
            at += 1
            places.append(at)
            names.append(limit.resource)
            _bar(axes, at, model, limit, most)
        at += 1
    axes.set_yticks(places, names)
    axes.set_ylim(at - 0.4, -0.7)
    axes.set_xlim(0, most * (1.45 if narrow else 1.15))
    axes.set_xlabel("blocks a multiprocessor")
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _bar(axes: Any, at: float, model: Occupancy, limit: Limit, most: int) -> None:
    limits = limit.blocks is not None and limit.blocks == model.blocks_per_mp
    text = "no limit" if limit.per_block == 0 else "unknown"
    if limit.blocks is not None:
        axes.barh(
            at,
            limit.blocks,
            height=0.62,
            color=LIGHT["accent" if limits else "unresolved-soft"],
            edgecolor=LIGHT["accent" if limits else "soft"],
            linewidth=0.6,
        )
        text = f"{limit.blocks:,}" + ("  limits" if limits else "")
    axes.text(
        (limit.blocks or 0) + 0.012 * most, at, text, va="center", fontsize=11, color=LIGHT["ink" if limits else "soft"]
    )


def pipes_figure(key: str, whole: Mapping[str, int], loop: Mapping[str, int] | None) -> Figure | None:
    """Instructions of the kernel by pipe; the main loop's share of each bar is filled."""
    if not whole:
        return None
    shown = list(whole.items())
    caption = "Instructions by pipe" + (", the main loop filled" if loop else "")
    told = ", ".join(f"{pipe} {count:,}" for pipe, count in shown)
    inside = f"; in the main loop {', '.join(f'{pipe} {count:,}' for pipe, count in loop.items())}" if loop else ""
    height = ROW * len(shown) + 50
    rows = tuple((Cell(pipe), number(count), *((number(loop.get(pipe, 0)),) if loop else ())) for pipe, count in shown)
    head = ("pipe", "instructions", *(("in the main loop",) if loop else ()))
    return Figure(
        f"{key}-pipes",
        caption,
        f"{told}{inside}.",
        Size((912, height), (350, height)),
        lambda canvas, narrow: _pipes(canvas, shown, loop, narrow=narrow),
        Table("Instructions by pipe", head, rows),
    )


def _pipes(canvas: Any, whole: Sequence[tuple[str, int]], loop: Mapping[str, int] | None, *, narrow: bool) -> None:
    axes = canvas.subplots()
    most = max(count for _, count in whole)
    for at, (pipe, count) in enumerate(whole):
        colour, inside = pipe_colour(at), (loop or {}).get(pipe, 0)
        axes.barh(
            at, count, height=0.66, facecolor=LIGHT["panel"] if loop else colour, edgecolor=LIGHT["soft"], linewidth=0.6
        )
        if loop:
            axes.barh(at, inside, height=0.66, facecolor=colour, edgecolor=LIGHT["soft"], linewidth=0.6)
        text = f"{count:,}" + (f", {inside:,} in the loop" if inside else "")
        axes.text(count + 0.012 * most, at, text, va="center", fontsize=11, color=LIGHT["soft"])
    axes.set_yticks(range(len(whole)), [pipe for pipe, _ in whole])
    axes.set_ylim(len(whole) - 0.4, -0.6)
    axes.set_xlim(0, most * (1.75 if narrow else 1.25))
    axes.set_xlabel("instructions")
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=4 if narrow else 6)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


# --- the main loop --------------------------------------------------------------------------------


def loop_figure(key: str, one: FunctionView) -> Figure | None:
    """The main loop by words with their slots where the words are known, else instruction by instruction."""
    main = one.summary.main_loop
    if main is None or not one.flow_known:
        return None
    inside = sorted(one.summary.flow.instructions_of(main))
    places = {pipe: at for at, pipe in enumerate(one.summary.mix)}
    chosen = set(inside)
    words = [word for word in one.words if any(index in chosen for index in word.instructions)]
    instructions = one.function.instructions
    if words:
        rows = [
            (
                f"{word.address:x}",
                [bool(slot != EMPTY_SLOT) for slot in word.slots],
                [instructions[index].pipe for index in word.instructions],
            )
            for word in words[:WORDS]
        ]
        caption = f"Main loop at {main.label}: words, their slots (filled or empty) and the pipes of their instructions"
        return Figure(
            f"{key}-loop",
            caption + _cut(len(words), WORDS, "words"),
            _told(one, len(words)),
            Size((912, 26 * -(-len(rows) // 2) + 20), (350, 26 * len(rows) + 20)),
            lambda canvas, narrow: _words(canvas, rows, places, narrow=narrow),
            _statements(instructions, inside),
        )
    stream = [instructions[index] for index in inside][:TILES]
    caption = f"Main loop at {main.label}: its instructions in order, by pipe"
    wide, narrow = (_Tiling.of(stream, narrow=narrow) for narrow in (False, True))
    return Figure(
        f"{key}-loop",
        caption + _cut(len(inside), TILES, "instructions"),
        _told(one, 0),
        Size((912, 26 * wide.height + 16), (350, 26 * narrow.height + 16)),
        lambda canvas, small: _tiles(canvas, stream, places, narrow if small else wide),
        _statements(instructions, inside),
    )


def _statements(instructions: Sequence[Instruction], inside: Sequence[int]) -> Table:
    rows = tuple(
        (Cell("" if one.address is None else f"{one.address:x}", Kind.CODE), Cell(one.pipe), code(statement(one)))
        for one in (instructions[index] for index in inside[:NAMED_TILES])
    )
    note = f"The first {NAMED_TILES} of {len(inside):,} instructions." if len(inside) > NAMED_TILES else ""
    return Table("Instructions of the main loop", ("address", "pipe", "instruction"), rows, note)


def _cut(count: int, most: int, noun: str) -> str:
    return f"; the first {most:,} of {count:,} {noun}" if count > most else ""


def _told(one: FunctionView, words: int) -> str:
    main, counts = one.summary.main_loop, one.summary.main_loop_counts
    assert main is not None
    text = ", ".join(f"{pipe} {count:,}" for pipe, count in main.mix.items())
    size = number_of(words, "word", style=",")
    slots = f" {size}, {counts.empty_slots} of {counts.slots} slots empty." if counts is not None else ""
    return f"{number_of(main.instructions, 'instruction', style=',')}: {text}.{slots}"


@dataclass(frozen=True)
class _Tiling:
    """How a loop is laid out. keys: pipes that the legend above names, keys_in_row in a row; none where tiles are."""

    columns: int
    rows: int
    keys: tuple[str, ...]
    keys_in_row: int

    @classmethod
    def of(cls, stream: Sequence[Instruction], *, narrow: bool) -> _Tiling:
        named = len(stream) <= NAMED_TILES
        wide_columns, narrow_columns = (12, 5) if named else (38, 14)
        columns = narrow_columns if narrow else wide_columns
        keys = () if named else tuple(dict.fromkeys(one.pipe for one in stream))
        return cls(columns, -(-len(stream) // columns), keys, 3 if narrow else 8)

    @property
    def key_rows(self) -> int:
        return -(-len(self.keys) // self.keys_in_row)

    @property
    def height(self) -> int:
        """In rows."""
        return self.rows + self.key_rows


def _tiles(canvas: Any, stream: Sequence[Instruction], places: Mapping[str, int], tiling: _Tiling) -> None:
    axes = _bare(canvas)
    boxes: dict[str, list[tuple[float, float, float, float]]] = {}
    for at, pipe in enumerate(tiling.keys):
        row, place = divmod(at, tiling.keys_in_row)
        left = place * tiling.columns / tiling.keys_in_row
        boxes.setdefault(pipe, []).append((left, row - tiling.key_rows - 0.2, 0.94, 0.8))
        axes.text(left + 1.2, row - tiling.key_rows + 0.2, pipe[:9], va="center", fontsize=11)
    for at, one in enumerate(stream):
        row, column = divmod(at, tiling.columns)
        boxes.setdefault(one.pipe, []).append((column, row, 0.94, 0.8))
        if not tiling.keys:
            _name(axes, column + 0.47, row + 0.4, one.pipe)
    _boxes(axes, boxes, places, hatched=bool(tiling.keys))
    axes.set_xlim(0, tiling.columns)
    axes.set_ylim(tiling.rows, -0.3 - tiling.key_rows)


def _words(
    canvas: Any, rows: Sequence[tuple[str, list[bool], list[str]]], places: Mapping[str, int], *, narrow: bool
) -> None:
    axes = _bare(canvas)
    columns = 1 if narrow else 2
    height = -(-len(rows) // columns)
    wide = 7.2  # of a column: address, three slots, three instructions
    boxes: dict[str, list[tuple[float, float, float, float]]] = {}
    filled: list[tuple[float, float, float, float]] = []
    empty: list[tuple[float, float, float, float]] = []
    for at, (address, slots, pipes) in enumerate(rows):
        column, row = divmod(at, height)
        left = column * wide
        axes.text(left + 0.9, row + 0.4, address, ha="right", va="center", fontsize=11, color=LIGHT["soft"])
        for slot in range(SLOTS_PER_WORD):
            full = slot < len(slots) and slots[slot]
            (filled if full else empty).append((left + 1.1 + 0.28 * slot, row + 0.19, 0.2, 0.42))
        for place, pipe in enumerate(pipes):
            start = left + 2.15 + 1.6 * place
            boxes.setdefault(pipe, []).append((start, row, 1.5, 0.8))
            _name(axes, start + 0.75, row + 0.4, pipe)
    _boxes(axes, boxes, places)
    rectangles(axes, filled, facecolor=LIGHT["ink"], edgecolor=LIGHT["ink"])
    rectangles(axes, empty, facecolor="none", edgecolor=LIGHT["soft"])
    axes.set_xlim(0, columns * wide)
    axes.set_ylim(height, -0.1)


def _bare(canvas: Any) -> Any:
    axes = canvas.subplots()
    axes.axis("off")
    return axes


def _name(axes: Any, x: float, y: float, pipe: str) -> None:
    weight = "bold" if pipe in MATRIX_PIPES else "normal"
    axes.text(x, y, pipe[:9], ha="center", va="center", fontsize=10, fontweight=weight)


def _boxes(
    axes: Any,
    boxes: Mapping[str, list[tuple[float, float, float, float]]],
    places: Mapping[str, int],
    *,
    hatched: bool = False,
) -> None:
    """hatched: by pattern as well as by colour, where no name stands in a box."""
    for pipe, corners in boxes.items():
        place = places.get(pipe, len(PIPES))
        pattern = {"hatch": pipe_hatch(place)} if hatched else {}
        rectangles(axes, corners, facecolor=pipe_colour(place), edgecolor=LIGHT["soft"], **pattern)
