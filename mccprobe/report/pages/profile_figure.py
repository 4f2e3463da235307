"""The verdict profile: what each limit along the pass axis gave, and where it changes.

Level, shape and colour tell a verdict. Only limits that were asked are drawn; a long profile is drawn by columns, and
a column has a mark at the level of every verdict that occurs in it, so no island is lost by rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mccprobe.report.pages.blocks import Cell, Figure, Kind, Size, Table, verdict
from mccprobe.report.pages.theme import LIGHT, VERDICT_MARKS

COLUMNS = 720  # of a long profile: about one a pixel
MARKS = 120  # single limits up to this many are drawn one by one
AROUND = 10  # executions on both sides of the edge in the close view
LABELS_WIDE, LABELS_NARROW = 4, 2
_LABEL_HEIGHTS = (0.84, 0.68, 0.32, 0.16)  # between the levels, so that a name covers no mark
SPANS_IN_TABLE = 200
_LEVELS = {"GOOD": 0.0, "UNRESOLVED": 0.5, "BAD": 1.0}
_TITLE = 34  # characters of a pass name in the figure


def profile_figure(result: Mapping[str, Any], *, key: str = "profile") -> Figure | None:
    """From a document of bisect; None where it holds no limit that was asked."""
    total, spans, edges = result.get("total"), result.get("tested") or [], result["edges"]
    if not total or not spans:
        return None
    whole = result["monotone"] is not None
    asked = sum(one["last"] - one["first"] + 1 for one in spans)
    told = "; ".join(_edge_text(edge) for edge in edges[:LABELS_WIDE]) or "no edge"
    said = "every limit was asked" if whole else f"{asked} of {total + 1:,} limits were asked"
    if len(edges) > LABELS_WIDE:
        told += f"; and {len(edges) - LABELS_WIDE} more edges"
    caption = f"Verdict by pass limit, 0 to {total:,}: {said}"
    if len(spans) > MARKS and total > COLUMNS:
        caption += f"; a column is {total / COLUMNS:,.0f} limits, with a mark for every verdict in it"
    height = 230
    return Figure(
        key,
        caption,
        f"{caption}. {told}.",
        Size((912, height), (350, 2 * height)),
        lambda canvas, narrow: _paint(canvas, result, narrow=narrow),
        _table(spans),
    )


def _edge_text(edge: Mapping[str, Any]) -> str:
    return f"{edge['from']} to {edge['to']} at {edge['execution']:,}, {edge['pass'] or 'a pass without a name'}"


def _table(spans: Sequence[Mapping[str, Any]]) -> Table | None:
    if not spans:
        return None
    rows = tuple((Cell(_range(one), Kind.NUMBER), verdict(one["verdict"])) for one in spans[:SPANS_IN_TABLE])
    left = len(spans) - len(rows)
    note = f"{left:,} more rows are in result.json under `tested`." if left else ""
    return Table("Limits that were asked", ("limits", "verdict"), rows, note)


def _range(one: Mapping[str, Any]) -> str:
    return f"{one['first']:,}" if one["first"] == one["last"] else f"{one['first']:,} to {one['last']:,}"


def _paint(canvas: Any, result: Mapping[str, Any], *, narrow: bool) -> None:
    total, edges, spans = result["total"], result["edges"], result.get("tested") or []
    culprit = result["culprit"]
    close = culprit is not None and total > 4 * AROUND
    if not close:
        whole, *views = [canvas.subplots()]
    elif narrow:
        whole, *views = canvas.subplots(2, 1)
    else:
        whole, *views = canvas.subplots(1, 2, width_ratios=(2, 1), sharey=True)
        canvas.get_layout_engine().set(wspace=0.05)
    _levels(whole)
    _spans(whole, spans, total)
    whole.set_xlim(-0.01 * total, 1.01 * total)
    whole.set_xlabel("pass executions that ran (limit)")
    whole.xaxis.get_major_locator().set_params(integer=True, nbins=4 if narrow else 6)
    whole.xaxis.set_major_formatter("{x:,.0f}")
    _edges(whole, edges, culprit, total, LABELS_NARROW if narrow else LABELS_WIDE)
    for axes in views:
        at = culprit["execution"]
        first, last = max(0, at - AROUND), min(total, at + AROUND)
        _levels(axes)
        for verdict_name, places in _limits(spans, first, last).items():
            _marks(axes, places, verdict_name, size=44)
        axes.axvline(at - 0.5, color=LIGHT["accent"], linewidth=1)
        axes.set_xlim(first - 0.7, last + 0.7)
        axes.set_xticks(sorted({first, at, last}), [f"{one:,}" for one in sorted({first, at, last})])
        axes.set_xlabel("around the edge")


def _levels(axes: Any) -> None:
    axes.set_yticks(list(_LEVELS.values()), list(_LEVELS))
    for level in _LEVELS.values():
        axes.axhline(level, color=LIGHT["line"], linewidth=0.8, zorder=0)
    axes.set_ylim(-0.3, 1.3)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _spans(axes: Any, spans: Sequence[Mapping[str, Any]], total: int) -> None:
    by_column = len(spans) > MARKS and total > COLUMNS
    width = total / COLUMNS if by_column else 1.0
    for name, level in _LEVELS.items():
        mine = [(one["first"], one["last"]) for one in spans if one["verdict"] == name]
        long = list(_columns(mine, width) if by_column else ((a - 0.5, b + 0.5) for a, b in mine if a != b))
        if long:
            axes.hlines(
                [level] * len(long),
                [start for start, _ in long],
                [end for _, end in long],
                color=LIGHT[name.lower()],
                linewidth=7,
                capstyle="butt",
            )
        if not by_column:
            _marks(axes, [first for first, last in mine if first == last], name, size=44)


def _columns(ranges: Iterable[tuple[int, int]], width: float) -> Iterable[tuple[float, float]]:
    """Ranges of limits rounded outwards to columns, touching ones together. ranges: ascending."""
    start = end = -1
    for first, last in ranges:
        low, high = int(first / width), int(last / width) + 1
        if low > end:
            if end > 0:
                yield start * width, end * width
            start = low
        end = max(end, high)
    if end > 0:
        yield start * width, end * width


def _limits(spans: Iterable[Mapping[str, Any]], first: int, last: int) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {name: [] for name in _LEVELS}
    for one in spans:
        found[one["verdict"]] += range(max(first, one["first"]), min(last, one["last"]) + 1)
    return found


def _marks(axes: Any, places: Sequence[int], name: str, *, size: float) -> None:
    if places:
        axes.scatter(
            places,
            [_LEVELS[name]] * len(places),
            s=size,
            marker=VERDICT_MARKS[name],
            color=LIGHT[name.lower()],
            linewidths=0.8,
            edgecolors=LIGHT["page"],
            clip_on=False,
            zorder=3,
        )


def _edges(
    axes: Any, edges: Sequence[Mapping[str, Any]], culprit: Mapping[str, Any] | None, total: int, most: int
) -> None:
    at_culprit = None if culprit is None else culprit["execution"]
    columns = {int(edge["execution"] / max(1.0, total / COLUMNS)): edge["execution"] for edge in edges}
    bottom, top = axes.get_ylim()
    axes.vlines([at - 0.5 for at in columns.values()], bottom, top, color=LIGHT["soft"], linewidth=0.8, zorder=1)
    if at_culprit is not None:
        axes.axvline(at_culprit - 0.5, color=LIGHT["accent"], linewidth=1.2, zorder=2)
    shown = edges if len(edges) <= most else [edge for edge in edges if edge["execution"] == at_culprit][:1]
    for at, edge in enumerate(shown):
        title = edge["pass"] or "no name"
        title = title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"
        right = edge["execution"] > total / 2
        axes.annotate(
            f"{edge['execution']:,}  {title}",
            (edge["execution"] - 0.5, _LABEL_HEIGHTS[at]),
            xytext=(-6 if right else 6, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            va="center",
            color=LIGHT["ink"],
            bbox={"facecolor": LIGHT["page"], "edgecolor": "none", "pad": 1.5},
            zorder=4,
        )
