"""Published figures of a kernel beside a report: what somebody measured with another compiler, never ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mccprobe.objects.model.limits import ARTICLE_LIMITS
from mccprobe.objects.model.resources import KernelResources
from mccprobe.oracle.kernel.records import KernelSpec, Published, Scalar

TARGET = ARTICLE_LIMITS.target  # of every published figure so far: the article's S4000
Number = int | float | None


@dataclass(frozen=True)
class Cell:
    """One reported value for a published metric. value None: `reason` says why."""

    kernel: str
    target: str
    value: Number
    reason: str = ""


@dataclass(frozen=True)
class Row:
    """One metric with what was published, by subject, and what the report has."""

    metric: str
    published: tuple[Published, ...]
    cells: tuple[Cell, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "published": [
                {
                    "subject": p.subject,
                    "value": p.value,
                    "unit": p.unit,
                    "source": p.source,
                    "approximate": p.approximate,
                }
                for p in self.published
            ],
            "reported": [
                {"kernel": c.kernel, "target": c.target, "value": c.value, "reason": c.reason} for c in self.cells
            ],
        }


@dataclass(frozen=True)
class Comparison:
    """All metrics of one kernel.toml. note: how far the two sides are comparable."""

    kernel: str
    rows: tuple[Row, ...]
    note: str

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "note": self.note, "rows": [row.to_dict() for row in self.rows]}


def compare(spec: KernelSpec, kernels: Sequence[KernelResources], words: Mapping[int, int | None]) -> Comparison:
    """Rows in the order of kernel.toml. words: index of a kernel -> 12-byte words of its main loop.

    The first dispatch of kernel.toml is the kernel that the figures are about; where no reported kernel
    has its name, all are set beside them.
    """
    wanted = spec.dispatch[0].kernel if spec.dispatch else ""
    chosen = [index for index, kernel in enumerate(kernels) if wanted and wanted in kernel.kernel.name]
    chosen = chosen or list(range(len(kernels)))
    metrics = dict.fromkeys(published.metric for published in spec.published)
    rows = []
    for metric in metrics:
        cells = tuple(_cell(metric, kernels[index], words.get(index)) for index in chosen)
        rows.append(Row(metric, tuple(p for p in spec.published if p.metric == metric), cells))
    foreign = sorted({kernels[index].kernel.target for index in chosen if kernels[index].kernel.target != TARGET})
    note = f"published for {TARGET} with mcc 3.1.0"
    if foreign:
        note += f"; not comparable with {', '.join(foreign)}: no number of another machine confirms or refutes one"
    return Comparison(spec.name, tuple(rows), note)


def _cell(metric: str, kernel: KernelResources, words: int | None) -> Cell:
    metadata = kernel.kernel
    values: dict[str, tuple[Number, str]] = {
        "temp_reg_count": (metadata.registers.get("temp"), "only MTGPU has temp registers"),
        "shared_memory_bytes": (kernel.shared.total, "not in the metadata"),
        "private_memory_bytes": (kernel.private.bytes, "not in the metadata"),
        "instructions": (kernel.mix.count, kernel.mix.reason),
        "main_loop_vliw_words": (words, "needs MTGPU code with its bytes"),
        "tflops": (None, "a speed is measured, not reported"),
    }
    value, reason = values.get(metric, (None, "not reported"))
    return Cell(metadata.name, metadata.target, value, "" if value is not None else reason)


def scalar_text(value: Scalar | None) -> str:
    """A number for people: thousands separated, None as a dash."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)
