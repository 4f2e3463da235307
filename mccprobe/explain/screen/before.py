"""The IR before the culprit: does it use undef, poison or memory out of bounds? Then the pass only exposes it."""

from __future__ import annotations

from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.screen.ir import POISON, UNDEF
from mccprobe.explain.screen.run import ScreenChecks
from mccprobe.report.why_record import ScreenOutcome


def doubts_of_ir(workspace: Workspace, text: str) -> tuple[str, ...]:
    """One sentence for each kind of undefined behaviour that shows in this module, built at -O0 and run.

    text: the whole module as IR, before the pass under suspicion.
    """
    if workspace.unit.recorded.offload:
        return ()
    screen = ScreenChecks(workspace, Deadline())
    checks = [check() for name, _, check in screen.ir_of(text).rows(cheap=True) if name in (POISON, UNDEF)]
    checks.append(screen.sanitizers.asan_of(text))
    return tuple(
        "the IR before the pass has the fault already, so the pass only exposes it: "
        f"{check.name}: {check.text.splitlines()[0]}"
        for check in checks
        if check.outcome is ScreenOutcome.FINDING
    )
