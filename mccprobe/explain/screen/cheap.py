"""The cheap part of the screen: what a bisection can afford while its search leaves a core idle.

The compiler's warnings, one run with ASan and UBSan, one with MSan where there is one, and one with uninitialised
locals filled. `bisect_run` may not import this package: its caller passes `cheap_screen` in as a callable.
"""

from __future__ import annotations

from collections.abc import Callable

from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.screen.run import ScreenChecks, answered
from mccprobe.report.why_record import Screen


def cheap_screen(
    workspace: Workspace, *, tell: Callable[[str], None] = lambda text: None, deadline: Deadline | None = None
) -> Screen:
    """The cheap checks of the build under examination, one after the other in the calling thread's place.

    `.clean` is False where the program may be at fault, and `.reason` holds why; a check that could not be run has the
    outcome NOT_RUN and is never clean. Its compiles and runs go through the workspace's ledger and journal. A search of
    the same workspace may run at the same time: in a folder of the user's one program runs at a time.
    """
    limit = deadline or Deadline()
    checks = ScreenChecks(workspace, limit)
    return answered(checks, checks.cheap_rows(), tell=tell, deadline=limit, workers=1)
