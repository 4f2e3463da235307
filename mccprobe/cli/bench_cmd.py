"""`mccprobe bench`: honest timing of a kernel, or of an ordinary program."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console, visible
from mccprobe.base.errors import UsageError
from mccprobe.cli.common import FiniteRange
from mccprobe.cli.html_option import deliver, html_options, page_places
from mccprobe.cli.kernel_options import (
    CONTEXT,
    KernelChoice,
    answered,
    build_folder,
    case_teller,
    choose_kernel,
    kernel_options,
    planned_runs,
    record,
    require_built,
)
from mccprobe.cli.pace import Pace
from mccprobe.oracle.kernel.shipped import DEFAULT_KERNEL

if TYPE_CHECKING:
    from mccprobe.report.pages.blocks import Page
    from mccprobe.report.pages.write import Places
    from mccprobe.tuning.bench.session import BenchReport, Contender, Hooks

HELP = """Time a kernel that the gate passed, or an ordinary program, and say how sure the figures are.

20 rounds, warm-ups dropped, random data, outputs checked after timing; with --against both are timed in
pairs, which first by lot (half of the pairs each way), and the ratio comes with its interval. A kernel that
fails the gate is not timed. On the stand-in all times are emulation time, never kernel performance.
Exit 0: measured; 1: refused.

\b
Examples:
  mccprobe bench gemm --against "mtgpu-load-store-opt"
  mccprobe bench my/kernel --toolchain mcc --min-health 70
  mccprobe bench --program "./a.out 100" --against "./b.out 100"
"""


@click.command("bench", help=HELP, context_settings=CONTEXT)
@click.argument("kernel", required=False)
@kernel_options
@click.option(
    "--against", metavar="FLAGS|KERNEL|CMD", help="time this in turn: flags ('none' for none), kernel, program"
)
@click.option("--program", metavar="CMD", help="time an ordinary program by the wall clock")
@click.option("--run-in", type=click.Path(path_type=Path), metavar="DIR", help="folder of --program (default: empty)")
@click.option("--stdin", metavar="FILE", help="what the programs read from standard input (default: nothing)")
@click.option("--case", "case", default="", metavar="NAME|MxNxK", help="case to time")
@click.option("--rounds", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option(
    "--warmups", type=click.IntRange(0, 1000), default=3, show_default=True, help="dropped, before each round"
)
@click.option("--input", "data", type=click.Choice(["random", "zero"]), default="random", help="zero is refused")
@click.option("--confidence", type=FiniteRange(0.5, 0.9999), default=0.95, show_default=True)
@click.option("--min-health", type=FiniteRange(0), metavar="TFLOPS", help="least of the shipped GEMM on the device")
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/bench.schema.json)")
@html_options
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help="keep the built programs here")
@click.pass_obj
def bench(
    console: Console,
    /,
    kernel: str | None,
    against: str | None,
    program: str | None,
    as_json: bool,
    html: Path | None,
    figures: Path | None,
    out: Path | None,
    **values: Any,
) -> int:
    places = page_places(html, figures, also_stdout="--json" if as_json else "")
    if program is None and values["stdin"] is not None:
        raise UsageError("--stdin goes with --program", hint="a kernel's host program reads no standard input")
    if program is not None:
        return _programs(console, kernel, program, against, values, as_json=as_json, places=places)
    from mccprobe.tuning.bench.session import bench_kernels

    choice = choose_kernel(console, kernel or DEFAULT_KERNEL, values)
    contenders = _contenders(choice, against)
    hooks = hooks_of(console, choice, values, sides=len(contenders))
    with build_folder(out, "bench") as folder:
        report = bench_kernels(contenders, choice.toolchain, settings_of(values), folder, hooks)
    for gate in report.gates:
        require_built(gate)
    document = _document("kernel", report.refused, report.to_dict())

    def show() -> None:
        _deliver(console, places, document, lambda: render_bench(report), as_json=as_json)

    with answered(show, as_json=as_json):
        record(
            values,
            "bench",
            choice,
            text=f"bench of {' against '.join(one.name for one in contenders)}",
            verdict=report.gates[0].verdict if report.gates else None,
            figures=figures_of(report),
            health=health_entry(report),
            run_directory=out,
        )
    return 1 if report.refused else 0


def _document(kind: str, refused: str, found: dict[str, Any]) -> dict[str, Any]:
    status = "refused" if refused else "measured"
    return {"schema_version": 1, "tool_version": __version__, "status": status, "kind": kind, **found}


def _deliver(
    console: Console, places: Places | None, document: dict[str, Any], text: Callable[[], str], *, as_json: bool
) -> None:
    def show() -> None:
        if as_json:
            console.document(document)
        else:
            console.result(visible(text()))

    def page() -> Page:
        from mccprobe.report.pages.bench_page import bench_page

        return bench_page(document)

    deliver(console, places, page, show, as_json=as_json)


def settings_of(values: dict[str, Any]) -> Any:
    """The options as BenchSettings."""
    from mccprobe.tuning.bench.session import BenchSettings

    return BenchSettings(
        cases=values["cases"],
        seeds=tuple(values["seeds"]),
        case=values["case"],
        rounds=values["rounds"],
        warmups=values["warmups"],
        data=values["data"],
        confidence=values["confidence"],
        min_health=values["min_health"],
        arch=values["arch"],
        timeout_s=values["timeout"],
        compile_timeout_s=values["compile_timeout"],
    )


def hooks_of(console: Console, choice: KernelChoice | None, values: dict[str, Any], *, sides: int = 1) -> Hooks:
    """Progress to standard error. sides: how many are timed in turn."""
    from mccprobe.inspection.lines import one_line
    from mccprobe.tuning.bench.session import Hooks

    simulated = choice is not None and choice.toolchain.simulated
    mark = "  [sim: emulation time]" if simulated else ""
    pace = Pace()
    read = 0

    def stage(text: str) -> None:
        pace.begin()
        console.progress(text)

    def reading(name: str, ordinal: int, ms: float) -> None:
        nonlocal read
        read += 1
        pace.step()
        left = pace.left(max(0, values["rounds"] * sides - read), about="")
        last = one_line(f"round {ordinal + 1} {name}: {ms:.4g} ms{mark}")
        console.progress(last, live=f"readings: {left}, {last}")

    # of two builds the second one's cases are not planned yet
    runs = planned_runs(choice, values) if choice is not None and sides == 1 else None
    return Hooks(stage=stage, case=case_teller(console, simulated=simulated, runs=runs), reading=reading)


def _contenders(choice: KernelChoice, against: str | None) -> list[Contender]:
    from mccprobe.base.paths import is_file
    from mccprobe.oracle.kernel.shipped import FILE_NAME, find_shipped_kernels
    from mccprobe.tuning.bench.session import Contender
    from mccprobe.tuning.check.subject import runnable_kernel, split_flags

    defines = tuple(sorted(choice.defines.items()))
    base = Contender(_name(choice.kernel.name, choice.flags, defines), choice.kernel, choice.flags, defines)
    if against is None:
        return [base]
    path = Path(against)
    shipped = {folder.name for folder in find_shipped_kernels()}
    if against in shipped or is_file(path) or is_file(path / FILE_NAME):
        other = runnable_kernel(against)
        return [base, Contender(_name(other.name, choice.flags, (), "against: "), other, choice.flags)]
    flags = split_flags(against)
    return [base, Contender(_name(choice.kernel.name, flags, defines, "against: "), choice.kernel, flags, defines)]


def _name(
    kernel: str, flags: tuple[tuple[str, ...], ...], defines: tuple[tuple[str, str], ...], before: str = ""
) -> str:
    """-D parameters too: another kernel in `--against` is timed without them."""
    words = [kernel, *(flag[-1] for flag in flags), *(f"-D{name}={value}" for name, value in defines)]
    return before + " ".join(words)


def render_bench(report: BenchReport) -> str:
    """The gates in a line each, then the timing."""
    from mccprobe.report.text.bench import SIM, render_measurement
    from mccprobe.report.text.check import render_score

    lines = [
        f"gate: {gate.kernel.name} {'passed' if gate.passed else 'NOT PASSED'} ({gate.verdict})"
        + ("  [sim]" if gate.simulated else "")
        for gate in report.gates
    ]
    text = "\n".join(lines) + "\n" if lines else ""
    if report.measurement is None:
        mark = SIM if report.simulated else ""
        health = f"health: {report.health.reason}\n" if report.health else ""
        return f"{health}{text}NOT TIMED: {report.refused}{mark}\n"
    text = render_measurement(report.measurement, simulated=report.simulated, health=report.health) + text
    return text + (f"grader's score: {render_score(report.score)}\n" if report.score else "")


def figures_of(report: BenchReport) -> dict[str, tuple[float | None, str]]:
    """What the journal keeps of a measurement."""
    found = report.measurement
    if found is None or not found.sides:
        return {}
    figures: dict[str, tuple[float | None, str]] = {}
    for name, side in zip(("median", "against_median"), found.sides, strict=False):
        figures[name] = (side.summary.median, "ms")
    if found.sides[0].tflops is not None:
        figures["tflops"] = (found.sides[0].tflops.median, "TFLOPS")
    if found.ratio is not None:
        figures["ratio"] = (found.ratio.estimate, "")
    return figures


def health_entry(report: BenchReport) -> dict[str, Any] | None:
    """What the journal keeps of the health."""
    found = report.health
    return None if found is None else {"value": found.value, "unit": "TFLOPS", "reason": found.reason}


def _programs(
    console: Console,
    kernel: str | None,
    program: str,
    against: str | None,
    values: dict[str, Any],
    *,
    as_json: bool,
    places: Places | None,
) -> int:
    from mccprobe.oracle.run_input import stdin_file
    from mccprobe.report.text.bench import render_measurement
    from mccprobe.tuning.bench.session import bench_programs

    if kernel is not None:
        raise UsageError("--program and a kernel do not go together", hint="bench one or the other")
    commands = [_words("--program", program), *([_words("--against", against)] if against is not None else [])]
    found = bench_programs(
        commands,
        rounds=values["rounds"],
        warmups=values["warmups"],
        confidence=values["confidence"],
        run_in=values["run_in"],
        timeout_s=values["timeout"],
        stdin=None if values["stdin"] is None else stdin_file(values["stdin"]),
        hooks=hooks_of(console, None, values, sides=len(commands)),
    )
    document = _document("program", found.refused, {"measurement": found.to_dict()})
    _deliver(console, places, document, lambda: render_measurement(found, simulated=False), as_json=as_json)
    return 1 if found.refused else 0


def _words(option: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} cannot be split: {error}: {text}") from error
    if not words:
        raise UsageError(f"{option} is empty", hint=f"for example {option} './a.out 100'")
    if "/" in words[0]:
        words[0] = str(Path(words[0]).absolute())
    return words
