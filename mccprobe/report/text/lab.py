"""A laboratory report on one screen. Pure: record in, text out."""

from __future__ import annotations

import os
import textwrap
from collections import defaultdict
from collections.abc import Sequence

from mccprobe.oracle.verdict import Verdict
from mccprobe.tuning.lab.explain import counts_warps_by, rule_of
from mccprobe.tuning.lab.record import BankUse, Finding, Place
from mccprobe.tuning.lab.session import PHYSICAL_WARP, LabReport, WatchedCase

SIM = "  [sim]"  # behind every line that holds a result of the stand-in
WIDTH = 112  # of a line, before the mark
MAX_KINDS = MAX_PLACES = MAX_GROUPS = MAX_BANKS = MAX_NOT_RUN = 4  # the rest is in --json
MAX_WRONG = 2  # cases with wrong numbers


def render_lab(report: LabReport) -> str:
    """Headline, findings with why, numbers, bank conflicts, what was not run."""
    headline = f"SIMULATED (sim): {report.kernel.name}: lab {report.verdict}, warps of {report.warp} lanes"
    lines = [headline, *(f"  define   {name}={value}" for name, value in report.defines)]
    if report.warp != PHYSICAL_WARP:
        lines.append(f"  this shows another machine: a physical warp of MP22 has {PHYSICAL_WARP} lanes")
    base = report.kernel.folder
    by_kind: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in sorted(report.merged.findings, key=lambda finding: finding.severity != "error"):
        by_kind[finding.kind, finding.kernel].append(finding)
    for group in list(by_kind.values())[:MAX_KINDS]:
        lines += ["", *_finding_lines(group, report, base)]
    if len(by_kind) > MAX_KINDS:
        lines.append(f"  and {len(by_kind) - MAX_KINDS} more kinds of findings: --json has them")
    if not by_kind:
        lines += ["", f"  nothing found: no rule of the machine broken in {len(report.cases)} cases{SIM}"]
    lines += _contrast_lines(report, base)
    lines += ["", *_number_lines(report), *_bank_lines(report.merged.banks, base)]
    if report.not_run:
        shown = "; ".join(f"{entry.name}: {entry.reason}" for entry in report.not_run[:MAX_NOT_RUN])
        more = f"; and {len(report.not_run) - MAX_NOT_RUN} more" if len(report.not_run) > MAX_NOT_RUN else ""
        lines += _wrap("  not run: ", f"{shown}{more}")
    return "\n".join(lines) + "\n"


def place_text(place: Place | None, base: os.PathLike[str]) -> str:
    """`tiled.h:161 in load_operands, from mega-tile-32.mu:27`."""
    if place is None or not place.line:
        return "a place without a line number"
    text = f"{_relative(place.file, base)}:{place.line}"
    if place.outer_line:
        text += f" in {place.function.partition('<')[0]}, from {_relative(place.outer_file, base)}:{place.outer_line}"
    return text


def _relative(file: str, base: os.PathLike[str]) -> str:
    path = os.path.relpath(file, base)
    return path if path.count("..") <= 1 else file


def _wrap(head: str, text: str) -> list[str]:
    """Text in lines of WIDTH that hang below its head; none for no text."""
    indent = " " * len(head)
    wrapped = textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)
    return wrapped if text else []


def _finding_lines(group: Sequence[Finding], report: LabReport, base: os.PathLike[str]) -> list[str]:
    """One kind in one kernel: the first place in full, the others by line, then why."""
    first, rule = group[0], rule_of(group[0])
    verdict = Verdict.BAD if first.severity == "error" else Verdict.UNRESOLVED
    lines = [f"  {verdict}  {rule.title}: kernel {first.kernel}{SIM}"]
    lines.append(f"    at {place_text(first.place, base)}{SIM}")
    if first.other is not None:
        lines.append(f"    and {place_text(first.other, base)}{SIM}")
    where = f"block ({','.join(map(str, first.block))})"
    where += "" if first.warp is None else f" warp {first.warp}"
    where += f" lanes {first.lanes}" if first.lanes else ""
    lines += [f"{line}{SIM}" for line in _wrap("    ", f"case {first.case}, {where}: {first.text}")]
    for one in first.groups[:MAX_GROUPS]:
        at = f" at {place_text(one.place, base)}" if one.place not in (None, first.place) else ""
        lines.append(f"      {one.lanes}: {one.what}{at}{SIM}")
    if len(first.groups) > MAX_GROUPS:
        lines.append(f"      and {len(first.groups) - MAX_GROUPS} more groups of lanes{SIM}")
    others = [place_text(finding.place, base) for finding in group[1:]]
    if others:
        shown = ", ".join(dict.fromkeys(others[:MAX_PLACES]))
        more = f" and {len(others) - MAX_PLACES} more" if len(others) > MAX_PLACES else ""
        lines += [f"{line}{SIM}" for line in _wrap("    also at ", shown + more)]
    return [*lines, *_wrap("    why: ", rule.why + _told(first, report))]


def _told(finding: Finding, report: LabReport) -> str:
    """What these lanes and this kernel.toml say beyond the rule."""
    size = counts_warps_by(finding)
    text = "" if size is None else f" This kernel counts warps by {size}."
    return text + (_unchecked(finding.kernel, report) if finding.severity == "error" else "")


def _unchecked(kernel: str, report: LabReport) -> str:
    """That no legacy case launches this kernel, if so; "" also if there are none at all."""
    legacy = sorted({case for cases in report.declared.values() for case in cases})
    if not legacy or report.declared.get(kernel.partition("<")[0]) != ():
        return ""
    return f" The legacy cases ({', '.join(legacy)}) launch other kernels and cannot show it."


def _contrast_lines(report: LabReport, base: os.PathLike[str]) -> list[str]:
    """With another warp than MP22's: what its own shows."""
    if report.physical is None:
        return []
    lines = [f"  with MP22's {PHYSICAL_WARP} lanes the same program is {report.physical.verdict}{SIM}"]
    errors = [finding for finding in report.physical.merged.findings if finding.severity == "error"]
    if errors and report.verdict is Verdict.GOOD:
        first = errors[0]
        seen = f"{rule_of(first).title}, at {place_text(first.place, base)}."
        why = f"With {report.warp} lanes nothing is wrong, and the numbers are right: that is why it goes unnoticed."
        lines += _wrap("    ", f"{seen} {why}{_unchecked(first.kernel, report)}")
    return ["", *lines]


def _number_lines(report: LabReport) -> list[str]:
    """The verdicts of the cases; several models where operands differ within a warp."""
    good = [case.planned.case.name for case in report.cases if all(one.verdict is Verdict.GOOD for one in case.models)]
    lines = [f"{line}{SIM}" for line in _wrap("  numbers right: ", ", ".join(good))]
    wrong = sorted((case for case in report.cases if case.planned.case.name not in good), key=_worst_first)
    for case in wrong[:MAX_WRONG]:
        for one in case.models:
            share = "" if one.wrong_share is None else f" ({one.wrong_share:.1%})"
            lines.append(f"  numbers {one.verdict}: {case.planned.case.name}, {one.model}: {one.reason}{share}{SIM}")
    if len(wrong) > MAX_WRONG:
        lines.append(f"    and {len(wrong) - MAX_WRONG} more cases{SIM}")
    if any(len(case.models) > 1 for case in report.cases):
        lines.append("    both are models: what MP22 does with differing addresses is not documented")
    return lines


def _worst_first(case: WatchedCase) -> tuple[bool, float]:
    """Declared cases before those that the gate made up, large before small."""
    shape = case.planned.case
    return case.planned.why != "declared", -float(shape.m) * shape.n * shape.k


def _bank_lines(banks: Sequence[BankUse], base: os.PathLike[str]) -> list[str]:
    """The places that lose most cycles."""
    worst = sorted((use for use in banks if use.lost), key=lambda use: -use.lost)
    if not banks:
        return []
    head = "  bank conflicts (16 banks of 4 bytes, 32 lanes together): "
    cycles, ideal = sum(use.cycles for use in banks), sum(use.ideal for use in banks)
    lines = [f"{head}{cycles / ideal:.2f} times the least cycles{SIM}"]
    for use in worst[:MAX_BANKS]:
        what = "WMMA operation" if use.access == "wmma" else f"{use.bytes}-byte {use.access}"
        lines.append(
            f"    {place_text(use.place, base)}: {what}, {use.ways:.1f}-way (least {use.ideal / use.groups:.1f}), "
            f"worst {use.worst}-way{SIM}"
        )
    return lines
