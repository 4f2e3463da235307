"""Is the program itself at fault? The cheap part of the screen, run while the search leaves a core idle.

The screen is a package above this one, so the caller passes it in as a callable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from mccprobe.base.errors import Interrupted, MccprobeError, NoRoom
from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.report.record import CheckState, ProgramCheck
from mccprobe.report.why_record import Screen, ScreenOutcome
from mccprobe.search.trial import Purpose, Trial

NOT_ASKED = "this run made no check of it"


CheapScreen = Callable[[Workspace], Screen]


class BackgroundCheck:
    """Starts the screen with the first trial between the ends, for before that there is nothing to accuse."""

    def __init__(self, workspace: Workspace, screen: CheapScreen | None) -> None:
        self._workspace = workspace
        self._screen = screen
        self._thread: threading.Thread | None = None
        self._found: Screen | BaseException | None = None

    def __call__(self, trial: Trial) -> None:
        if trial.purpose not in (Purpose.GOOD_END, Purpose.BAD_END):
            self.start()

    def start(self) -> None:
        """Begin, once."""
        if self._screen is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="screen", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        assert self._screen is not None
        try:
            self._found = self._screen(self._workspace)
        except BaseException as error:  # the waiting side decides what it means
            self._found = error

    def result(self) -> ProgramCheck:
        """Wait for it. Raises Interrupted and NoRoom; any other failure means that nothing was checked."""
        self.start()
        if self._thread is None:
            return ProgramCheck(CheckState.NOT_RUN, NOT_ASKED)
        self._thread.join()
        found = self._found
        if isinstance(found, Interrupted | NoRoom) or (
            isinstance(found, BaseException) and not isinstance(found, MccprobeError)
        ):
            raise found
        if isinstance(found, MccprobeError):
            return ProgramCheck(CheckState.NOT_RUN, f"the check failed: {found.message}")
        return check_of(found)


def check_of(found: Screen | None) -> ProgramCheck:
    """The record of what a screen found."""
    if found is None or not found.checks:
        return ProgramCheck(CheckState.NOT_RUN, NOT_ASKED)
    if not found.clean:
        return ProgramCheck(CheckState.FINDING, found.reason)
    left_out = [check.name for check in found.checks if check.outcome is ScreenOutcome.NOT_RUN]
    clean = [check.name for check in found.checks if check.outcome is ScreenOutcome.CLEAN]
    hints = [f"{check.name}: {check.text}" for check in found.checks if check.outcome is ScreenOutcome.HINT]
    if not clean and not hints:
        return ProgramCheck(CheckState.NOT_RUN, f"none of these could be run: {', '.join(left_out)}")
    parts = [("nothing found by", clean), ("a hint of", hints), ("not run:", left_out)]
    text = "; ".join(f"{what} {', '.join(names)}" for what, names in parts if names)
    return ProgramCheck(CheckState.CLEAN, text)
