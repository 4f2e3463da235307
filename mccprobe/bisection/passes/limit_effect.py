"""Whether a pass limit changes objects at all: without that, equal objects say nothing about where a fault is."""

from __future__ import annotations

from dataclasses import replace

from mccprobe.base.errors import LimitHasNoEffect
from mccprobe.bisection.passes.pass_axis import PassAxis
from mccprobe.build.job import OUTPUT, CompileOutcome
from mccprobe.build.unit import UNLIMITED, Unit
from mccprobe.oracle.verdict import Unbuildable
from mccprobe.targets.llvm.witness import on_witness, witness_of

UNKNOWN_EFFECT = (
    "limit 0 and the compile without a limit give one object: no pass changes this source, or the limit has no effect "
    "in this compiler (a test compile that decides between them failed)"
)


def require_effect(unit: Unit, axis: PassAxis) -> list[str]:
    """Warnings about a limit whose effect is not known. Raises LimitHasNoEffect.

    Asked only where the ends of the search are one object. A source that no pass changes is no fault of the
    compiler's, so a witness decides.
    """
    first, last = axis.object_at(0), axis.object_at(axis.total)
    if isinstance(first, Unbuildable) or isinstance(last, Unbuildable) or first != last:
        return []
    at_zero, unlimited = _witness(unit, 0), _witness(unit, UNLIMITED)
    if at_zero is None or unlimited is None or at_zero.object is None or unlimited.object is None:
        return [UNKNOWN_EFFECT]
    if at_zero.log.ran or not at_zero.log.total:
        return [UNKNOWN_EFFECT]
    if at_zero.object == unlimited.object:
        recorded = unit.recorded
        raise LimitHasNoEffect(recorded.toolchain.driver[0], recorded.counter.spelled(0), str(unit.source))
    return []


def _witness(unit: Unit, limit: int) -> CompileOutcome | None:
    """The witness at one limit, with the command of this unit; None where its language has no witness."""
    source = unit.recorded
    job = source.jobs[source.active]
    found = witness_of(job)
    if found is None:
        return None
    language, text = found
    path = source.folder / f"witness.{language}"
    path.write_text(text, encoding="utf-8")
    argv = source.counter.at_limit(on_witness(job, str(path)), "", OUTPUT, limit=limit)
    return source.ledger.compile(
        replace(source.template(), argv=(*source.prefix, *argv), limit=limit, label=f"witness limit {limit}")
    )
