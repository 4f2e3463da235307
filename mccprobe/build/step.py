"""One compile or link of a recorded build as the plain command that its build ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.build.record import TranslationUnit
from mccprobe.build.store import require_room
from mccprobe.targets.protocol import Toolchain

Step = Callable[[RunSpec], RunResult]
DETAIL_CHARACTERS = 4000  # of a compiler's message; the last errors are at its end


@dataclass(frozen=True)
class Done:
    """One command that ran. failure: "" if it wrote its output; detail: the tool's own message, with its end whole."""

    command: tuple[str, ...]
    failure: str
    detail: str
    seconds: float
    text: str = ""


def run_step(
    command: Sequence[str],
    output: Path,
    *,
    scratch: Path,
    env: Mapping[str, str],
    timeout_s: float,
    cwd: Path | None = None,
    step: Step = run,
) -> Done:
    """Run a command that writes `output`. step: where it runs, such as an executor's `build_step`.

    scratch: where its temporary files are. Raises NoRoom when the disk is full: that says nothing about the input.
    """
    result = step(RunSpec(list(command), cwd=cwd, env=dict(env), timeout_s=timeout_s))
    message = result.stderr_text.strip()[-DETAIL_CHARACTERS:]
    if result.ok and output.is_file():
        return Done(tuple(command), "", message, result.seconds, result.stderr_text + result.stdout_text)
    require_room(scratch, result.stderr, result.returncode)
    failure = "exit 0 but no output was written" if result.ok else result.describe()
    return Done(tuple(command), failure, message, result.seconds)


def compile_unit(
    toolchain: Toolchain,
    unit: TranslationUnit,
    output: Path,
    *,
    scratch: Path,
    timeout_s: float,
    cwd: Path | None = None,
    step: Step = run,
    more: Sequence[str] = (),
) -> Done:
    """Compile one unit to its object. cwd: in place of the unit's own folder. more: further driver arguments."""
    env = {**toolchain.environment(scratch), **unit.environment}
    command = (*unit.argv(toolchain, str(output)), *more)
    return run_step(
        command, output, scratch=scratch, env=env, timeout_s=timeout_s, cwd=cwd or unit.working_directory, step=step
    )


def link_program(
    toolchain: Toolchain,
    inputs: Sequence[str],
    options: Sequence[str],
    output: Path,
    *,
    scratch: Path,
    timeout_s: float,
    cwd: Path | None = None,
    step: Step = run,
) -> Done:
    """Link objects and libraries to a program."""
    command = toolchain.link_argv(inputs, options, str(output))
    env = toolchain.environment(scratch)
    return run_step(command, output, scratch=scratch, env=env, timeout_s=timeout_s, cwd=cwd, step=step)
