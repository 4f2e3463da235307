"""`--html FILE` and `--figures DIR`, as five commands have them: checked before the work, written with the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mccprobe.base.console import Console, visible
from mccprobe.base.errors import UsageError
from mccprobe.inspection.lines import one_line

if TYPE_CHECKING:
    from mccprobe.report.pages.blocks import Page
    from mccprobe.report.pages.write import Places

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="a page to look at as well"),
    click.option(
        "--figures", type=click.Path(path_type=Path), metavar="DIR", help="the page's figures as .svg and .png"
    ),
)


def html_options(command: Command) -> Command:
    """Put both options at the command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def page_places(html: Path | None, figures: Path | None, *, also_stdout: str = "") -> Places | None:
    """Where the page goes, None where none is wanted. also_stdout: the option that takes standard output as well.

    Raises UsageError, PackagesMissing, PageNotWritten: before any work.
    """
    if html is None and figures is None:
        return None
    from mccprobe.report.pages.write import Places

    places = Places(html, figures)
    if places.on_stdout and also_stdout:
        raise UsageError(f"--html - and {also_stdout} both go to standard output", hint="name a file for the page")
    places.check()
    return places


def deliver(
    console: Console, places: Places | None, page: Callable[[], Page], show: Callable[[], None], *, as_json: bool
) -> None:
    """The answer and the page. A page that cannot be written takes no answer away; one document stays one."""
    if places is None:
        show()
        return
    if not as_json and not places.on_stdout:
        show()
    made = page()
    for path in places.write(made):
        console.message(one_line(f"written: {path}"))
    if places.on_stdout:
        from mccprobe.report.pages.render_html import render_html

        console.result(render_html(made))
    elif as_json:
        show()


def deliver_result(
    console: Console,
    places: Places | None,
    page: Callable[[], Page],
    document: dict[str, Any],
    text: str,
    *,
    as_json: bool,
) -> None:
    """The same for a result that is a document with --json, and else a text."""

    def show() -> None:
        if as_json:
            console.document(document)
        else:
            console.report(visible(text))

    deliver(console, places, page, show, as_json=as_json)


def finished_run(
    console: Console,
    root: Path,
    places: Places,
    make: Callable[[Mapping[str, Any]], Page],
    exit_code: Callable[[Mapping[str, Any]], int],
    *,
    as_json: bool,
) -> int | None:
    """The answer of a run that ended, as it lies there, and its page; returns its exit code. Nothing is run.

    None where there is more to run. Raises BadReport for a result that is not this command's.
    """
    from mccprobe.report.pages.finished import TEXT, finished_page, finished_result

    result = finished_result(root)
    if result is None:
        return None
    page = finished_page(root, result, make)

    def show() -> None:
        text = root / TEXT
        if as_json:
            console.document(result)
        elif text.is_file():
            console.result(visible(text.read_text("utf-8", "replace")))

    console.message(one_line(f"{root} is finished: nothing is run"))
    deliver(console, places, lambda: page, show, as_json=as_json)
    return int(exit_code(result))
