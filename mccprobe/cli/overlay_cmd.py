"""`mccprobe overlay`: a changed SDK header tried without touching the SDK."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mccprobe.base.console import Console
from mccprobe.base.errors import InputError, UsageError
from mccprobe.cli.common import cache_directory
from mccprobe.cli.kernel_options import (
    CONTEXT,
    KernelChoice,
    answered,
    case_teller,
    choose_kernel,
    folder_below,
    gate_arguments,
    kernel_options,
    record,
)

if TYPE_CHECKING:
    from mccprobe.tuning.overlay.change import Replacement

HELP = """Try a changed SDK header: resources and correctness of a kernel before and after.

The change goes into a copy that compiles find first; the SDK stays as it is. It must apply exactly once, and the
compiler's own dependency output must show that the copy is read. Left in DIR: the diff, both builds, and a page for
a bug report. Exit 0: the kernel passes with the change; 1: it does not.

\b
Examples:
  mccprobe overlay accumulators-16 --header crt/mma.h \\
    --replace '__frag_base<float, 32>' '__frag_base<float, 8>' --toolchain sim
  mccprobe overlay my/kernel --header crt/mma.h --patch smaller.patch --toolchain mcc
"""


@click.command("overlay", help=HELP, context_settings=CONTEXT)
@click.argument("kernel")
@click.option("--header", required=True, metavar="NAME", help="as it is included: crt/mma.h")
@click.option("--replace", "replaces", nargs=2, multiple=True, metavar="OLD NEW", help="text that stands there once")
@click.option("--patch", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="a unified diff")
@kernel_options
@click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/overlay.schema.json)")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="where it is left [default: a new folder below mccprobe-out]",
)
@click.pass_obj
def overlay(
    console: Console,
    /,
    kernel: str,
    header: str,
    replaces: tuple[tuple[str, str], ...],
    patch: Path | None,
    as_json: bool,
    out: Path | None,
    **values: Any,
) -> int:
    from mccprobe.build.store import disk_errors
    from mccprobe.report.text.overlay import render_overlay, render_question
    from mccprobe.targets.mcc.toolchain import MccPaths
    from mccprobe.tuning.overlay.run import OverlayRequest
    from mccprobe.tuning.overlay.run import overlay as run_overlay

    changes = _changes(replaces, patch)
    choice = choose_kernel(console, kernel, values)
    parent = out or Path("mccprobe-out")
    with folder_below(parent, lambda: tempfile.mkdtemp(prefix="overlay-", dir=parent)) as folder:
        request = OverlayRequest(
            choice.kernel,
            choice.toolchain,
            header,
            changes,
            folder,
            cache_directory(),
            MccPaths(values["mcc"], values["musa_path"]),
            choice.flags,
            choice.defines,
            **gate_arguments(values),
        )
        report = run_overlay(request, case_teller(console, simulated=choice.toolchain.simulated))
        with disk_errors(folder):
            page = render_question(report, _options_again(choice, values))
            (folder / "question.md").write_text(page, encoding="utf-8", errors="backslashreplace")

    def show() -> None:
        if as_json:
            console.document(report.to_dict())
        else:
            console.result(render_overlay(report))

    with answered(show, as_json=as_json):
        record(
            values,
            "check",
            choice,
            text=f"overlay of {header}: {report.conclusion}",
            verdict=report.after.gate.verdict,
            figures={"max_err": (report.after.gate.worst_error, "")},
            run_directory=folder,
        )
    return 0 if report.after.gate.passed else 1


def _changes(replaces: tuple[tuple[str, str], ...], patch: Path | None) -> list[Replacement]:
    from mccprobe.base.paths import read_file
    from mccprobe.tuning.overlay.change import parse_patch, replacement

    if bool(replaces) == (patch is not None):
        raise UsageError("the change is given by --replace OLD NEW or by --patch FILE", hint="give one of the two")
    if patch is None:
        return [replacement(old, new) for old, new in replaces]
    try:
        return parse_patch(read_file(patch, stream=True).decode("utf-8", "surrogateescape"), patch.name)
    except OSError as error:
        raise InputError(f"{patch}: {error.strerror or error}") from error


def _options_again(choice: KernelChoice, values: Mapping[str, Any]) -> list[str]:
    """Options of the command that say what was built and checked."""
    options = ["--toolchain", choice.toolchain.name, "--arch", values["arch"], "--case", values["cases"]]
    options += [word for seed in values["seeds"] for word in ("--seed", str(seed))]
    options += [word for flag in choice.flags for word in ("--flag", " ".join(flag))]
    return options + [word for name, value in choice.defines.items() for word in ("-D", f"{name}={value}")]
