"""Where trials run: the shape of `concurrent.futures`, so that a cluster client fits as it is.

A job handed to `submit` is a module-level function with picklable arguments. The local executor
uses threads: the work is in child processes. `urgency` orders what waits: NOW is waited for, LATER
is needed in the end (repeats, checks), AHEAD may turn out useless (compiles ahead of the search).
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol

from mccprobe.base.process import RunResult, RunSpec, run
from mccprobe.build.job import CompileJob, CompileOutcome, compile_once


class Urgency(IntEnum):
    """Order of what waits for a worker."""

    NOW = 0
    LATER = 1
    AHEAD = 2


class Executor(Protocol):
    """What a run needs of an executor."""

    width: int

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Start `function(*args)` when there is room."""

    def submit_as(self, urgency: Urgency, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """The same, behind everything more urgent."""

    def promote(self, future: Future[Any]) -> None:
        """Somebody waits for this one now. Nothing happens to what runs or is done."""

    def compile(self, job: CompileJob) -> CompileOutcome:
        """Run one compile now, wherever compiles run, and keep its object in the job's own folder."""

    def build_step(self, spec: RunSpec) -> RunResult:
        """Run one command of a build: what it compiles where compiles run, all the rest here."""

    def run_program(
        self, function: Callable[..., Any], program: Path, scratch: Path, *beside: Path, one_place: bool = False
    ) -> Any:
        """`function(program, scratch, *beside)` where programs run. It must be picklable and need no other file.

        beside: further programs, for what is compared on one machine. one_place: on the machine on which the
        others with `one_place` run, for figures that are compared with each other.
        """

    def shutdown(self, *, cancel: bool) -> None:
        """Wait for what runs; with cancel, drop what has not started."""


class LocalExecutor:
    """Threads of this process, one a CPU unless told otherwise.

    One worker is kept free of what is not urgent, so that the next step of a search never waits for it.
    """

    def __init__(self, width: int | None = None) -> None:
        self.width = width or len(os.sched_getaffinity(0))
        self._queue: list[tuple[int, int, Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self._change = threading.Condition()
        self._closed = False
        self._background = 0  # workers busy with what is not urgent
        self._threads = [
            threading.Thread(target=self._work, name=f"trial-{number}", daemon=True) for number in range(self.width)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self.submit_as(Urgency.NOW, function, *args)

    def submit_as(self, urgency: Urgency, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._change:
            if self._closed:
                raise RuntimeError("the executor is shut down")
            heapq.heappush(self._queue, (urgency, next(self._order), future, function, args))
            self._change.notify()
        return future

    def compile(self, job: CompileJob) -> CompileOutcome:
        return compile_once(job)

    def build_step(self, spec: RunSpec) -> RunResult:
        return run(spec)

    def run_program(
        self, function: Callable[..., Any], program: Path, scratch: Path, *beside: Path, one_place: bool = False
    ) -> Any:
        return function(program, scratch, *beside)

    def promote(self, future: Future[Any]) -> None:
        with self._change:
            for index, (urgency, order, waiting, function, args) in enumerate(self._queue):
                if waiting is future and urgency > Urgency.NOW:
                    self._queue[index] = (Urgency.NOW, order, waiting, function, args)
                    heapq.heapify(self._queue)
                    self._change.notify()
                    return

    def _work(self) -> None:
        while True:
            with self._change:
                while not self._may_start() and not (self._closed and not self._queue):
                    self._change.wait()
                if not self._queue:
                    return
                urgency, _, future, function, args = heapq.heappop(self._queue)
                background = urgency > Urgency.NOW
                self._background += background
            try:
                if future.set_running_or_notify_cancel():
                    future.set_result(function(*args))
            except BaseException as error:  # the waiting side raises it
                future.set_exception(error)
            finally:
                with self._change:
                    self._background -= background
                    self._change.notify_all()

    def _may_start(self) -> bool:
        if not self._queue:
            return False
        return self._queue[0][0] == Urgency.NOW or self._background < max(1, self.width - 1)

    def shutdown(self, *, cancel: bool) -> None:
        with self._change:
            self._closed = True
            if cancel:
                for entry in self._queue:
                    entry[2].cancel()
            self._change.notify_all()
        for thread in self._threads:
            thread.join()
