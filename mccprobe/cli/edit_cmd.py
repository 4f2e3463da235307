"""`mccprobe edit`: changes to a kernel that are kept only when the gate passes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mccprobe import __version__
from mccprobe.base.console import Console
from mccprobe.cli.kernel_options import (
    CONTEXT,
    KernelChoice,
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

if TYPE_CHECKING:
    from mccprobe.oracle.kernel.spec import KernelSpec
    from mccprobe.tuning.check.check import GateReport
    from mccprobe.tuning.cycle.edit import EditOutcome

_json_option = click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/edit.schema.json)")


@click.group("edit", context_settings=CONTEXT)
def edit() -> None:
    """Change a kernel; the last good version is kept, and what fails the gate is not.

    \b
    Example:
      mccprobe edit begin my/kernel
      (edit the source)
      mccprobe edit test my/kernel
      mccprobe edit keep my/kernel        or: mccprobe edit revert my/kernel
    """


@edit.command("begin", context_settings=CONTEXT)
@click.argument("kernel")
@kernel_options
@click.option("--unchecked", is_flag=True, help="without a gate: the kernel is wrong, and the edit is to mend it")
@_json_option
@click.pass_obj
def begin(console: Console, /, kernel: str, unchecked: bool, as_json: bool, **values: Any) -> int:
    """Keep what is there as the last good version, if it passes, and open an edit."""
    from mccprobe.tuning.cycle import edit as library

    choice = choose_kernel(console, kernel, values)
    outcome = library.begin(choice.kernel, _gate(console, choice, values), unchecked=unchecked)
    return _show(console, outcome, choice, values, as_json=as_json)


@edit.command("test", context_settings=CONTEXT)
@click.argument("kernel")
@kernel_options
@_json_option
@click.pass_obj
def test(console: Console, /, kernel: str, as_json: bool, **values: Any) -> int:
    """Run the gate on what is there now."""
    from mccprobe.tuning.cycle import edit as library

    return _gated(console, kernel, values, library.test, as_json=as_json)


@edit.command("keep", context_settings=CONTEXT)
@click.argument("kernel")
@kernel_options
@_json_option
@click.pass_obj
def keep(console: Console, /, kernel: str, as_json: bool, **values: Any) -> int:
    """Make what is there the last good version and close the edit, if the gate passes it."""
    from mccprobe.tuning.cycle import edit as library

    return _gated(console, kernel, values, library.keep, as_json=as_json)


@edit.command("revert", context_settings=CONTEXT)
@click.argument("kernel")
@_json_option
@click.pass_obj
def revert(console: Console, /, kernel: str, as_json: bool) -> int:
    """Put the last good version back and close the edit."""
    from mccprobe.tuning.cycle import edit as library

    outcome = library.revert(_folder(kernel))
    return _show(console, outcome, None, {}, as_json=as_json)


def _gate(console: Console, choice: KernelChoice, values: dict[str, Any]) -> Callable[[KernelSpec], GateReport]:
    def gate(kernel: KernelSpec) -> GateReport:
        from mccprobe.tuning.check.check import check_kernel

        with build_folder(None, "edit") as folder:
            return check_kernel(
                kernel,
                choice.toolchain,
                flags=choice.flags,
                defines=choice.defines,
                folder=folder,
                tell=case_teller(console, simulated=choice.toolchain.simulated, runs=planned_runs(choice, values)),
                **gate_arguments(values),
            )

    return gate


def _gated(console: Console, kernel: str, values: dict[str, Any], step: Callable[..., Any], *, as_json: bool) -> int:
    """`step` of the library, which asks the gate about what is there now."""
    choice = choose_kernel(console, kernel, values)
    outcome = step(choice.kernel, _gate(console, choice, values), _asked(choice, values))
    return _show(console, outcome, choice, values, as_json=as_json)


def _folder(text: str) -> Path:
    """Of a kernel that need not be readable: the edit may have broken its kernel.toml. Raises InputError."""
    from mccprobe.base.errors import InputError
    from mccprobe.base.paths import exists, is_folder, resolved
    from mccprobe.oracle.kernel.shipped import hint_of_shipped, kernels_folder

    path, shipped = Path(text), kernels_folder()
    if not exists(path) and "/" not in text and shipped is not None:
        path = shipped / text
    if not exists(path):
        raise InputError(f"{text}: no such folder, and no shipped kernel", hint=hint_of_shipped(path))
    return resolved(path if is_folder(path) else path.parent)


def _asked(choice: KernelChoice, values: dict[str, Any]) -> dict[str, Any]:
    """What decides the gate's answer beside the files: a test with other flags or another compiler is none."""
    return {
        "toolchain": choice.toolchain.name,
        "compiler": choice.toolchain.identify().fingerprint,
        "flags": [list(flag) for flag in choice.flags],
        "defines": dict(choice.defines),
        "arch": values["arch"],
        "cases": values["cases"],
        "seeds": list(values["seeds"]),
    }


def _show(
    console: Console, outcome: EditOutcome, choice: KernelChoice | None, values: dict[str, Any], *, as_json: bool
) -> int:
    simulated = outcome.gate.simulated if outcome.gate else None
    if choice is not None and outcome.gate is None and outcome.action == "keep":  # on the answer of an earlier test
        simulated = choice.toolchain.simulated

    def show() -> None:
        if outcome.gate is not None and outcome.action == "begin":
            require_built(outcome.gate)
        if as_json:
            status = "done" if outcome.done else "not-done"
            console.document(
                {
                    "schema_version": 1,
                    "tool_version": __version__,
                    "status": status,
                    "simulated": simulated,
                    **outcome.to_dict(),
                }
            )
            return
        from mccprobe.inspection.lines import one_line

        mark = "  [sim]" if simulated else ""
        lines = [f"edit {outcome.action} {outcome.kernel.name}: {outcome.text}{mark}"]
        lines += [f"  {name}" for name in outcome.files]
        lines += [f"  note: {note}" for note in outcome.notes]
        console.result("\n".join(map(one_line, lines)))

    with answered(show, as_json=as_json):
        if choice is not None and outcome.gate is not None:
            record(
                values,
                "check",
                choice,
                text=f"edit {outcome.action} of {outcome.kernel.name}: {outcome.text}",
                verdict=outcome.gate.verdict,
                figures={"max_err": (outcome.gate.worst_error, "")},
            )
    return 0 if outcome.done else 1
