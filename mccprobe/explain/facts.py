"""What a compiler team asks first: does it fail with the compiler's defaults, at -O0, -O2, -Od3?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mccprobe.base.errors import MccprobeError, NoRoom
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.judged import Judging
from mccprobe.report.why_record import BuildFact
from mccprobe.targets.flags.given import CompilerFlag
from mccprobe.targets.flags.levels import is_any_level
from mccprobe.targets.llvm.command import split_arguments

LEVELS = ("-O0", "-O2")
DEVICE_LEVEL = "-Od3"  # mcc's own; another compiler refuses it, which is found out by asking


def build_facts(
    workspace: Workspace, judging: Judging, *, tell: Callable[[str], None], deadline: Deadline
) -> tuple[BuildFact, ...]:
    """One fact a build. The flags under examination stay, except in the compiler's defaults."""
    request = workspace.request
    plain = without_levels(request.args)
    builds: list[tuple[str, Sequence[str], Sequence[CompilerFlag]]] = [
        ("compiler defaults: no -O option, none of the flags", plain, ())
    ]
    named = "with the flags" if request.flags else "with the other arguments of the bad build"
    for level in (*LEVELS, DEVICE_LEVEL):
        kept = request.args if level == DEVICE_LEVEL else plain  # -Od3 stands beside -O2 or -O3
        builds.append((f"{level} {named}", (*kept, level), request.flags))
    found = []
    for number, (name, args, flags) in enumerate(builds):
        if deadline.passed:
            found.append(BuildFact(name, None, "not tried: no time left"))
            continue
        tell(f"other builds: {name}")
        found.append(_fact(workspace, judging, name, args, flags, f"fact-{number}"))
    return tuple(found)


def without_levels(args: Sequence[str]) -> tuple[str, ...]:
    """The options without any optimisation level."""
    return tuple(a for group in split_arguments(args).options if not is_any_level(group[0]) for a in group)


def _fact(
    workspace: Workspace, judging: Judging, name: str, args: Sequence[str], flags: Sequence[CompilerFlag], tag: str
) -> BuildFact:
    toolchain = workspace.request.toolchain
    if args[-1:] == (DEVICE_LEVEL,):
        with workspace.ledger.run.scratch("level") as scratch:
            if toolchain.refusal((DEVICE_LEVEL,), scratch):
                return BuildFact(name, None, f"not tried: this compiler does not take {DEVICE_LEVEL}")
    try:
        judge = workspace.variant(flags, tag, args=args)
    except NoRoom:
        raise
    except MccprobeError as error:
        return BuildFact(name, None, f"does not build: {error.message}")
    unit = judge.program.unit
    judged = judging.of(unit.base[unit.recorded.active], judge)
    bad = workspace.unit
    same = "; the object is the bad build's" if judged.object == bad.base[bad.recorded.active] else ""
    return BuildFact(name, judged.verdict.value, f"{judged.fails} of {judged.runs} runs BAD; {judged.reason}{same}")
