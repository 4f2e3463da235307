"""An examination as text, and as a list to paste into an issue. Pure."""

from __future__ import annotations

import textwrap

from mccprobe.base.console import number_of
from mccprobe.doctor.examine import Examination, SelfTest, costs_of
from mccprobe.doctor.selftest import Checked, counted
from mccprobe.doctor.subject import CONFIRMED, CONTRADICTED, UNCHECKED
from mccprobe.inspection.lines import joined
from mccprobe.report.fence import code, escaped
from mccprobe.targets.inventory import Entry

SIMULATED = "SIMULATED: confirmed on a stand-in says nothing of mcc"
WIDTH = 92  # of a line of ids, in characters
STANDING = {"S": "seen", "I": "inferred", "A": "the article alone"}


def render(found: Examination) -> str:
    """For a terminal or a pipe, the same text."""
    lines = [f"mccprobe {found.tool_version}, Python {found.python}, {found.system}", "", "toolchains"]
    lines += [line for entry in found.toolchains for line in _toolchain(entry)]
    lines += ["", "parts"]
    width = max(len(part.name) for part in found.parts)
    for part in found.parts:
        lines.append(f"  {'yes' if part.found else 'no ':<3} {part.name:<{width}}  {part.detail}")
        if not part.found:
            lines += [f"      {part.costs}", f"      brings it: {part.install}"]
    cache = found.cache
    state = f"{number_of(cache.files, 'file')}, {cache.bytes / 1e6:.1f} MB" if cache.exists else "not there yet"
    locked = "" if cache.writable else ", NOT WRITABLE: nothing is kept there"
    lines += ["", f"cache  {cache.path}: {state}{locked}"]
    return joined([*lines, "", *_self_test(found.self_test)]) + "\n"


def _toolchain(entry: Entry) -> list[str]:
    if not entry.found:
        return [f"  no  {entry.name}: {entry.notes[0] if entry.notes else 'not found'}", f"      {costs_of(entry)}"]
    mark = "  [SIMULATED]" if entry.simulated else ""
    can = ", ".join(name for name, value in entry.capabilities.items() if value is True)
    return [f"  yes {entry.name}: {entry.path}  {entry.version}{mark}", f"      can: {can or 'nothing'}"]


def _heading(test: SelfTest) -> str:
    counts = counted(list(test.checked))
    return f"{counts[CONFIRMED]} confirmed, {counts[CONTRADICTED]} contradicted, {counts[UNCHECKED]} not checkable here"


def _self_test(test: SelfTest) -> list[str]:
    if test.problem:
        return [f"self-test: none, no SDK to ask: {test.problem}"]
    lines = [f"self-test of {test.toolchain} ({test.version}): {_heading(test)}"]
    lines += [f"  {told}" for told in (test.told, SIMULATED if test.simulated else "") if told]
    for state, heading in ((CONTRADICTED, "contradicted"), (CONFIRMED, "confirmed")):
        members = [one for one in test.checked if one.answer.state == state]
        if members:
            lines += ["", f"  {heading}"]
            lines += [line for one in members for line in _checked(one)]
    reasons: dict[str, list[str]] = {}
    for one in test.checked:
        if one.answer.state == UNCHECKED:
            reasons.setdefault(one.answer.evidence, []).append(one.assumption.id)
    if reasons:
        lines += ["", "  not checkable here"]
    for reason, ids in reasons.items():
        lines += [f"    {line}" for line in textwrap.wrap(", ".join(ids), WIDTH, break_on_hyphens=False)]
        lines.append(f"      {reason}")
    return lines


def _checked(one: Checked) -> list[str]:
    lines = [f"    {one.assumption.id}: {one.assumption.statement}", f"      {one.answer.evidence}"]
    if one.answer.state == CONTRADICTED:
        lines.append(f"      so: {one.assumption.breaks}")
    return lines


def render_markdown(found: Examination) -> str:
    """The list for an issue. Names and paths are the caller's to take out."""
    test = found.self_test
    missing = [entry.name for entry in found.toolchains if not entry.found]
    missing += [part.name for part in found.parts if not part.found]
    lines = [
        f"**mccprobe {escaped(found.tool_version)}**, Python {escaped(found.python)}, {escaped(found.system)}",
        "",
        *(f"- {escaped(entry.name)}: {code(entry.version) or 'found'}" for entry in found.toolchains if entry.found),
        "- not found: " + (", ".join(escaped(name) for name in missing) or "nothing is missing"),
        "",
    ]
    if test.problem:
        return "\n".join([*lines, f"Self-test: none, {escaped(test.problem)}"]) + "\n"
    lines.append(f"Self-test of {code(test.version)}: {_heading(test)}")
    if test.simulated:
        lines.append(f"**{SIMULATED}**")
    lines += ["", "| | assumption | evidence | known from |", "| --- | --- | --- | --- |"]
    marks = {CONTRADICTED: "**no**", CONFIRMED: "yes", UNCHECKED: "?"}
    for state in marks:
        for one in test.checked:
            if one.answer.state == state:
                about = one.assumption
                lines.append(
                    f"| {marks[state]} | {code(about.id, in_table=True)} {escaped(about.statement)} "
                    f"| {code(one.answer.evidence, in_table=True)} | {STANDING[about.standing]} |"
                )
    return "\n".join(lines) + "\n"
