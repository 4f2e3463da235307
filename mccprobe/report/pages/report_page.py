"""The page of a resource report, from its record and the code of its first kernels. Pure: records in, `Page` out."""

from __future__ import annotations

from collections.abc import Sequence

from mccprobe.inspection.disasm import ImageView
from mccprobe.inspection.published import Comparison, scalar_text
from mccprobe.inspection.resources import ResourceReport
from mccprobe.objects.model.estimate import Occupancy
from mccprobe.objects.model.occupancy import STANDING_NOTES
from mccprobe.objects.model.resources import KernelResources
from mccprobe.report.disasm_text import figures
from mccprobe.report.pages.bisect_page import headline_name, short_name
from mccprobe.report.pages.blocks import (
    Block,
    Cell,
    Code,
    Details,
    Facts,
    Kind,
    Notes,
    Page,
    Paragraph,
    Section,
    Table,
    Tone,
    code,
    number,
    sections,
)
from mccprobe.report.pages.resource_figures import loop_figure, occupancy_figure, pipes_figure
from mccprobe.report.render_resources import OVERVIEW, kernel_facts, occupancy_phrase, overview_row

KERNELS_DRAWN = 8  # with figures and all values; the others stand in the overview
KERNELS_LISTED = 2000  # of the overview
_CODE = frozenset({"symbol", "from"})


def report_page(report: ResourceReport, tool_version: str) -> Page:
    headings = list(dict.fromkeys(kernel.heading for kernel in report.kernels if kernel.heading))
    drawn = report.kernels[:KERNELS_DRAWN]
    several = len(report.kernels) > 1
    return Page(
        command="mccprobe report",
        headline=_headline(report),
        tone=Tone.ANSWER if report.kernels else Tone.NONE,
        lead=_lead(report),
        facts=Facts(tuple(_facts(report))),
        sections=sections(
            Section("overview", "All kernels", _overview(report) if several else (), "; ".join(headings)),
            *(
                Section(f"kernel{at}", short_name(kernel.title), tuple(_kernel(at, kernel, report)), kernel.heading)
                for at, kernel in enumerate(drawn)
            ),
            Section("published", "Published figures", _published(report.comparison), "; ".join(headings)),
            Section("warnings", "Warnings", (Notes(report.warnings, warning=True),) if report.warnings else ()),
        ),
        tool_version=tool_version,
        mark="; ".join(headings),
        warning="No number here is of the device that the kernel is written for." if headings else "",
    )


def _headline(report: ResourceReport) -> str:
    if not report.kernels:
        return "No kernel found"
    first, *others = report.kernels
    if others:
        targets = ", ".join(dict.fromkeys(kernel.kernel.target or "an unknown target" for kernel in report.kernels))
        return f"{len(report.kernels):,} kernels for {targets}"
    found = next((entry for entry in first.occupancy if entry.blocks_per_mp is not None), None)
    name = headline_name(first.title)
    if found is not None:
        return f"{name}: {occupancy_phrase(found)}"
    counted = "its resources" if first.mix.count is None else f"{first.mix.count:,} instructions"
    return f"{name}: {counted}; no occupancy"


def _lead(report: ResourceReport) -> str:
    if len(report.kernels) != 1:
        return ""
    models = [entry for entry in report.kernels[0].occupancy if entry.blocks_per_mp is not None]
    if not models:
        return ""
    others = "; what other models say stands below" if len(report.kernels[0].occupancy) > 1 else ""
    return f"By the model “{models[0].title}”{others}."


def _facts(report: ResourceReport) -> list[tuple[str, Cell]]:
    if len(report.kernels) != 1:
        origins = list(dict.fromkeys(kernel.origin for kernel in report.kernels))
        shown = ", ".join(origins[:3]) + (f" and {len(origins) - 3} more" if len(origins) > 3 else "")
        return [("From", code(shown))] if origins else []
    kernel = report.kernels[0]
    row = dict(zip(OVERVIEW, overview_row(kernel), strict=True))
    return [
        ("Target", Cell(row["target"])),
        ("Registers a thread", Cell(row["registers"])),
        ("Shared memory, bytes a block", Cell(row["shared"])),
        ("Private memory, bytes a thread", Cell(row["private"])),
        ("Spills", Cell(row["spills"] if row["spills"] != "-" else "not told")),
        ("Instructions", Cell(row["instructions"])),
    ]


def _overview(report: ResourceReport) -> tuple[Block, ...]:
    rows = []
    for kernel in report.kernels[:KERNELS_LISTED]:
        name, target, *numbers, limiter = overview_row(kernel)
        values = tuple(number(None, digits="") if text == "-" else _number(text) for text in numbers)
        rows.append((code(name), Cell(target), *values, Cell(limiter)))
    left = len(report.kernels) - len(rows)
    note = "Registers and private memory a thread, shared memory in bytes a block."
    note += f" {left:,} more kernels are in the document of --json." if left else ""
    if len(report.kernels) > KERNELS_DRAWN:
        note += f" The first {KERNELS_DRAWN} have a section of their own."
    return (Table("Resources", OVERVIEW, tuple(rows), note),)


def _number(text: str) -> Cell:
    return Cell(text, Kind.NUMBER)


def _kernel(at: int, kernel: KernelResources, report: ResourceReport) -> list[Block]:
    image = report.functions.get(at)
    pairs = tuple((label, code(text) if label in _CODE else Cell(text)) for label, text in kernel_facts(kernel))
    blocks: list[Block] = [Facts((("kernel", code(kernel.title)), *pairs))]
    blocks += _occupancy(f"k{at}", kernel, report.kernels[:at])
    blocks += _code(f"k{at}", kernel, image)
    if kernel.kernel.unknown_keys:
        blocks.append(Paragraph(f"Keys of the metadata that are not known: {', '.join(kernel.kernel.unknown_keys)}."))
    return blocks


def _occupancy(key: str, kernel: KernelResources, before: Sequence[KernelResources]) -> list[Block]:
    blocks: list[Block] = []
    figure = occupancy_figure(key, kernel.occupancy)
    if figure is not None:
        blocks.append(figure)
    rows = tuple(_model(entry) for entry in kernel.occupancy)
    first = kernel.occupancy[0]
    caption = "Occupancy by each model"
    if first.block_size is not None:
        caption += f", for {first.block_size:,} threads a block ({first.block_size_source})"
    blocks.append(Table(caption, ("model", "answer", "next step"), rows))
    told = {note for other in before for entry in other.occupancy for note in entry.notes} & STANDING_NOTES
    every = [*(note for entry in kernel.occupancy for note in entry.notes), *kernel.notes]
    notes = tuple(note for note in dict.fromkeys(every) if note not in told)
    if notes:
        blocks.append(Notes(notes))
    return blocks


def _model(entry: Occupancy) -> tuple[Cell, ...]:
    return Cell(entry.title), Cell(occupancy_phrase(entry)), Cell(entry.next_step or "-")


def _code(key: str, kernel: KernelResources, image: ImageView | None) -> list[Block]:
    whole = kernel.mix.pipes
    view = image.functions[0] if image is not None else None
    loop = view.summary.main_loop if view is not None and view.flow_known else None
    # what the report counts is drawn; the loop goes with it only where both were counted by the same names
    same = view is not None and dict(view.summary.mix) == dict(whole)
    blocks: list[Block] = []
    figure = pipes_figure(key, whole, loop.mix if loop is not None and same else None)
    if figure is not None:
        blocks.append(figure)
    if image is None or view is None:
        return blocks
    map_figure = loop_figure(key, view)
    if map_figure is not None:
        blocks.append(map_figure)
    lines = "\n".join(line.removeprefix("  ") for line in figures(view, image.isa))
    blocks.append(Details("The code in figures, as disasm tells them", (Code("Figures of the code", lines),)))
    return blocks


def _published(comparison: Comparison | None) -> tuple[Block, ...]:
    if comparison is None:
        return ()
    subjects = list(dict.fromkeys(p.subject for row in comparison.rows for p in row.published))
    first = comparison.rows[0].cells if comparison.rows else ()
    reported = [f"{short_name(cell.kernel)} [{cell.target}]" for cell in first]
    rows = []
    for row in comparison.rows:
        by_subject = {p.subject: ("about " if p.approximate else "") + scalar_text(p.value) for p in row.published}
        unit = next((p.unit for p in row.published), "")
        cells = (
            *(_number(by_subject.get(subject, "-")) for subject in subjects),
            *(_number(scalar_text(cell.value)) for cell in row.cells),
        )
        rows.append((Cell(row.metric, note=unit), *cells))
    head = ("metric", *(f"published: {subject}" for subject in subjects), *reported)
    missing = (f"{row.metric}: {cell.reason}" for row in comparison.rows for cell in row.cells if cell.reason)
    blocks: list[Block] = [Table(f"Beside the published figures of {comparison.kernel}", head, tuple(rows))]
    blocks.append(Notes((comparison.note, *dict.fromkeys(missing))))
    return tuple(blocks)
