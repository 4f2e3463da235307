"""The page of one flag search, from its document (reports/flags-search.schema.json). Pure: document in, `Page` out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from mccprobe.report.pages.blocks import (
    NONE,
    Block,
    Cell,
    Commands,
    Details,
    Facts,
    Figure,
    Kind,
    Notes,
    Page,
    Paragraph,
    Section,
    Size,
    Table,
    Tone,
    code,
    digest,
    number,
    sections,
    shown,
    verdict,
)
from mccprobe.tuning.flag_search.plot import draw_parts, draw_trials
from mccprobe.tuning.flag_search.report import EXITS
from mccprobe.tuning.flag_search.trials import COMPILED, RIGHT

TRIALS_IN_TABLE = 400
_LABEL = 20  # characters of a flag beside its bar on a phone
SIM_WARNING = "An x86-64 emulation with faults that mccprobe planted: nothing here is a figure of a device."


def search_page(result: Mapping[str, Any]) -> Page:
    """Raises KeyError, TypeError or ValueError for what is no such document."""
    result = shown(result)
    mark = result["heading"] or ""
    best = result["winner"] or result["lowest"]
    warning = SIM_WARNING if result["simulated"] else "Compiled for another GPU and never run." if mark else ""
    return Page(
        command="mccprobe flags search",
        headline=_headline(result),
        tone=Tone.ANSWER if result["winner"] else Tone.CAVEAT if result["lowest"] else Tone.NONE,
        lead=_lead(result),
        facts=Facts(
            (
                ("Subject", code(result["subject"])),
                ("Toolchain", Cell(result["toolchain"])),
                ("Strategy", Cell(result["strategy"])),
                ("Without flags", _value(result["baseline"], result)),
            )
        ),
        sections=sections(
            Section(
                "best", "The winner" if result["winner"] else "The lowest, never run", tuple(_best(result, best)), mark
            ),
            Section("findings", "Wrong candidates", tuple(_findings(result)), mark),
            Section("trials", "Every trial", tuple(_trials(result)), mark),
            Section("space", "What was searched", tuple(_space(result))),
            Section("notes", "Notes", (Notes(tuple(result["notes"])),) if result["notes"] else (), mark),
            Section("run", "The run", tuple(_run(result)), mark),
        ),
        tool_version=result["tool_version"],
        mark=mark,
        warning=warning,
    )


def exit_code(result: Mapping[str, Any]) -> int:
    """Of the command that gave this document."""
    return int(EXITS[result["status"]])


def _headline(result: Mapping[str, Any]) -> str:
    subject, best = result["subject"], result["winner"] or result["lowest"]
    if result["stopped"] and best is None:
        return f"Stopped by the budget: nothing better found for {subject} so far"
    if best is None:
        return f"Nothing better found for {subject}"
    flags = " ".join(best["flags"]) or "no flag"
    worth = f"{flags}: {_percent(best['share'])} {result['objective']['name']} of {subject}"
    if result["winner"]:
        return f"{worth}, and right"
    return f"{worth}, compiled only: never run, so no winner"


def _lead(result: Mapping[str, Any]) -> str:
    objective = result["objective"]
    noise = "noise-free: no interval" if objective["exact"] else "with noise: medians and intervals"
    text = f"{objective['label']}; {noise}."
    stopped = f" Stopped: {result['stopped']}." if result["stopped"] else ""
    return text[:1].upper() + text[1:] + stopped


def _percent(share: Mapping[str, Any]) -> str:
    return "unknown" if share["ratio"] is None else f"{100 * (share['ratio'] - 1):+.2f}\u00a0%"


def _interval(share: Mapping[str, Any]) -> str:
    if share["interval"] is None:
        return str(share["no_interval"] or NONE)
    low, high = (100 * (end - 1) for end in share["interval"])
    return f"{low:+.2f} to {high:+.2f} % at {share['confidence']:.0%}"


def _value(trial: Mapping[str, Any], result: Mapping[str, Any]) -> Cell:
    if trial["value"] is None:
        return Cell(f"not measured ({trial['reason']})")
    return Cell(f"{trial['value']:,.10g} {result['objective']['unit']}")


def _best(result: Mapping[str, Any], best: Mapping[str, Any] | None) -> list[Block]:
    if best is None:
        return []
    share = best["share"]
    pairs = (
        ("Flags", code(" ".join(best["flags"]) or "none")),
        ("Value", Cell(f"{best['value']:,.10g} {result['objective']['unit']}")),
        ("To the build without flags", Cell(_percent(share))),
        ("Interval", Cell(_interval(share))),
        ("Built and judged once more", Cell("yes" if best["confirmed"] else "no")),
    )
    blocks: list[Block] = [Facts(pairs)]
    parts = best["parts"]
    drawn = [part for part in parts if part["share"] is not None and part["share"]["ratio"] is not None]
    if drawn:
        told = "; ".join(f"{part['flag']} {_percent(part['share'])}" for part in drawn)
        height = 34 * len(drawn) + 56
        blocks.append(
            Figure(
                "parts",
                "What each flag is worth: with it to without it",
                f"{told}.",
                Size((912, height), (350, height)),
                lambda canvas, narrow: _draw_parts(canvas, result, narrow=narrow),
            )
        )
    if parts:
        rows = tuple(
            (
                code(part["flag"]),
                Cell(_percent(part["share"]) if part["share"] else NONE, Kind.NUMBER),
                Cell(_interval(part["share"]) if part["share"] else NONE),
                Cell(_kept(part)),
            )
            for part in parts
        )
        blocks.append(Table("Each flag of the best", ("flag", "worth", "interval", "kept"), rows))
    if result["files"].get("set"):
        blocks.append(Commands("Put it in front of a build", (f"mccprobe wrapper install --set {_set(result)}",)))
    return blocks


def _set(result: Mapping[str, Any]) -> str:
    return shlex.quote(result["files"]["set"])


def _kept(part: Mapping[str, Any]) -> str:
    if part["dropped"]:
        return "dropped: not shown to help"
    return f"needed: {part['needed']}" if part["needed"] else "yes"


def _draw_parts(canvas: Any, result: Mapping[str, Any], *, narrow: bool) -> None:
    axes = canvas.subplots()
    draw_parts(axes, result)
    if narrow:
        labels = [label.get_text() for label in axes.get_yticklabels()]
        short = [text if len(text) <= _LABEL else "…" + text[1 - _LABEL :] for text in labels]
        axes.set_yticks(axes.get_yticks(), short)
    axes.tick_params(axis="y", length=0, labelsize=11)
    axes.grid(axis="x")


def _findings(result: Mapping[str, Any]) -> list[Block]:
    found = result["findings"]
    if not found:
        return []
    rows = tuple(
        (
            code(" ".join(one["flags"]), "; ".join(one["told"])),
            Cell(one["reason"]),
            number(one["max_err"], digits=".6g"),
            number(one["ordinal"]),
        )
        for one in found
    )
    first = ("# SIMULATED: sim, not mcc",) if result["simulated"] else ()
    return [
        Paragraph("These make the result wrong. They are findings, never winners."),
        Table("Flags that make it wrong", ("flags", "what it said", "max_err", "trial"), rows),
        Commands("Follow them", (*first, *(shlex.join(one["why"]) for one in found))),
    ]


def _trials(result: Mapping[str, Any]) -> list[Block]:
    trials = result["trials"]
    blocks: list[Block] = []
    right = [one for one in trials if one["state"] in (RIGHT, COMPILED) and one["value"] is not None]
    if right:
        low = min(right, key=lambda one: (one["value"], one["ordinal"]))
        told = f"{len(trials)} trials; the lowest value is {low['value']:,.10g}, at trial {low['ordinal']}."
        blocks.append(
            Figure(
                "trials",
                "Value of each trial in its order",
                told,
                Size((912, 280), (350, 280)),
                lambda canvas, narrow: _draw_trials(canvas, result),
            )
        )
    others = [one for one in trials if one not in right]
    ordered = [*sorted(right, key=lambda one: (one["value"], one["ordinal"])), *others]
    rows = tuple(
        (
            number(one["ordinal"]),
            code(" ".join(one["flags"])) if one["flags"] else Cell("as it is"),
            verdict(one["verdict"]) if one["state"] != COMPILED else Cell("compiled only"),
            number(one["value"]),
            digest(one["object"]),
            Cell(_said(one)),
        )
        for one in ordered[:TRIALS_IN_TABLE]
    )
    left = len(trials) - len(rows)
    note = f"{left:,} more trials are in result.json." if left else ""
    head = ("trial", "flags", "verdict", result["objective"]["unit"], "object", "what it said")
    blocks.append(Table("Trials, the best first", head, rows, note))
    return blocks


def _said(trial: Mapping[str, Any]) -> str:
    if trial["same_as"] is not None:
        return f"the object of trial {trial['same_as']}"
    return f"{trial['state']}: {trial['reason']}" if trial["reason"] else str(trial["state"])


def _draw_trials(canvas: Any, result: Mapping[str, Any]) -> None:
    axes = canvas.subplots()
    draw_trials(axes, result)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.set_major_formatter("{x:,.10g}")
    axes.grid(axis="y")


def _space(result: Mapping[str, Any]) -> list[Block]:
    space = result["space"]
    rows = tuple(
        (Cell(one["name"]), Cell(one["group"] or NONE), code("  ".join(one["choices"]))) for one in space["dimensions"]
    )
    blocks: list[Block] = [Paragraph(f"{space['source']}: {space['size']:,} points.")]
    if rows:
        blocks.append(Details("What may change", (Table("Dimensions", ("name", "group", "choices"), rows),)))
    if result["refused"]:
        refused = tuple((code(flag), Cell(said)) for flag, said in result["refused"].items())
        blocks.append(Table("Not taken by this compiler, left out", ("flag", "what it said"), refused))
    return blocks


def _run(result: Mapping[str, Any]) -> list[Block]:
    counters = result["counters"]
    pairs = [
        ("Builds", Cell(f"{counters['builds']:,}")),
        ("Distinct objects judged", Cell(f"{counters['judged']:,}")),
        ("Measured", Cell(f"{counters['measured']:,}")),
        ("From the journal", Cell(f"{counters['replayed']:,} trials")),
        ("Run directory", code(result["run_directory"])),
        *((name, code(path)) for name, path in result["files"].items()),
    ]
    return [Facts(tuple(pairs))]
