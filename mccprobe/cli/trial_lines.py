"""Progress of a bisection in the user's terms."""

from __future__ import annotations

from mccprobe.console import Console
from mccprobe.search.trial import Trial


class TrialLines:
    """One line a trial: number, purpose, limit, verdict, and whether a program really ran."""

    def __init__(self, console: Console, *, simulated: bool = False) -> None:
        self.console = console
        self.mark = "[sim] " if simulated else ""

    def stage(self, text: str) -> None:
        self.console.progress(f"... {text}")

    def trial(self, trial: Trial) -> None:
        ran = "" if trial.ran else " (known object)"
        verdict = trial.outcome.verdict.value
        what = f"{self.mark}trial {trial.ordinal}: {trial.purpose}, limit {trial.limit}"
        self.console.progress(f"{what}: {verdict}{ran} {trial.outcome.reason}".rstrip())
