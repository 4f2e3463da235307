"""The run directory: atomic writes, clear errors, and what belongs to the user is not touched."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.errors import RunDirectoryUnusable
from mccprobe.base.files import file_digest
from mccprobe.build.store import RunDirectory, disk_errors, keep_object, new_run_root

ODD_NAMES = ["with space", "new\nline", "-leading-dash", "\udcff\udcfe", "漢字 ä", "quo'te\"", "a,b=c", "@file"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names(tmp_path: Path, name: str) -> None:
    run = RunDirectory(tmp_path / name)
    assert run.write_text("report.txt", f"about {name}\n").read_bytes() == f"about {name}\n".encode(
        "utf-8", "surrogateescape"
    )
    root = new_run_root(tmp_path, name, "now")
    assert root.is_dir() and root.parent == tmp_path
    assert new_run_root(tmp_path, name, "now").name == f"{name}-now-2"


def test_scratch_is_gone_after_use_whatever_happens(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    with pytest.raises(ZeroDivisionError), run.scratch("x") as scratch:
        (scratch / "deep").mkdir()
        (scratch / "deep" / "file").write_text("x")
        raise ZeroDivisionError
    assert list((tmp_path / "trials").iterdir()) == []
    (tmp_path / "trials" / "left").mkdir()
    run.clear_trials()
    assert list((tmp_path / "trials").iterdir()) == []


def test_objects_are_kept_once_by_content(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    digests = []
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"same")
        digests.append(keep_object(tmp_path / name, run.objects))
        assert not (tmp_path / name).exists()
    assert digests[0] == digests[1] == file_digest(run.object_path(digests[0]))
    assert len(list(run.objects.iterdir())) == 1


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("/proc/mccprobe-run", "No such file or directory"),
        ("/dev/null/run", "Not a directory"),
        ("/sys/mccprobe-run", ""),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_place_that_cannot_be_written(
    place: str, told: str, tmp_path: Path, machine_lacks: Callable[[str, str], None]
) -> None:
    if place.startswith("/sys/") and not Path("/sys").is_mount():  # a folder like any other then
        machine_lacks("/sys", "mountpoint /sys")
    with pytest.raises(RunDirectoryUnusable, match=f"cannot be written: {told}") as caught:
        RunDirectory(tmp_path / place)
    assert caught.value.hint
    with pytest.raises(RunDirectoryUnusable):
        new_run_root(tmp_path / place, "stem", "now")


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("the user's")
    for make in (lambda p: RunDirectory(p), lambda p: new_run_root(p, "stem", "now")):
        with pytest.raises(RunDirectoryUnusable, match="cannot be written"):
            make(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "the user's"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO, errno.ESTALE])
def test_whatever_the_file_system_says_is_one_clear_error(number: int, tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryUnusable, match="cannot be written: ") as caught, disk_errors(tmp_path):
        raise OSError(number, os.strerror(number))
    assert int(caught.value.exit_code) == 4
    full = number in (errno.ENOSPC, errno.EDQUOT)
    assert ("the disk" in caught.value.message) == full


def test_a_write_that_fails_leaves_the_old_text_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path)
    run.write_text("run.json", "old")
    before = sorted(path.name for path in tmp_path.iterdir())

    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            super().write(data[:1])
            raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "fdopen", Full)
    with pytest.raises(RunDirectoryUnusable, match="the disk is full"):
        run.write_text("run.json", "new")
    monkeypatch.undo()
    assert (tmp_path / "run.json").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == before
