"""Trials on a real cluster of several worker processes: the same answers, whatever happens to a worker."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base import process
from mccprobe.base.errors import Interrupted, ToolchainError
from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.run import Progress, run_bisection
from mccprobe.build.dask_executor import DaskExecutor
from mccprobe.build.executor import Executor, LocalExecutor
from mccprobe.build.job import OUTPUT, CompileJob, compile_once
from mccprobe.build.journal import Journal
from mccprobe.build.session import Session
from mccprobe.build.store import RunDirectory
from mccprobe.build.travel import Packer, StaysHere, Travelling, dependency_names, refusal
from mccprobe.explain.options import WhyOptions
from mccprobe.explain.run import plan_of, run_why
from mccprobe.oracle.checks import Expected, ReferenceOracle, observe_in
from mccprobe.oracle.kernel.spec import shipped_kernel
from mccprobe.targets.clang.toolchain import clang_toolchain
from mccprobe.targets.llvm.jobs import back_end_argv
from mccprobe.targets.sim.toolchain import sim_toolchain
from mccprobe.tuning.flag_search.objectives import Time
from mccprobe.tuning.flag_search.subjects import GatedKernel, GateSettings, Made, judge_beside

CASE = Path(__file__).resolve().parents[1] / "cases" / "02-constraint-elim-trunc" / "test.c"
QUESTION = BisectOptions(
    file=str(CASE), compiler="clang-14", flags=("-enable-constraint-elimination",), args=("-O2", "-lm")
)
# stands for a compiler; on one machine it is another one
FAKE = """#!/bin/sh
[ "$1" = --version ] && { echo "fake compiler ${ODD_COMPILER-usual}"; exit; }
[ "$ODD_COMPILER" ] && exit 9
[ "$SLOW" ] && sleep "$SLOW"
while [ "$1" != -o ]; do shift; done
cat "$5" >"$2"
"""

MakeCluster = Callable[..., DaskExecutor]


class Told(list[str]):
    """What an executor told, one text."""

    @property
    def text(self) -> str:
        return "\n".join(self)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def executor(cluster: Any, told: Told) -> Iterator[DaskExecutor]:
    made = DaskExecutor(cluster.scheduler, tell=told.append)
    yield made
    made.shutdown(cancel=True)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


def job(run: RunDirectory, argv: Sequence[str], env: Mapping[str, str] | None = None) -> CompileJob:
    return CompileJob(tuple(argv), {**os.environ, **(env or {})}, run.objects, run.root / "trials", 60.0)


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    path = tmp_path / "fakecc"
    path.write_text(FAKE)
    path.chmod(0o755)
    return path


def fake_jobs(fake: Path, run: RunDirectory, count: int, env: Mapping[str, str] | None = None) -> list[CompileJob]:
    made = []
    for number in range(count):
        bitcode = run.unit / f"{number}.bc"
        bitcode.write_text(f"bitcode {number}")
        made.append(job(run, [str(fake), "-cc1", "-o", OUTPUT, "-x", "ir", str(bitcode)], env))
    return made


# --- what a compile needs ---------------------------------------------------------------------------


def test_dependency_files() -> None:
    assert dependency_names("x: a.c \\\n  /usr/include/b.h c\\ d.h e$$f.h g\\#h.h\n") == [
        "a.c",
        "/usr/include/b.h",
        "c d.h",
        "e$f.h",
        "g#h.h",
    ]
    assert dependency_names("x: one") == ["one"] and dependency_names("") == []


def test_another_version_is_refused() -> None:
    assert "mccprobe" in refusal("", "", "0.0.0-other")


def test_the_environment_stays_at_home(fake: Path, run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "not for workers")
    sent = Packer().pack(fake_jobs(fake, run, 1, {"MUSA_HOME": "x", "TMPDIR": "y"})[0])
    assert isinstance(sent, Travelling)
    assert "SECRET_TOKEN" not in sent.job.env and sent.job.env["MUSA_HOME"] == "x" and sent.job.env["TMPDIR"] == "y"


def test_drivers_stay(run: RunDirectory) -> None:
    assert isinstance(Packer().pack(job(run, ["clang-14", "-O2", "-c", "x.c", "-o", OUTPUT])), StaysHere)


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mccprobe.build.dask_executor.CONNECT_S", 1.0)
    with pytest.raises(ToolchainError, match="no Dask scheduler at"):
        DaskExecutor("tcp://127.0.0.1:9")


# --- which worker answers ---------------------------------------------------------------------------


def test_a_worker_with_another_compiler_is_refused(
    executor: DaskExecutor, told: Told, fake: Path, run: RunDirectory, cluster: Any
) -> None:
    futures = [executor.submit(executor.compile, one) for one in fake_jobs(fake, run, 12)]
    outcomes = [future.result() for future in futures]
    assert [run.object_path(outcome.object or "").read_text() for outcome in outcomes] == [
        f"bitcode {number}" for number in range(12)
    ]
    refused = [line for line in told if "is refused" in line]
    assert len(refused) == 1 and refused[0].startswith("worker odd ") and "another compiler" in refused[0]


def test_where_every_worker_is_refused(
    executor: DaskExecutor, fake: Path, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mccprobe.build.travel.compiler_digest", lambda path: "of a compiler that is only here")
    with pytest.raises(ToolchainError, match=r"no worker of .* can be used") as caught:
        executor.compile(fake_jobs(fake, run, 1)[0])
    assert all(name in caught.value.detail for name in ("one:", "two:", "device:", "odd:"))


def test_an_interrupt_is_no_answer(executor: DaskExecutor, fake: Path, run: RunDirectory) -> None:
    futures = [executor.submit(executor.compile, one) for one in fake_jobs(fake, run, 8, {"SLOW": "3"})]
    threading.Timer(1.0, lambda: executor.shutdown(cancel=True)).start()
    ended = [future.exception() if not future.cancelled() else None for future in futures if not future.cancelled()]
    assert any(isinstance(error, Interrupted) for error in ended)
    assert all(error is None or isinstance(error, Interrupted) for error in ended)


# --- which worker runs programs ---------------------------------------------------------------------


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def worker_of(executor: DaskExecutor, program: Path, **options: bool) -> int:
    """Process id of the worker that ran a program which prints its parent's."""
    seeing = partial(observe_in, args=(), timeout_s=60.0)
    return int(executor.run_program(seeing, program, program.parent, **options).stdout)


def test_what_is_compared_is_measured_on_one_worker(
    executor: DaskExecutor, told: Told, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as it is there; that it is another one from then on is told."""
    monkeypatch.setattr("mccprobe.build.dask_executor.GPU", "DEVICE")
    for name in ("first", "second", "third"):
        cluster.add(name, "--resources", "DEVICE=1")
    cluster.ready()
    parent = script(tmp_path / "parent", "sleep 0.3; echo $PPID")  # the next one goes to another worker
    asked = [executor.submit(worker_of, executor, parent) for _ in range(9)]
    assert len({one.result() for one in asked}) > 1, "only one worker was ever asked"
    asked = [executor.submit(partial(worker_of, one_place=True), executor, parent) for _ in range(9)]
    (pid,) = {one.result() for one in asked}
    assert not [line for line in told if "measures" in line]
    (name,) = [name for name, process in cluster.workers.items() if process.pid == pid]
    cluster.kill(name)
    cluster.workers[name].wait()
    after = {worker_of(executor, parent, one_place=True) for _ in range(5)}
    assert len(after) == 1 and pid not in after
    assert len([line for line in told if "from here on" in line]) == 1
    for left in {"first", "second", "third"} - {name}:
        cluster.kill(left)


def test_programs_beside_each_other(executor: DaskExecutor, tmp_path: Path) -> None:
    """What differs from the reference is wrong only on a machine on which the reference is right."""
    oracle = ReferenceOracle(Expected(b"42\n", 0))
    right, wrong = script(tmp_path / "right", "echo 42"), script(tmp_path / "wrong", "echo 41")
    beside = partial(judge_beside, oracle=oracle)
    for here in (executor, LocalExecutor(1)):
        seen = []
        for number, pair in enumerate([(wrong, right), (right, right), (wrong, wrong), (right, wrong)]):
            scratch = tmp_path / f"{type(here).__name__}-{number}"
            scratch.mkdir()
            seen.append(str(here.run_program(beside, pair[0], scratch, pair[1]).verdict))
        assert seen == ["BAD", "GOOD", "UNRESOLVED", "UNRESOLVED"]


def test_a_device_that_is_gone_is_not_replaced_by_this_machine(
    executor: DaskExecutor, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here may be none, and then nothing could be told of any program."""
    monkeypatch.setattr("mccprobe.build.dask_executor.GPU", "RARE")
    monkeypatch.setattr("mccprobe.build.dask_executor.GRACE_S", 1.0)
    parent = script(tmp_path / "parent", "sleep 0.3; echo $PPID")  # the next one goes to another worker
    assert worker_of(executor, parent) == os.getpid()  # nobody has one
    cluster.add("rare", "--resources", "RARE=1")
    cluster.ready()
    deadline = time.monotonic() + 60.0
    while worker_of(executor, parent) != cluster.workers["rare"].pid:
        assert time.monotonic() < deadline, "never asked"
    cluster.kill("rare")
    cluster.workers["rare"].wait()
    with pytest.raises(ToolchainError, match=r"no worker of .* can be used"):
        worker_of(executor, parent)


@pytest.mark.toolchain("clang-14")
def test_device_times_are_taken_in_pairs_on_one_worker(
    executor: DaskExecutor, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in in a device's place: its times mean nothing, where they are taken is what is looked at."""
    toolchain = sim_toolchain(Path(os.environ["MCCPROBE_CACHE"]))
    monkeypatch.setattr(type(toolchain), "name", "mcc")
    subject = GatedKernel(shipped_kernel("gemm"), toolchain, GateSettings())
    made = subject.build((), (), tmp_path / "builds", executor)
    assert isinstance(made, Made) and made.built is not None
    asked: list[dict[str, Any]] = []
    run_program = executor.run_program

    def run(function: Any, *programs: Path, **options: bool) -> Any:
        asked.append({"programs": len(programs) - 1, **options})
        return run_program(function, *programs, **options)

    monkeypatch.setattr(executor, "run_program", run)
    monkeypatch.setattr(
        "mccprobe.tuning.flag_search.objectives.default_case", lambda kernel, name: kernel.case("small")
    )
    meter = Time(subject, 300.0)
    measured = meter.measure(made, executor)
    assert measured.value is not None and len(measured.samples) == 5, measured.reason
    share = meter.compare(made, made, executor)
    assert share.ratio is not None and not share.exact and share.interval is not None, share.reason
    assert asked == [{"programs": 1, "one_place": True}, {"programs": 2, "one_place": True}]


# --- no shared disk ---------------------------------------------------------------------------------


@pytest.mark.toolchain("clang-14")
def test_a_source_travels_with_its_headers(
    executor: DaskExecutor, told: Told, run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sources are gone before the worker begins, and its object is that of the compile at home."""
    project = tmp_path / "my project"
    (project / "inc").mkdir(parents=True)
    (project / "inc" / "a.h").write_text("#include <stdio.h>\nstatic const char *where = __FILE__;\n")
    (project / "prog.c").write_text('#include "inc/a.h"\nint main(void) { return puts(where) + puts(__FILE__); }\n')
    monkeypatch.chdir(project)
    recording = clang_toolchain("clang-14", []).record(["-O2", "-g", "-c", "prog.c", "-o", "x.o"], tmp_path)
    argv = back_end_argv(recording.jobs[0], "", OUTPUT, language="")
    here = compile_once(job(run, argv))
    read = executor._files

    def read_and_remove(names: Sequence[str]) -> dict[str, bytes]:
        found = read(names)
        shutil.rmtree(project / "inc")
        (project / "prog.c").unlink()
        return found

    monkeypatch.setattr(executor, "_files", read_and_remove)
    there = executor.compile(job(run, argv))
    assert there.object == here.object is not None, there
    assert not list(project.rglob("*.h"))
    assert not [line for line in told if "done here" in line]


def test_the_compiler_s_words_come_back(executor: DaskExecutor, run: RunDirectory, tmp_path: Path) -> None:
    (run.unit / "x.bc").write_text("x")
    script = tmp_path / "failing"
    script.write_text('#!/bin/sh\n[ "$1" = --version ] && exit\necho "$6: error: no" >&2\nexit 3\n')
    script.chmod(0o755)
    outcome = executor.compile(job(run, [str(script), "-cc1", "-o", OUTPUT, "-x", "ir", str(run.unit / "x.bc")]))
    assert outcome.object is None and outcome.reason == "compile: exit 3"
    assert outcome.diagnostics == f"{run.unit / 'x.bc'}: error: no"


# --- whole runs -------------------------------------------------------------------------------------


def bisect(root: Path, executor: Executor, trial: Callable[[Any], None] = lambda trial: None) -> dict[str, Any]:
    options = dataclasses.replace(QUESTION, profile=True)
    run = RunDirectory(root)
    journal = Journal(run.journal)
    try:
        plan = make_plan(options, root / "cache")
        return run_bisection(plan.request, run, journal, executor, Progress(trial=trial)).to_dict("0")
    finally:
        journal.close()


def journalled(root: Path) -> tuple[dict[str, set[Any]], set[tuple[Any, Any]]]:
    """What each compile gave, by its label, and how each object was judged.

    Texts of IR are left out: they begin with the name of the run's own folder.
    """
    lines = [json.loads(line) for line in (root / "journal.jsonl").read_text().splitlines()]
    compiles: dict[str, set[Any]] = {}
    for entry in lines:
        if entry["t"] == "compile" and " IR " not in entry["label"]:
            compiles.setdefault(entry["label"], set()).add(entry["object"])
    return compiles, {(entry["object"], entry["verdict"]) for entry in lines if entry["t"] == "run"}


@pytest.mark.toolchain("clang-14")
def test_a_worker_is_killed_in_the_middle(executor: DaskExecutor, told: Told, cluster: Any, tmp_path: Path) -> None:
    local = LocalExecutor(2)
    expected = bisect(tmp_path / "local", local)
    local.shutdown(cancel=True)
    cluster.add("victim")
    cluster.ready()
    seen = []

    def trial(one: Any) -> None:
        seen.append(one)
        if len(seen) == 6:
            cluster.kill("victim")

    found = bisect(tmp_path / "cluster", executor, trial)
    assert cluster.workers["victim"].wait(timeout=60) == -9 and len(seen) > 8
    for key in ("status", "culprit", "monotone", "transitions", "table", "profile"):
        assert found.get(key) == expected.get(key), key
    assert found["culprit"]["pass"] == "ConstraintEliminationPass" and found["culprit"]["execution"] == 23
    there, judged = journalled(tmp_path / "cluster")
    here, judged_here = journalled(tmp_path / "local")
    both = there.keys() & here.keys()  # what is compiled ahead of need depends on the time
    assert len(both) > 100 and {label: there[label] for label in both} == {label: here[label] for label in both}
    assert judged == judged_here
    assert "programs run here" not in told.text  # the worker with a GPU ran them


@pytest.mark.toolchain("clang-14")
def test_why_on_the_cluster(executor: DaskExecutor, tmp_path: Path) -> None:
    options = WhyOptions(QUESTION, steps=("flags", "table"))
    session = Session(1)
    session.executor.shutdown(cancel=True)
    session.executor = executor  # type: ignore[assignment]
    process.allow_starts()
    root = tmp_path / "why"
    root.mkdir()
    try:
        report = run_why(options, plan_of(options, tmp_path), root, session, tmp_path, Progress()).to_dict("0")
    finally:
        session.close()
    assert report["bisect"]["culprit"]["pass"] == "ConstraintEliminationPass", report
