"""The commands that make both sides of the edge by hand, without mccprobe: compile, link, run."""

from __future__ import annotations

from mccprobe.bisection.passes.request import BisectRequest
from mccprobe.build.unit import UNLIMITED, Unit
from mccprobe.oracle.checks import Oracle
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
    compiler = (*prefix(request.inherited), *request.toolchain.driver)
    limited = request.record.with_args((*request.bad_args, *unit.recorded.counter.driver_arguments(number)))
    objects = {request.unit: compiled}
    for place, one in enumerate(request.rest.other_inputs(request.unit)):
        if not isinstance(one, str):
            objects[one] = f"{stem}.rest-{place}.o"
    others = [(number, one) for number, one in enumerate(request.rest.units) if number != request.unit]
    run = tuple(oracle.command(program))
    stdin = request.oracle.stdin
    return (
        (*unit.recorded.prefix, *compiler, *limited.arguments(compiled)),
        *((*compiler, *one.arguments(objects[number])) for number, one in others),
        (*compiler, *request.build.link_arguments(objects, request.bad_args, program)),
        run if stdin is None else ("sh", "-c", 'exec "$@" <"$0"', str(stdin), *run),
    )
