"""Where trials run: the shape of `concurrent.futures`, so that a cluster client fits as it is.

A job handed to `submit` is a module-level function with picklable arguments. The local executor
uses threads: the work is in child processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol


class Executor(Protocol):
    """What a run needs of an executor."""

    width: int

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Start `function(*args)` when there is room."""

    def shutdown(self, *, cancel: bool) -> None:
        """Wait for what runs; with cancel, drop what has not started."""


class LocalExecutor:
    """Threads of this process, one a CPU unless told otherwise."""

    def __init__(self, width: int | None = None) -> None:
        self.width = width or len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(self.width, thread_name_prefix="trial")

    def submit(self, function: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self._pool.submit(function, *args)

    def shutdown(self, *, cancel: bool) -> None:
        self._pool.shutdown(wait=True, cancel_futures=cancel)
