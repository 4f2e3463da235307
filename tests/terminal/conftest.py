"""A real terminal (a pty) for programs: what is typed into it, what it showed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

WAIT_S = 60.0  # for a text that must come; only ends a hung program


class Terminal:
    """A program on a terminal of its own. shown: everything that it wrote."""

    def __init__(
        self, pair: tuple[int, int], argv: Sequence[str], cwd: Path, env: Mapping[str, str], columns: int
    ) -> None:
        self.master, slave = pair
        self.shown = b""
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(slave)

    def read(self, wait_s: float) -> bytes:
        """What comes within the time; b"" at the end of the program."""
        if not select.select([self.master], [], [], wait_s)[0]:
            return b""
        with contextlib.suppress(OSError):  # EIO: everybody has closed it
            got = os.read(self.master, 65536)
            self.shown += got
            return got
        return b""

    def until(self, text: str, *, after: int = 0) -> int:
        """Wait for a text behind a place; returns the place behind it."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            at = self.shown.find(text.encode(), after)
            if at >= 0:
                return at + len(text.encode())
            if not self.read(0.2) and self.process.poll() is not None and not self.read(0.2):
                break
        raise AssertionError(f"{text!r} did not come: {self.shown[after:].decode('utf-8', 'replace')!r}")

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def end(self) -> int:
        """Wait for the end of the program; its exit code."""
        deadline = time.monotonic() + WAIT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.1)
        while self.read(0.2):
            pass
        return self.process.wait(timeout=1)

    @property
    def text(self) -> str:
        return self.shown.decode("utf-8", "replace")

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=10)
        os.close(self.master)


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


Open = Callable[..., Terminal]


@pytest.fixture
def terminal(tmp_path: Path, machine_lacks: Callable[[str, str], None]) -> Iterator[Open]:
    """`terminal("bash", "--norc", columns=80, env={...}, cwd=...)` opens a program on a terminal."""
    opened: list[Terminal] = []

    def start(
        *argv: str, columns: int = 100, cwd: Path | None = None, env: Mapping[str, str | None] | None = None
    ) -> Terminal:
        clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        given = {**clean, "TERM": "xterm-256color", "HOME": str(tmp_path), **(env or {})}
        try:
            pair = pty.openpty()
        except OSError as error:  # a container without /dev/ptmx or /dev/pts
            machine_lacks("terminal", f"pty.openpty(): {error}")
            raise
        made = Terminal(pair, argv, cwd or tmp_path, {k: v for k, v in given.items() if v is not None}, columns)
        opened.append(made)
        return made

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def on_terminal(terminal: Open) -> Open:
    """`on_terminal("bisect", "gemm")` is `mccprobe bisect gemm` on a terminal."""

    def start(*args: str | Path, **options: object) -> Terminal:
        return terminal(sys.executable, "-m", "mccprobe", *map(str, args), **options)

    return start
