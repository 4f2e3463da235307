"""Other code generators for the IR in front of a pass: does it hold the fault already?

-O0 believes least of what a pass deduced, so it also hides most: an access that is out of bounds in the IR can read
the right value there. A pass that only copies such a fault turns a GOOD program into a BAD one and is innocent. So
IR that is GOOD at -O0 is compiled at the build's own level too, and with the next newer clang that is installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mccprobe.base.errors import MccprobeError
from mccprobe.bisection.judge import Judge
from mccprobe.build.job import OUTPUT, CompileJob
from mccprobe.build.unit import UNLIMITED, Unit
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.targets import registry
from mccprobe.targets.flags.levels import levels_in
from mccprobe.targets.llvm.locate import installed_clangs


@dataclass(frozen=True)
class Opinion:
    """One further code generator, and what the program does that it made of the IR."""

    name: str
    outcome: Outcome


def opinions(unit: Unit, judge: Judge, limit: int) -> tuple[Opinion, ...]:
    """What the other code generators make of the IR at this limit, the build's own level first.

    One that gives no object or no verdict is left out: it neither accuses nor acquits.
    """
    found = []
    for name, job in _jobs(unit, limit):
        compiled = unit.ledger.compile(job)
        outcome = judge.run_briefly(compiled.object) if compiled.object is not None else None
        if outcome is not None and outcome.verdict is not Verdict.UNRESOLVED:
            found.append(Opinion(name, outcome))
    return tuple(found)


def contradiction(given: Sequence[Opinion], symptom: str) -> Opinion | None:
    """The opinion that withholds "found": the IR before the pass shows the very fault of the bad side.

    symptom: what the bad side does. The first opinion decides; a program that is wrong in another way may have met
    a fault of that code generator instead (tests/cases/16: vectorised IR, two code generators, two wrong results).
    """
    first = given[0] if given else None
    if first is None or first.outcome.verdict is not Verdict.BAD or first.outcome.reason != symptom:
        return None
    return first


def optimised_ir_is_wrong(unit: Unit, judge: Judge) -> Opinion | None:
    """The same for the IR that reaches the code generator, at -O0 first: for passes of the code generator."""
    path = _bitcode(unit, UNLIMITED)
    plain = unit.plain_back_end_job(path, f"{unit.tag} optimised IR, code generator at -O0") if path else None
    if plain is not None:
        compiled = unit.ledger.compile(plain)
        outcome = judge.run_briefly(compiled.object) if compiled.object else None
        if outcome is not None and outcome.verdict is Verdict.BAD:
            return Opinion("the code generator at -O0", outcome)
    return None


def _bitcode(unit: Unit, limit: int) -> Path | None:
    job = unit.job(limit, emit="-emit-llvm-bc", label=f"{unit.tag} bitcode at {limit}")
    outcome = unit.ledger.compile(replace(job, suffix=".bc"))
    return unit.ledger.run.object_path(outcome.object) if outcome.object is not None else None


def _jobs(unit: Unit, limit: int) -> Iterator[tuple[str, CompileJob]]:
    path = _bitcode(unit, limit)
    if path is None:
        return
    source = unit.recorded
    argv = source.counter.at_limit(
        source.jobs[source.active], str(path), OUTPUT, limit=None, options=unit.options, bitcode=True
    )
    argv = source.counter.code_generator(argv)
    level = (levels_in(argv) or ["-O0"])[-1]
    label = f"{unit.tag} IR at {limit}, code generator"
    own = replace(source.template(), argv=(*source.prefix, *argv), label=f"{label} at {level}")
    yield f"the whole code generator at {level}", own
    found = _newer_clang(unit)
    if found is not None:
        name, driver = found
        driven = (driver, level, "-Xclang", "-disable-llvm-passes", *_position(argv), "-Wno-everything", "-x", "ir")
        command = (*source.prefix, *driven, "-c", str(path), "-o", OUTPUT)
        yield (
            f"the code generator of {name} at {level}",
            replace(source.template(), argv=command, label=f"{label} of {name}"),
        )


def _position(argv: tuple[str, ...]) -> tuple[str, ...]:
    """A program is linked as the build's own driver links it, so its code must be relocatable alike."""
    return ("-fPIE",) if "-pic-is-pie" in argv else ("-fPIC",) if "-pic-level" in argv else ("-fno-pic",)


def _newer_clang(unit: Unit) -> tuple[str, str] | None:
    """The installed clang of the next higher version: an older one does not read newer IR."""
    toolchain = unit.recorded.toolchain
    target = registry.find(toolchain.name)
    if target is None or target.device:
        return None
    try:
        mine = toolchain.identify().clang_major
    except MccprobeError:
        return None
    for name, path in installed_clangs().items():
        major = name.rpartition("-")[2]
        if mine is not None and major.isdecimal() and int(major) > mine:
            return name, str(path)
    return None
