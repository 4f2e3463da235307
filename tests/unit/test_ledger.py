"""The ledger of compiles and its executor: nothing twice, nothing lost, nothing recorded that was no answer."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

import pytest

from mccprobe.base import process
from mccprobe.base.errors import Interrupted, RunDirectoryUnusable
from mccprobe.build.executor import LocalExecutor, Urgency
from mccprobe.build.job import OUTPUT, SCRATCH, CompileJob
from mccprobe.build.journal import Journal
from mccprobe.build.ledger import Ledger
from mccprobe.build.store import RunDirectory


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    made = LocalExecutor(2)
    yield made
    process.allow_starts()
    made.shutdown(cancel=True)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


@pytest.fixture
def job(run: RunDirectory, tmp_path: Path) -> CompileJob:
    """A `compiler` that counts its calls, prints a log and writes its last argument as the object."""
    calls = tmp_path / "calls"
    script = (
        f"echo x >>'{calls}'; echo 'BISECT: running pass (1) A on f' >&2; echo 'a warning' >&2; "
        'echo "BISECT: NOT running pass (2) B on f" >&2; printf "%s" "$2" >"$1"'
    )
    return CompileJob(
        ("sh", "-c", script, "sh", OUTPUT, "one"),
        dict(os.environ),
        run.objects,
        run.root / "trials",
        60.0,
        limit=1,
        around=1,
    )


def calls(tmp_path: Path) -> int:
    return len((tmp_path / "calls").read_text().splitlines())


def test_the_same_job_is_compiled_once(
    job: CompileJob, run: RunDirectory, executor: LocalExecutor, tmp_path: Path
) -> None:
    ledger = Ledger(run, Journal(run.journal), executor)
    outcomes = [future.result() for future in [ledger.submit(job) for _ in range(5)]]
    assert all(outcome is outcomes[0] for outcome in outcomes) and calls(tmp_path) == 1
    assert outcomes[0].object is not None and run.object_path(outcomes[0].object).read_bytes() == b"one"
    assert outcomes[0].diagnostics == "a warning" and (outcomes[0].log.total, outcomes[0].log.ran) == (2, 1)
    again = ledger.compile(replace(job, ordinal=1))
    other = ledger.compile(replace(job, argv=(*job.argv[:-1], "two")))
    assert again.object == outcomes[0].object != other.object and calls(tmp_path) == 3
    assert list((run.root / "trials").iterdir()) == []


def test_replay_runs_nothing(job: CompileJob, run: RunDirectory, executor: LocalExecutor, tmp_path: Path) -> None:
    journal = Journal(run.journal)
    first = Ledger(run, journal, executor).compile(job)
    failed = Ledger(run, journal, executor).compile(replace(job, argv=("sh", "-c", "exit 3")))
    journal.close()
    journal = Journal(run.journal)
    ledger = Ledger(run, journal, executor)
    again = ledger.compile(job)
    assert (again.object, again.log, again.replayed) == (first.object, first.log, True)
    assert ledger.compile(replace(job, argv=("sh", "-c", "exit 3"))).reason == failed.reason == "compile: exit 3"
    assert (calls(tmp_path), ledger.compiles, journal.replayed) == (1, 0, 2)
    assert first.object is not None
    run.object_path(first.object).unlink()
    assert Ledger(run, journal, executor).compile(job).object == first.object, "an object that is gone is made again"
    assert run.object_path(first.object).exists()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 0", "compile: exit 0 but no output was written"),
        (': >"$1"', "compile: exit 0 but no output was written"),
        ('mkdir "$1"', "compile: exit 0 but no output was written"),
        ("echo partial >$1; exit 1", "compile: exit 1"),
        ("kill -SEGV $$", "compile: signal SIGSEGV"),
        ("sleep 100", "compile: timeout after"),
    ],
)
def test_a_compile_without_an_object(
    script: str, reason: str, job: CompileJob, run: RunDirectory, executor: LocalExecutor
) -> None:
    ledger = Ledger(run, Journal(run.journal), executor)
    limit = 0.5 if script.startswith("sleep") else 60.0  # the others end by themselves, on a busy machine too
    outcome = ledger.compile(replace(job, argv=("sh", "-c", script, "sh", OUTPUT), timeout_s=limit))
    assert outcome.object is None and outcome.reason.startswith(reason), outcome
    assert list(run.objects.iterdir()) == [] == list((run.root / "trials").iterdir())


def test_each_compile_has_a_folder_and_an_environment_of_its_own(
    job: CompileJob, run: RunDirectory, executor: LocalExecutor
) -> None:
    argv = ("sh", "-c", 'echo "$TMPDIR" >"$1"; touch "$TMPDIR/left behind"', "sh", OUTPUT)
    outcome = Ledger(run, Journal(run.journal), executor).compile(
        replace(job, argv=argv, env={**os.environ, "TMPDIR": SCRATCH})
    )
    assert outcome.object is not None
    place = Path(run.object_path(outcome.object).read_text().strip())
    assert place.parent == run.root / "trials" and not place.exists()


@pytest.mark.parametrize("complaint", ["No space left on device", "Disk quota exceeded"])
def test_a_full_disk_is_no_answer(complaint: str, job: CompileJob, run: RunDirectory, executor: LocalExecutor) -> None:
    """Recorded as a failed compile it would poison the resumed run."""
    journal = Journal(run.journal)
    ledger = Ledger(run, journal, executor)
    with pytest.raises(RunDirectoryUnusable, match="the disk is full"):
        ledger.compile(replace(job, argv=("sh", "-c", f"echo 'fatal error: {complaint}' >&2; exit 1")))
    assert journal.compiles == {}


def test_a_compile_that_is_stopped_is_no_answer(
    job: CompileJob, run: RunDirectory, executor: LocalExecutor, tmp_path: Path
) -> None:
    journal = Journal(run.journal)
    ledger = Ledger(run, journal, executor)
    future = ledger.submit(replace(job, argv=("sh", "-c", f"touch '{tmp_path}/started'; sleep 100")))
    while not (tmp_path / "started").exists():
        threading.Event().wait(0.01)
    process.stop_all()
    with pytest.raises(Interrupted):
        future.result(30)
    with pytest.raises(Interrupted):
        ledger.compile(job)
    assert journal.compiles == {} and not (tmp_path / "calls").exists()


def test_the_journal_is_written_before_the_answer_is_used(
    job: CompileJob, run: RunDirectory, executor: LocalExecutor
) -> None:
    Ledger(run, Journal(run.journal), executor).compile(job)
    entry = json.loads(run.journal.read_text().splitlines()[-1])
    assert (entry["t"], entry["id"], entry["limit"]) == ("compile", job.id, 1)


def test_a_jobs_identity_is_its_question(job: CompileJob) -> None:
    assert replace(job, label="other", timeout_s=1.0).id == job.id
    others = [replace(job, argv=("x",)), replace(job, ordinal=1), replace(job, cwd=Path("/")), replace(job, around=2)]
    assert len({job.id, *(other.id for other in others)}) == 5
    assert replace(job, argv=("\udcff",)).id != replace(job, argv=("?",)).id


# --- the executor -------------------------------------------------------------------------------


def test_results_and_errors_come_through_the_future(executor: LocalExecutor) -> None:
    assert executor.submit(pow, 2, 5).result() == 32
    with pytest.raises(ZeroDivisionError):
        executor.submit(divmod, 1, 0).result()
    assert executor.submit(len, "abc").result() == 3, "a worker outlives an error"


def test_what_waits_is_taken_by_urgency() -> None:
    executor = LocalExecutor(1)
    order: list[str] = []
    started, gate = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        gate.wait()

    executor.submit(hold)
    started.wait()
    futures = [
        executor.submit_as(Urgency.AHEAD, order.append, "ahead 1"),
        executor.submit_as(Urgency.LATER, order.append, "later 1"),
        executor.submit(order.append, "now 1"),
        executor.submit_as(Urgency.AHEAD, order.append, "ahead 2"),
        executor.submit_as(Urgency.LATER, order.append, "later 2"),
        executor.submit(order.append, "now 2"),
    ]
    gate.set()
    for future in futures:
        future.result(30)
    assert order == ["now 1", "now 2", "later 1", "later 2", "ahead 1", "ahead 2"]
    executor.shutdown(cancel=False)


@pytest.mark.parametrize("width", [2, 3])
def test_one_worker_is_kept_for_what_is_urgent(width: int) -> None:
    executor = LocalExecutor(width)
    gate = threading.Event()
    for _ in range(2 * width):
        executor.submit_as(Urgency.AHEAD, gate.wait)
    assert executor.submit(len, "abc").result(30) == 3
    gate.set()
    executor.shutdown(cancel=False)


@pytest.mark.parametrize("cancel", [True, False])
def test_shutdown(cancel: bool) -> None:
    executor = LocalExecutor(1)
    started, gate, done = threading.Event(), threading.Event(), []

    def hold() -> bool:
        started.set()
        return gate.wait()

    running = executor.submit(hold)
    started.wait()
    waiting = executor.submit(done.append, 1)
    threading.Timer(0.05, gate.set).start()
    executor.shutdown(cancel=cancel)
    assert running.result() is True
    if cancel:
        with pytest.raises(CancelledError):
            waiting.result()
    assert done == ([] if cancel else [1])
    with pytest.raises(RuntimeError):
        executor.submit(len, "")
