"""Compiles and program runs on a Dask cluster, behind the Executor of `executor.py`. Extra: `cluster`.

    thread of this process --CompileJob + the files that it reads--> a worker --object--> kept by its hash here
                           --programs + who judges them--> a worker with the resource GPU --answer--> here

Order, urgency and journal stay on this machine: each local thread waits for one worker's answer. A worker
answers only if its compiler is, byte for byte, the one that is here: another one would say something about
another compiler. A lost worker's work is done again by another one; if there is none, the run ends and can
be resumed.
"""

from __future__ import annotations

import hashlib
import logging
import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mccprobe import __version__
from mccprobe.base.console import number_of
from mccprobe.base.errors import Interrupted, ToolchainError, UsageError
from mccprobe.base.extras import install_command
from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.build.executor import LocalExecutor
from mccprobe.build.job import CompileJob, CompileOutcome, compile_once
from mccprobe.build.replay import is_compile, replay
from mccprobe.build.store import disk_errors, keep_object
from mccprobe.build.travel import Packer, StaysHere, Travelling, compile_there, refusal, run_there

GPU = "GPU"  # the resource that a worker with a device announces: dask worker --resources "GPU=1"
CONNECT_S = 10.0
# what `distributed` can connect to; without a scheme it takes tcp
_ADDRESS = re.compile(r"(?:(?:tcp|tls)://)?(?:[^\s/:\[\]]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}")
MAX_PORT = 65535
POLL_S = 0.5  # how often a waiting thread looks up: are we to stop, is anybody left?
GRACE_S = 30.0  # without any worker before the run ends: a nanny restarts one in a few seconds


@dataclass(frozen=True)
class Refusal:
    """A worker that must not answer."""

    address: str
    name: str
    why: str


def same(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Files by path, as a task of their own: sent once, and made again if the worker that holds them is lost."""
    return files


def answer_there(sent: Any, version: str, files: Mapping[str, bytes]) -> Any:
    """On a worker: one compile, or one run of a program; or its refusal."""
    from distributed import get_worker

    compiles = isinstance(sent, Travelling)
    why = refusal(sent.compiler, sent.digest, version) if compiles else refusal("", "", version)
    if why:
        worker = get_worker()
        return Refusal(worker.address, str(worker.name), why)
    return compile_there(sent, files) if compiles else run_there(sent, files)


class DaskExecutor(LocalExecutor):
    """A cluster's workers in the place of this machine's cores.

    width: all threads of the workers that are there at the start, or as told. What is no compile of one process
    (drivers, links) and programs, where no worker announces a GPU, run here.
    """

    def __init__(
        self, scheduler: str, width: int | None = None, *, tell: Callable[[str], None] = lambda text: None
    ) -> None:
        """Raises UsageError for what is no address or without the package, ToolchainError without a scheduler there."""
        try:
            import distributed
        except ImportError as error:
            raise UsageError("--scheduler needs the package distributed", hint=install_command("cluster")) from error
        if _ADDRESS.fullmatch(scheduler) is None or int(scheduler.rpartition(":")[2]) > MAX_PORT:
            raise UsageError(
                f"--scheduler {scheduler}: not the address of a Dask scheduler",
                hint="tcp://HOST:PORT, as `dask scheduler` prints it; its port is 8786",
            )
        security: Any = distributed.security.Security
        if scheduler.startswith("tls:") and not security().get_connection_args("client").get("ssl_context"):
            raise UsageError(
                f"--scheduler {scheduler}: Dask's own configuration names no certificates",
                hint="distributed.comm.tls in ~/.config/dask; or tcp://HOST:PORT",
            )
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is told or raised here
        self._killed: type[Exception] = distributed.KilledWorker
        self.scheduler, self._tell = scheduler, tell
        try:
            client: Any = distributed.Client  # the package has no types
            self._client = client(scheduler, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ToolchainError(
                f"no Dask scheduler at {scheduler}: {error}", hint="start one with `dask scheduler`; tcp://HOST:8786"
            ) from error
        self._sent: dict[str, Any] = {}
        self._packer = Packer()
        self._refused: dict[str, Refusal] = {}
        self._devices = False  # a worker with a GPU was seen
        self._place = ""  # the worker of all runs with `one_place`
        self._here: set[str] = set()  # told already: what stays on this machine, and why
        self._guard = threading.Lock()
        self._ended = threading.Event()
        workers = self._workers()
        threads = sum(int(worker["nthreads"]) for worker in workers.values())
        super().__init__(width or max(1, threads))
        devices = sum(1 for worker in workers.values() if worker["resources"].get(GPU))
        size = f"{number_of(len(workers), 'worker')}, {number_of(threads, 'thread')}, {devices} with a GPU"
        tell(f"cluster {scheduler}: {size}")

    # -- what runs elsewhere ---------------------------------------------------------------------

    def compile(self, job: CompileJob) -> CompileOutcome:
        sent = self._packer.pack(job)
        if isinstance(sent, StaysHere):
            self._stays(sent.why)
            return compile_once(job)
        outcome: CompileOutcome
        try:
            outcome, data = self._ask(sent, self._files((*sent.named, *sent.read)))
        except self._killed as error:
            self._tell(f"a compile takes its workers down ({error}): done here")
            return compile_once(job)
        if data is None:
            return outcome
        with disk_errors(job.objects), tempfile.TemporaryDirectory(prefix="back-", dir=job.trials) as folder:
            (Path(folder) / "object").write_bytes(data)
            return replace(outcome, object=keep_object(Path(folder) / "object", job.objects))

    def build_step(self, spec: RunSpec) -> RunResult:
        return replay(spec, self.compile) if is_compile(spec.argv) else run(spec)

    def run_program(
        self, function: Callable[..., Any], program: Path, scratch: Path, *beside: Path, one_place: bool = False
    ) -> Any:
        if self._eligible(GPU):
            self._devices = True
        elif not self._devices:  # one that was there and is gone is waited for: here may be no device
            self._stays("no worker announces a GPU: programs run here")
            return function(program, scratch, *beside)
        sent = {str(number): path.read_bytes() for number, path in enumerate((program, *beside))}
        try:
            return self._ask(function, sent, resource=GPU, one_place=one_place)
        except self._killed as error:
            raise ToolchainError(
                f"a program takes the workers that run it down: {error}",
                hint="the run can be resumed without --scheduler",
            ) from error

    def _stays(self, why: str) -> None:
        with self._guard:
            if why in self._here:
                return
            self._here.add(why)
        self._tell(why)

    # -- what is sent ------------------------------------------------------------------------------

    def _files(self, names: Sequence[str]) -> dict[str, bytes]:
        return {name: Path(name).read_bytes() for name in names}

    def _kept(self, files: Mapping[str, bytes], *, once: bool) -> Any:
        """The task that holds these files; the same one for the same files. once: nobody asks for them again."""
        digest = hashlib.sha256()
        for name, data in files.items():
            digest.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\0".encode("utf-8", "surrogateescape"))
        key = f"mccprobe-files-{digest.hexdigest()}"
        if once:
            return self._client.submit(same, dict(files), key=key)
        with self._guard:
            if key not in self._sent:
                self._sent[key] = self._client.submit(same, dict(files), key=key)
            return self._sent[key]

    # -- asking -------------------------------------------------------------------------------------

    def _workers(self) -> dict[str, Any]:
        """Those that are there now, by address."""
        found: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return found

    def _eligible(self, resource: str) -> list[str]:
        return [
            address
            for address, worker in self._workers().items()
            if address not in self._refused and (not resource or worker["resources"].get(resource))
        ]

    def _one_place(self, eligible: list[str]) -> list[str]:
        """The one worker of them whose figures are compared with each other; told when it has to be another."""
        with self._guard:
            before = self._place
            if before not in eligible:
                self._place = min(eligible)
            place = self._place
        if before and place != before:
            self._tell(
                f"worker {before}, which measured until now, is gone; from here on {place} measures: "
                "times of the two are not compared, ratios are taken in pairs on one"
            )
        return [place]

    def _ask(self, what: object, files: Mapping[str, bytes], *, resource: str = "", one_place: bool = False) -> Any:
        """The answer of a worker that may give one. Raises ToolchainError, Interrupted, what the work raises."""
        alone_since: float | None = None
        while True:
            eligible = self._eligible(resource)
            alone_since = self._patience(eligible, alone_since)
            if not eligible:
                self._ended.wait(POLL_S)
                continue
            if one_place:
                eligible = self._one_place(eligible)
            answer = self._answer(what, files, eligible, resource, only=one_place)
            if isinstance(answer, Refusal):
                self._refuse(answer)
            elif answer is not None:
                return answer[0]

    def _answer(
        self, what: object, files: Mapping[str, bytes], eligible: list[str], resource: str, *, only: bool
    ) -> tuple[Any] | Refusal | None:
        """(the answer,), a refusal, or None where those that were asked are gone. only: nobody else may answer."""
        restricted = only or bool(self._refused)
        try:
            kept = self._kept(files, once=bool(resource))  # each program runs a few times, and is another one then
            future: Any = self._client.submit(
                answer_there,
                what,
                __version__,
                kept,
                pure=False,
                workers=eligible if restricted else None,
                resources={resource: 1} if resource else None,
            )
            alone_since: float | None = None
            while True:
                try:
                    answer = future.result(timeout=POLL_S)
                    return answer if isinstance(answer, Refusal) else (answer,)
                except TimeoutError:
                    if future.done() and future.status == "error":
                        raise
                left = self._eligible(resource)
                if self._ended.is_set():
                    future.cancel()
                    raise Interrupted("interrupted")
                alone_since = self._patience(left, alone_since)
                if restricted and left and not set(left) & set(eligible):
                    future.cancel()
                    return None
        except ModuleNotFoundError as error:
            raise ToolchainError(
                f"a worker of {self.scheduler} lacks a package: {error}", hint="install mccprobe on every worker"
            ) from error
        except (CancelledError, OSError) as error:
            if self._ended.is_set():
                raise Interrupted("interrupted") from error
            raise ToolchainError(
                f"the Dask scheduler {self.scheduler} went away: {error}", hint="go on with --resume RUN"
            ) from error

    def _patience(self, eligible: list[str], since: float | None) -> float | None:
        """When it was seen first that nobody is there. Raises ToolchainError when that lasts, Interrupted."""
        if self._ended.is_set():
            raise Interrupted("interrupted")
        if eligible:
            return None
        now = time.monotonic()
        present = self._workers()
        why = [f"{one.name}: {one.why}" for one in self._refused.values() if one.address in present]
        everybody_refused = bool(present) and len(why) == len(present)
        if everybody_refused or (since is not None and now - since > GRACE_S):
            raise ToolchainError(
                f"no worker of {self.scheduler} can be used",
                detail="\n".join(why),
                hint="each needs this very compiler and this mccprobe; programs of a device need a "
                "`dask worker --resources GPU=1`",
            )
        return now if since is None else since

    def _refuse(self, refused: Refusal) -> None:
        with self._guard:
            new = refused.address not in self._refused
            self._refused[refused.address] = refused
        if new:
            self._tell(f"worker {refused.name} ({refused.address}) is refused: {refused.why}")

    def shutdown(self, *, cancel: bool) -> None:
        if cancel:
            self._ended.set()
        super().shutdown(cancel=cancel)
        self._sent.clear()
        self._client.close()
