"""The git commit of a kernel, for the record; None where git does not tell."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mccprobe.base.process import RunSpec, run

GIT_TIMEOUT_S = 10.0  # a status of one path; only ends a hung file system
DIRTY = "-dirty"  # as `git describe --dirty` has it
# nothing that the repository configures is run, and no lock is taken
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.devnull)


def kernel_commit(kernel: Path) -> str | None:
    """HEAD of the repository that tracks this file or folder; "-dirty" behind it if it differs from HEAD.

    None without git, outside of a repository, before the first commit and for an untracked kernel.
    """
    folder = kernel if kernel.is_dir() else kernel.parent
    name = "." if kernel.is_dir() else kernel.name
    head = _git(folder, "rev-parse", "--verify", "HEAD")
    if head is None or not re.fullmatch(r"[0-9a-f]{40,64}", head) or not _git(folder, "ls-files", "--", name):
        return None
    changes = _git(folder, "status", "--porcelain", "--", name)
    return None if changes is None else head + (DIRTY if changes else "")


def _git(folder: Path, *args: str) -> str | None:
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    result = run(RunSpec([*_GIT, "-C", str(folder), *args], env=env, timeout_s=GIT_TIMEOUT_S))
    return result.stdout_text.strip() if result.ok else None
