"""A bisection as text for a terminal. Pure: record in, text out."""

from __future__ import annotations

import shlex

from mccprobe.base.console import number_of
from mccprobe.inspection.lines import one_line
from mccprobe.report.record import BisectReport, CheckState, Culprit, ExecutionRange, Status, TableCell

HEADLINES = {
    Status.FOUND: "FOUND",
    Status.EXPOSED: "EXPOSED (first exposing execution; the pass itself is not confirmed)",
    Status.WRONG_AT_ZERO: "WRONG ALREADY AT LIMIT 0: not bisectable by passes",
    Status.NON_DETERMINISTIC: "NON-DETERMINISTIC COMPILER",
    Status.NO_DIFFERENCE: "NO DIFFERENCE: the bad build is as right as the reference",
    Status.UNDECIDED: "UNDECIDED",
}
_RESULT_LINES = (
    "  pass ", "  function ", "  execution ", "  confirmed ", "  caveat ", "  good side ", "  bad side ", "  trials ",
    "  from ", "  to ", "  hangs ", "  both print ", "  files ", "  reference ", "  limit 0 ", "  bad build ",
    "  program ", "  caution ",
    "    ",
)  # fmt: skip
_SHORT = 12  # characters of a hash that are shown


def render_text(report: BisectReport) -> str:
    """The whole report; the last lines tell where the run lies."""
    lines = []
    mark = "SIMULATED FAULT (sim): " if report.simulated else ""
    lines.append(f"{mark}{headline(report)}")
    lines += _second_line(report)
    lines.append("")
    lines += _marked(_culprit(report), report.simulated)
    lines += _marked(_facts(report), report.simulated)
    lines += _table(report.table, report.simulated)
    lines += _explanation(report)
    if report.log_lines:
        mark = " [sim: SIMULATED]" if report.simulated else ""
        lines += ["", f"log around it:{mark}", *(f"  {line}" for line in report.log_lines)]
    if report.notes:
        lines += ["", "notes:", *_bullets(report.notes)]
    if report.warnings:
        lines += ["", "warnings:", *_bullets(report.warnings)]
    for name, commands in (("good", report.reproduce_good), ("bad", report.reproduce_bad)):
        if commands:
            lines += ["", f"to reproduce the {name} side, in {one_line(str(report.working_directory))}:"]
            lines += ["  # SIMULATED: sim, not mcc"] if report.simulated else []
            lines += [f"  {shlex.join(argv)}" for argv in commands]
    lines += ["", f"run directory: {one_line(report.run_directory)}"]
    return "\n".join(lines) + "\n"


def headline(report: BisectReport) -> str:
    """The answer. A range names no pass."""
    if report.range is not None:
        first, last = report.range.first, report.range.last
        return (
            f"RANGE: one of executions {first.execution} to {last.execution} of {last.total} begins the fault "
            f"({number_of(report.range.unresolved, 'limit')} between cannot be judged)"
        )
    if report.equal_objects:
        return "NO DIFFERENCE: both builds are the same object"
    return HEADLINES.get(report.status, report.status.value.upper())


def _second_line(report: BisectReport) -> list[str]:
    """Of FOUND: a program that was not checked may be at fault itself."""
    check = report.program_check
    if report.status is not Status.FOUND or check is None or check.state is CheckState.CLEAN:
        return []
    return [f"the program itself was not checked for undefined behaviour ({one_line(check.text)}); `mccprobe why` does"]


def _range(found: ExecutionRange) -> list[str]:
    """Both ends of the range, and the other answer where it was asked."""
    lines = []
    for name, culprit in (("from", found.first), ("to", found.last)):
        lines.append(f"  {name:<11} {culprit.execution}  {_where(culprit)}")
    hangs = found.hangs
    if hangs is None:
        return lines
    if hangs.culprit is None:
        return [*lines, f"  hangs = BAD  the same search with programs that do not end as BAD: {hangs.status.value}"]
    lines.append(
        f"  hangs = BAD  with programs that do not end as BAD: {_where(hangs.culprit)}, execution "
        f"{hangs.culprit.execution} of {hangs.culprit.total}: {hangs.status.value}"
    )
    if hangs.confirmation is not None:
        lines.append(f"               {one_line(hangs.confirmation.text)}")
    return lines


def _where(culprit: Culprit) -> str:
    return f"{culprit.title} on {culprit.function or '?'}"


def _observed(report: BisectReport) -> list[str]:
    """What two builds without a difference were compared by."""
    seen = report.observed
    if seen is None:
        return [f"  compared    by the check alone: {one_line(report.oracle)}"] if report.oracle else []
    lines = [f"  both print  {one_line(seen.output)}"]
    files = [
        f"{name} ({'compared' if compared else 'not compared: differs from run to run'})"
        for name, compared in seen.files
    ]
    lines.append(f"  files       {one_line(', '.join(files)) if files else 'none written in the run folder'}")
    lines.append(f"  stdin       {one_line(seen.stdin) or 'empty'}")
    return lines


def _marked(lines: list[str], simulated: bool) -> list[str]:
    """What comes from the stand-in says so on its line."""
    return [f"{line}  [sim]" if simulated and line.startswith(_RESULT_LINES) else line for line in lines]


def _bullets(texts: tuple[str, ...]) -> list[str]:
    return [text if text.startswith("  ") else f"- {text}" for text in texts]


def _culprit(report: BisectReport) -> list[str]:
    culprit = report.culprit
    if report.range is not None:
        return _range(report.range)
    if culprit is None:
        return []
    argument = f" ({culprit.argument})" if culprit.argument else ""
    function = culprit.function or "no function named in the log"
    origin = f"  (from: {culprit.function_from})" if culprit.function_from else ""
    lines = [
        f"  pass        {culprit.title}{argument}",
        f"  function    {function}{origin}",
        f"  execution   {culprit.execution} of {culprit.total} in this build; numbers differ between builds, "
        "names do not",
    ]
    if report.confirmation is not None:
        word = "confirmed" if report.status is Status.FOUND else "caveat"
        lines.append(f"  {word:<11} {report.confirmation.text}")
    told = report.confirmation.text if report.confirmation is not None else ""
    lines += [f"  caveat      {promise}" for promise in report.promises if promise not in told]
    if report.confidence is not None:
        lines.append(f"  confidence  {report.confidence:.4f} that the verdicts on both sides are not luck")
    return lines


def _facts(report: BisectReport) -> list[str]:
    lines = [
        f"  source      {one_line(report.source)}",
        f"  flags       {', '.join(report.flags) if report.flags else '(the whole bad build)'}",
        f"  compiler    {report.compiler_version} [{report.toolchain}]",
    ]
    if report.status is Status.WRONG_AT_ZERO:
        lines += _wrong_already(report)
    elif report.status is Status.NO_DIFFERENCE and not report.equal_objects:
        lines += _observed(report)
    elif report.good_output or report.bad_output:
        lines.append(f"  good side   {report.good_output or '-'}   object {_hash(report.good_object)}")
        lines.append(f"  bad side    {report.bad_output or '-'}   object {_hash(report.bad_object)}")
    lines += _program(report)
    lines += [f"  caution     {one_line(caution)}" for caution in report.cautions]
    if report.failure_rate is not None:
        low, estimate, high = report.failure_rate
        interval = f"95 % interval {low:.0%} to {high:.0%}"
        lines.append(f"  flaky       a bad object fails {estimate:.0%} of its runs ({interval})")
    if len(report.edges) > 1 or (report.edges and report.culprit is None and report.range is None):
        lines.append("  edges")
        for edge in report.edges:
            where = f"{edge.title or '?'} on {edge.function or '?'}"
            lines.append(f"    {edge.execution:>7}  {edge.from_verdict} -> {edge.to_verdict}  {where}")
    monotone = {True: "yes", False: "no", None: "not known (only --profile tests every object)"}[report.monotone]
    counts = ", ".join(f"{name} {count}" for name, count in sorted(report.verdicts.items()))
    lines += [
        f"  monotone    {monotone}",
        f"  trials      {number_of(report.compiles, 'compile')}, {number_of(report.runs, 'run')}"
        + (f", {report.replayed} taken from the journal" if report.replayed else "")
        + f" ({counts}); {report.seconds:.1f} s",
    ]
    return lines


def _program(report: BisectReport) -> list[str]:
    """What the check of the program gave: with FOUND, and always where it found something that stands nowhere yet."""
    check, told = report.program_check, report.confirmation.text if report.confirmation else ""
    if check is None or (report.status is not Status.FOUND and check.state is not CheckState.FINDING):
        return []
    return [] if check.text in told else [f"  program     {check.state.value}: {one_line(check.text)}"]


def _wrong_already(report: BisectReport) -> list[str]:
    lines = []
    if report.reference_output:
        lines.append(f"  reference   {report.reference_output}   object {_hash(report.reference_object)}")
    lines.append(f"  limit 0     {report.good_output or '-'}   object {_hash(report.good_object)}")
    lines.append(f"  bad build   {report.bad_output or '-'}   object {_hash(report.bad_object)}")
    return lines


def _hash(digest: str | None) -> str:
    return digest[:_SHORT] if digest else "-"


def _table(cells: tuple[TableCell, ...], simulated: bool) -> list[str]:
    if not cells:
        return []
    mark = "  [sim]" if simulated else ""
    lines = ["", "  flag  pass  verdict     object        how"]
    for cell in cells:
        error = f"; max_err {cell.max_err:.6g}" if cell.max_err is not None else ""
        left = f"  {cell.flag:<4}  {cell.pass_state:<4}  {cell.verdict or '-':<10}  {_hash(cell.object):<12}"
        lines.append(f"{left}  {cell.how}{error}{mark}")
    return lines


def _explanation(report: BisectReport) -> list[str]:
    if report.status is Status.WRONG_AT_ZERO:
        return [
            "",
            "  No pass execution can be blamed: with every pass left out that can be, the result is wrong already. The",
            "  fault lies in the front end, in a required pass, in register allocation or emission, in another source",
            "  or in the program itself. Next: other flags one by one, or another compiler release.",
        ]
    if report.status is Status.NO_DIFFERENCE and (not report.equal_objects or len(report.units) > 1):
        return ["", "  Only FILE is built with the flags: if the fault is in another source, name that one as FILE."]
    return []
