"""A search as a picture: every trial in its order, and what each flag of the best is worth. Extra: `plots`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mccprobe.compilation.store import disk_errors
from mccprobe.errors import UsageError
from mccprobe.flag_search.report import SearchReport
from mccprobe.flag_search.trials import WRONG

SIZE_INCHES = (9.0, 4.5)
FORMATS = (".svg", ".png")


def plot_search(report: SearchReport, path: Path) -> Path:
    """Write an SVG or PNG. Raises UsageError without matplotlib or for another suffix."""
    if path.suffix not in FORMATS:
        raise UsageError(f"--plot {path}: no picture format that is known", hint=" or ".join(FORMATS))
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("--plot needs the package matplotlib", hint="pip install 'mccprobe[plots]'") from error
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    best = report.winner or report.lowest
    left, *right = figure.subplots(1, 2 if best else 1, squeeze=False)[0]
    _trials(left, report)
    if best and right:
        _parts(right[0], report)
    title = f"{report.subject}, {report.strategy}, {report.toolchain}"
    figure.suptitle(f"{report.heading}: {title}" if report.heading else title)
    with disk_errors(path):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    return path


def _trials(axes: Any, report: SearchReport) -> None:
    counted = [(trial.ordinal, trial.value) for trial in report.trials if trial.counts]
    axes.plot([at for at, _ in counted], [value for _, value in counted], "o", markersize=3, label="right"
              if report.lowest is None else "compiled only")  # fmt: skip
    best: list[float] = []
    for _, value in counted:
        best.append(min([*best[-1:], value or 0.0]))
    axes.step([at for at, _ in counted], best, where="post", label="best so far")
    wrong = [trial.ordinal for trial in report.trials if trial.state == WRONG]
    if wrong:
        top = max((value or 0.0 for _, value in counted), default=0.0)
        axes.plot(wrong, [top] * len(wrong), "x", label="wrong")
    axes.set(xlabel="trial", ylabel=f"{report.objective.name} ({report.objective.unit})")
    axes.legend(fontsize="small")


def _parts(axes: Any, report: SearchReport) -> None:
    best = report.winner or report.lowest
    assert best is not None
    shown = [(part.text, part.share) for part in best.parts if part.share is not None and part.share.ratio is not None]
    for at, (_, share) in enumerate(shown):
        assert share is not None and share.ratio is not None
        axes.barh(at, 100 * (share.ratio - 1), color="tab:green" if share.better else "tab:grey")
        if share.interval is not None:
            axes.plot([100 * (share.interval.low - 1), 100 * (share.interval.high - 1)], [at, at], color="black")
    axes.set_yticks(range(len(shown)), [text for text, _ in shown], fontsize="x-small")
    axes.axvline(0, color="black", linewidth=0.5)
    axes.set(xlabel=f"{report.objective.name} with it, percent" + (" (noise-free)" if best.share.exact else ""))
