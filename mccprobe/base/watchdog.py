"""What cares for the children of a mccprobe that was killed outright (kill -9, out of memory).

`watch` runs in a process of its own. It is told through a pipe which children live; when the pipe closes while some
do, nobody else is left to end them. A child is known by its environment, which what it starts inherits: so its
descendants are found too, also those that left its process group.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Collection
from pathlib import Path
from typing import NoReturn

MARK = "MCCPROBE_CHILD"  # environment variable of every child; of a mccprobe below another: outer/inner
BEGUN, ENDED = b"+", b"-"  # a line of the pipe: one of these and a mark
FOLDER = b"/"  # or this and the path of a further folder of temporary files
GIVE_UP_S = 5.0  # a process that cannot be killed (it waits for a dead disk) is left to the system
SCAN_S = 0.02  # between two looks: a process that is being started shows its mark only after its exec
QUIET_SCANS = 3  # looks without a find before all are taken for gone
_BYTES_AT_ONCE = 1 << 16


def marked(marks: Collection[bytes]) -> set[int]:
    """Ids of the processes that carry one of these marks, or one made below it. Empty where there is no /proc."""
    begins = [MARK.encode() + b"=" + mark for mark in marks]
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended, or it is another user's
            continue
        if any(variable == begin or variable.startswith(begin + b"/") for variable in variables for begin in begins):
            found.add(int(folder.name))
    return found - {os.getpid()}


def end_marked(marks: Collection[bytes], *, quiet_scans: int = 1) -> None:
    """Kill these processes and the groups they are in, and what they start meanwhile."""
    deadline = time.monotonic() + GIVE_UP_S
    quiet = 0
    while quiet < quiet_scans and time.monotonic() < deadline:
        found = marked(marks)
        for pid in found:
            with contextlib.suppress(OSError):
                group = os.getpgid(pid)
                if group != os.getpgid(0):  # of our own making: every child has a session of its own
                    os.killpg(group, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        quiet = 0 if found else quiet + 1
        if quiet < quiet_scans:
            time.sleep(SCAN_S)


def watch(pipe: int, folder: str) -> NoReturn:
    """Wait for the end of the pipe, end the children that live then, remove the folders of temporary files."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        _close_all_but(pipe)
        living: set[bytes] = set()
        folders = [os.fsencode(folder)]
        rest = b""
        while chunk := os.read(pipe, _BYTES_AT_ONCE):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line[:1] == FOLDER:
                    folders.append(line[1:])
                    continue
                (living.add if line[:1] == BEGUN else living.discard)(line[1:])
        if living:
            end_marked(living, quiet_scans=QUIET_SCANS)
        for path in folders:
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os._exit(0)


def _close_all_but(pipe: int) -> None:
    """Locks, pipes and streams are the parent's: whoever waits for their end must not wait for us."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) != pipe:
            with contextlib.suppress(OSError):
                os.close(int(entry.name))
