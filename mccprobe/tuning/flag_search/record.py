"""Trials and the end of a search in the journal across runs, each once, however often a run is resumed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mccprobe.journal.book import Book
from mccprobe.journal.entry import Entry, Figure
from mccprobe.tuning.flag_search.report import SearchReport
from mccprobe.tuning.flag_search.shares import Meter
from mccprobe.tuning.flag_search.space import Space
from mccprobe.tuning.flag_search.subjects import Subject
from mccprobe.tuning.flag_search.trials import Trial


class Recorder:
    """Writes to one book for one run. book: None to write nothing.

    An entry's flags are all of the command line: wrong with -O3 says nothing of -O1.
    """

    def __init__(
        self,
        book: Book | None,
        subject: Subject,
        space: Space,
        meter: Meter,
        root: Path,
        *,
        why: str,
        commit: str | None,
    ) -> None:
        self.book, self.subject, self.space, self.meter = book, subject, space, meter
        self.root, self.why, self.commit = str(root), why, commit
        mine = [entry for entry in book.entries() if entry.run_directory == self.root] if book else []
        self._written = {entry.text for entry in mine}

    def catch_up(self, trials: Iterable[Trial]) -> None:
        """What the run's own journal has and this one lacks: a kill fell between the two."""
        for trial in trials:
            self.trial(trial)

    def trial(self, trial: Trial) -> None:
        text = f"trial {trial.ordinal}: {trial.state}: {trial.reason}"
        figures = {self.meter.objective: Figure(trial.value, self.meter.unit), "max_err": Figure(trial.max_err, "")}
        self._append("trial", text, trial, figures)

    def search(self, report: SearchReport) -> None:
        """The end: the winner's flags, or none."""
        best = report.winner or report.lowest
        trial = best.trial if best is not None else report.baseline
        figures = {self.meter.objective: Figure(trial.value, self.meter.unit)}
        if best is not None:
            figures["ratio"] = Figure(best.share.ratio, "")
        text = f"search ({report.strategy}): {report.status}, {len(report.trials)} trials"
        self._append("search", text, trial, figures)

    def _append(self, kind: str, text: str, trial: Trial, figures: dict[str, Figure]) -> None:
        if self.book is None or text in self._written:
            return
        self._written.add(text)
        self.book.append(
            Entry(
                kind="search" if kind == "search" else "trial",
                text=text,
                why=self.why,
                kernel=self.subject.name,
                kernel_commit=self.commit,
                toolchain=self.subject.toolchain.name,
                simulated=self.subject.toolchain.simulated,
                verdict=trial.verdict,
                figures=figures,
                flags=(*self.subject.beside, *self.space.texts(trial.point)),
                run_directory=self.root,
            )
        )
