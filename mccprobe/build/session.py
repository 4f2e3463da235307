"""The run directories of one command, worked on together: one executor, a journal for each directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mccprobe.base import process
from mccprobe.build.executor import Executor, LocalExecutor
from mccprobe.build.journal import Journal
from mccprobe.build.store import RunDirectory


class Session:
    """Opens run directories and closes all of them once the last compile has ended."""

    def __init__(
        self, jobs: int | None = None, scheduler: str = "", tell: Callable[[str], None] = lambda text: None
    ) -> None:
        """scheduler: of a Dask cluster that compiles, "" for this machine. Raises ToolchainError, UsageError."""
        self.executor: Executor = LocalExecutor(jobs) if not scheduler else _cluster(scheduler, jobs, tell)
        self._opened: dict[Path, tuple[RunDirectory, Journal]] = {}

    def open(self, root: Path) -> tuple[RunDirectory, Journal]:
        """The directory and its journal; the same pair when it is open already.

        Raises RunDirectoryUnusable when it cannot be written or is in use, JournalUnreadable.
        """
        run = RunDirectory(root)
        if run.root not in self._opened:
            journal = Journal(run.journal)
            run.kept.attach(journal.files, journal.append)
            self._opened[run.root] = run, journal
            run.clear_trials()
        return self._opened[run.root]

    def close(self) -> None:
        """End compiles that were started ahead of need, then close the journals."""
        process.stop_all()
        self.executor.shutdown(cancel=True)
        for run, journal in self._opened.values():
            run.clear_trials()
            journal.close()
        self._opened.clear()
        process.allow_starts()


def _cluster(scheduler: str, jobs: int | None, tell: Callable[[str], None]) -> Executor:
    from mccprobe.build.dask_executor import DaskExecutor

    return DaskExecutor(scheduler, jobs, tell=tell)
