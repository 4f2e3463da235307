"""Files that are there in full or not at all."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mccprobe.base import files
from mccprobe.base.errors import NoRoom
from mccprobe.base.files import replace_file


def test_new_and_written_over(tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert replace_file(new, b"one") == new
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert stat.S_IMODE(new.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    new.chmod(0o640)
    replace_file(new, b"two")
    assert new.read_bytes() == b"two" and stat.S_IMODE(new.stat().st_mode) == 0o640
    replace_file(new, b"three", mode=0o755)
    assert stat.S_IMODE(new.stat().st_mode) == 0o755
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "plain"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")

    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            super().write(data[:2])
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", Full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(file, b"newer")
    assert file.read_bytes() == b"old" and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(there: bool, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder/target", tmp_path / "link"
    if there:
        target.write_bytes(b"old")
    link.symlink_to("folder/target")
    replace_file(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """As every device: root could replace /dev/null by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    replace_file(pipe, b"through")
    reader.join()
    assert read == [b"through"] and stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_stream_that_leads_to_a_file_is_written_to(tmp_path: Path) -> None:
    program = "import pathlib, mccprobe.base.files as f; f.replace_file(pathlib.Path('/dev/stdout'), b'x')"
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
        assert os.fstat(out.fileno()).st_nlink == 1
    assert (tmp_path / "out").read_bytes() == b"x"


def test_a_long_name(tmp_path: Path) -> None:
    for name in ("n" * 255, "\u00fc" * 127):
        assert replace_file(tmp_path / name, b"x").read_bytes() == b"x"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_that_may_not_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename would not ask for its rights."""
    file = tmp_path / "file"
    file.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(PermissionError):
        replace_file(file, b"new")
    assert file.read_bytes() == b"old"


CHOICES = {
    "named": {"TMPDIR": "a"},
    "second": {"TMPDIR": "not there", "TEMP": "b"},
    "empty": {"TMPDIR": "", "TMP": "a"},
    "a file": {"TMPDIR": "file", "TEMP": "b"},
    "relative": {"TMPDIR": "../here/a"},
    "none": {},
}


@pytest.mark.parametrize("named", CHOICES.values(), ids=CHOICES)
def test_the_folder_for_temporary_files_is_pythons(
    named: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    for folder in (here / "a", here / "b"):
        folder.mkdir(parents=True)
    (here / "file").touch()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in files.TEMPORARY:
        monkeypatch.delenv(name, raising=False)
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    for folder in (here / "a", here / "b"):
        os.utime(folder, ns=(0, 0))
    ours = files.temporary_folder()
    assert [folder.stat().st_mtime_ns for folder in (here / "a", here / "b")] == [0, 0], "something was written"
    assert tempfile.tempdir is None and ours == tempfile.gettempdir()


def test_a_folder_for_temporary_files_that_was_chosen_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "chosen"))
    assert files.temporary_folder() == str(tmp_path / "chosen")


def test_a_full_folder_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full, room = tmp_path / "full", tmp_path / "room"
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name, folder in (("TMPDIR", full), ("TEMP", room)):
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    of_system = os.statvfs
    for blocks, names in ((0, 7), (7, 0)):
        told = SimpleNamespace(f_blocks=9, f_bavail=blocks, f_files=9, f_favail=names)
        monkeypatch.setattr(os, "statvfs", lambda path, told=told: told if path == str(full) else of_system(path))
        assert files.temporary_folder() == str(room)
    counts_nothing = SimpleNamespace(f_blocks=0, f_bavail=0, f_files=0, f_favail=0)
    monkeypatch.setattr(os, "statvfs", lambda path: counts_nothing)
    assert files.temporary_folder() == str(full)


def test_no_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(NoRoom, match="no folder for temporary files"):
        files.temporary_folder()


def test_a_folder_is_replaced_or_stays(tmp_path: Path) -> None:
    place = tmp_path / "report"
    with files.replace_folder(place) as draft:
        (draft / "one").write_text("1")
    with pytest.raises(RuntimeError), files.replace_folder(place) as draft:
        (draft / "two").write_text("2")
        files.remove_dead_drafts(tmp_path)  # its writer lives
        assert draft.is_dir()
        raise RuntimeError
    assert [path.name for path in tmp_path.rglob("*")] == ["report", "one"]
    with files.replace_folder(place) as draft:
        (draft / "two").write_text("2")
    assert [path.name for path in tmp_path.rglob("*")] == ["report", "two"]


KILLED = """
import os, signal, sys
from pathlib import Path
from mccprobe.base.files import replace_folder
with replace_folder(Path(sys.argv[1])) as draft:
    (draft / "half").write_text("h")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_draft_of_a_killed_writer_of_a_folder_goes(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "report")], check=False)
    assert ran.returncode == -9
    (left,) = tmp_path.iterdir()
    assert files.is_draft(left) and (left / "half").is_file()
    files.remove_dead_drafts(tmp_path)
    assert not any(tmp_path.iterdir())
