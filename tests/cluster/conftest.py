"""A real Dask cluster on this machine: a scheduler and worker processes, each with a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

START_S = 120.0  # ends a start that hangs, on the busiest machine


@dataclass
class Cluster:
    """scheduler: its address. workers: name -> process."""

    folder: Path
    scheduler: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def _start(self, name: str, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        folder = self.folder / name
        folder.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *args, "--no-dashboard"],
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "log").open("wb"),
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def start_scheduler(self) -> None:
        told = self.folder / "scheduler.json"
        process = self._start(
            "scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(told)
        )
        self._wait(lambda: told.is_file() and told.stat().st_size > 0, process, "scheduler")
        self.scheduler = json.loads(told.read_text())["address"]

    def add(self, name: str, *args: str, env: Mapping[str, str] | None = None) -> None:
        """Start a worker of one thread; `ready` waits for all."""
        self.workers[name] = self._start(
            name,
            "worker",
            self.scheduler,
            "--no-nanny",
            "--nthreads",
            "1",
            "--name",
            name,
            "--host",
            "127.0.0.1",
            *args,
            env=env,
        )

    def ready(self) -> None:
        """Until the scheduler knows every worker."""
        for name, process in self.workers.items():
            log = self.folder / name / "log"
            self._wait(lambda log=log: b"Registered to:" in log.read_bytes(), process, name)

    def kill(self, name: str) -> None:
        self.workers[name].send_signal(signal.SIGKILL)

    def _wait(self, there: Callable[[], bool], process: subprocess.Popen[bytes], name: str) -> None:
        deadline = time.monotonic() + START_S
        while not there():
            log = (self.folder / name / "log").read_text()[-2000:]
            assert process.poll() is None and time.monotonic() < deadline, f"{name} does not start: {log}"
            time.sleep(0.05)

    def stop(self) -> None:
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three workers, one of which announces a GPU, and one on whose machine ODD_COMPILER is set."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start_scheduler()
        made.add("one")
        made.add("two")
        made.add("device", "--resources", "GPU=1")
        made.add("odd", env={"ODD_COMPILER": "yes"})
        made.ready()
        yield made
    finally:
        made.stop()
