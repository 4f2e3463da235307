"""The page of one bench, from its document (reports/bench.schema.json). Pure: document in, `Page` out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mccprobe.report.pages.bench_figures import ratio_figure, readings_figure, spread_figure
from mccprobe.report.pages.blocks import (
    NONE,
    Block,
    Cell,
    Details,
    Facts,
    Figure,
    Notes,
    Page,
    Paragraph,
    Section,
    Table,
    Tone,
    number,
    sections,
    shown,
    verdict,
)

SIM_MARK = "sim: emulation time"
SIM_HEADLINE = "SIMULATED (sim)"
SIM_WARNING = "All times are emulation time of the stand-in, never kernel performance."
CASES_IN_TABLE = 200


def bench_page(result: Mapping[str, Any]) -> Page:
    """Raises KeyError, TypeError or ValueError for what is no such document."""
    result = shown(result)
    found = result.get("measurement")
    refused = result.get("refused") or (found or {}).get("refused")
    simulated = bool(result.get("simulated"))
    mark = SIM_MARK if simulated else ""
    measured = found if found is not None and not refused else None
    return Page(
        command="mccprobe bench",
        headline=f"Not timed: {refused}" if measured is None else _headline(measured),
        tone=Tone.NONE if measured is None else _tone(measured),
        lead="" if measured is None else _lead(measured),
        facts=Facts(tuple(_facts(result, measured))),
        sections=sections(
            Section("times", "Times", tuple(_times(measured)), mark),
            Section("ratio", "Against each other", tuple(_ratio(measured)), mark),
            Section("notes", "To know before use", _notes(measured), mark),
            Section("gate", "The gate", tuple(_gates(result.get("gates") or [])), "sim" if simulated else ""),
            Section("health", "Health of the device", tuple(_health(result.get("health"))), mark),
        ),
        tool_version=result["tool_version"],
        mark=SIM_HEADLINE if simulated else "",
        warning=SIM_WARNING if simulated else "",
    )


def _headline(found: Mapping[str, Any]) -> str:
    first, *others = found["sides"]
    if not others or found["ratio"] is None:
        return f"{first['name']}: median {first['summary_ms']['median']:.4g} ms"
    second = others[0]["name"].removeprefix("against: ")
    said = {"faster": "is faster than", "slower": "is slower than"}.get(found["ratio"]["shown"])
    if said is None:
        return f"No difference is shown between {first['name']} and {second}"
    percent = 100 * (found["ratio"]["estimate"] - 1)
    return f"{second} {said} {first['name']}: {percent:+.1f}\u00a0% time"


def _tone(found: Mapping[str, Any]) -> Tone:
    return Tone.ANSWER if found["ratio"] is None or found["ratio"]["shown"] != "not shown" else Tone.NONE


def _lead(found: Mapping[str, Any]) -> str:
    text = f"{found['label']}; {found['rounds']} rounds, {found['warmups']} warm-ups dropped"
    return text[:1].upper() + text[1:] + ("." if found["kernel_performance"] else "; no figure of kernel performance.")


def _facts(result: Mapping[str, Any], found: Mapping[str, Any] | None) -> list[tuple[str, Cell]]:
    pairs = []
    if result.get("toolchain"):
        pairs.append(("Toolchain", Cell(result["toolchain"])))
    case = result.get("case")
    if case:
        pairs.append(("Case", Cell(f"{case['name']}: {case['m']} x {case['n']} x {case['k']}")))
    for side in found["sides"] if found else ():
        pairs.append((f"Median of {side['name']}", Cell(f"{side['summary_ms']['median']:.4g} ms")))
    return pairs


def _times(found: Mapping[str, Any] | None) -> list[Block]:
    if found is None:
        return []
    rows = tuple(_row(side["name"], side["summary_ms"], ".4g", side["two_states"]) for side in found["sides"])
    head = ("build", "median", "p25", "p75", "best", "worst", "mean", "CV %", "two states")
    blocks: list[Block] = [Table("In ms", head, rows), readings_figure(found), spread_figure(found)]
    rates = [(side["name"], side["tflops"]) for side in found["sides"] if side["tflops"]]
    if rates:
        told = "Of a rate the largest is the best."
        table = tuple(
            _row(name, {**one, "best": one["worst"], "worst": one["best"]}, ".1f", None)[:-1] for name, one in rates
        )
        blocks.append(Table("In TFLOPS", head[:-1], table, told))
    return blocks


def _row(name: str, one: Mapping[str, Any], digits: str, states: Mapping[str, Any] | None) -> tuple[Cell, ...]:
    said = NONE
    if states:
        how = "alternating" if states["alternating"] else "one after the other"
        said = (
            f"{states['fast_ms']:.4g} ms ({states['fast_count']} runs), {states['slow_ms']:.4g} ms "
            f"({states['slow_count']} runs), {how}"
        )
    spread = None if one["cv"] is None else 100 * one["cv"]
    values = (number(one[key], digits=digits) for key in ("median", "p25", "p75", "best", "worst", "mean"))
    return (Cell(name), *values, number(spread, digits=".1f"), Cell(said))


def _ratio(found: Mapping[str, Any] | None) -> list[Block]:
    figure: Figure | None = ratio_figure(found) if found is not None else None
    if found is None or figure is None:
        return []
    ratio = found["ratio"]
    interval = "too few pairs for one"
    if ratio["low"] is not None:
        interval = f"{ratio['low']:.4f} to {ratio['high']:.4f} at {100 * ratio['confidence']:g} %"
    facts = Facts(
        (
            ("Ratio of times", Cell(f"{ratio['estimate']:.4f}")),
            ("Interval", Cell(interval)),
            ("Pairs", Cell(f"{ratio['pairs']}")),
            ("Difference", Cell({"not shown": "none is shown"}.get(ratio["shown"], f"the second is {ratio['shown']}"))),
        )
    )
    return [facts, figure]


def _notes(found: Mapping[str, Any] | None) -> tuple[Block, ...]:
    return (Notes(tuple(found["notes"]), warning=True),) if found is not None and found["notes"] else ()


def _gates(gates: list[Mapping[str, Any]]) -> list[Block]:
    blocks: list[Block] = []
    for at, gate in enumerate(gates):
        flags = " ".join(" ".join(one) if isinstance(one, list) else str(one) for one in gate["flags"])
        name = f"{gate['kernel']} {flags}".strip()
        rows = tuple(
            (
                Cell(f"{one['name']}, seed {one['seed']}"),
                verdict(one["verdict"]),
                number(one["max_err"], digits=".4g"),
                number(one["tolerance"], digits=".4g"),
                Cell(one["reason"]),
            )
            for one in gate["cases"][:CASES_IN_TABLE]
        )
        left = len(gate["cases"]) - len(rows)
        note = f"{left:,} more cases are in the document of --json." if left > 0 else ""
        said = "passed" if gate["passed"] else "NOT PASSED"
        verdicts = Counter(one["verdict"] for one in gate["cases"])
        counts = ", ".join(f"{count} {word}" for word, count in sorted(verdicts.items()))
        blocks.append(Paragraph(f"{name}: {said} ({gate['verdict']}); cases: {counts or 'none'}."))
        table = Table(
            f"Cases of gate {at + 1}, {name}", ("case", "verdict", "max_err", "tolerance", "what it said"), rows, note
        )
        blocks.append(Details(f"All cases of gate {at + 1}", (table,)))
        if gate["reasons"]:
            blocks.append(Notes(tuple(gate["reasons"]), warning=True))
    return blocks


def _health(health: Mapping[str, Any] | None) -> list[Block]:
    if health is None:
        return []
    value = Cell("not known") if health["value"] is None else Cell(f"{health['value']:.1f} {health['unit']}")
    blocks: list[Block] = [Facts((("Measured", value), ("Told", Cell(health["reason"]))))]
    if health["details"]:
        blocks.append(Notes(tuple(health["details"])))
    return blocks
