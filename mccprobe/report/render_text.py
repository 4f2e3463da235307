"""A bisection as text for a terminal. Pure: record in, text out."""

from __future__ import annotations

import shlex

from mccprobe.base.console import number_of
from mccprobe.report.lines import one_line
from mccprobe.report.record import BisectReport, Status, TableCell

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
    "    ",
)  # fmt: skip
_SHORT = 12  # characters of a hash that are shown


def render_text(report: BisectReport) -> str:
    """The whole report; the last lines tell where the run lies."""
    lines = []
    mark = "SIMULATED FAULT (sim): " if report.simulated else ""
    lines.append(f"{mark}{HEADLINES.get(report.status, report.status.value.upper())}")
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


def _marked(lines: list[str], simulated: bool) -> list[str]:
    """What comes from the stand-in says so on its line."""
    return [f"{line}  [sim]" if simulated and line.startswith(_RESULT_LINES) else line for line in lines]


def _bullets(texts: tuple[str, ...]) -> list[str]:
    return [text if text.startswith("  ") else f"- {text}" for text in texts]


def _culprit(report: BisectReport) -> list[str]:
    culprit = report.culprit
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
    lines += [f"  caveat      {promise}" for promise in report.promises]
    if report.confidence is not None:
        lines.append(f"  confidence  {report.confidence:.4f} that the verdicts on both sides are not luck")
    return lines


def _facts(report: BisectReport) -> list[str]:
    lines = [
        f"  source      {one_line(report.source)}",
        f"  flags       {', '.join(report.flags) if report.flags else '(the whole bad build)'}",
        f"  compiler    {report.compiler_version} [{report.toolchain}]",
    ]
    if report.good_output or report.bad_output:
        lines.append(f"  good side   {report.good_output or '-'}   object {_hash(report.good_object)}")
        lines.append(f"  bad side    {report.bad_output or '-'}   object {_hash(report.bad_object)}")
    if report.failure_rate is not None:
        low, estimate, high = report.failure_rate
        interval = f"95 % interval {low:.0%} to {high:.0%}"
        lines.append(f"  flaky       a bad object fails {estimate:.0%} of its runs ({interval})")
    if len(report.edges) > 1 or (report.edges and report.culprit is None):
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
    if report.status is Status.NO_DIFFERENCE:
        return ["", "  Only FILE is built with the flags: if the fault is in another source, name that one as FILE."]
    return []
