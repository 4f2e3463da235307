"""A trace as text. Pure: record in, text out."""

from __future__ import annotations

from collections.abc import Callable

from mccprobe.tuning.trace.read import Shape
from mccprobe.tuning.trace.run import Traced

SHOWN = 40  # kernels; the rest is in the record


def render_trace(traced: Traced, demangle: Callable[[str], str] = lambda name: name) -> str:
    """A line for each kernel and shape, the modules, and where the record lies."""
    mark = "[sim] " if traced.simulated else ""
    record = traced.record
    kernels = record.kernels()
    lines = [
        f"{mark}launches: {sum(one.launches for one in kernels)}, kernels: {len({one.kernel for one in kernels})}, "
        f"modules: {len(record.modules)}, processes: {len(record.processes)}; the program ended with {traced.status}"
    ]
    for one in kernels[:SHOWN]:
        refused = f", {one.refused} REFUSED" if one.refused else ""
        lines.append(
            f"  {mark}{demangle(one.kernel)}: {one.launches} x grid {_shape(one.grid)} block {_shape(one.block)} "
            f"dynamic shared {one.dynamic_shared_bytes} bytes{refused}"
        )
    if len(kernels) > SHOWN:
        lines.append(f"  and {len(kernels) - SHOWN} more")
    for module in record.modules:
        where = module.path or (f"{traced.request.folder}/{module.file}" if module.file else "not saved")
        size = f"{module.bytes:,} bytes" if module.bytes else "size unknown"
        lines.append(f"  {mark}module {where} ({size}, {module.api}, loaded {module.loads} x)")
    lines += [f"  warning: {warning}" for warning in traced.warnings]
    saved = next((module.file for module in record.modules if module.file), None)
    if saved:
        lines.append(f"  its resources: mccprobe report {traced.request.folder}/{saved}")
    return "\n".join(lines) + "\n"


def _shape(shape: Shape) -> str:
    return "x".join(map(str, shape))
