"""A measurement as text. Pure: record in, text out."""

from __future__ import annotations

from mccprobe.inspection.lines import joined
from mccprobe.tuning.bench.health import Health
from mccprobe.tuning.bench.measure import Measurement, Timed

SIM = "  [sim: emulation time]"


def render_measurement(found: Measurement, *, simulated: bool, health: Health | None = None) -> str:
    """Headline, the sides, their ratio, notes. No figure without what kind of time it is."""
    mark = SIM if simulated else ""
    lines = []
    if health is not None:
        value = "" if health.value is None else f"{health.value:.1f} TFLOPS of the shipped GEMM, "
        lines += [f"health: {value}{health.reason}", *(f"  {line}" for line in health.details)]
    if found.refused:
        return joined([*lines, f"NOT TIMED: {found.refused}{mark}"]) + "\n"
    lines.append(f"{found.label}; {found.rounds} rounds, {found.warmups} warm-ups dropped")
    for side in found.sides:
        lines += [f"{line}{mark}" for line in _side_lines(side)]
    ratio = found.ratio
    if ratio is not None:
        names = f"{found.sides[1].name} / {found.sides[0].name}"
        bounds = "no interval"
        if ratio.interval is not None:
            confidence = f"{100 * ratio.interval.confidence:g} %"
            bounds = f"{confidence} interval {ratio.interval.low:.4f} to {ratio.interval.high:.4f}"
        verdict = {"faster": "the second is faster", "slower": "the second is slower"}.get(
            ratio.shown, "no difference is shown"
        )
        lines.append(f"time of {names}: {ratio.estimate:.4f}, {bounds}, {ratio.pairs} pairs: {verdict}{mark}")
    lines += [f"note: {note}" for note in found.notes]
    return joined(lines) + "\n"


def _side_lines(side: Timed) -> list[str]:
    one = side.summary
    spread = "" if one.cv is None else f", CV {100 * one.cv:.1f} %"
    numbers = f"median {one.median:.4g} ms, p25 {one.p25:.4g}, best {one.best:.4g}, worst {one.worst:.4g}"
    lines = [f"  {side.name}: {numbers}{spread}"]
    if side.tflops is not None:
        rate = side.tflops
        numbers = f"p25 {rate.p25:.1f}, best {rate.worst:.1f}, worst {rate.best:.1f}"  # of a rate the largest is best
        lines.append(f"  {side.name}: median {rate.median:.1f} TFLOPS, {numbers}")
    return lines
