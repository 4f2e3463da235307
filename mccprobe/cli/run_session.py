"""What bisect and why share: where a run lies, whether it may be resumed, and its clean end on Ctrl-C."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mccprobe.base.errors import (
    Interrupted,
    JournalUnreadable,
    MccprobeError,
    NoRoom,
    PathUnusable,
    RunDirectoryUnusable,
    UsageError,
)
from mccprobe.base.paths import exists, is_file, is_folder, read_file, require_plain_folder

if TYPE_CHECKING:
    from mccprobe.base.console import Console
    from mccprobe.bisection.passes.plan import Plan
    from mccprobe.build.session import Session

DEFAULT_OUT = "mccprobe-out"
MOST_DOCUMENT_BYTES = 64 << 20  # of run.json: some kilobytes


@contextlib.contextmanager
def run_session(
    jobs: int | None,
    again: str,
    *,
    root: Path,
    fresh: bool,
    scheduler: str = "",
    tell: Callable[[str], None] = lambda text: None,
) -> Iterator[Session]:
    """A Session that is closed in any case, with the run's folder for us alone.

    again: the command that goes on after an interrupt. root: the run's folder, made here. fresh: no run may lie in it.
    scheduler: address of a Dask cluster, "" for this machine. tell: what is to be known of its workers.
    """
    from mccprobe.build.session import Session

    own = not exists(root) or (fresh and root.parent == Path(DEFAULT_OUT))  # else it is a folder of the user's
    with _claimed(root, fresh=fresh):
        try:
            session = Session(jobs, scheduler, tell)
        except MccprobeError:
            if own:
                _remove_empty(root)
            raise
        try:
            yield session
        except (KeyboardInterrupt, Interrupted) as error:
            begun = (root / "run.json").is_file()
            hint = f"go on with: {again}" if begun else "nothing was begun yet: start it again"
            raise Interrupted("interrupted", hint=hint) from error
        except NoRoom as error:
            if (root / "run.json").is_file():
                error.hint = f"{error.remedy} and go on with: {again}"
            raise
        except FileNotFoundError as error:
            if not _lies_in(error.filename, root):
                raise
            raise RunDirectoryUnusable(
                f"{error.filename}: removed while the run was using it",
                hint="does the program or the oracle remove files outside of its working directory? Start a new run",
            ) from error
        finally:
            session.close()


def _lies_in(name: object, root: Path) -> bool:
    """True for a file of the run. name: as an OSError gives it, None or a number too."""
    if not isinstance(name, str | bytes | os.PathLike):
        return False
    return Path(os.path.abspath(os.fsdecode(name))).is_relative_to(root.absolute())  # noqa: PTH100  `..` goes


def _remove_empty(root: Path) -> None:
    """A run that cannot begin leaves no folder: neither its own nor the one above that was made for it."""
    with contextlib.suppress(OSError):  # it is not empty
        root.rmdir()
        if root.parent == Path(DEFAULT_OUT):
            root.parent.rmdir()


@contextlib.contextmanager
def _claimed(root: Path, *, fresh: bool) -> Iterator[None]:
    """The folder, made if need be, locked against another mccprobe. Raises RunDirectoryUnusable, UsageError."""
    from mccprobe.build.store import disk_errors

    with disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunDirectoryUnusable(
                f"{root} is in use by another mccprobe", hint="wait for it, or choose another -o DIR"
            ) from error
        except OSError:
            pass  # a file system without locks
        require_plain_folder(root)
        if fresh and (root / "run.json").exists():  # another one was there between our look and our lock
            raise _holds_a_run(root)
        yield
    finally:
        os.close(folder)  # and the lock with it


def tell_plan(console: Console, plan: Plan) -> None:
    """What is to be known before the run starts; of the stand-in always that it is one."""
    for sentence in plan.told:
        console.always(sentence)
    if plan.request.toolchain.simulated:
        console.always("sim: everything below is SIMULATED; the fault is planted by mccprobe, not found in mcc")


def choose_root(resume: Path | None, out: Path | None, stem: str) -> Path:
    """The run to go on with, the folder that was named (it must be free), or a new one below mccprobe-out."""
    from mccprobe.build.store import new_run_root

    if resume is not None:
        return resume
    if out is not None:
        _check_free(out)
        return out
    return new_run_root(Path(DEFAULT_OUT), stem, time.strftime("%Y%m%d-%H%M%S"))


def refuse_changes(changed: Collection[str], hint: str) -> None:
    """--resume goes on with what was asked. Raises UsageError if an option was given that would change it."""
    if changed:
        raise UsageError(
            f"--resume takes every option from the run: {', '.join(sorted(changed))} cannot be changed", hint=hint
        )


def run_document(root: Path) -> Any:
    """run.json of a run. Raises JournalUnreadable, UnsafeRunFolder."""
    path = root / "run.json"
    require_plain_folder(root)
    try:
        return json.loads(read_file(path, MOST_DOCUMENT_BYTES, follow=False).decode("utf-8"))
    except OSError as error:
        raise JournalUnreadable(
            f"{path}: {error.strerror or error}", hint="--resume takes the run directory that the first run named"
        ) from error
    except (ValueError, RecursionError) as error:
        raise JournalUnreadable(f"{path}: not JSON: {str(error)[:200]}") from error


def _check_free(out: Path) -> None:
    """A run gets a folder of its own: what lies in it would be mixed with the user's files."""
    from mccprobe.build.store import disk_errors

    with disk_errors(out):
        try:
            if exists(out / "run.json"):
                raise _holds_a_run(out)
            if is_folder(out) and not _nothing_begun(out):
                raise UsageError(f"{out} is not empty", hint="-o takes a folder that is new or empty")
        except PathUnusable as error:
            raise RunDirectoryUnusable(
                f"{out}: cannot be written: {error.problem}", hint="choose another place with -o DIR"
            ) from error


def _holds_a_run(out: Path) -> UsageError:
    return UsageError(
        f"{out} holds a run already",
        hint=f"go on with it: --resume {shlex.quote(str(out))}, or choose another place with -o DIR",
    )


def _nothing_begun(out: Path) -> bool:
    """Empty, or what a run leaves that was killed before it wrote run.json: empty folders, a journal without trials."""
    from mccprobe.base.files import is_draft
    from mccprobe.build.store import RUN_FOLDERS

    for path in out.iterdir():
        if path.name == "journal.jsonl" and path.is_file():
            if path.stat().st_size and path.read_bytes().count(b"\n") > 1:
                return False
        elif not (path.name in RUN_FOLDERS and path.is_dir() and not any(path.iterdir())) and not is_draft(path):
            return False
    return True


def check_unchanged(root: Path, described: dict[str, Any], *, journal: str | None = "journal.jsonl") -> None:
    """A run is resumed with the very compiler, source and arguments that it began with.

    journal: the file without which nothing could be gone on with, None where there may be none yet.
    Raises JournalUnreadable.
    """
    from mccprobe.bisection.passes.request import changed_keys

    if journal is not None and not is_file(root / journal):
        raise JournalUnreadable(f"{root} holds no {journal}", hint="nothing is left to go on with; start a new run")
    document = run_document(root)
    old = document.get("request") if isinstance(document, dict) else None
    if not isinstance(old, dict):
        raise JournalUnreadable(f"{root / 'run.json'}: holds no request of a bisection", hint="start a new run")
    changed = changed_keys(old, described)
    if changed:
        raise JournalUnreadable(
            f"{root} cannot be resumed: {', '.join(changed)} changed since it was started",
            hint="its journal holds answers of another build; start a new run",
        )
