"""The ledger of compiles: nothing is compiled twice, and every answer is in the journal before use."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from mccprobe.build.executor import Executor, Urgency
from mccprobe.build.job import CompileJob, CompileOutcome
from mccprobe.build.journal import Journal
from mccprobe.build.store import RunDirectory
from mccprobe.targets.protocol import LogSummary


class Ledger:
    """Compiles by id. `submit` starts one in the background, `compile` waits for it."""

    def __init__(self, run: RunDirectory, journal: Journal, executor: Executor) -> None:
        self.run = run
        self.journal = journal
        self.executor = executor
        self.compiles = 0
        self._futures: dict[str, Future[CompileOutcome]] = {}
        self._lock = threading.Lock()

    def submit(self, job: CompileJob, *, urgency: Urgency = Urgency.NOW) -> Future[CompileOutcome]:
        """The future of this compile; the same one for the same job. One that waits is moved up if it is needed now."""
        with self._lock:
            future = self._futures.get(job.id)
            if future is not None and not future.cancelled():
                if urgency is Urgency.NOW and not future.done():
                    self.executor.promote(future)
                return future
            recorded = self._recorded(job)
            if recorded is not None:
                future = Future()
                future.set_result(recorded)
            else:
                future = self.executor.submit_as(urgency, self._compile, job)
            self._futures[job.id] = future
            return future

    def compile(self, job: CompileJob) -> CompileOutcome:
        """Compile now, or take the answer that is there already."""
        return self.submit(job).result()

    def cancel(self, identities: set[str]) -> None:
        """Drop those of these jobs (by id) that have not started."""
        with self._lock:
            for identity in identities:
                future = self._futures.get(identity)
                if future is not None and not future.done():
                    future.cancel()

    def _recorded(self, job: CompileJob) -> CompileOutcome | None:
        entry = self.journal.compiles.get(job.id)
        if entry is None:
            return None
        digest = entry["object"]
        if digest is not None:
            path = self.run.object_path(digest)
            if not path.is_file():
                return None
            self.run.kept.require_object(path)
        self.journal.replayed += 1
        log = LogSummary.from_dict(entry["log"])
        told = entry["diagnostics"]
        return CompileOutcome(digest, entry["reason"], float(entry["seconds"]), log, told, replayed=True)

    def _compile(self, job: CompileJob) -> CompileOutcome:
        outcome = self.executor.compile(job)  # Interrupted when we are being stopped: no answer, no journal line
        with self._lock:
            self.compiles += 1
        self.journal.append(
            {
                "t": "compile",
                "id": job.id,
                "label": job.label,
                "limit": job.limit,
                "object": outcome.object,
                "reason": outcome.reason,
                "seconds": round(outcome.seconds, 4),
                "log": outcome.log.to_dict(),
                # of a failure they decide what may be said (the machine verifier's complaint)
                "diagnostics": outcome.diagnostics if outcome.object is None else "",
            }
        )
        return outcome
