"""`mccprobe check`: the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console, number_of, visible
from mccprobe.base.errors import UsageError
from mccprobe.cli.kernel_options import (
    CONTEXT,
    answered,
    build_folder,
    case_teller,
    choose_kernel,
    gate_arguments,
    kernel_options,
    planned_runs,
    record,
    require_built,
)
from mccprobe.oracle.kernel.shipped import DEFAULT_KERNEL
from mccprobe.oracle.verdict import Verdict

HELP = """Check a kernel: every case right, every kernel that it can launch launched by a right case.

KERNEL is a folder with a kernel.toml, that file, a source beside it, or the name of a shipped kernel
(default: gemm). Besides the declared cases it runs one for each dispatch branch and shapes beside the
multiples of the tiles, each with several seeds. Exit 0: passed; 1: not passed.

\b
Examples:
  mccprobe check
  mccprobe check gemm --toolchain sim --flag internal-regs-ra
  mccprobe check my/kernel --toolchain mcc --case full --set gemm-s4000
  mccprobe check mega-tile-32 --lab

With --lab the kernel runs in the emulator (sim) with every access watched: WMMA addresses that differ within a
warp, barriers that diverge, races, bounds, bank conflicts; each with its line. Exit 0: nothing found, and right.
"""


@click.command("check", help=HELP, context_settings=CONTEXT)
@click.argument("kernel", default=DEFAULT_KERNEL)
@kernel_options
@click.option("--stop-at-bad", is_flag=True, help="end with the first wrong case")
@click.option("--lab", is_flag=True, help="watch every access in the emulator (sim)")
@click.option("--warp", type=click.Choice(["128", "32"]), help="with --lab: lanes of a warp (default: 128, as MP22)")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/check.schema.json, lab.schema.json)")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="keep the built program here")
@click.pass_obj
def check(
    console: Console,
    /,
    kernel: str,
    as_json: bool,
    out: Path | None,
    stop_at_bad: bool,
    lab: bool,
    warp: str | None,
    **values: Any,
) -> int:
    if lab:
        return _lab(console, kernel, values, warp=int(warp or 128), as_json=as_json, out=out)
    if warp is not None:
        raise UsageError("--warp goes with --lab", hint="mccprobe check KERNEL --lab --warp 32")
    from mccprobe.report.text.check import render_gate
    from mccprobe.tuning.check.check import check_kernel
    from mccprobe.tuning.check.score import grader_score

    choice = choose_kernel(console, kernel, values)
    with build_folder(out, "check") as folder:
        report = check_kernel(
            choice.kernel,
            choice.toolchain,
            flags=choice.flags,
            defines=choice.defines,
            folder=folder,
            stop_at_bad=stop_at_bad,
            tell=case_teller(console, simulated=choice.toolchain.simulated, runs=planned_runs(choice, values)),
            **gate_arguments(values),
        )
        require_built(report)
    score = grader_score(report)

    def show() -> None:
        if as_json:
            status = "passed" if report.passed else "not-passed"
            found = {**report.to_dict(), "score": score.to_dict()}
            console.document({"schema_version": 1, "tool_version": __version__, "status": status, **found})
        else:
            console.report(visible(render_gate(report, score)))

    with answered(show, as_json=as_json):
        record(
            values,
            "check",
            choice,
            text=f"check of {choice.kernel.name}, {report.selection} cases",
            verdict=report.verdict,
            figures={"max_err": (report.worst_error, "")},
            run_directory=out,
        )
    return 0 if report.passed else 1


def _lab(console: Console, kernel: str, values: dict[str, Any], *, warp: int, as_json: bool, out: Path | None) -> int:
    from mccprobe.report.text.lab import render_lab
    from mccprobe.targets import registry
    from mccprobe.tuning.lab.session import WatchedCase, lab_kernel

    if values["toolchain"] == "auto":  # the laboratory is the emulator: asking for it is asking for sim
        values = {**values, "toolchain": registry.emulator().name}
    choice = choose_kernel(console, kernel, values)

    def tell(case: WatchedCase) -> None:
        found = len(case.observation.findings)
        console.progress(f"{case.planned.case.name}: {number_of(found, 'finding')}, {case.models[0].reason}  [sim]")

    with build_folder(out, "lab") as folder:
        report = lab_kernel(
            choice.kernel,
            choice.toolchain,
            folder=folder,
            warp=warp,
            flags=choice.flags,
            defines=choice.defines,
            arch=values["arch"],
            seed=values["seeds"][0],
            timeout_s=values["timeout"],
            compile_timeout_s=values["compile_timeout"],
            tell=tell,
        )
    good = report.verdict is Verdict.GOOD

    def show() -> None:
        if as_json:
            status = "clean" if good else "findings" if report.merged.findings else "numbers"
            console.document({"schema_version": 1, "tool_version": __version__, "status": status, **report.to_dict()})
        else:
            console.result(visible(render_lab(report)))

    with answered(show, as_json=as_json):
        record(
            values,
            "check",
            choice,
            text=f"lab of {choice.kernel.name}, warps of {warp}",
            verdict=report.verdict,
            run_directory=out,
        )
    return 0 if good else 1
