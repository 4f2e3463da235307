"""A run of `why` as text for a terminal. Pure: record in, text out."""

from __future__ import annotations

import shlex

from mccprobe.base.console import number_of
from mccprobe.inspection.lines import one_line
from mccprobe.report.record import Status
from mccprobe.report.render_text import HEADLINES
from mccprobe.report.why_record import (
    FlagSets,
    PassCell,
    Screen,
    ScreenOutcome,
    StepState,
    Where,
    WhyReport,
    Workaround,
)

_SHORT = 12  # characters of a hash that are shown
_DIFF_LINES = 24  # of the pass's diff; the whole stands in the run directory


def render_why(report: WhyReport) -> str:
    """The whole report, step by step; what is simulated says so on its line."""
    mark = "  [sim]" if report.simulated else ""
    sections = [
        _flag_sets(report.flag_sets),
        _screen(report.screen, report.run_directory),
        _culprit(report),
        _where(report.where),
        _table(report.table),
        _workarounds(report),
        _facts(report),
        _signature(report),
    ]
    lines = [
        _headline(report),
        "",
        f"source      {one_line(report.source)}",
        f"compiler    {one_line(report.compiler_version)}",
    ]
    for section in sections:
        if section:
            lines += ["", *(f"{line}{mark}" for line in section)]
    for title, texts in (("notes", report.notes), ("warnings", report.warnings)):
        if texts:
            lines += ["", f"{title}:", *(f"- {text}" for text in texts)]
    lines += ["", f"{report.seconds:.0f} s", f"run directory: {one_line(report.run_directory)}"]
    if report.reduced:
        lines.append(f"reduced source: {one_line(str(report.reduced))}")
    if report.report:
        lines.append(f"report: {report.report}")
    return "\n".join(lines) + "\n"


def _headline(report: WhyReport) -> str:
    mark = "SIMULATED FAULT (sim): " if report.simulated else ""
    if report.stopped:
        return f"{mark}STOPPED: {report.stopped}"
    if report.bisect is None:
        return f"{mark}NOT BISECTED"
    return mark + HEADLINES.get(report.bisect.status, report.bisect.status.value.upper())


def _flag_sets(found: FlagSets) -> list[str]:
    if found.state is StepState.SKIPPED:
        return ["smallest flag set: " + ("; ".join(found.notes) or found.state.value)]
    lines = [f"smallest flag set: {number_of(found.tested, 'build')} judged, of {number_of(len(found.given), 'flag')}"]
    for each in found.sets:
        rate = f"fails {each.fails} of {each.runs} runs, object {_hash(each.object)}"
        lines.append(f"  {{{', '.join(each.flags)}}}  {rate}")
        lines += [f"    without {flag}: {verdict}" for flag, verdict in each.needed.items()]
        lines += [f"    caveat: {text}" for text in each.promises]
    lines += [f"  {bundle} stands for {', '.join(members)}" for bundle, members in found.opened.items()]
    if not found.sets:
        lines.append(f"  none found ({found.state.value})")
    if not found.complete:
        lines.append("  there may be further sets")
    return [*lines, *(f"  {note}" for note in found.notes)]


def _screen(screen: Screen, run_directory: str) -> list[str]:
    if not screen.checks:
        return [f"screen: {screen.state.value}" + (f" ({screen.reason})" if screen.reason else "")]
    ran = [check for check in screen.checks if check.outcome is not ScreenOutcome.NOT_RUN]
    clean = sum(check.outcome is ScreenOutcome.CLEAN for check in ran)
    lines = [f"screen: {clean} of {len(ran)} checks clean, {len(screen.checks) - len(ran)} not run"]
    for check in screen.checks:
        if check.outcome is not ScreenOutcome.CLEAN:
            text = " / ".join(check.text.splitlines()[:2])
            lines.append(f"  {check.outcome.value:<8} {check.name} ({check.part}): {text}")
    if screen.reason:
        lines.append(f"  {screen.reason}")
    if not screen.clean:
        again = f"mccprobe why --resume {shlex.quote(run_directory)} --skip-screen"
        lines.append(f"  search for the pass all the same with: {one_line(again)}")
    return lines


def _culprit(report: WhyReport) -> list[str]:
    bisect = report.bisect
    if bisect is None:
        return []
    lines = [f"pass: {HEADLINES.get(bisect.status, bisect.status.value)}"]
    if bisect.culprit is not None:
        culprit = bisect.culprit
        argument = f" ({culprit.argument})" if culprit.argument else ""
        lines.append(f"  {culprit.title}{argument} on {culprit.function or 'a function that the log does not name'}")
        lines.append(f"  execution {culprit.execution} of {culprit.total}")
    elif bisect.status is Status.WRONG_AT_ZERO:
        lines.append("  the fault lies in the front end, a required pass, another source, or the program itself")
    if bisect.confirmation is not None:
        word = "confirmed" if bisect.status is Status.FOUND else "caveat"
        lines.append(f"  {word}: {bisect.confirmation.text}")
    if len(bisect.edges) > 1:
        for edge in bisect.edges:
            lines.append(
                f"  edge {edge.execution}: {edge.from_verdict} -> {edge.to_verdict}, {edge.title or '?'} on "
                f"{edge.function or '?'}"
            )
    return lines


def _where(where: Where) -> list[str]:
    found = where.instruction
    if found is None:
        lines = [f"first bad instruction: none named ({where.reason or where.state.value})"]
    else:
        lines = ["first bad instruction:", f"  in {found.function}, {found.block}, confirmed {found.confirmed.value}"]
        lines += [f"  before: {found.before or '(absent)'}", f"  after:  {found.after or '(absent)'}"]
        if found.sufficient > 1:
            lines.append(f"  {found.sufficient} edits are each enough to make it wrong")
    if where.verifier:
        lines.append(f"  machine verifier: {where.verifier}")
    if where.reproducer:
        verified = "alone turns right into wrong" if where.reproducer_verified else "not verified"
        lines += [f"  single-pass reproducer ({verified}):", *(f"    {shlex.join(argv)}" for argv in where.reproducer)]
    if found is None and where.diff:
        diff = where.diff.splitlines()
        lines += ["  before and after the pass:", *(f"    {line}" for line in diff[:_DIFF_LINES])]
        if len(diff) > _DIFF_LINES:
            lines.append(f"    ({number_of(len(diff) - _DIFF_LINES, 'line')} more in the run directory)")
    lines += [f"  {note}" for note in where.notes]
    return lines


def _table(cells: tuple[PassCell, ...]) -> list[str]:
    if not cells:
        return []
    width = max(4, *(len(cell.flag) for cell in cells))
    lines = ["flag by pass by function:", f"  {'flag':<{width}}  pass  verdict     fails  object        function, how"]
    for cell in cells:
        rate = f"{cell.fails}/{cell.runs}" if cell.verdict else "-"
        left = f"  {cell.flag:<{width}}  {cell.pass_state:<4}  {cell.verdict or '-':<10}  {rate:<5}"
        lines.append(f"{left}  {_hash(cell.object):<12}  {cell.function}; {cell.how}")
    return lines


def _workarounds(report: WhyReport) -> list[str]:
    found = report.workarounds
    if not found.rows:
        return []
    lines = ["ways around:", f"  {'verdict':<10}  {'fails':<5}  {'max_err':<10}  {'object':<12}  change"]
    lines += [_workaround(row) for row in found.rows]
    if found.untried:
        lines += ["  not tried:", *(f"    {text}" for text in found.untried)]
    return [*lines, *(f"  {note}" for note in found.notes)]


def _workaround(row: Workaround) -> str:
    error = "-" if row.max_err is None else f"{row.max_err:.6g}"
    rate = f"{row.fails}/{row.runs}" if row.runs else "-"
    speed = f"; {row.speed_s * 1000:.4g} ms" if row.speed_s is not None else ""
    note = f"  ({row.note})" if row.note else ""
    left = f"  {row.verdict or '-':<10}  {rate:<5}  {error:<10}  {_hash(row.object):<12}"
    return f"{left}  {row.change}{speed}{note}"


def _facts(report: WhyReport) -> list[str]:
    if not report.facts:
        return []
    return ["other builds:", *(f"  {fact.verdict or '-':<10}  {fact.build}: {fact.text}" for fact in report.facts)]


def _signature(report: WhyReport) -> list[str]:
    found = report.signature
    if not found.title:
        return []
    lines = [f"signature: {found.title}; {found.shape or 'shape of the edit not known'}"]
    words = {True: "shows it", False: "does not", None: "not known"}
    alike: dict[str, list[str]] = {}  # many kernels may have one reason not to be tried
    for other in found.others:
        alike.setdefault(f"{words[other.shows]}: {other.text}", []).append(other.name)
    return [*lines, *(f"  {', '.join(names)}: {text}" for text, names in alike.items())]


def _hash(digest: str | None) -> str:
    return digest[:_SHORT] if digest else "-"
