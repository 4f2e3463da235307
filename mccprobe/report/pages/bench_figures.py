"""A measurement drawn: every reading in its order, how the readings are spread, and the ratio with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mccprobe.report.pages.blocks import Cell, Figure, Kind, Size, Table, number
from mccprobe.report.pages.theme import LIGHT

_SIDES = (("accent", "o"), ("other", "D"))  # colour and shape of the first and the second side
_NAME = 44  # characters of a name in a legend
READINGS_IN_TABLE = 100


def readings_figure(found: Mapping[str, Any]) -> Figure:
    """Each reading by its round beside the share of readings up to a time; medians and two states as lines."""
    sides = found["sides"]
    medians = "; ".join(f"{one['name']}: median {one['summary_ms']['median']:.4g} ms" for one in sides)
    states = [one["name"] for one in sides if one["two_states"]]
    told = f"; two states of the machine in {', '.join(states)}" if states else ""
    return Figure(
        "readings",
        "Every reading, and how they are spread",
        f"{found['rounds']} rounds. {medians}{told}.",
        Size((912, 300), (350, 520)),
        lambda canvas, narrow: _readings(canvas, sides, narrow=narrow),
        _table(sides),
    )


def _table(sides: Sequence[Mapping[str, Any]]) -> Table:
    count = max(len(one["samples_ms"]) for one in sides)
    rows = tuple(
        (Cell(str(at + 1), Kind.NUMBER), *(number(one["samples_ms"][at], digits=".4g") for one in sides))
        for at in range(min(count, READINGS_IN_TABLE))
    )
    note = f"{count - len(rows):,} more are in the document of --json." if count > len(rows) else ""
    return Table("Readings in ms", ("round", *(one["name"] for one in sides)), rows, note)


def _readings(canvas: Any, sides: Sequence[Mapping[str, Any]], *, narrow: bool) -> None:
    if narrow:
        by_round, spread = canvas.subplots(2, 1)
    else:
        by_round, spread = canvas.subplots(1, 2, width_ratios=(3, 2))
    for side, (colour, shape) in zip(sides, _SIDES, strict=False):
        samples, name = side["samples_ms"], _short(side["name"])
        ordered = sorted(samples)
        shares = [(at + 1) / len(ordered) for at in range(len(ordered))]
        by_round.plot(
            range(1, len(samples) + 1),
            samples,
            shape,
            markersize=5,
            color=LIGHT[colour],
            label=name,
            markeredgecolor=LIGHT["page"],
            markeredgewidth=0.5,
        )
        spread.step(ordered, shares, where="post", color=LIGHT[colour])
        spread.plot(
            ordered[:: max(1, len(ordered) // 40)],
            shares[:: max(1, len(ordered) // 40)],
            shape,
            markersize=4,
            color=LIGHT[colour],
        )
        by_round.axhline(side["summary_ms"]["median"], color=LIGHT[colour], linewidth=0.9)
        for state in ("fast_ms", "slow_ms") if side["two_states"] else ():
            by_round.axhline(side["two_states"][state], color=LIGHT[colour], linewidth=0.9, linestyle=(0, (4, 3)))
    by_round.set(xlabel="round", ylabel="ms")
    by_round.set_ylim(bottom=0)
    by_round.xaxis.get_major_locator().set_params(integer=True)
    by_round.grid(axis="y")
    spread.set(xlabel="ms", ylabel="share of readings", ylim=(0, 1.02))
    spread.set_xlim(left=0)
    spread.grid()
    canvas.legend(loc="outside upper left", ncols=1 if narrow else 2, handletextpad=0.3)


def spread_figure(found: Mapping[str, Any]) -> Figure:
    """Box plots of the summaries: p25 to p75, the median, best and worst."""
    sides = found["sides"]
    told = "; ".join(
        f"{one['name']}: p25 {one['summary_ms']['p25']:.4g}, median {one['summary_ms']['median']:.4g}, p75 "
        f"{one['summary_ms']['p75']:.4g} ms"
        for one in sides
    )
    height = 70 + 44 * len(sides)
    return Figure(
        "boxes",
        "Best, quarter, median, three quarters, worst",
        f"{told}.",
        Size((912, height), (350, height + 30)),
        lambda canvas, narrow: _boxes(canvas, sides, narrow=narrow),
    )


def _boxes(canvas: Any, sides: Sequence[Mapping[str, Any]], *, narrow: bool) -> None:
    axes = canvas.subplots()
    for at, (side, (colour, _)) in enumerate(zip(sides, _SIDES, strict=False)):
        one = side["summary_ms"]
        box = {"med": one["median"], "q1": one["p25"], "q3": one["p75"], "whislo": one["best"], "whishi": one["worst"]}
        lines = {"color": LIGHT[colour], "linewidth": 1.2}
        axes.bxp(
            [box],
            positions=[at],
            orientation="horizontal",
            showfliers=False,
            widths=0.5,
            boxprops=lines,
            whiskerprops=lines,
            capprops=lines,
            medianprops={**lines, "linewidth": 2.4},
        )
    axes.set_yticks(range(len(sides)), [_short(one["name"], 18 if narrow else _NAME) for one in sides])
    axes.set_ylim(len(sides) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel("ms")
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def ratio_figure(found: Mapping[str, Any]) -> Figure | None:
    """The ratio of the second side's time to the first's; None for one side."""
    ratio = found["ratio"]
    if ratio is None:
        return None
    interval = "no interval"
    if ratio["low"] is not None:
        interval = f"{100 * ratio['confidence']:g} % interval {ratio['low']:.4f} to {ratio['high']:.4f}"
    return Figure(
        "ratio",
        "Time of the second over time of the first",
        f"Ratio {ratio['estimate']:.4f}, {interval}.",
        Size((912, 110), (350, 120)),
        lambda canvas, narrow: _ratio(canvas, ratio),
    )


def _ratio(canvas: Any, ratio: Mapping[str, Any]) -> None:
    axes = canvas.subplots()
    ends = [ratio["estimate"], 1.0]
    if ratio["low"] is not None:
        ends += [ratio["low"], ratio["high"]]
        axes.plot([ratio["low"], ratio["high"]], [0, 0], color=LIGHT["accent"], linewidth=3, solid_capstyle="butt")
        for end in (ratio["low"], ratio["high"]):
            axes.plot([end, end], [-0.15, 0.15], color=LIGHT["accent"], linewidth=1.5)
    axes.plot(ratio["estimate"], 0, "o", color=LIGHT["accent"], markersize=9, markeredgecolor=LIGHT["page"])
    axes.axvline(1.0, color=LIGHT["ink"], linewidth=1)
    room = max(0.02, 0.35 * (max(ends) - min(ends)))
    axes.set(ylim=(-0.6, 0.6), xlim=(min(ends) - room, max(ends) + room), xlabel="ratio; 1: no difference")
    axes.text(axes.get_xlim()[0], 0.5, "second is faster", ha="left", va="center", color=LIGHT["soft"])
    axes.text(axes.get_xlim()[1], 0.5, "second is slower", ha="right", va="center", color=LIGHT["soft"])
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _short(name: str, most: int = _NAME) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
