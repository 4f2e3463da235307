"""Where a page and its figures go. What can be known to fail is found before any work; writing is atomic.

FILE            the page
DIR/NAME.svg    each figure, and NAME.png
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mccprobe.base.errors import PackagesMissing, PageNotWritten
from mccprobe.base.files import replace_file
from mccprobe.base.paths import exists, is_file, is_folder
from mccprobe.report.pages.blocks import Page
from mccprobe.report.pages.canvas import file_bytes
from mccprobe.report.pages.render_html import render_html

PACKAGES = {"html": ("jinja2", "markupsafe", "matplotlib"), "figures": ("matplotlib",)}
EXTRA = "pages"
FORMATS = ("svg", "png")
BEGINNINGS = (b"<!DOCTYPE html>", b"<?xml", b"\x89PNG")  # of pages and figures
OURS = b"mccprobe"  # in the head of each of them
HEAD_BYTES = 4096
STDOUT = Path("-")


@dataclass(frozen=True)
class Places:
    """html: FILE, `-` for standard output. figures: a folder, made if need be. None: not asked for."""

    html: Path | None = None
    figures: Path | None = None

    @property
    def wanted(self) -> bool:
        return self.html is not None or self.figures is not None

    @property
    def on_stdout(self) -> bool:
        return self.html == STDOUT

    def check(self) -> None:
        """Raises PackagesMissing, PageNotWritten."""
        for option, place in (("html", self.html), ("figures", self.figures)):
            missing = [name for name in PACKAGES[option] if importlib.util.find_spec(name) is None]
            if place is not None and missing:
                raise PackagesMissing(f"--{option}", missing, EXTRA)
        if self.html is not None and not self.on_stdout:
            _require_ours(self.html)
            _require_folder(self.html.parent)
        if self.figures is not None:
            _require_folder(self.figures if exists(self.figures) else self.figures.parent)

    def write(self, page: Page) -> list[Path]:
        """Everything but what goes to standard output; returns what was written. Raises PageNotWritten."""
        written = []
        if self.figures is not None:
            with _folder(self.figures) as folder:
                for figure in page.figures():
                    for suffix in FORMATS:
                        path = folder / f"{figure.name}.{suffix}"
                        _require_ours(path)
                        written.append(_replace(path, file_bytes(figure, suffix, mark=page.mark)))
        if self.html is not None and not self.on_stdout:
            _require_ours(self.html)
            written.append(_replace(self.html, render_html(page).encode()))
        return written


@contextlib.contextmanager
def _folder(folder: Path) -> Iterator[Path]:
    """The folder, made if it is not there; one that was made for what failed inside does not stay empty."""
    made = not exists(folder)
    with _told(folder):
        folder.mkdir(exist_ok=True)
    try:
        yield folder
    except BaseException:
        with contextlib.suppress(OSError):  # some of it was written
            if made:
                folder.rmdir()
        raise


def _require_folder(folder: Path) -> None:
    if not is_folder(folder):
        raise PageNotWritten(f"{folder}: is no folder", hint="make it first, or name another place")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PageNotWritten(f"{folder}: cannot be written to", hint="name another place")


def _require_ours(path: Path) -> None:
    """A page may be written again; another file is never replaced: it may be the user's input."""
    if is_folder(path):
        raise PageNotWritten(f"{path}: is a folder", hint="name a file in it")
    if not is_file(path):  # nothing there, or a pipe or device: what holds nothing to lose
        return
    with _told(path), path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        if not head.startswith(BEGINNINGS) or OURS not in head:
            raise PageNotWritten(f"{path}: exists, and mccprobe did not make it", hint="name another file")


def _replace(path: Path, data: bytes) -> Path:
    with _told(path):
        return replace_file(path, data)


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PageNotWritten(f"{path}: {error.strerror or error}") from error
