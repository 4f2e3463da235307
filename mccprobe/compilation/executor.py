"""Where trials run: the shape of `concurrent.futures`, so that a cluster client fits as it is.

A job handed to `submit` is a module-level function with picklable arguments. The local executor
uses threads: the work is in child processes. What `submit_idle` takes is done when nothing else
waits: checks whose answer is needed at the end only.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol


class Executor(Protocol):
    """What a run needs of an executor."""

    width: int

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Start `function(*args)` when there is room."""

    def submit_idle(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Start `function(*args)` when nothing that was submitted waits."""

    def shutdown(self, *, cancel: bool) -> None:
        """Wait for what runs; with cancel, drop what has not started."""


class LocalExecutor:
    """Threads of this process, one a CPU unless told otherwise."""

    def __init__(self, width: int | None = None) -> None:
        self.width = width or len(os.sched_getaffinity(0))
        self._queue: list[tuple[int, int, Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self._order = itertools.count()
        self._change = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"trial-{number}", daemon=True) for number in range(self.width)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self._put(0, function, args)

    def submit_idle(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self._put(1, function, args)

    def _put(self, rank: int, function: Callable[..., Any], args: tuple[Any, ...]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._change:
            if self._closed:
                raise RuntimeError("the executor is shut down")
            heapq.heappush(self._queue, (rank, next(self._order), future, function, args))
            self._change.notify()
        return future

    def _work(self) -> None:
        while True:
            with self._change:
                while not self._queue and not self._closed:
                    self._change.wait()
                if not self._queue:
                    return
                _, _, future, function, args = heapq.heappop(self._queue)
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function(*args))
            except BaseException as error:  # the waiting side raises it
                future.set_exception(error)

    def shutdown(self, *, cancel: bool) -> None:
        with self._change:
            self._closed = True
            if cancel:
                for entry in self._queue:
                    entry[2].cancel()
            self._change.notify_all()
        for thread in self._threads:
            thread.join()
