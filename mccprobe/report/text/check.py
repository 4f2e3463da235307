"""A gate's report as text. Pure: record in, text out."""

from __future__ import annotations

from collections import defaultdict

from mccprobe.oracle.verdict import Verdict
from mccprobe.tuning.check.check import CheckedCase, Coverage, GateReport
from mccprobe.tuning.check.score import Score

SIM = "  [sim]"  # behind every line that holds a result of the stand-in
MAX_REASONS = 12


def render_gate(report: GateReport, score: Score | None = None) -> str:
    """Headline, cases, kernels, what was not run, why it did not pass."""
    mark = SIM if report.simulated else ""
    passed = "PASSED" if report.passed else "NOT PASSED"
    stand_in = "SIMULATED (sim): " if report.simulated else ""
    lines = [f"{stand_in}{report.kernel.name}: gate {passed} ({report.verdict})"]
    if report.flags:
        lines.append("  flags    " + " ".join(word for flag in report.flags for word in flag))
    lines += [f"  define   {name}={value}" for name, value in report.defines]
    lines.append("")
    lines += [f"  {line}{mark}" for line in _case_lines(report.cases)]
    if report.coverage:
        lines += ["", "  kernels that can be launched:"]
        for entry in report.coverage:
            lines.append(f"    {entry.kernel}: {_coverage(entry, stopped=report.stopped_early)}{mark}")
    if report.not_run:
        lines += ["", "  not run:", *(f"    {entry.name}: {entry.reason}" for entry in report.not_run)]
    reasons = report.reasons()
    if reasons:
        lines += ["", "  why not:", *(f"    {reason}{mark}" for reason in reasons[:MAX_REASONS])]
        if len(reasons) > MAX_REASONS:
            lines.append(f"    and {len(reasons) - MAX_REASONS} more")
    if report.stopped_early:
        lines.append("  stopped at the first wrong case: the other cases were not run")
    if score is not None:
        lines += ["", f"  grader's score: {render_score(score)}"]
    return "\n".join(lines) + "\n"


def _coverage(entry: Coverage, *, stopped: bool) -> str:
    if entry.cases:
        return f"checked by {', '.join(entry.cases)}"
    if entry.launched:
        return "UNCHECKED: launched only by cases that were not right"
    return "not reached" if stopped else "UNCHECKED: launched by no case"


def _case_lines(cases: tuple[CheckedCase, ...]) -> list[str]:
    """One line a case; its seeds together where they agree."""
    grouped: dict[str, list[CheckedCase]] = defaultdict(list)
    for case in cases:
        grouped[case.planned.case.name].append(case)
    lines = []
    for name, group in grouped.items():
        first = group[0]
        shape = f"{first.planned.case.m}x{first.planned.case.n}x{first.planned.case.k}"
        what = name if name == shape else f"{name} {shape}"
        verdicts = {entry.result.verdict for entry in group}
        verdict = next((v for v in (Verdict.BAD, Verdict.UNRESOLVED) if v in verdicts), Verdict.GOOD)
        if all(entry.refused_as_described for entry in group):
            lines.append(f"{'refused':<11}{what}: no kernel takes this shape, as kernel.toml says")
            continue
        errors = [entry.result.max_err for entry in group if entry.result.max_err is not None]
        worst = f"max_err {max(errors):.4g}" if errors else "max_err unknown"
        allowed = "" if first.result.tolerance is None else f" of {first.result.tolerance:.4g}"
        ran = sorted({kernel for entry in group for kernel in entry.result.launches or {}})
        seeds = ",".join(str(entry.result.seed) for entry in group)
        faults = sorted({entry.fault for entry in group if entry.fault})
        told = f"; {'; '.join(faults)}" if faults else ""
        lines.append(f"{verdict:<11}{what}: {worst}{allowed}, ran {', '.join(ran) or 'unknown'}, seed {seeds}{told}")
    return lines


def render_score(score: Score) -> str:
    """`n/a: reason`, or points with what is assumed."""
    if score.points is None:
        return score.reason
    assumed = f" (assumed: {'; '.join(score.assumed)})" if score.assumed else ""
    reason = f" ({score.reason})" if score.reason else ""
    return f"{score.points:.1f} = {score.correctness:.1f} + {score.speed:.1f}{reason}{assumed}"
