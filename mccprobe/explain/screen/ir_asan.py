"""LLVM IR with ASan asked for: an attribute of each function, which a front end writes and a reader of IR does not.

An access out of bounds in IR can read the right value at -O0, where each local has its place, and a pass that makes
a register of the local is innocent.
"""

from __future__ import annotations

import re

_DEFINE = re.compile(r"^define [^\n]*$", re.MULTILINE)
_NAME = re.compile(r'@(?:[-\w.$]+|"[^"]*")\(')
_BEFORE_ATTRIBUTES = re.compile(r"(?: (?:local_)?unnamed_addr)?(?: addrspace\(\d+\))?")


def with_address_checks(module: str) -> str:
    """The same module with ASan asked for in every function that it defines, as a front end does it."""
    return _DEFINE.sub(_asking_for_asan, module)


def _asking_for_asan(found: re.Match[str]) -> str:
    line = found.group()
    name = _NAME.search(line)
    depth, at = 0, name.end() - 1 if name else len(line)
    while at < len(line):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        at += 1
        if depth == 0:
            break
    after = _BEFORE_ATTRIBUTES.match(line, at)
    if name is None or after is None or depth:
        return line  # laid out otherwise than LLVM prints it: not instrumented
    return f"{line[: after.end()]} sanitize_address{line[after.end() :]}"
