"""A search's report as text. Pure: record in, text out. Whatever a stand-in gave says so on its line."""

from __future__ import annotations

import shlex

from mccprobe.tuning.flag_search.report import Best, SearchReport, shown_share
from mccprobe.tuning.flag_search.trials import Trial

SHOWN_TRIALS = 15


def render_search(report: SearchReport) -> str:
    """Headline, winner with its parts, wrong candidates with their commands, the best trials, counts."""
    mark = f"  [{report.heading}]" if report.heading else ""
    unit = report.objective.unit
    lines = [_headline(report), ""]
    noise = "noise-free: no interval" if report.objective.exact else "with noise: medians, intervals"
    lines += [f"  objective {report.objective.name}: {report.objective.label}; {noise}"]
    lines += [f"  without flags: {_value(report.baseline, unit)}{mark}"]
    if report.winner is not None:
        lines += ["", f"  winner: {_value(report.winner.trial, unit)}, {shown_share(report.winner.share)}{mark}"]
        lines += _parts(report.winner, mark)
    if report.lowest is not None:
        told = "COMPILED ONLY: never run, so right or wrong is unknown; no winner"
        figure = f"{_value(report.lowest.trial, unit)}, {shown_share(report.lowest.share)}"
        lines += ["", f"  lowest: {figure}; {told}{mark}"]
        lines += _parts(report.lowest, mark)
    if report.findings:
        lines += ["", "  wrong candidates (findings, never winners):"]
        for one in report.findings:
            lines.append(f"    {' '.join(one.flags)}: {one.trial.reason}{mark}")
            lines += [f"      told: {text}" for text in one.told]
            lines.append(f"      {shlex.join(one.why)}")
    if report.refused:
        lines += ["", "  not taken by this compiler, left out:"]
        lines += [f"    {flag}: {said}" for flag, said in report.refused.items()]
    lines += ["", f"  trials ({len(report.trials)}), the best first:"]
    counted = sorted((one for one in report.trials if one.counts), key=lambda one: (one.value or 0.0, one.ordinal))
    others = [one for one in report.trials if not one.counts]
    for trial in [*counted, *others][:SHOWN_TRIALS]:
        lines.append(f"    {_trial(report, trial, unit)}{mark}")
    if len(report.trials) > SHOWN_TRIALS:
        lines.append(f"    and {len(report.trials) - SHOWN_TRIALS} more")
    counters = report.counters
    lines += [
        "",
        f"  {counters.builds} builds, {counters.judged} distinct objects judged, "
        f"{counters.measured} measured, {counters.replayed} trials from the journal",
    ]
    lines += [f"  note: {note}" for note in report.notes]
    if report.stopped:
        lines.append(f"  STOPPED: {report.stopped}")
    lines += [f"  {name}: {path}" for name, path in report.files.items()]
    return "\n".join(lines) + "\n"


def _headline(report: SearchReport) -> str:
    head = f"{report.heading}: " if report.heading else ""
    said = {
        "found": "flags found that make it better and keep it right",
        "nothing-better": "nothing better found",
        "compiled-only": "compared by their objects alone (compiled only)",
        "budget": "stopped by the budget",
    }[report.status]
    return f"{head}{report.subject}: {said} ({report.strategy}, {report.toolchain})"


def _value(trial: Trial, unit: str) -> str:
    return f"not measured ({trial.reason})" if trial.value is None else f"{trial.value:,.10g} {unit}"


def _parts(best: Best, mark: str) -> list[str]:
    lines = []
    for part in best.parts:
        worth = part.needed if part.share is None else shown_share(part.share)
        dropped = "dropped, " if part.dropped else ""
        lines.append(f"    {dropped}{part.text}: {worth}{mark}")
    return lines


def _trial(report: SearchReport, trial: Trial, unit: str) -> str:
    flags = " ".join(report.space.texts(trial.point)) or "(as it is)"
    same = f" (same object as trial {trial.same_as})" if trial.same_as is not None else ""
    if trial.counts:
        return f"{_value(trial, unit)}  {trial.state}  {flags}{same}"
    return f"{trial.state}  {flags}: {trial.reason}{same}"
