"""The shape of an edit, in words that hold for other code with the same fault. Pure: a diff or an edit in, text out.

Instructions are compared by opcode: registers, values and numbers differ from kernel to kernel.
"""

from __future__ import annotations

import re
from collections import Counter

_DEFINED = re.compile(r"^[^=\"%$@]*[%$@][^=\"]*=\s*")
_FLAG_WORDS = frozenset(
    ("nofpexcept", "contract", "afn", "reassoc", "nnan", "ninf", "nsz", "arcp", "nuw", "nsw", "exact", "fast",
     "frame-setup", "frame-destroy", "renamable", "early-clobber", "tail", "musttail", "notail", "killed", "dead")
)  # fmt: skip
_LABEL = re.compile(r"^\s*(?:bb\.\d+|\d+:|[\w.$-]+:)")
_OPCODE = re.compile(r"[A-Za-z_][\w.-]*")
_NAMES = re.compile(r"[%$@]?[\w.$-]+")
_DIGIT = re.compile(r"\d")


def opcode(instruction: str) -> str:
    """ "ADD32rr" of "%1:gr32 = nofpexcept ADD32rr killed %0, ...", "add" of "%x = add nsw i32 ..."; "" for none."""
    text = _DEFINED.sub("", instruction.strip())
    for word in text.split():
        if word.rstrip(",") not in _FLAG_WORDS:
            found = _OPCODE.match(word)
            return found.group() if found else ""
    return ""


def edit_shape(before: str, after: str) -> str:
    """The shape of one instruction's edit; "" for nothing."""
    old, new = opcode(before), opcode(after)
    if old and not new:
        return f"instruction deleted: {old}"
    if new and not old:
        return f"instruction inserted: {new}"
    if old and old == new:
        return f"operand replaced in {old}" if before.strip() != after.strip() else f"instruction moved: {old}"
    return f"{old} replaced by {new}" if old else ""


def diff_shape(diff: str) -> str:
    """The shape of a unified diff of one function; "" when it changes no instruction."""
    removed: list[str] = []
    added: list[str] = []
    labels = 0
    for line in diff.splitlines():
        if line.startswith(("---", "+++", "@@")) or line[:1] not in ("-", "+"):
            continue
        text = line[1:].strip()
        if _LABEL.match(text):
            labels += 1
        elif opcode(text):
            (removed if line[0] == "-" else added).append(text)
    if not removed and not added:
        return "blocks renamed or joined" if labels else ""
    if Counter(map(_bare, removed)) == Counter(map(_bare, added)):
        return "block moved" if labels > 1 else "instructions reordered"
    old, new = Counter(map(opcode, removed)), Counter(map(opcode, added))
    if not new:
        return f"instructions deleted: {_listed(old)}"
    if not old:
        return f"instructions inserted: {_listed(new)}"
    if old == new:
        return f"operands replaced in {_listed(old)}"
    parts = [("removed", old - new), ("added", new - old)]
    return "; ".join(f"{word} {_listed(counts)}" for word, counts in parts if counts)


def _bare(text: str) -> str:
    """Without the names and numbers that a renumbering changes."""
    return _NAMES.sub(lambda name: "#" if _DIGIT.search(name[0]) else name[0], text)


def _listed(counts: Counter[str], most: int = 3) -> str:
    """The commonest opcodes; without their number, which tells the size of the function and not the fault."""
    names = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
