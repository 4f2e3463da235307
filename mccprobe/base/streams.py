"""A program on this process's own standard streams, not on pipes that are read and bounded.

A new process gets none of our descriptors, so a shell opens the same files once more, for appending. A regular file
then has another position there than here: afterwards ours is moved to its end, or whoever writes next (the shell
that shares it with us) would write over what the program wrote.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from mccprobe.base.process import RunResult, RunSpec, run

# LD_PRELOAD is set for what the shell becomes and not for the shell. Not by env(1), which takes a program whose path
# has an equals sign in it for one more variable.
_ON_STREAMS = (
    'in=$1; out=$2; err=$3; [ -z "$4" ] || export LD_PRELOAD="$4"; shift 4; exec "$@" <"$in" >>"$out" 2>>"$err"'
)


def run_on_own_streams(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    preload: str = "",
    timeout_s: float = 0.0,
    stdout: Path | None = None,
) -> RunResult:
    """Run to the end. preload: LD_PRELOAD of the program, "" to leave it. stdout: a file that takes standard output in
    place of ours."""
    given = [_stream(0), _stream(1) if stdout is None else str(stdout), _stream(2), preload]
    try:
        shell = ["/bin/sh", "-c", _ON_STREAMS, "mccprobe"]
        return run(RunSpec([*shell, *given, *argv], env=env, timeout_s=timeout_s, keep_rest=True))
    finally:
        for number in (1, 2):
            _move_to_end(number)


def own_stderr() -> Path:
    """Where `stdout` of a program goes when our standard output is one document."""
    return Path(_stream(2))


def _stream(number: int) -> str:
    path = f"/proc/{os.getpid()}/fd/{number}"
    return path if os.path.lexists(path) else os.devnull  # a link to a pipe leads nowhere


def _move_to_end(number: int) -> None:
    with contextlib.suppress(OSError):
        if stat.S_ISREG(os.fstat(number).st_mode):
            os.lseek(number, 0, os.SEEK_END)
