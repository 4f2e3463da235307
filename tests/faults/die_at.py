"""Runs mccprobe and sends it a signal at its n-th step: `python die_at.py MCCPROBE-ARGUMENTS`.

A step is what can be seen from outside: a file opened for writing, renamed, removed or truncated, a folder
made or removed, a line written to a journal, a process started. Steps below the folder $DIE_IN count.

    DIE_AT    number of the step, from 1; 0: never, only count
    DIE_ON    only steps count whose "kind path" holds this text
    DIE_OF    number of the signal (default: SIGKILL)
    DIE_HOW   "before" the step (default), or "half": a journal line is cut in the middle
    DIE_TOLD  file for one line: "step kind path" of the step at which the signal was sent, or "count N"
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

AT = int(os.environ.pop("DIE_AT"))
ON = os.environ.pop("DIE_ON", "")
OF = int(os.environ.pop("DIE_OF", signal.SIGKILL))
HOW = os.environ.pop("DIE_HOW", "before")
PLACE = os.environ.pop("DIE_IN")
TOLD = os.environ.pop("DIE_TOLD")
os.environ.pop("LD_PRELOAD", None)  # it is in this process; compilers and sanitizers do without
FILE_EVENTS = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink"}

_write = os.write
_lock = threading.RLock()
_state = {"count": 0}
_told = os.open(TOLD, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)


def _die(kind: str, path: str) -> None:
    _write(_told, f"{_state['count']} {kind} {path}\n".encode(errors="surrogateescape"))
    os.kill(os.getpid(), OF)


def _step(kind: str, path: str) -> None:
    if ON not in f"{kind} {path}":
        return
    with _lock:
        _state["count"] += 1
        if _state["count"] == AT:
            _die(kind, path)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        _step("start", os.fsdecode(args[0] or ""))
    elif event == "open" or event in FILE_EVENTS:
        if event == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
        if isinstance(args[0], str | bytes | os.PathLike):
            path = os.path.abspath(os.fsdecode(args[0]))  # noqa: PTH100 (no look at the disk)
            if path.startswith(PLACE):
                _step(event.removeprefix("os."), path)


def _journal_write(fd: int, data: Any) -> int:
    path = str(Path(f"/proc/self/fd/{fd}").readlink())
    if not path.endswith(".jsonl") or ON not in f"line {path}":
        return _write(fd, data)
    with _lock:
        _state["count"] += 1
        if _state["count"] == AT:
            if HOW == "half" and OF == signal.SIGKILL:
                _write(fd, bytes(data)[: len(data) // 2])
            _die("line", path)
    return _write(fd, data)


def main() -> None:
    sys.argv[0] = "mccprobe"
    from mccprobe import cli

    os.write = _journal_write
    sys.addaudithook(_audit)
    code = cli.main()
    with _lock:
        if not AT or _state["count"] < AT:
            _write(_told, f"count {_state['count']}\n".encode())
    sys.exit(code)


if __name__ == "__main__":
    main()
