"""The commit of a kernel: only what git says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mccprobe.journal.commit import kernel_commit

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="tried `git`: not in PATH")


def _git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=you", "-c", "user.email=you@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels" / "gemm"
    folder.mkdir(parents=True)
    (folder / "gemm.mu").write_text("one\n")
    (folder / "other.mu").write_text("one\n")
    return folder


def test_commit_and_changes(kernel: Path, tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q")
    assert kernel_commit(kernel) is None  # no commit yet
    _git(tmp_path, "add", "kernels/gemm/gemm.mu")
    _git(tmp_path, "commit", "-q", "-m", "x")
    head = _git(tmp_path, "rev-parse", "HEAD")
    assert kernel_commit(kernel / "gemm.mu") == head
    assert kernel_commit(kernel / "other.mu") is None  # not tracked: HEAD says nothing of it
    assert kernel_commit(kernel) == f"{head}-dirty"  # a folder with a file that HEAD has not
    (kernel / "other.mu").unlink()
    assert kernel_commit(kernel) == head
    (kernel / "gemm.mu").write_text("two\n")
    assert kernel_commit(kernel / "gemm.mu") == f"{head}-dirty"
    assert kernel_commit(kernel / "absent.mu") is None


def test_without_a_repository_or_git(kernel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert kernel_commit(kernel) is None
    assert kernel_commit(tmp_path / "nowhere" / "x.mu") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert kernel_commit(kernel) is None


def test_nothing_that_the_repository_configures_is_run(kernel: Path, tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "x")
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    _git(tmp_path, "config", "core.fsmonitor", str(hook))
    assert kernel_commit(kernel / "gemm.mu") is not None
    assert not (tmp_path / "ran").exists()
