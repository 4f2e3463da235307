"""The IR before the culprit: does it use a value that is undef or poison already? Then the pass only exposes it."""

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
    rows = ScreenChecks(workspace, Deadline()).ir_of(text).rows(cheap=True)
    checks = [check() for name, _, check in rows if name in (POISON, UNDEF)]
    return tuple(
        f"the IR before the pass has the fault already, so the pass only exposes it: {check.text}"
        for check in checks
        if check.outcome is ScreenOutcome.FINDING
    )
