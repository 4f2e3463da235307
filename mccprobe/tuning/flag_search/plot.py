"""A search as a picture: every trial in its order, and what each flag of the best is worth. Extra: `plots`.

Drawn from the document of `--json`, so that a page draws the same from a result that lies on disk.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mccprobe.base.console import visible
from mccprobe.base.errors import UsageError
from mccprobe.base.extras import install_command
from mccprobe.base.files import replace_file
from mccprobe.build.store import disk_errors
from mccprobe.tuning.flag_search.report import SearchReport
from mccprobe.tuning.flag_search.trials import COMPILED, RIGHT, WRONG

SIZE_INCHES = (9.0, 4.5)
FORMATS = (".svg", ".png")
COUNTED, BEST, WRONG_COLOUR = "tab:blue", "tab:orange", "tab:red"
BETTER, NOT_BETTER, LINES = "tab:green", "tab:grey", "black"


def plot_search(report: SearchReport, path: Path) -> Path:
    """Write an SVG or PNG. Raises UsageError without matplotlib or for another suffix."""
    if path.suffix not in FORMATS:
        raise UsageError(f"--plot {path}: no picture format that is known", hint=" or ".join(FORMATS))
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("--plot needs the package matplotlib", hint=install_command("plots")) from error
    result = report.to_dict()
    best = result["winner"] or result["lowest"]
    title = f"{report.subject}, {report.strategy}, {report.toolchain}"
    drawn = io.BytesIO()
    with rc_context({"text.parse_math": False}):  # names are names, also with a dollar in them
        figure = Figure(figsize=SIZE_INCHES, layout="constrained")
        FigureCanvasAgg(figure)
        left, *right = figure.subplots(1, 2 if best else 1, squeeze=False)[0]
        draw_trials(left, result)
        if best:
            draw_parts(right[0], result)
        figure.suptitle(visible(f"{report.heading}: {title}" if report.heading else title))
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(drawn, format=path.suffix[1:], metadata=metadata)
    with disk_errors(path):
        return replace_file(path, drawn.getvalue())


def draw_trials(axes: Any, result: Mapping[str, Any]) -> None:
    """The value of each trial in its order, the best so far, and which were wrong."""
    counted = [
        (trial["ordinal"], trial["value"])
        for trial in result["trials"]
        if trial["state"] in (RIGHT, COMPILED) and trial["value"] is not None
    ]
    label = "compiled only" if result["lowest"] else "right"
    axes.plot([at for at, _ in counted], [value for _, value in counted], "o", markersize=4, color=COUNTED, label=label)
    best: list[float] = []
    for _, value in counted:
        best.append(min([*best[-1:], value]))
    axes.step([at for at, _ in counted], best, where="post", color=BEST, label="best so far")
    wrong = [trial["ordinal"] for trial in result["trials"] if trial["state"] == WRONG]
    if wrong:
        top = max((value for _, value in counted), default=0.0)
        axes.plot(wrong, [top] * len(wrong), "x", color=WRONG_COLOUR, label="wrong: no value")
    name, unit = result["objective"]["name"], result["objective"]["unit"]
    axes.set(xlabel="trial", ylabel=name if name == unit else f"{name} ({unit})")
    axes.legend(fontsize="small")


def draw_parts(axes: Any, result: Mapping[str, Any]) -> None:
    """What each flag of the best is worth, with its interval where there is noise; without a share none is drawn."""
    best = result["winner"] or result["lowest"]
    shares = [(part["flag"], part["share"]) for part in best["parts"] if part["share"] is not None]
    shown = [(flag, share) for flag, share in shares if share["ratio"] is not None]
    for at, (_, share) in enumerate(shown):
        axes.barh(at, 100 * (share["ratio"] - 1), height=0.6, color=BETTER if _better(share) else NOT_BETTER)
        if share["interval"] is not None:
            low, high = (100 * (end - 1) for end in share["interval"])
            axes.plot([low, high], [at, at], color=LINES)
            axes.plot([low, high], [at, at], "|", color=LINES)
    axes.set_yticks(range(len(shown)), [visible(flag) for flag, _ in shown], fontsize="x-small")
    axes.axvline(0, color=LINES, linewidth=0.5)
    exact = " (noise-free)" if best["share"]["exact"] else ""
    axes.set(xlabel=f"{result['objective']['name']} with it, percent{exact}")


def _better(share: Mapping[str, Any]) -> bool:
    """As `Share.better`: shown to be below 1, by an exact count or by an interval."""
    if share["exact"]:
        return bool(share["ratio"] < 1.0)
    return share["interval"] is not None and bool(share["interval"][1] < 1.0)
