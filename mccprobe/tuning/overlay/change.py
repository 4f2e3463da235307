"""A change of a text that applies exactly once: replacements, or the hunks of a unified diff.

A hunk is found by its text, not by its line numbers, which drift with every release of an SDK; in return its text
(context and removed lines) must stand in the file exactly once. Pure: text in, text out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mccprobe.base.errors import BadDataFile, PatchDoesNotApply, UsageError

CONTEXT_LINES = 1  # of the diff that goes into a report: an SDK's header is not to be quoted at length
_HUNK = re.compile(r"^@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@")
_FILE = re.compile(r"^\+\+\+ (\S+)")


@dataclass(frozen=True)
class Replacement:
    """old: whole text to be found once. what: how it is called in a message. lines: it is whole lines, so it is found
    only where a line begins and where one ends."""

    old: str
    new: str
    what: str
    lines: bool = False


def replacement(old: str, new: str) -> Replacement:
    """One of `--replace OLD NEW`. Raises UsageError where nothing would change."""
    if not old:
        raise UsageError("--replace: the text to replace is empty")
    if old == new:
        raise UsageError(f"--replace {old}: the new text is the old one")
    return Replacement(old, new, old)


def parse_patch(text: str, name: str) -> list[Replacement]:
    """The hunks of a unified diff of one file. Raises BadDataFile."""
    found: list[Replacement] = []
    files: set[str] = set()
    lines = text_lines(text)
    at = 0
    while at < len(lines):
        if header := _FILE.match(lines[at]):
            files.add(header[1])
        if not (hunk := _HUNK.match(lines[at])):
            at += 1
            continue
        at, change = _hunk(lines, at, hunk, name)
        found.append(change)
    if len(files) > 1:
        raise BadDataFile(f"{name}: changes {len(files)} files, an overlay has one", hint="one patch for each header")
    if not found:
        raise BadDataFile(f"{name}: no hunk (@@ -a,b +c,d @@) in it", hint="make it with diff -u OLD NEW")
    return found


def _hunk(lines: Sequence[str], at: int, hunk: re.Match[str], name: str) -> tuple[int, Replacement]:
    """The hunk that begins at line `at`, and the line behind it."""
    wanted_old, wanted_new = (int(count) if count is not None else 1 for count in hunk.groups())
    first = at + 1
    old: list[str] = []
    new: list[str] = []
    last = "\\"
    at += 1
    while at < len(lines) and (len(old) < wanted_old or len(new) < wanted_new or lines[at].startswith("\\")):
        line = lines[at]
        mark, rest = line[:1], line[1:]
        if line.strip("\r\n") == "":  # an empty context line that lost its blank
            mark, rest = " ", line
        if mark == "\\":  # the line before it ends the file without a newline
            for side in _sides(last, old, new):
                side[-1] = side[-1].removesuffix("\n").removesuffix("\r")
        elif mark not in (" ", "-", "+"):
            break
        else:
            for side in _sides(mark, old, new):
                side.append(rest)
            last = mark
        at += 1
    if (len(old), len(new)) != (wanted_old, wanted_new):
        raise BadDataFile(f"{name}: the hunk at line {first} is cut off")
    if not old:
        raise BadDataFile(f"{name}: the hunk at line {first} has no line to be found by", hint="give it context")
    if old == new:
        raise BadDataFile(f"{name}: the hunk at line {first} changes nothing")
    return at, Replacement("".join(old), "".join(new), f"the hunk at line {first} of {name}", lines=True)


def _sides(mark: str, old: list[str], new: list[str]) -> list[list[str]]:
    """The sides of a hunk that a line with this mark belongs to."""
    return {" ": [old, new], "-": [old], "+": [new]}.get(mark, [])


def apply_once(text: str, changes: Sequence[Replacement], header: str) -> str:
    """The changed text. Raises PatchDoesNotApply with the count where one does not apply exactly once."""
    for change in changes:
        places = _places(text, change)
        if len(places) != 1:
            other_ends = not places and bool(_places(_unix(text), replace(change, old=_unix(change.old))))
            raise PatchDoesNotApply(header, change.what, len(places), other_ends=other_ends)
        text = text[: places[0]] + change.new + text[places[0] + len(change.old) :]
    return text


def text_lines(text: str) -> list[str]:
    """The lines with their ends. str.splitlines would also end them at a form feed, which old headers have."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", text)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _places(text: str, change: Replacement) -> list[int]:
    """Where it stands, overlapping places too."""
    part = re.escape(change.old)
    if change.lines:
        part = f"(?:^|(?<=\n)){part}" + ("" if change.old.endswith("\n") else "\\Z")
    return [found.start() for found in re.finditer(f"(?={part})", text)]


def difference(before: str, after: str, header: str) -> str:
    """The change as a unified diff that `patch -p1` takes."""
    lines = difflib.unified_diff(text_lines(before), text_lines(after), f"a/{header}", f"b/{header}", n=CONTEXT_LINES)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
