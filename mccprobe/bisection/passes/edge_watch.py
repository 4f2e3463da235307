"""Starts what the edge will need as soon as the search has found it, while its spot checks still run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from mccprobe.bisection.passes.confirm import neutralised_job, verify_job
from mccprobe.bisection.passes.determinism import repeated_job
from mccprobe.bisection.passes.pass_axis import PassAxis
from mccprobe.bisection.passes.reference import Reference
from mccprobe.build.job import CompileJob, CompileOutcome
from mccprobe.build.unit import Unit
from mccprobe.oracle.verdict import Verdict
from mccprobe.search.trial import Purpose, Trial
from mccprobe.targets.passes.table import PassTable


class EdgeWatch:
    """Passes trials on. Nothing here decides anything: the compiles that it starts are asked for again later."""

    def __init__(
        self, unit: Unit, axis: PassAxis, reference: Reference | None, table: PassTable, tell: Callable[[Trial], None]
    ) -> None:
        self._unit = unit
        self._axis = axis
        self._reference = reference
        self._table = table
        self._tell = tell
        self._verdicts: dict[int, Verdict] = {}
        self._searching = True
        self._bad_side: Future[CompileOutcome] | None = None

    def __call__(self, trial: Trial) -> None:
        self._tell(trial)
        self._verdicts[trial.limit] = trial.outcome.verdict
        if self._searching and trial.purpose in (Purpose.SEARCH, Purpose.PROFILE):
            self._start_sides()
        if self._bad_side is not None and self._bad_side.done():
            self._start_neutralised(self._bad_side.result())
            self._bad_side = None

    def _start_sides(self) -> None:
        bad = min((limit for limit, verdict in self._verdicts.items() if verdict is Verdict.BAD), default=0)
        if self._verdicts.get(bad - 1) is not Verdict.GOOD:
            return
        self._searching = False
        self._bad_side = self._submit(repeated_job(self._unit, bad, 1))
        self._submit(repeated_job(self._unit, bad - 1, 1))
        if self._axis.in_code_generator(bad) and self._unit.recorded.counter.verify:
            self._submit(verify_job(self._unit, bad - 1))

    def _start_neutralised(self, outcome: CompileOutcome) -> None:
        info = self._table.find(outcome.log.at.name) if outcome.log.at else None
        for option in info.neutralisers[:1] if info else ():
            self._submit(neutralised_job(self._unit, option))
            if self._reference is not None:
                self._submit(neutralised_job(self._reference.unit, option))

    def _submit(self, job: CompileJob) -> Future[CompileOutcome]:
        return self._unit.ledger.submit(job)
