"""`mccprobe journal`: what was tried in all runs, why, and what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mccprobe import __version__
from mccprobe.base.console import Console, json_text, number_of, width

if TYPE_CHECKING:
    from mccprobe.journal.book import Contents
    from mccprobe.journal.entry import Entry

CONTEXT = {"help_option_names": ["-h", "--help"]}
DEFAULT = "mccprobe-out/journal.jsonl"
KINDS = ("trial", "check", "bench", "search", "bisect", "why", "note")
VERDICTS = ("GOOD", "BAD", "UNRESOLVED", "none")
DEFAULT_COUNT = 40  # lines of a list: a screen
Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("journal", context_settings=CONTEXT)
def journal() -> None:
    """The record of every trial, bench and search across runs; it only grows.

    \b
    Example:
      mccprobe journal dead-ends
    """


_book_option = click.option("--journal", "book", metavar="FILE", default=DEFAULT, help=f"the journal ({DEFAULT})")
_json_option = click.option("--json", "as_json", is_flag=True, help="one JSON document (reports/journal.schema.json)")


def _selecting(command: Command) -> Command:
    """The options that choose entries."""
    for option in reversed(
        (
            click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="only of this kind"),
            click.option("--kernel", metavar="TEXT", default="", help="only with TEXT in the kernel's name"),
            click.option("--flag", metavar="TEXT", default="", help="only with TEXT in the flags"),
            click.option("--verdict", "verdicts", type=click.Choice(VERDICTS), multiple=True, help="only with it"),
            click.option(
                "--since", metavar="DATE", default="", help="only from DATE on (UTC, 2026-11-30 or with a time)"
            ),
            click.option("--match", "text", metavar="TEXT", default="", help="only with TEXT in what or why"),
        )
    ):
        command = option(command)
    return command


def _print(console: Console, document: dict[str, Any]) -> None:
    """ASCII only: what stands in a note must not steer a terminal."""
    console.result(json_text(document, ascii_only=True))


def _document(status: str, contents: Contents, **values: Any) -> dict[str, Any]:
    damaged = [vars(one) for one in contents.damaged]
    return {"schema_version": 1, "tool_version": __version__, "status": status, **values, "damaged": damaged}


def _read(console: Console, book: str) -> Contents:
    """All entries; damaged lines are told, and stop nothing."""
    from mccprobe.inspection.lines import one_line
    from mccprobe.journal.book import Book
    from mccprobe.journal.text import safe

    contents = Book(Path(book)).read()
    for one in contents.damaged:
        why = "is no entry" if one.ended else "has no end: its writer was killed, or is writing"
        console.always(one_line(f"warning: {book}: line {one.number} {why}; skipped: ") + safe(one.text))
    return contents


def _selected(contents: Contents, choice: dict[str, Any]) -> list[Entry]:
    from mccprobe.base.errors import UsageError
    from mccprobe.journal.review import Selection

    if choice["since"][:4] and not choice["since"][:4].isdecimal():
        raise UsageError(f"--since {choice['since'][:40]}: not a date such as 2026-11-30")
    sets = {name: frozenset(choice[name]) for name in ("kinds", "verdicts")}
    selection = Selection(**{**choice, **sets})
    return [one for one in contents.entries if selection.takes(one)]


@journal.command("list", context_settings=CONTEXT)
@_selecting
@click.option(
    "-n",
    "--last",
    metavar="N",
    type=click.IntRange(0),
    default=DEFAULT_COUNT,
    help=f"only the last N; 0 for all ({DEFAULT_COUNT})",
)
@_book_option
@_json_option
@click.pass_obj
def list_entries(console: Console, /, last: int, book: str, as_json: bool, **choice: Any) -> int:
    """List entries, the newest last.

    \b
    Example:
      mccprobe journal list --kernel gemm --kind bench
    """
    from mccprobe.journal.review import newest
    from mccprobe.report.text.journal import list_lines, list_table

    contents = _read(console, book)
    found = _selected(contents, choice)
    shown = newest(found, last)
    if as_json:
        values = [one.to_dict() for one in shown]
        _print(console, _document("list", contents, total=len(contents.entries), matching=len(found), entries=values))
        return 0
    if shown and console.draws_tables():
        console.report("\n".join(list_table(shown, width(), color=console.colored(sys.stdout))))
    else:
        console.result("\n".join(list_lines(shown)) if shown else "no entries")
    if len(shown) < len(found):
        console.message(f"the last {len(shown)} of {len(found)}; all with -n 0")
    return 0


@journal.command("show", context_settings=CONTEXT)
@click.argument("entry_id", metavar="ID")
@_book_option
@_json_option
@click.pass_obj
def show(console: Console, entry_id: str, book: str, as_json: bool) -> int:
    """Show one entry and the notes about it. ID may be a beginning, or `last`.

    \b
    Example:
      mccprobe journal show last
    """
    from mccprobe.report.text.journal import entry_lines, list_lines

    contents = _read(console, book)
    entry = contents.find(entry_id, book)
    notes = [one for one in contents.entries if one.about == entry.id]
    if as_json:
        values = [one.to_dict() for one in notes]
        _print(console, _document("entry", contents, entry=entry.to_dict(), notes=values))
    else:
        console.result("\n".join([*entry_lines(entry), *list_lines(notes)]))
    return 0


@journal.command("dead-ends", context_settings=CONTEXT)
@_selecting
@_book_option
@_json_option
@click.pass_obj
def dead_ends_command(console: Console, /, book: str, as_json: bool, **choice: Any) -> int:
    """List what nobody need try again.

    That is what was marked so, and flags that came out BAD and were never GOOD later.

    \b
    Example:
      mccprobe journal dead-ends --kernel gemm
    """
    from mccprobe.journal.review import dead_ends
    from mccprobe.report.text.journal import dead_end_lines

    contents = _read(console, book)
    chosen = {one.id for one in _selected(contents, choice)}
    # what was GOOD later must count, chosen or not
    ends = [end for end in dead_ends(contents.entries) if any(one.id in chosen for one in end.entries)]
    if as_json:
        _print(console, _document("dead-ends", contents, dead_ends=[one.to_dict() for one in ends]))
    else:
        console.result("\n".join(dead_end_lines(ends)))
    return 0


@journal.command("compare", context_settings=CONTEXT)
@click.argument("first", metavar="ID")
@click.argument("second", metavar="ID")
@_book_option
@_json_option
@click.pass_obj
def compare_entries(console: Console, first: str, second: str, book: str, as_json: bool) -> int:
    """Compare the figures of two entries.

    Exit code 1 if they have no figure in common.

    \b
    Example:
      mccprobe journal compare 3fa1 last
    """
    from mccprobe.journal.review import compare
    from mccprobe.report.text.journal import comparison_lines

    contents = _read(console, book)
    found = compare(contents.find(first, book), contents.find(second, book))
    if as_json:
        _print(console, _document("comparison", contents, **found.to_dict()))
    else:
        console.result("\n".join(comparison_lines(found)))
    return 0 if any(row.ratio is not None for row in found.rows) else 1


@journal.command("note", context_settings=CONTEXT)
@click.argument("text", metavar="TEXT")
@click.option("--about", "about_id", metavar="ID", help="the entry it is about: its kernel and flags are taken over")
@click.option("--kernel", metavar="PATH", help="the kernel it is about; its git commit is recorded")
@click.option("--flag", "flags", metavar="FLAG", multiple=True, help="a flag that it is about")
@click.option("--why", metavar="TEXT", default="", help="the reason")
@click.option("--dead-end", is_flag=True, help="nobody need try this again")
@_book_option
@_json_option
@click.pass_obj
def note(
    console: Console,
    text: str,
    about_id: str | None,
    kernel: str | None,
    flags: tuple[str, ...],
    why: str,
    dead_end: bool,
    book: str,
    as_json: bool,
) -> int:
    """Write down a thought. TEXT - reads standard input.

    \b
    Example:
      mccprobe journal note "why I believe that this is faster" --about last
      mccprobe journal note --dead-end "slower: no branches in the loop" --flag=-mtgpu-if-convert
    """
    from dataclasses import replace

    from mccprobe.base.errors import UsageError
    from mccprobe.journal.book import Book, Contents
    from mccprobe.journal.commit import kernel_commit
    from mccprobe.journal.entry import MAX_TEXT, Entry

    if text == "-":
        text = sys.stdin.buffer.read(4 * MAX_TEXT).decode("utf-8", "replace") if sys.stdin else ""
    if not text.strip():
        raise UsageError("an empty note")
    entry = Entry("note", text.rstrip("\n"), why, flags=flags, dead_end=dead_end)
    if about_id:
        about = _read(console, book).find(about_id, book)
        entry = replace(
            entry,
            about=about.id,
            kernel=about.kernel,
            kernel_commit=about.kernel_commit,
            toolchain=about.toolchain,
            simulated=about.simulated,
            flags=flags or about.flags,
        )
    if kernel:
        entry = replace(entry, kernel=kernel, kernel_commit=kernel_commit(Path(kernel)))
    written = Book(Path(book)).append(entry)
    if as_json:
        _print(console, _document("entry", Contents((), ()), entry=written.to_dict(), notes=[]))
    else:
        console.result(written.id)
    return 0


@journal.command("export", context_settings=CONTEXT)
@_selecting
@click.option("--csv", "csv_file", metavar="FILE", help="comma-separated values; - for standard output")
@click.option("--parquet", "parquet_file", metavar="FILE", help="needs pandas and pyarrow (the extra parquet)")
@_book_option
@click.option("--json", "as_json", is_flag=True, help="say what was written as one JSON document")
@click.pass_obj
def export(
    console: Console, /, csv_file: str | None, parquet_file: str | None, book: str, as_json: bool, **choice: Any
) -> int:
    """Write entries as a table.

    One row an entry, one column a figure.

    \b
    Example:
      mccprobe journal export --csv journal.csv --kind bench
    """
    from mccprobe.base.errors import InputError, UsageError
    from mccprobe.base.files import replace_file
    from mccprobe.journal.book import Contents
    from mccprobe.journal.frames import csv_text, write_parquet

    if bool(csv_file) == bool(parquet_file):
        raise UsageError("one of --csv FILE and --parquet FILE")
    if as_json and csv_file == "-":
        raise UsageError("--json and --csv - both want standard output", hint="name a file for the table")
    target = csv_file or parquet_file or ""
    entries = _selected(_read(console, book), choice)
    try:
        if csv_file == "-":
            console.result(csv_text(entries).replace("\r\n", "\n"))
        elif csv_file:
            replace_file(Path(csv_file), csv_text(entries).encode())
        else:
            write_parquet(entries, Path(target))
    except OSError as error:
        raise InputError(
            f"{target}: cannot be written: {error.strerror or error}", hint="free space or name another file"
        ) from error
    if as_json:
        written = {"file": target, "format": "csv" if csv_file else "parquet", "rows": len(entries)}
        _print(console, _document("exported", Contents((), ()), **written))
    console.message(f"{number_of(len(entries), 'entry', 'entries')}")
    return 0
