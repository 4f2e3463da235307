"""An overlay's report as text, and as the page that goes with a bug report. Pure: record in, text out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath

from mccprobe.base.console import number_of, visible
from mccprobe.report.fence import fenced
from mccprobe.tuning.overlay.run import OverlayReport, Side


def render_overlay(report: OverlayReport) -> str:
    """Headline, change, numbers that differ, both gates, conclusion."""
    mark = f"{report.heading}: " if report.heading else ""
    request = report.request
    lines = [
        f"{mark}{request.kernel.name} with a changed {request.header}",
        f"  header   {report.header_path} (SHA-256 {report.header_sha256[:16]})",
        f"  change   {number_of(len(request.changes), 'place')}, each exactly once; "
        "the patched copy is read, the SDK's is not",
        *(f"    {line}" for line in report.diff.splitlines()),
        "",
        *(f"{mark}{line}" for line in _numbers(report)),
        f"{mark}before: {_gate(report.before)}",
        f"{mark}after:  {_gate(report.after)}",
        "",
        f"{mark}{report.conclusion}",
        f"for the report: {request.folder}/question.md",
    ]
    return visible("\n".join(lines)) + "\n"


def _numbers(report: OverlayReport) -> Iterator[str]:
    if report.after.gate.failure is not None:
        return
    if not report.changes:
        yield "resources: no number differs"
        return
    yield "resources that differ, before -> after:"
    for change in report.changes:
        yield f"  {change.kernel}: {change.metric} {_value(change.before)} -> {_value(change.after)}"


def _value(value: object) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _gate(side: Side) -> str:
    gate = side.gate
    if gate.failure is not None:
        return f"{gate.verdict}: {gate.failure.reason}"
    right = sum(case.right for case in gate.cases)
    refused = sum(case.refused_as_described for case in gate.cases)
    runs = f"{right} of {number_of(len(gate.cases) - refused, 'run')} right"
    if refused:
        runs += f", {number_of(refused, 'shape')} refused"
    error = "" if gate.worst_error is None else f", largest error {gate.worst_error:g}"
    reasons = gate.reasons()
    return f"{gate.verdict}: {runs}{error}" + (f"; {reasons[0]}" if reasons else "")


def render_question(report: OverlayReport, options: list[str]) -> str:
    """The page for a bug report: the question, the diff, the numbers, how to do it again. No path of a machine.

    options: of `mccprobe overlay`, less the kernel and the change.
    """
    request = report.request
    sim = [f"**{report.heading}**: no number on this page is of an MTGPU.", ""] if report.heading else []
    rows = [f"| `{c.kernel}` | {c.metric} | {_value(c.before)} | {_value(c.after)} |" for c in report.changes]
    table = ["| kernel | number | as shipped | changed |", "| --- | --- | --- | --- |", *rows] if rows else ["None."]
    command = ["mccprobe", "overlay", request.kernel.name, "--header", request.header, "--patch", "overlay.patch"]
    command += options
    place = shlex.quote(str(PurePosixPath("overlay", request.header).parent))
    by_hand = (
        f'mkdir -p {place} && cp "$SDK"/include/{shlex.quote(request.header)} {place}\n'
        f"patch -d overlay -p1 < overlay.patch\n"
        f"mcc --offload-arch={request.arch} -Ioverlay ..."
    )
    return "\n".join(
        [
            f"# Is this part of `{request.header}` needed as it is?",
            "",
            *sim,
            f"Compiler: {report.compiler}. Header: SHA-256 `{report.header_sha256}`. Kernel: `{request.kernel.name}`.",
            "",
            "## Change",
            "",
            fenced(report.diff.rstrip("\n"), "diff"),
            "",
            "It applies exactly once; by the compiler's dependency output the patched copy was read and the SDK's was "
            "not.",
            "",
            "## Numbers that differ",
            "",
            *table,
            "",
            "## Correctness",
            "",
            f"- as shipped: {_gate(report.before)}",
            f"- changed: {_gate(report.after)}",
            "",
            f"So far: {report.conclusion}.",
            "",
            "## Again",
            "",
            fenced(shlex.join(command), "sh"),
            "",
            "or by hand:",
            "",
            fenced(by_hand, "sh"),
            "",
            "## Not tested",
            "",
            "- other kernels, fragment shapes, architectures and releases of the SDK",
            "- code that was compiled with the header as shipped and is linked with this",
            "- speed: nothing on this page was timed",
            "",
        ]
    )
