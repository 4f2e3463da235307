"""IR text for people: one function out of a module, without the noise that moves from print to print."""

from __future__ import annotations

import re
from collections.abc import Sequence

_DEFINED = re.compile(r'define [^@]*@(?:"([^"]+)"|([-\w$.]+))\(')
_ATTACHED = re.compile(r",? ![A-Za-z_][\w.]* ![0-9]+|,? !\d+")
_GROUP = re.compile(r"(?<![\w%@])#\d+(?= |$)")
_GROUP_LINE = re.compile(r"^attributes (#\d+) = \{(.*)\}$", re.MULTILINE)
_STRING = re.compile(r'"[^"]*"(?:="[^"]*")?')  # target features and the like: the same on every line
# from the first of several blanks on, so that a line of blanks costs what it is long
_COMMENT = re.compile(r"(?<!\s)\s+; preds = .*$")
_SPACE = re.compile(r"(?<! ) ++(?=\{?$)")


def function_lines(module: str, symbol: str) -> list[str]:
    """The lines of one defined function as printed; empty when the module does not define it."""
    lines: list[str] = []
    for line in module.splitlines():
        if not lines:
            found = _DEFINED.match(line)
            if found and (found.group(1) or found.group(2)) == symbol:
                lines.append(line)
        else:
            lines.append(line)
            if line == "}":
                break
    return lines


def readable_lines(module: str, lines: Sequence[str]) -> list[str]:
    """Without metadata attachments and predecessor comments, which renumber; attributes by name, not by number."""
    groups = {number: _STRING.sub("", names) for number, names in _GROUP_LINE.findall(module)}

    def written_out(found: re.Match[str]) -> str:
        names = " ".join(groups.get(found.group(), "").split())
        return f"{{ {names} }}" if names else ""

    kept = []
    for line in lines:
        if line.lstrip().startswith(";"):
            continue
        bare = _GROUP.sub(written_out, _ATTACHED.sub("", _COMMENT.sub("", line)))
        kept.append(_SPACE.sub(" ", bare).rstrip())
    return kept
