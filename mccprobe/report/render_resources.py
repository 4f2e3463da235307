"""A resource report as text, CSV or Markdown. Pure: record in, text out; a drawn table only for a terminal.

A stand-in's heading stands before every line about its kernels, in every format.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator

from mccprobe.base.console import visible
from mccprobe.inspection.lines import joined, one_line
from mccprobe.inspection.published import Comparison, scalar_text
from mccprobe.inspection.resources import ResourceReport
from mccprobe.objects.binary.reserve import SPILL_BASE, SPILL_BASE_KIND
from mccprobe.objects.model.estimate import AT_MOST, Occupancy
from mccprobe.objects.model.frames import flat_row
from mccprobe.objects.model.occupancy import STANDING_NOTES
from mccprobe.objects.model.resources import KernelResources, is_mtgpu, largest_block_note, sources
from mccprobe.report.terminal_table import Column, terminal_table

_LABEL = 16  # characters of a label in front of its value
_PER_THREAD = ("temp", "attribute", "internal", "coefficient", "vector", "accumulation")
PIPES_SHOWN = 8  # the most frequent; the rest is summed up


def render_text(report: ResourceReport) -> str:
    """Everything, one section a kernel."""
    parts = []
    told: set[str] = set()
    for kernel in report.kernels:
        parts.append("\n".join(_headed(kernel.heading, _kernel_lines(kernel, told))))
        told |= STANDING_NOTES.intersection(note for entry in kernel.occupancy for note in entry.notes)
    if report.comparison is not None:
        parts.append("\n".join(_headed(_common_heading(report), _comparison_lines(report.comparison))))
    if report.warnings:
        lines = ["warnings:", *(f"  - {warning}" for warning in report.warnings)]
        parts.append("\n".join(_headed(_common_heading(report), lines)))
    return "\n\n".join(parts)


def render_terminal(report: ResourceReport, width: int, *, color: bool = True) -> str:
    """An overview table as a terminal shows it, then the text."""
    parts = []
    for heading in dict.fromkeys(kernel.heading for kernel in report.kernels):
        rows = [overview_row(kernel) for kernel in report.kernels if kernel.heading == heading]
        room = width - len(heading) - (2 if heading else 0)
        table = terminal_table(_COLUMNS, rows, room, color=color)
        parts.append("\n".join(f"{heading}: {line}" if heading else line for line in table))
    return "\n\n".join([*parts, render_text(report)])


OVERVIEW = ("kernel", "target", "registers", "shared", "private", "spills", "instructions", "blocks/MP", "limiter")
_COLUMNS = tuple(
    Column(name, right=name not in ("kernel", "target", "limiter"), fold={"kernel": 20, "limiter": 9}.get(name))
    for name in OVERVIEW
)


def overview_row(kernel: KernelResources) -> list[str]:
    """One kernel in the cells of `OVERVIEW`; a dash for what is not known."""
    row = flat_row(kernel)
    registers = next(
        (row[f"{kind}_registers"] for kind in ("temp", "vector") if row[f"{kind}_registers"] is not None), None
    )
    spills = None if row["vector_spills"] is None else row["vector_spills"] + (row["scalar_spills"] or 0)
    numbers = [registers, row["shared_memory_bytes"], row["private_memory_bytes"], spills, row["instructions"]]
    return [
        kernel.title,
        row["target"] or "-",
        *map(scalar_text, numbers),
        scalar_text(row["blocks_per_mp"]),
        row["limiter"] or "-",
    ]


def render_csv(report: ResourceReport) -> str:
    """One line a kernel; an absent number is an empty cell. Units stand in the names of the columns."""
    stream = io.StringIO()
    rows = [flat_row(kernel) for kernel in report.kernels]
    writer = csv.DictWriter(stream, list(rows[0]) if rows else ["name"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return stream.getvalue()


def _cell(value: object) -> object:
    return visible(value) if isinstance(value, str) else value


def render_markdown(report: ResourceReport) -> str:
    """A table of all kernels, one line of occupancy for each model, the comparison."""
    headings = _common_heading(report)
    lines = [
        *_markdown_table(
            (("stand-in", *OVERVIEW) if headings else OVERVIEW),
            (
                [kernel.heading, *overview_row(kernel)] if headings else overview_row(kernel)
                for kernel in report.kernels
            ),
        )
    ]
    lines += ["", "Units: registers a thread, shared memory in bytes a block, private memory in bytes a thread."]
    for kernel in report.kernels:
        head = f"{kernel.heading}: " if kernel.heading else ""
        for entry in kernel.occupancy:
            lines += ["", f"- {head}`{kernel.title}`, {entry.title}: {occupancy_phrase(entry)}"]
            if entry.next_step:
                lines.append(f"  - {head}{entry.next_step}")
        lines += [f"  - {head}{note}" for note in kernel.notes]
    if report.comparison is not None:
        head = f"{headings}: " if headings else ""
        lines += ["", f"{head}Published figures of {report.comparison.kernel}: {report.comparison.note}.", ""]
        lines += _markdown_comparison(report.comparison)
    for warning in report.warnings:
        lines += ["", f"Warning: {warning}"]
    return joined(lines)


def _markdown_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    header = list(header)
    yield "| " + " | ".join(header) + " |"
    yield "|" + " --- |" * len(header)
    for row in rows:
        yield "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in row) + " |"


def _markdown_comparison(comparison: Comparison) -> Iterator[str]:
    subjects = list(dict.fromkeys(p.subject for row in comparison.rows for p in row.published))
    names = [f"{cell.kernel} ({cell.target})" for cell in comparison.rows[0].cells] if comparison.rows else []
    rows = []
    for row in comparison.rows:
        by_subject = {p.subject: scalar_text(p.value) for p in row.published}
        rows.append(
            [
                row.metric,
                *(by_subject.get(subject, "-") for subject in subjects),
                *(scalar_text(cell.value) for cell in row.cells),
            ]
        )
    yield from _markdown_table(["metric", *(f"published: {subject}" for subject in subjects), *names], rows)


# --- text ---------------------------------------------------------------------------------------


def _headed(heading: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield one_line(f"{heading}: {line}" if heading else line)


def _common_heading(report: ResourceReport) -> str:
    return "; ".join(dict.fromkeys(kernel.heading for kernel in report.kernels if kernel.heading))


def _kernel_lines(kernel: KernelResources, told: Collection[str]) -> Iterator[str]:
    """told: notes that an earlier kernel has shown."""
    document = kernel.kernel
    yield f"{kernel.title}  [{document.target or 'unknown target'}]"
    for label, value in kernel_facts(kernel):
        yield _line(label, value)
    yield from _occupancy_lines(kernel, told)
    if document.unknown_keys:
        yield _line("unknown keys", ", ".join(document.unknown_keys))


def kernel_facts(kernel: KernelResources) -> Iterator[tuple[str, str]]:
    """Names and values of all that is no occupancy, for people."""
    document = kernel.kernel
    if kernel.demangled:
        yield "symbol", document.name
    yield "from", f"{kernel.origin} ({sources(document, kernel.mix)['metadata']})"
    if document.source_format == "host-elf" and not kernel.heading:  # only what host code has
        if document.private_memory_bytes is not None:
            yield "private memory", _private(kernel)
        yield "code", f"{document.code_bytes or 0:,} bytes"
        yield "instructions", _instructions(kernel)
        return
    yield "registers", _registers(kernel)
    yield "shared memory", _shared(kernel)
    yield "private memory", _private(kernel)
    yield "spills", _spills(kernel)
    counted = " (in the code)" if document.has_barrier is None and kernel.has_barrier is not None else ""
    yield "barrier", {True: "yes", False: "no", None: "unknown"}[kernel.has_barrier] + counted
    yield "largest block", largest_block_note(document) or _largest_block(document.max_block_size)
    if document.code_bytes is not None:
        yield "code", f"{document.code_bytes:,} bytes"
    yield "instructions", _instructions(kernel)
    if document.const_calc is not None:
        size = "code not found" if document.const_calc_bytes is None else f"{document.const_calc_bytes:,} bytes"
        yield "constants by", f"{document.const_calc}, {size}: runs before the kernel, not counted above"


def _line(label: str, value: str) -> str:
    return f"  {label:<{_LABEL}}{value}"


def _registers(kernel: KernelResources) -> str:
    given = {kind: count for kind, count in kernel.kernel.registers.items() if count is not None}
    if not given:
        return "unknown: not in the metadata"
    thread = [f"{kind} {count}" for kind, count in given.items() if kind in _PER_THREAD]
    others = [f"{kind} {count}" for kind, count in given.items() if kind not in _PER_THREAD]
    parts = [f"{', '.join(thread)} a thread"] if thread else []
    if others:
        parts.append(f"{', '.join(others)} a {'warp' if is_mtgpu(kernel.kernel) else 'wave'}")
    return "; ".join(parts)


def _shared(kernel: KernelResources) -> str:
    shared = kernel.shared
    if shared.total is None:
        return "unknown"
    text = f"{shared.total:,} bytes a block, static"
    if shared.reserved:
        text += f" = {shared.declared or 0:,} declared + {shared.reserved} reserved ({shared.certainty})"
    elif shared.reserved is None:
        text += ", reserve unknown"
    return f"{text}: {shared.note}" if shared.note else text


def _private(kernel: KernelResources) -> str:
    private = kernel.private
    if private.bytes is None:
        return "unknown"
    text = f"{private.bytes:,} bytes a thread"
    word = {"metadata": "metadata level", "memory": "real memory"}.get(private.verdict, "")
    return ": ".join(filter(None, (text, word, private.note)))


def _spills(kernel: KernelResources) -> str:
    if kernel.kernel.spills is not None and "store_bytes" in kernel.kernel.spills:
        stored, loaded = kernel.kernel.spills["store_bytes"], kernel.kernel.spills.get("load_bytes", 0)
        return f"{stored:,} bytes stored, {loaded:,} bytes loaded"
    if kernel.kernel.spills is not None:
        return ", ".join(f"{kind} {count}" for kind, count in kernel.kernel.spills.items()) + " registers"
    if is_mtgpu(kernel.kernel):
        argument = " (every kernel has a Global Spill Base argument, spilling or not)" if _spill_base(kernel) else ""
        return f"not in MTGPU metadata{argument}"
    return "unknown"


def _spill_base(kernel: KernelResources) -> bool:
    """Whether the argument is in this kernel, or in every kernel of its architecture."""
    raw = kernel.kernel.raw
    arguments = raw.get(".args", raw.get("args"))
    listed = arguments if isinstance(arguments, list) else []
    kinds = [one.get(".kind", one.get("kind")) for one in listed if isinstance(one, dict)]
    return SPILL_BASE_KIND in kinds or SPILL_BASE.get(kernel.kernel.target, False)


def _largest_block(threads: int | None) -> str:
    if threads is None:
        return "unknown"
    return f"{threads:,} threads (metadata)"


def _instructions(kernel: KernelResources) -> str:
    mix = kernel.mix
    if mix.count is None:
        return f"unknown: {mix.reason}"
    shown = dict(list(mix.pipes.items())[:PIPES_SHOWN])
    if is_mtgpu(kernel.kernel) and mix.names_mma:
        shown["MMA"] = mix.pipes.get("MMA", 0)  # always named: whether the matrix unit works is what people look for
    rest = sum(mix.pipes.values()) - sum(shown.values())
    pipes = ", ".join(f"{pipe} {count:,}" for pipe, count in shown.items()) + (f", others {rest:,}" if rest else "")
    if is_mtgpu(kernel.kernel) and not mix.names_mma:
        pipes += ", MMA not known to this table"
    marks = "".join(f", {level} {count:,}" for level, count in mix.marks.items())
    return f"{mix.count:,} ({mix.source}{marks}){': ' + pipes if pipes else ''}"


def _occupancy_lines(kernel: KernelResources, told: Collection[str]) -> Iterator[str]:
    first = kernel.occupancy[0]
    if first.block_size is not None and any(entry.limits for entry in kernel.occupancy):
        yield _line("occupancy", f"for {first.block_size:,} threads a block ({first.block_size_source})")
    for entry in kernel.occupancy:
        if entry.model == "none":
            yield _line("occupancy", f"none: {entry.reason}")
            continue
        yield f"    {entry.title}: {occupancy_phrase(entry)}"
        if entry.next_step:
            yield f"      next step: {entry.next_step}"
        yield from (f"      {note}" for note in entry.notes if note not in told)
    yield from (f"    note: {note}" for note in kernel.notes)


def occupancy_phrase(entry: Occupancy) -> str:
    """Blocks, percent and limiter, or why there is none."""
    if entry.blocks_per_mp is None:
        return entry.reason
    bound = "at most " if entry.bound == AT_MOST else ""
    unit = "block" if entry.blocks_per_mp == 1 else "blocks"
    text = f"{bound}{entry.blocks_per_mp} {unit} a multiprocessor"
    if entry.percent is not None:
        text += f", {bound}{entry.percent:g} %"
    tight = [limit.resource for limit in entry.limits if limit.blocks == entry.blocks_per_mp]
    if entry.limiter == "waves":  # all that there are: what the registers allow is counted up to that
        tight = ["waves"]
    return f"{text}, limited by {' and '.join(tight)}" if entry.limiter and tight else text


def _comparison_lines(comparison: Comparison) -> Iterator[str]:
    yield f"published figures of {comparison.kernel} ({comparison.note})"
    for row in comparison.rows:
        unit = next((p.unit for p in row.published), "")
        yield f"  {row.metric} [{unit}]"
        for published in row.published:
            about = "about " if published.approximate else ""
            yield f"    {published.subject:<14}{about}{scalar_text(published.value):>10}  {published.source}"
        for cell in row.cells:
            line = f"    {'this report':<14}{scalar_text(cell.value):>10}  {cell.kernel} [{cell.target}]"
            yield f"{line}: {cell.reason}" if cell.reason else line
