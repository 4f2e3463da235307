"""Looks at paths: an answer or PathUnusable; reads: a regular file or an OSError, never a wait."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.base import paths
from mccprobe.base.errors import PathUnusable
from mccprobe.base.files import replace_file


def test_looks(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("gone")
    os.mkfifo(tmp_path / "fifo")
    seen = {
        name: (paths.exists(tmp_path / name), paths.is_file(tmp_path / name), paths.is_folder(tmp_path / name))
        for name in ("file", "link", "dangling", "fifo", ".", "file/below", "gone", "nul\0")
    }
    assert seen == {
        "file": (True, True, False),
        "link": (True, True, False),
        "dangling": (False, False, False),
        "fifo": (True, False, False),
        ".": (True, False, True),
        "file/below": (False, False, False),
        "gone": (False, False, False),
        "nul\0": (False, False, False),
    }


@pytest.mark.parametrize("look", [paths.exists, paths.is_file, paths.is_folder])
@pytest.mark.parametrize(("name", "problem"), [("loop", "symbolic links"), ("x" * 300, "File name too long")])
def test_a_look_that_has_no_answer(look: Callable[[Path], bool], name: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(PathUnusable, match=problem):
        look(tmp_path / name)


def test_a_loop_has_no_real_path(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(PathUnusable, match="symbolic links"):
        paths.resolved(tmp_path / "loop")
    assert paths.resolved(tmp_path / "gone") == tmp_path.resolve() / "gone"


def test_reads(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\r\nb\n")
    (tmp_path / "link").symlink_to("file")
    assert paths.read_file(tmp_path / "link") == b"a\r\nb\n"
    assert paths.read_text(tmp_path / "file") == "a\nb\n"
    assert paths.read_file("/proc/self/status").startswith(b"Name:")  # it states a size of 0
    with pytest.raises(OSError, match="larger than 4 bytes"):
        paths.read_file(tmp_path / "file", 4)
    with pytest.raises(OSError, match="symbolic link"):
        paths.read_file(tmp_path / "link", follow=False)


@pytest.mark.parametrize(
    ("name", "kind"), [("fifo", "a FIFO, expected"), (".", "Is a dir"), ("/dev/zero", "a character dev")]
)
def test_what_is_not_a_file(name: str, kind: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match=kind):
        paths.read_file(tmp_path / name)


def test_a_pipe_is_read_where_that_is_allowed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert paths.read_file(tmp_path / "fifo", stream=True) == b"", "no process writes to it"
    reader, writer = os.pipe()
    os.write(writer, b"text")
    os.close(writer)
    assert paths.read_file(f"/dev/fd/{reader}", stream=True) == b"text"
    os.close(reader)


def test_a_fifo_without_a_reader_is_not_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(OSError, match="that no process reads"):
        replace_file(fifo, b"text")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    replace_file(fifo, b"text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
