"""`mccprobe cycle`: health, gate, timing and resources in one go."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console, visible
from mccprobe.cli.bench_cmd import figures_of, health_entry, hooks_of, render_bench, settings_of
from mccprobe.cli.common import FiniteRange, cache_directory
from mccprobe.cli.kernel_options import (
    CONTEXT,
    answered,
    choose_kernel,
    folder_below,
    kernel_options,
    record,
    require_built,
)
from mccprobe.oracle.kernel.shipped import DEFAULT_KERNEL

if TYPE_CHECKING:
    from mccprobe.tuning.cycle.run import CycleReport

HELP = """One round of work on a kernel: health of the device, gate, timing, resources, one summary.

The summary is summary.json in the run directory, and latest_summary.json beside it. A kernel that fails the
gate is not timed. Exit 0: right and timed; 1: not.

\b
Examples:
  mccprobe cycle
  mccprobe cycle my/kernel --toolchain mcc --cases full --min-health 70
"""
DEFAULT_OUT = "mccprobe-out"


@click.command("cycle", help=HELP, context_settings=CONTEXT)
@click.argument("kernel", default=DEFAULT_KERNEL)
@kernel_options
@click.option("--case", "case", default="", metavar="NAME|MxNxK", help="case to time")
@click.option("--rounds", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option(
    "--warmups", type=click.IntRange(0, 1000), default=3, show_default=True, help="dropped, before each round"
)
@click.option("--min-health", type=FiniteRange(0), metavar="TFLOPS", help="least of the shipped GEMM on the device")
@click.option("--json", "as_json", is_flag=True, help="the summary (reports/cycle.schema.json)")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=DEFAULT_OUT,
    show_default=True,
    metavar="DIR",
    help="folder of the run directories",
)
@click.pass_obj
def cycle(console: Console, /, kernel: str, as_json: bool, out: Path, **values: Any) -> int:
    from mccprobe.build.store import new_run_root, write_synced
    from mccprobe.inspection.lines import one_line
    from mccprobe.targets.mcc.toolchain import MccPaths
    from mccprobe.tuning.bench.session import Contender
    from mccprobe.tuning.cycle.run import SUMMARY, run_cycle, write_summary

    choice = choose_kernel(console, kernel, values)
    contender = Contender(choice.kernel.name, choice.kernel, choice.flags, tuple(sorted(choice.defines.items())))
    settings = settings_of({**values, "data": "random", "confidence": 0.95})
    stem, clock = f"cycle-{choice.kernel.name}", time.strftime("%Y%m%d-%H%M%S")
    with folder_below(out, lambda: new_run_root(out, stem, clock)) as root:
        console.message(one_line(f"run directory: {root}"))
        report = run_cycle(
            contender,
            choice.toolchain,
            settings,
            MccPaths(values["mcc"], values["musa_path"]),
            cache_directory(),
            root,
            hooks_of(console, choice, values),
        )
        if report.gate is not None:
            require_built(report.gate)
        status = "passed" if report.passed else "not-passed"
        document = {"schema_version": 1, "tool_version": __version__, "status": status, **report.to_dict()}
        text = _text(report, status, root / SUMMARY)
        write_synced(root / "report.txt", text.encode("utf-8", "surrogateescape"))
        write_summary(document, root)

    def show() -> None:
        if as_json:
            console.document(document)
        else:
            console.report(visible(text))

    with answered(show, as_json=as_json):
        record(
            values,
            "bench",
            choice,
            text=f"cycle of {choice.kernel.name}",
            verdict=report.verdict,
            figures=figures_of(report.bench),
            health=health_entry(report.bench),
            run_directory=root,
        )
    return 0 if report.passed else 1


def _text(report: CycleReport, status: str, summary: Path) -> str:
    from mccprobe.inspection.lines import one_line
    from mccprobe.report.render_resources import render_text

    resources = render_text(report.resources) if report.resources else f"resources: {report.resources_reason}\n"
    mark = "SIMULATED (sim): " if report.bench.simulated else ""
    head = f"{mark}{report.contender.kernel.name}: {status} ({report.verdict})"
    return f"{head}\n{render_bench(report.bench)}\n{resources}\n{one_line(f'summary: {summary}')}\n"
