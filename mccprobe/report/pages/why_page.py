"""The page of one run of `why`, from its document (reports/why.schema.json). Pure: document in, `Page` out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from mccprobe.base.console import number_of
from mccprobe.report.pages import bisect_page
from mccprobe.report.pages.blocks import (
    NONE,
    Block,
    Cell,
    Code,
    Commands,
    Details,
    Facts,
    Notes,
    Page,
    Paragraph,
    Section,
    Table,
    Tone,
    code,
    digest,
    number,
    sections,
    shown,
    verdict,
)
from mccprobe.report.why_record import ScreenOutcome

DIFF_LINES = 400  # of the pass's diff that stand in the page; the whole lies in the run directory
_SHOWS = {True: "shows it", False: "does not", None: "not known"}


def why_page(result: Mapping[str, Any]) -> Page:
    """Raises KeyError, TypeError or ValueError for what is no such document."""
    result = shown(result)
    simulated = bool(result["simulated"])
    mark = bisect_page.MARK if simulated else ""
    bisect = result["bisect"]
    return Page(
        command="mccprobe why",
        headline=_headline(result),
        tone=bisect_page.tone(bisect) if bisect and not result["stopped"] else Tone.NONE,
        lead=bisect_page.lead(bisect) if bisect else "",
        facts=Facts(tuple(_facts(result))),
        sections=sections(
            Section("flags", "Smallest set of flags", tuple(_flag_sets(result["flag_sets"])), mark),
            Section("screen", "Is the program to blame?", tuple(_screen(result)), mark),
            *(bisect_page.bisect_sections(bisect) if bisect else ()),
            Section("instruction", "First bad instruction", tuple(_where(result)), mark),
            Section("table", "Flag by pass by function", tuple(_table(result["table"])), mark),
            Section("workarounds", "Ways around", tuple(_workarounds(result)), mark),
            Section("builds", "Other builds", tuple(_builds(result["facts"])), mark),
            Section("signature", "Who else shows it", tuple(_signature(result["signature"])), mark),
            *bisect_page.said_sections(result, mark),
            Section("run", "The run", tuple(_run(result)), mark),
        ),
        tool_version=result["tool_version"],
        mark=bisect_page.SIM_HEADLINE if simulated else "",
        warning=bisect_page.SIM_WARNING if simulated else "",
    )


def exit_code(result: Mapping[str, Any]) -> int:
    """Of the command that gave this document."""
    return int(result["exit_code"])


def _headline(result: Mapping[str, Any]) -> str:
    if result["stopped"]:
        return f"Stopped: {result['stopped']}"
    return bisect_page.headline(result["bisect"]) if result["bisect"] else "Not bisected"


def _facts(result: Mapping[str, Any]) -> list[tuple[str, Cell]]:
    sets = result["minimal_flag_sets"]
    pairs = [
        ("Source", code(result["source"])),
        ("Smallest flag set", code("; ".join(" ".join(one) for one in sets)) if sets else Cell("none found")),
        ("Compiler", Cell(f"{result['compiler']['version']} [{result['toolchain']}]")),
    ]
    if result["culprit"]:
        pairs.append(("Execution", Cell(f"{result['culprit']['execution']:,} of {result['culprit']['total']:,}")))
    right = [row["change"] for row in result["workarounds"] if row["verdict"] == "GOOD"]
    if right:
        pairs.append(("Right again with", Cell(f"{len(right)} changes" if len(right) > 1 else "1 change")))
    return pairs


def _flag_sets(found: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    if found["sets"]:
        rows = tuple(
            (
                code(" ".join(one["flags"])),
                Cell(f"{one['fails']} of {one['runs']} runs"),
                digest(one["object"]),
                Cell("; ".join(f"without {flag}: {said}" for flag, said in one["needed"].items()) or NONE),
            )
            for one in found["sets"]
        )
        told = f"{number_of(found['tested'], 'build')} judged, of {number_of(len(found['given']), 'flag')}."
        told += "" if found["complete"] else " There may be further sets."
        head = ("flags", "fails", "object", "each is needed")
        blocks.append(Table("Sets that give the wrong result", head, rows, told))
    else:
        blocks.append(Paragraph(f"None found: {found['state']}."))
    promises = tuple(dict.fromkeys(text for one in found["sets"] for text in one["promises"]))
    if promises:
        blocks.append(Notes(promises, "What the flags promise", warning=True))
    opened = tuple(f"{bundle} stands for {', '.join(members)}" for bundle, members in found["opened"].items())
    notes = (*opened, *found["notes"])
    if notes:
        blocks.append(Notes(notes))
    if found["given"]:
        blocks.append(Details("All flags that were given", (Code("Flags", "\n".join(found["given"])),)))
    return blocks


def _screen(result: Mapping[str, Any]) -> list[Block]:
    screen = result["screen"]
    checks = screen["checks"]
    if not checks:
        return [Paragraph(f"Not screened: {screen['reason'] or screen['state']}.")]
    ran = [one for one in checks if one["outcome"] != ScreenOutcome.NOT_RUN]
    clean = sum(one["outcome"] == ScreenOutcome.CLEAN for one in ran)
    blocks: list[Block] = [Paragraph(f"{clean} of {len(ran)} checks clean, {len(checks) - len(ran)} not run.")]
    if screen["reason"]:
        blocks.append(Notes((screen["reason"],), warning=True))
    if not screen["clean"]:
        again = ["mccprobe", "why", "--resume", result["run_directory"], "--skip-screen"]
        blocks.append(Code("Search for the pass all the same", shlex.join(again)))
    telling = [one for one in checks if one["outcome"] != ScreenOutcome.CLEAN]
    if telling:
        blocks.append(_checks("Findings, hints, and what was not run", telling))
    blocks.append(Details("All checks, with what was run", (_checks("Checks", checks), *_check_commands(checks))))
    return blocks


def _checks(caption: str, checks: list[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (Cell(f"{one['name']} ({one['part']})"), Cell(one["outcome"]), Cell(one["text"] or NONE)) for one in checks
    )
    return Table(caption, ("check", "outcome", "what it said"), rows)


def _check_commands(checks: list[Mapping[str, Any]]) -> list[Block]:
    lines = tuple(dict.fromkeys(shlex.join(one["command"]) for one in checks if one["command"]))
    return [Commands("Commands of the checks", lines)] if lines else []


def _where(result: Mapping[str, Any]) -> list[Block]:
    where, found = result["where"], result["first_bad_instruction"]
    blocks: list[Block] = []
    if found is None:
        blocks.append(Paragraph(f"None is named: {result['first_bad_instruction_reason'] or where['state']}."))
    else:
        pairs = (
            ("Function", code(found["function"])),
            ("Block", code(found["block"])),
            ("Confirmed", Cell(_confirmed(found))),
        )
        right, wrong = (code(found[side] or "(absent)") for side in ("before", "after"))
        table = Table("The instruction", ("code", "instruction"), ((Cell("right"), right), (Cell("wrong"), wrong)))
        blocks += [Facts(pairs), table]
    if where["verifier"]:
        blocks.append(Notes((f"Machine verifier: {where['verifier']}",), warning=True))
    if where["diff"]:
        lines = where["diff"].splitlines()
        text = "\n".join(lines[:DIFF_LINES])
        blocks.append(Code("Before and after the pass, as a diff", text, diff=True))
        if len(lines) > DIFF_LINES:
            blocks.append(Paragraph(f"{len(lines) - DIFF_LINES:,} more lines are in the run directory."))
    if where["reproducer"]:
        verified = "turns right into wrong" if where["reproducer_verified"] else "not verified"
        first = ("# SIMULATED: sim, not mcc",) if result["simulated"] else ()
        lines = tuple(shlex.join(argv) for argv in where["reproducer"])
        blocks.append(Commands(f"The pass alone: {verified}", (*first, *lines)))
    if where["files"]:
        rows = tuple((Cell(name), code(path)) for name, path in where["files"].items())
        blocks.append(Details("Right, wrong and mixed code as files", (Table("Files", ("what", "path"), rows),)))
    if where["notes"]:
        blocks.append(Notes(tuple(where["notes"])))
    return blocks


def _confirmed(found: Mapping[str, Any]) -> str:
    said = {
        "both-sides": "the right code with it alone is wrong, the wrong code without it is right",
        "all-together": "the wrong code without all of these is right, and each is enough",
        "verifier": "the machine verifier names it",
    }.get(found["confirmed"], str(found["confirmed"]))
    return said + (f"; {found['sufficient']} edits are each enough" if found["sufficient"] > 1 else "")


def _table(cells: list[Mapping[str, Any]]) -> list[Block]:
    if not cells:
        return []
    rows = tuple(
        (
            Cell(f"flag {one['flag']}, pass {one['pass_state']}", note=one["how"]),
            verdict(one["verdict"]),
            _fails(one),
            digest(one["object"]),
            Cell(one["function"]),
        )
        for one in cells
    )
    return [Table("Each build", ("build", "verdict", "fails", "object", "function"), rows)]


def _fails(one: Mapping[str, Any]) -> Cell:
    return Cell(f"{one['fails']}/{one['runs']}" if one["verdict"] and one["runs"] else NONE)


def _workarounds(result: Mapping[str, Any]) -> list[Block]:
    rows, untried = result["workarounds"], result["workarounds_untried"]
    if not rows:
        return []
    timed = any(one["speed_s"] is not None for one in rows)
    order = {"GOOD": 0, "UNRESOLVED": 2, "BAD": 3}
    first, *others = rows  # the bad build, which the others are compared with
    ordered = [first, *sorted(others, key=lambda one: order.get(one["verdict"] or "", 1))]
    table = Table(
        "Changes to the build, those that make it right first",
        ("change", "verdict", "fails", "max_err", *(("time, ms",) if timed else ()), "object"),
        tuple(
            (
                code(one["change"], one["note"]),
                verdict(one["verdict"]),
                _fails(one),
                number(one["max_err"], digits=".6g"),
                *((_speed(one),) if timed else ()),
                digest(one["object"]),
            )
            for one in ordered
        ),
    )
    blocks: list[Block] = [table]
    if untried:
        blocks.append(Notes(tuple(untried), "Not tried"))
    if result["workarounds_notes"]:
        blocks.append(Notes(tuple(result["workarounds_notes"])))
    return blocks


def _speed(one: Mapping[str, Any]) -> Cell:
    return number(None if one["speed_s"] is None else 1000 * one["speed_s"], digits=".4g")


def _builds(facts: list[Mapping[str, Any]]) -> list[Block]:
    rows = tuple((Cell(one["build"]), verdict(one["verdict"]), Cell(one["text"] or NONE)) for one in facts)
    return [Table("Does it fail elsewhere?", ("build", "verdict", "what it said"), rows)] if rows else []


def _signature(found: Mapping[str, Any]) -> list[Block]:
    if not found["title"]:
        return []
    blocks: list[Block] = [
        Facts((("Pass", Cell(found["title"])), ("Shape of its edit", Cell(found["shape"] or "not known"))))
    ]
    alike: dict[tuple[bool | None, str], list[str]] = {}
    for other in found["others"]:
        alike.setdefault((other["shows"], other["text"]), []).append(other["name"])
    if alike:
        rows = tuple(
            (Cell(", ".join(names)), Cell(_SHOWS[shows]), Cell(text)) for (shows, text), names in alike.items()
        )
        blocks.append(Table("Other kernels", ("kernels", "the same fault", "why"), rows))
    return blocks


def _run(result: Mapping[str, Any]) -> list[Block]:
    pairs = [
        ("Time", Cell(f"{result['seconds']:,.0f} s")),
        ("Compiler", code(result["compiler"]["path"])),
        ("Run directory", code(result["run_directory"])),
    ]
    for name, value in (("Reduced source", result["reduced"]), ("Bug report", result["report"])):
        if value:
            pairs.append((name, code(value)))
    blocks: list[Block] = [Facts(tuple(pairs))]
    if result["phases"]:
        rows = tuple((Cell(name), number(seconds, digits=",.2f")) for name, seconds in result["phases"].items())
        blocks.append(Details("Seconds of each step", (Table("Steps", ("step", "seconds"), rows),)))
    return blocks
