"""The only module that starts processes: RunSpec in, RunResult out.

Every child gets its own session (so its own process group), closed standard input, a time limit
and bounded output. On a time limit or an interrupt the whole group gets SIGTERM, then SIGKILL, so
that no grandchild stays behind. Nothing here ever passes a string to a shell.

An interrupt (`on_interrupt`, installed by the command line) never falls between a child's start and
the care for it: while the main thread is in `run`, it is noted, the child is ended, and only then
KeyboardInterrupt is raised. A run that was ended by `stop_all` raises Interrupted: its exit status
says nothing about the program, and nobody may take it for an answer.

A grandchild that left the group (setsid) is found by a mark in its environment and ended where its child had to be
ended; where the child ended by itself it is left alone, for servers of compile caches are started so. If we are killed
ourselves, a process that `guarded` split off ends our children and removes our temporary files.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from mccprobe.base import watchdog
from mccprobe.base.errors import Interrupted, NoRoom
from mccprobe.base.files import temporary_folder

TIMED_OUT = "timeout"  # first word of what is told of a process that was ended for its time limit
KILL_GRACE_S = 0.5  # between SIGTERM and SIGKILL: enough for a compiler to remove its temporary files
CHUNK_BYTES = 1 << 16
DEFAULT_CAPTURE_BYTES = 4 << 20  # kept of each stream; the rest is counted and dropped
CHATTY_BYTES = 32 << 10  # a child that has printed so much is read in larger pieces:
COALESCE_S = 0.004  # LLVM writes its log in pieces of a few bytes, and a wake-up for each costs a core
PIPE_BYTES = 1 << 20  # room for what comes meanwhile, so that the child does not wait for us
AFTER_EXIT_DRAIN_S = 0.25  # a grandchild may hold the pipes open after the child ended
WAKE_S = 0.2  # how often a wait looks up: did the child end, are we to stop?
ENDED_POLL_S = 0.02  # the same once the child has ended or closed its pipes
FIRST_POLL_S = 0.0005  # a child that closes its pipes mostly ends at once


@dataclass(frozen=True)
class RunSpec:
    """One process to run.

    argv: program and arguments; argv[0] is looked up in PATH. env: the whole environment (but
    for our mark), None for our own. timeout_s: 0 means no limit. capture_bytes: how much of each stream is kept.
    on_stderr: called with every chunk of standard error instead of capturing it; what it returns is
    captured in the chunk's place. keep_rest: what the process leaves running when it ends by itself goes on, as after
    any command of a shell; without it its group is ended with it. stdin: the file on standard input; without it that is
    empty.
    """

    argv: Sequence[str]
    cwd: Path | None = None
    env: Mapping[str, str] | None = None
    timeout_s: float = 0.0
    capture_bytes: int = DEFAULT_CAPTURE_BYTES
    on_stderr: Callable[[bytes], bytes] | None = field(default=None, compare=False)
    keep_rest: bool = False
    stdin: Path | None = None


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
            return f"{TIMED_OUT} after {self.seconds:.1f} s"
        if self.returncode < 0:
            with contextlib.suppress(ValueError):
                return f"signal {signal.Signals(-self.returncode).name}"
            return f"signal {-self.returncode}"
        return f"exit {self.returncode}"


class _Guard:
    """The pipe to the process that outlives us; -1: there is none."""

    def __init__(self) -> None:
        self.pipe = -1
        self.folder: Path | None = None  # of our temporary files, which it removes after us
        self._numbers = itertools.count(1)
        self._drawn = os.urandom(8).hex()  # process ids repeat: after a while, and in each container

    def new_mark(self) -> str:
        """For one child. All have the same length: a program's memory starts below its environment."""
        own = f"{self._drawn}-{os.getpid():08x}-{next(self._numbers):08x}"
        outer = os.environ.get(watchdog.MARK)
        return f"{outer}/{own}" if outer else own

    def tell(self, what: bytes, mark: str) -> None:
        if self.pipe >= 0:
            with contextlib.suppress(OSError):  # it is gone, or does not read: then nobody watches
                os.write(self.pipe, what + mark.encode() + b"\n")


_guard = _Guard()


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """While inside, our children and temporary files do not outlive us, not even when we are killed outright.

    Splits off the process that sees to that, and gives `tempfile` a folder of its own. Does nothing in a process that
    has threads already: a copy of that cannot be relied on.
    """
    if _guard.pipe >= 0 or threading.active_count() > 1:
        yield
        return
    before = tempfile.tempdir
    with _in_care():
        watcher = _split_off()
    try:
        yield
    finally:
        with _in_care():
            if watcher is not None:
                tempfile.tempdir = before
                if _guard.folder is not None:
                    shutil.rmtree(_guard.folder, ignore_errors=True)
                    _guard.folder = None
                os.close(_guard.pipe)
                _guard.pipe = -1
                os.waitpid(watcher, 0)


def _split_off() -> int | None:
    """Id of the process that watches from now on, None if there can be none."""
    try:
        above = temporary_folder()
        folder = Path(above) / f"mccprobe-{os.getpid()}-{os.urandom(4).hex()}"
        read, write = os.pipe()
        watcher = os.fork()
    except (OSError, NoRoom):  # without a folder: whoever needs one will say so
        return None
    if watcher == 0:
        watchdog.watch(read, str(folder))
    os.close(read)
    os.set_blocking(write, False)
    _guard.pipe = write
    tempfile.tempdir = above
    with contextlib.suppress(OSError):  # no room: whoever needs it will say so
        folder.mkdir(mode=0o700)
        _guard.folder, tempfile.tempdir = folder, str(folder)
    return watcher


@contextlib.contextmanager
def folder_outside(parent: str, prefix: str) -> Iterator[str]:
    """A new folder in `parent` instead of where temporary files go; it does not outlive us either. Raises OSError."""
    folder = f"{parent}/{prefix}{os.urandom(4).hex()}"
    _guard.tell(watchdog.FOLDER, folder)
    Path(folder).mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def _end_group(process: subprocess.Popen[bytes], mark: str, *, forced: bool) -> None:
    """End whatever is left of the child's group and reap the child. forced: also what left the group.

    SIGTERM goes out before the child is reaped: until then the kernel cannot give its id to
    another process. The same holds for the group's id as long as anybody is left in it.
    """
    _signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + KILL_GRACE_S
    while not _has_ended(process) and time.monotonic() < deadline:
        time.sleep(0.005)
    if not _has_ended(process):
        _signal_group(process, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    _reap(process)
    while _signal_group(process, 0):
        if time.monotonic() >= deadline:
            _signal_group(process, signal.SIGKILL)
            break
        time.sleep(0.005)
    if forced:
        watchdog.end_marked({mark.encode()})


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Take the status of a child that has ended; from here on its id is not ours to signal."""
    with _live_lock:
        process.wait()
        _live.discard(process)


def stop_all() -> None:
    """End every process group that this module started; `run` raises Interrupted until `allow_starts`."""
    _stopping.set()
    with _live_lock:  # a process in the set is not reaped yet: its id is still ours
        for process in _live:
            if process.returncode is None:
                _signal_group(process, signal.SIGTERM)  # the thread in `run` reaps it and escalates


def allow_starts() -> None:
    """Undo `stop_all` (a later command in the same interpreter)."""
    _stopping.clear()


class _MainThread:
    """Whether the main thread has a child in its care, and whether an interrupt waits for that to end.

    told: KeyboardInterrupt was raised. Another one would cut short what is done about the first.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.interrupted = self.told = False

    def interrupt(self) -> None:
        self.interrupted = False
        if not self.told:
            self.told = True
            raise KeyboardInterrupt


_main = _MainThread()


def on_interrupt(number: int, frame: FrameType | None) -> None:
    """Signal handler: KeyboardInterrupt, at once or as soon as the main thread's child is ended; once."""
    if _main.told:
        return
    if _main.depth:
        _main.interrupted = True
    else:
        _main.interrupt()


def await_interrupt() -> None:
    """The next signal is the first one again (a later command in the same interpreter)."""
    _main.interrupted = _main.told = False


def end_of_interrupts() -> None:
    """What is left of the interpreter's life must not be ended by a signal: its handlers go first.

    Blocked, not ignored: for a signal that is on its way Python would print that nobody handles it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


@contextlib.contextmanager
def _in_care() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _main.depth += 1
    try:
        yield
    finally:
        _main.depth -= 1
        if not _main.depth and _main.interrupted:
            _main.interrupt()


def _must_stop() -> bool:
    return _stopping.is_set() or (_main.interrupted and threading.current_thread() is threading.main_thread())


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
    """Read both pipes until they close or the child has ended, and wait for its end. True on a time limit.

    What the child wrote before it ended is read however long that takes; of what a grandchild
    writes afterwards at most a pipe's size.
    """
    with selectors.DefaultSelector() as selector:
        for fd in sinks:
            selector.register(fd, selectors.EVENT_READ)
        ended_at: float | None = None
        read_after_end = 0
        idle = False
        nap = FIRST_POLL_S
        while not _must_stop():
            now = time.monotonic()
            if ended_at is None and _has_ended(process):
                ended_at = now
            if ended_at is not None:
                drained = idle and now - ended_at > AFTER_EXIT_DRAIN_S
                if not selector.get_map() or drained or read_after_end > PIPE_BYTES * len(sinks):
                    return False
            elif deadline is not None and now >= deadline:
                return True
            wait = WAKE_S if ended_at is None and selector.get_map() else ENDED_POLL_S
            if deadline is not None and ended_at is None:
                wait = min(wait, deadline - now)
            if not selector.get_map():
                nap = min(2 * nap, wait)
                time.sleep(nap)
                continue
            ready = selector.select(wait)
            idle = not ready
            for key, _ in ready:
                chunk = os.read(key.fd, CHUNK_BYTES)
                if not chunk:
                    selector.unregister(key.fd)
                    continue
                if ended_at is not None:
                    read_after_end += len(chunk)
                sinks[key.fd].feed(chunk)
                if ended_at is None and len(chunk) < CHUNK_BYTES and sinks[key.fd].total > CHATTY_BYTES:
                    time.sleep(COALESCE_S)
    return False


def run(spec: RunSpec) -> RunResult:
    """Run one process to its end. Never raises for what the process does.

    Raises Interrupted when `stop_all` ended it or forbids its start, KeyboardInterrupt after an
    interrupt of the main thread.
    """
    with _in_care():
        result = _run(spec)
    if result is None:
        raise Interrupted("interrupted")
    return result


def _run(spec: RunSpec) -> RunResult | None:
    """None when it was stopped from outside."""
    if _must_stop():
        return None
    mark = _guard.new_mark()
    _guard.tell(watchdog.BEGUN, mark)
    try:
        return _started(spec, mark)
    finally:
        _guard.tell(watchdog.ENDED, mark)


def _started(spec: RunSpec, mark: str) -> RunResult | None:
    started = time.monotonic()
    stdin = subprocess.DEVNULL
    try:
        if spec.stdin is not None:
            stdin = os.open(spec.stdin, os.O_RDONLY | os.O_CLOEXEC)
        process = subprocess.Popen(
            list(spec.argv),
            cwd=spec.cwd,
            env={**(os.environ if spec.env is None else spec.env), watchdog.MARK: mark},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return RunResult(None, b"", b"", time.monotonic() - started, error=_describe_start(spec, error))
    finally:
        if stdin >= 0:  # DEVNULL is none of ours
            os.close(stdin)
    with _live_lock:
        _live.add(process)
    assert process.stdout is not None and process.stderr is not None
    out, err = _Sink(spec.capture_bytes, None), _Sink(spec.capture_bytes, spec.on_stderr)
    timed_out, stopped = False, True  # until we know better
    try:
        with contextlib.suppress(OSError):  # a limit of the machine: then the pipe stays as it is
            fcntl.fcntl(process.stderr.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        deadline = started + spec.timeout_s if spec.timeout_s > 0 else None
        timed_out = _pump(process, {process.stdout.fileno(): out, process.stderr.fileno(): err}, deadline)
        stopped = _must_stop()
    finally:
        forced = timed_out or stopped
        if spec.keep_rest and not forced:
            _reap(process)
        else:
            _end_group(process, mark, forced=forced)
        process.stdout.close()
        process.stderr.close()
    if stopped:
        return None
    return RunResult(
        returncode=process.returncode,
        stdout=bytes(out.kept),
        stderr=bytes(err.kept),
        seconds=time.monotonic() - started,
        timed_out=timed_out,
        stdout_bytes=out.total,
        stderr_bytes=err.total,
    )


def _describe_start(spec: RunSpec, error: OSError | ValueError) -> str:
    """Why it could not be started, and what is to blame: the program or its working directory."""
    if not isinstance(error, OSError) or not error.strerror:
        return f"{spec.argv[0]}: {error}"
    blamed = error.filename if error.filename is not None else spec.argv[0]
    return f"{blamed}: {error.strerror}"
