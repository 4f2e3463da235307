"""What bisect and why share: where a run lies, whether it may be resumed, and its clean end on Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mccprobe.errors import Interrupted, JournalUnreadable, UsageError

if TYPE_CHECKING:
    from mccprobe.bisect_run.plan import Plan
    from mccprobe.compilation.session import Session
    from mccprobe.console import Console

DEFAULT_OUT = "mccprobe-out"


@contextlib.contextmanager
def run_session(
    jobs: int | None, again: str, *, scheduler: str = "", tell: Callable[[str], None] = lambda text: None
) -> Iterator[Session]:
    """A Session that is closed in any case. again: the command that goes on after an interrupt.

    scheduler: address of a Dask cluster, "" for this machine. tell: what is to be known of its workers.
    """
    from mccprobe.compilation.session import Session

    session = Session(jobs, scheduler, tell)
    try:
        yield session
    except (KeyboardInterrupt, Interrupted) as error:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a second one must not cut the clean-up short
        raise Interrupted("interrupted", hint=f"go on with: {again}") from error
    finally:
        session.close()


def tell_plan(console: Console, plan: Plan) -> None:
    """What is to be known before the run starts; of the stand-in always that it is one."""
    for sentence in plan.told:
        console.always(sentence)
    if plan.request.toolchain.simulated:
        console.always("sim: everything below is SIMULATED; the fault is planted by mccprobe, not found in mcc")


def choose_root(resume: Path | None, out: Path | None, stem: str) -> Path:
    """The run to go on with, the folder that was named (it must be free), or a new one below mccprobe-out."""
    from mccprobe.compilation.store import new_run_root

    if resume is not None:
        return resume
    if out is not None:
        _check_free(out)
        return out
    return new_run_root(Path(DEFAULT_OUT), stem, time.strftime("%Y%m%d-%H%M%S"))


def run_document(root: Path) -> Any:
    """run.json of a run. Raises JournalUnreadable."""
    path = root / "run.json"
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise JournalUnreadable(
            f"{path}: {error.strerror or error}", hint="--resume takes the run directory that the first run named"
        ) from error
    except ValueError as error:
        raise JournalUnreadable(f"{path}: not JSON: {error}") from error


def _check_free(out: Path) -> None:
    """A run gets a folder of its own: what lies in it would be mixed with the user's files."""
    from mccprobe.compilation.store import disk_errors

    with disk_errors(out):
        if (out / "journal.jsonl").exists() or (out / "run.json").exists():
            raise UsageError(
                f"{out} holds a run already",
                hint=f"go on with it: --resume {shlex.quote(str(out))}, or choose another -o",
            )
        if out.is_dir() and any(out.iterdir()):
            raise UsageError(f"{out} is not empty", hint="-o takes a folder that is new or empty")


def check_unchanged(root: Path, described: dict[str, Any], *, journal: str | None = "journal.jsonl") -> None:
    """A run is resumed with the very compiler, source and arguments that it began with.

    journal: the file without which nothing could be gone on with, None where there may be none yet.
    Raises JournalUnreadable.
    """
    from mccprobe.bisect_run.request import changed_keys

    if journal is not None and not (root / journal).is_file():
        raise JournalUnreadable(f"{root} holds no {journal}", hint="nothing is left to go on with; start a new run")
    old = run_document(root).get("request")
    if not isinstance(old, dict):
        raise JournalUnreadable(f"{root / 'run.json'}: holds no request of a bisection", hint="start a new run")
    changed = changed_keys(old, described)
    if changed:
        raise JournalUnreadable(
            f"{root} cannot be resumed: {', '.join(changed)} changed since it was started",
            hint="its journal holds answers of another build; start a new run",
        )
