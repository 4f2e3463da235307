"""The only module that starts processes: RunSpec in, RunResult out.

Every child gets its own session (so its own process group), closed standard input, a time limit
and bounded output. On a time limit or an interrupt the whole group gets SIGTERM, then SIGKILL, so
that no grandchild stays behind. Nothing here ever passes a string to a shell.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

KILL_GRACE_S = 0.5  # between SIGTERM and SIGKILL: enough for a compiler to remove its temporary files
CHUNK_BYTES = 1 << 16
DEFAULT_CAPTURE_BYTES = 4 << 20  # kept of each stream; the rest is counted and dropped
CHATTY_BYTES = 32 << 10  # a child that has printed so much is read in larger pieces:
COALESCE_S = 0.004  # LLVM writes its log in pieces of a few bytes, and a wake-up for each costs a core
PIPE_BYTES = 1 << 20  # room for what comes meanwhile, so that the child does not wait for us
AFTER_EXIT_DRAIN_S = 0.25  # a grandchild may hold the pipes open after the child ended


@dataclass(frozen=True)
class RunSpec:
    """One process to run.

    argv: program and arguments; argv[0] is looked up in PATH. env: the whole environment, None for
    our own. timeout_s: 0 means no limit. capture_bytes: how much of each stream is kept.
    on_stderr: called with every chunk of standard error instead of capturing it; what it returns is
    captured in the chunk's place.
    """

    argv: Sequence[str]
    cwd: Path | None = None
    env: Mapping[str, str] | None = None
    timeout_s: float = 0.0
    capture_bytes: int = DEFAULT_CAPTURE_BYTES
    on_stderr: Callable[[bytes], bytes] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class RunResult:
    """How one process ended.

    returncode: exit status, -N for signal N; None if it could not be started (see `error`).
    """

    returncode: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool = False
    error: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    left_behind: bool = False

    @property
    def ok(self) -> bool:
        """True if it started, did not time out and exited 0."""
        return self.returncode == 0 and not self.timed_out

    @property
    def stderr_text(self) -> str:
        return self.stderr.decode("utf-8", "replace")

    @property
    def stdout_text(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    def describe(self) -> str:
        """One phrase on how it ended."""
        if self.returncode is None:
            return f"could not be started: {self.error}"
        if self.timed_out:
            return f"timeout after {self.seconds:.1f} s"
        if self.returncode < 0:
            with contextlib.suppress(ValueError):
                return f"signal {signal.Signals(-self.returncode).name}"
            return f"signal {-self.returncode}"
        return f"exit {self.returncode}"


_live: set[subprocess.Popen[bytes]] = set()
_live_lock = threading.Lock()
_stopping = threading.Event()


def _signal_group(process: subprocess.Popen[bytes], number: int) -> bool:
    """Send `number` to the child's group; False when the group is empty."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """True once the child has exited; it is not reaped, so that its id stays ours to signal."""
    if process.returncode is not None:
        return True
    state = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return state is not None


def _end_group(process: subprocess.Popen[bytes]) -> bool:
    """End whatever is left of the child's group and reap the child. True if others were left.

    SIGTERM goes out before the child is reaped: until then the kernel cannot give its id to
    another process.
    """
    if process.returncode is None:
        _signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + KILL_GRACE_S
    while not _has_ended(process) and time.monotonic() < deadline:
        time.sleep(0.005)
    if not _has_ended(process):
        _signal_group(process, signal.SIGKILL)
    process.wait()
    if not _signal_group(process, 0):
        return False
    while _signal_group(process, 0):
        if time.monotonic() >= deadline:
            _signal_group(process, signal.SIGKILL)
            break
        time.sleep(0.005)
    return True


def stop_all() -> None:
    """End every process group that this module started; later `run` calls refuse to start."""
    _stopping.set()
    with _live_lock:
        processes = list(_live)
    for process in processes:
        _signal_group(process, signal.SIGTERM)  # the thread in `run` reaps it and escalates


def allow_starts() -> None:
    """Undo `stop_all` (a later command in the same interpreter)."""
    _stopping.clear()


class _Sink:
    """Keeps the first `limit` bytes of a stream and counts all of them."""

    def __init__(self, limit: int, transform: Callable[[bytes], bytes] | None) -> None:
        self.limit = limit
        self.transform = transform
        self.kept = bytearray()
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        self.total += len(chunk)
        if self.transform is not None:
            chunk = self.transform(chunk)
        room = self.limit - len(self.kept)
        if room > 0 and chunk:
            self.kept += chunk[:room]


def _pump(process: subprocess.Popen[bytes], sinks: dict[int, _Sink], deadline: float | None) -> bool:
    """Read both pipes until they close or the child has ended. True on a time limit."""
    with selectors.DefaultSelector() as selector:
        for fd in sinks:
            selector.register(fd, selectors.EVENT_READ)
        ended_at: float | None = None
        while selector.get_map():
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return True
            if ended_at is None and _has_ended(process):
                ended_at = now
            if ended_at is not None and now - ended_at > AFTER_EXIT_DRAIN_S:
                return False
            wait = 1.0 if ended_at is None else 0.02
            if deadline is not None:
                wait = min(wait, deadline - now)
            for key, _ in selector.select(wait):
                chunk = os.read(key.fd, CHUNK_BYTES)
                if not chunk:
                    selector.unregister(key.fd)
                    continue
                sinks[key.fd].feed(chunk)
                if len(chunk) < CHUNK_BYTES and sinks[key.fd].total > CHATTY_BYTES:
                    time.sleep(COALESCE_S)
    return False


def run(spec: RunSpec) -> RunResult:
    """Run one process to its end. Never raises for what the process does."""
    started = time.monotonic()
    if _stopping.is_set():
        return RunResult(None, b"", b"", 0.0, error="stopping")
    try:
        process = subprocess.Popen(
            list(spec.argv),
            cwd=spec.cwd,
            env=None if spec.env is None else dict(spec.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return RunResult(None, b"", b"", time.monotonic() - started, error=f"{spec.argv[0]}: {text}")
    with _live_lock:
        _live.add(process)
    assert process.stdout is not None and process.stderr is not None
    out, err = _Sink(spec.capture_bytes, None), _Sink(spec.capture_bytes, spec.on_stderr)
    sinks = {process.stdout.fileno(): out, process.stderr.fileno(): err}
    with contextlib.suppress(OSError):  # a limit of the machine: then the pipe stays as it is
        fcntl.fcntl(process.stderr.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    deadline = started + spec.timeout_s if spec.timeout_s > 0 else None
    timed_out = left_behind = False
    try:
        timed_out = _pump(process, sinks, deadline)
        while not timed_out and not _has_ended(process):
            timed_out = deadline is not None and time.monotonic() >= deadline
            time.sleep(0.002)
    finally:
        left_behind = _end_group(process)
        process.stdout.close()
        process.stderr.close()
        with _live_lock:
            _live.discard(process)
    return RunResult(
        returncode=process.returncode,
        stdout=bytes(out.kept),
        stderr=bytes(err.kept),
        seconds=time.monotonic() - started,
        timed_out=timed_out,
        stdout_bytes=out.total,
        stderr_bytes=err.total,
        left_behind=left_behind and not timed_out,
    )
