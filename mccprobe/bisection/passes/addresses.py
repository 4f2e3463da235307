"""Does the program compute with addresses? Where things lie differs between any two builds.

Read from the IR before the first optional pass. A difference of two pointers and a comparison say nothing of where
things lie; every other use of an address as a number does: masks, remainders, hashes, a variable that holds it.
"""

from __future__ import annotations

import re

_TAKEN = re.compile(r"^\s*(%[-\w.$]+) = ptrtoint (?!\()", re.MULTILINE)
_HARMLESS = re.compile(r"= (?:sub|icmp|inttoptr)\b")
_DEFINED = re.compile(r"^define .*?^}", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"@(\"[^\"]+\"|[-\w.$]+)\(")


def computes_with_addresses(ir: str) -> str:
    """The first function that uses an address as a number, "" if none does."""
    for found in _DEFINED.finditer(ir):
        body = found.group()
        taken = set(_TAKEN.findall(body))
        if not taken:
            continue
        for line in body.splitlines():
            used = set(re.findall(r"%[-\w.$]+", line.partition(" = ")[2] or line)) & taken
            if used and not _HARMLESS.search(line):
                name = _NAME.search(body)
                return name.group(1).strip('"') if name else "a function"
    return ""
