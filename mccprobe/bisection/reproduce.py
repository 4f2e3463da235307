"""The commands that make both sides of the edge by hand, without mccprobe: compile, link, run."""

from __future__ import annotations

from mccprobe.bisection.request import BisectRequest
from mccprobe.build.unit import UNLIMITED, Unit
from mccprobe.oracle.checks import Oracle
from mccprobe.targets.llvm.command import is_source, language, split_arguments, without_language
from mccprobe.targets.llvm.inherited import prefix


def reproduce_commands(
    request: BisectRequest, unit: Unit, oracle: Oracle, limit: int | None, total: int, side: str
) -> tuple[tuple[str, ...], ...]:
    """Compile, link and run one side. Driver commands: the limit then reaches the host compile of an
    offload build as well, which mccprobe itself leaves alone.
    """
    if limit is None:
        return ()
    number = limit if limit < total else UNLIMITED
    stem = request.source.stem
    if stem.startswith("-"):
        stem = f"./{stem}"
    compiled = f"{stem}.{side}.o"
    program = f"./{stem.removeprefix('./')}.{side}"
    rest_args = request.reference_args if request.reference_args is not None else request.bad_args
    compiler = (*prefix(request.inherited), *request.toolchain.driver)
    commands = [
        (
            *unit.recorded.prefix, *compiler, *request.bad_args,
            "-mllvm", f"-opt-bisect-limit={number}", "-c", str(request.source), "-o", compiled,
        )
    ]  # fmt: skip
    inputs = []
    forced = language(split_arguments(rest_args))
    for index, name in enumerate(request.inputs):
        if not is_source(name, forced):
            inputs.append(name)
            continue
        output = f"{stem}.rest-{index}.o"
        commands.append((*compiler, *rest_args, "-c", name, "-o", output))
        inputs.append(output)
    link = (*without_language(request.bad_args), compiled, *inputs, *request.link_args, "-o", program)
    commands.append((*compiler, *link))
    run = tuple(oracle.command(program))
    stdin = request.oracle.stdin
    commands.append(run if stdin is None else ("sh", "-c", 'exec "$@" <"$0"', str(stdin), *run))
    return tuple(commands)
