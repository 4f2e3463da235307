"""Plain locals that change between setjmp and longjmp: their values are indeterminate afterwards (C11 7.13.2.1).

Read in the IR of the front end, where each local is an `alloca` and each access a load or a store. A local that
keeps its value from the call of setjmp on is not one of them, however often it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_FUNCTION = re.compile(r"^define [^\n]*\{\n.*?^\}$", re.MULTILINE | re.DOTALL)
_TWICE = re.compile(r"\b(?:call|invoke) [^\n]*@_*(?:sig)?setjmp\(")
_LABEL = re.compile(r'^([\w.$-]+|"[^"\n]+"):')
_TARGET = re.compile(r'\blabel %([\w.$-]+|"[^"\n]+")')
_NAME = re.compile(r'%(?:[\w.$-]+|"[^"\n]+")')
_RESULT = re.compile(r'^[ \t]+(%(?:[\w.$-]+|"[^"\n]+")) = (.*)$')
_DERIVES = re.compile(r"^(?:bitcast|getelementptr|addrspacecast)\b")
_CALL = re.compile(r"\b(?:call|invoke|callbr) (?![^\n]*@llvm\.)")
_WRITES = re.compile(r"\b(?:call|invoke) [^\n]*@llvm\.mem(?:cpy|move|set)[\w.]*\(([^,]*)")
_STORE = re.compile(r"^[ \t]+store (?:atomic |volatile )*(?P<value>.*?), \S+ (?P<to>%\S+?)(?:,|$)")
_PLAIN_ACCESS = re.compile(r"^(?P<head>[ \t]+(?:%\S+ = load|store) )(?!atomic|volatile)")
_ACCESSED = re.compile(r"^[ \t]+(?:%\S+ = load .*?, \S+ |store .*?, \S+ )(?P<to>%[^\s,]+|@[^\s,]+|\S+)")


@dataclass
class _Block:
    lines: list[str] = field(default_factory=list)
    follow: list[str] = field(default_factory=list)


def volatile_where_changed(module: str) -> str:
    """The module with every access made of the locals that change between setjmp and longjmp."""
    return _FUNCTION.sub(lambda found: _function(found.group()), module)


def _function(text: str) -> str:
    if not _TWICE.search(text):
        return text
    lines = text.splitlines()
    roots = _roots(lines)
    buffers = {roots[name] for line in lines if _TWICE.search(line) for name in _NAME.findall(line) if name in roots}
    stored = {
        roots[name]
        for line in lines
        if (store := _STORE.match(line))
        for name in _NAME.findall(store["value"])
        if name in roots
    }
    escaped = (stored | set(_passed(lines, roots))) - buffers  # setjmp fills them, the program does not
    changed = _changed(_blocks(lines[1:-1]), roots, escaped)
    if not changed:
        return text
    through_pointers = bool(changed & stored)
    return "\n".join(_made_volatile(line, roots, changed, through_pointers) for line in lines)


def _made_volatile(line: str, roots: dict[str, str], changed: set[str], through_pointers: bool) -> str:
    accessed = _ACCESSED.match(line)
    if not accessed:
        return line
    root = roots.get(accessed["to"])
    if root in changed or (root is None and through_pointers):
        return _PLAIN_ACCESS.sub(r"\g<head>volatile ", line)
    return line


def _roots(lines: Iterable[str]) -> dict[str, str]:
    """Each pointer into a local, and the local's name."""
    found: dict[str, str] = {}
    for line in lines:
        made = _RESULT.match(line)
        if not made:
            continue
        name, what = made.groups()
        if what.startswith("alloca "):
            found[name] = name
        elif _DERIVES.match(what):
            base = next((used for used in _NAME.findall(what) if used in found), None)
            if base is not None:
                found[name] = found[base]
    return found


def _passed(lines: Iterable[str], roots: dict[str, str]) -> Iterable[str]:
    """The locals whose address a call gets: they may change in any call from then on."""
    for line in lines:
        if _CALL.search(line) and not _TWICE.search(line):
            yield from (roots[name] for name in _NAME.findall(line) if name in roots)


def _blocks(lines: Iterable[str]) -> dict[str, _Block]:
    """The basic blocks by label, the entry under ""; a call of setjmp ends a block."""
    blocks = {"": _Block()}
    current, parts = "", 0
    for line in lines:
        label = _LABEL.match(line)
        if label:
            current = label[1]
            blocks.setdefault(current, _Block())
            continue
        blocks[current].lines.append(line)
        blocks[current].follow += _TARGET.findall(line)
        if _TWICE.search(line) and "invoke" not in line:
            parts += 1
            after = f"{current} after setjmp {parts}"
            blocks[current].follow.append(after)
            current = after
            blocks[current] = _Block()
    return blocks


def _changed(blocks: dict[str, _Block], roots: dict[str, str], escaped: set[str]) -> set[str]:
    """Locals that are written on a way from setjmp's first return to a call that may be, or lead to, the longjmp."""
    found: set[str] = set()
    for block in blocks.values():
        if not block.lines or not _TWICE.search(block.lines[-1]):
            continue
        for start in _first_return(blocks, block):
            for label in _reached(blocks, [start]):
                found |= _written_before_a_call(blocks, label, roots, escaped)
    return found


def _first_return(blocks: dict[str, _Block], block: _Block) -> list[str]:
    """Where the function goes when setjmp returns 0: one side of the branch on it, else whatever follows."""
    call = _RESULT.match(block.lines[-1])
    [after] = [name for name in block.follow if " after setjmp " in name] or [""]
    if not call or not after:
        return block.follow
    value = re.escape(call[1])
    text = "\n".join(blocks[after].lines)
    tested = re.search(rf"^[ \t]+(%\S+) = icmp (eq|ne) i32 {value}, 0$", text, re.MULTILINE)
    branch = tested and re.search(
        rf"^[ \t]+br i1 {re.escape(tested[1])}, label %(\S+?), label %([^\s,]+)", text, re.MULTILINE
    )
    if not tested or not branch:
        return [after]
    return [branch[1] if tested[2] == "eq" else branch[2]]


def _reached(blocks: dict[str, _Block], starts: Iterable[str]) -> set[str]:
    """Blocks on the ways from these that do not come through a further setjmp."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        label = waiting.pop()
        if label in found or label not in blocks:
            continue
        found.add(label)
        lines = blocks[label].lines
        if not lines or not _TWICE.search(lines[-1]):
            waiting += blocks[label].follow
    return found


def _written_before_a_call(blocks: dict[str, _Block], label: str, roots: dict[str, str], escaped: set[str]) -> set[str]:
    later = any(
        _CALL.search(line) and not _TWICE.search(line)
        for name in _reached(blocks, blocks[label].follow)
        for line in blocks[name].lines
    )
    found: set[str] = set()
    waiting: set[str] = set()
    for line in blocks[label].lines:
        if _CALL.search(line) and not _TWICE.search(line):
            found |= waiting | escaped
            waiting = set()
        written = _STORE.match(line)
        if written and written["to"] in roots:
            waiting.add(roots[written["to"]])
        filled = _WRITES.search(line)
        if filled:
            waiting |= {roots[name] for name in _NAME.findall(filled[1]) if name in roots}
    return found | waiting if later else found
