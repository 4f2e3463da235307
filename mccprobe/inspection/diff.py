"""`mccprobe diff` as one JSON document, and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mccprobe import __version__
from mccprobe.inspection.lines import joined
from mccprobe.objects.isa.change import KINDS, Entry, FunctionChange
from mccprobe.objects.isa.diff import ImageChange
from mccprobe.objects.isa.mtgpu.cut import fits_instruction
from mccprobe.objects.isa.mtgpu.listing import is_cut
from mccprobe.objects.isa.pipes import UNKNOWN, mix
from mccprobe.objects.isa.records import Function, Instruction

SCHEMA_VERSION = 1
_MARKS = {
    "same": " ",
    "control": "c",
    "renamed": "r",
    "moved": "m",
    "moved-renamed": "M",
    "changed": "!",
    "added": "+",
    "removed": "-",
}


def document(changes: Sequence[ImageChange], left: str, right: str) -> dict[str, Any]:
    """The document that `reports/diff.schema.json` describes."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "a": left,
        "b": right,
        "equal": all(one.equal for one in changes),
        "images": [_image(one) for one in changes],
    }


def _image(one: ImageChange) -> dict[str, Any]:
    return {
        "target": one.target,
        "isa": one.isa,
        "a": one.left.image.origin if one.left else None,
        "b": one.right.image.origin if one.right else None,
        "resources": [
            {"kernel": item.kernel, "name": item.name, "a": item.left, "b": item.right} for item in one.resources
        ],
        "warnings": _warnings(one),
        "only_in_a": list(one.only_left),
        "only_in_b": list(one.only_right),
        "functions": [_function(item) for item in one.functions],
    }


def _warnings(one: ImageChange) -> list[str]:
    """What could not be read on either side."""
    sides = (side for side in (one.left, one.right) if side is not None)
    return list(dict.fromkeys(text for side in sides for text in side.warnings))


def _function(one: FunctionChange) -> dict[str, Any]:
    return {
        "a": one.left.name,
        "b": one.right.name,
        "equal": one.equal,
        "instructions": {"a": _count(one.left), "b": _count(one.right)},
        "mix": {"a": mix(one.left.instructions), "b": mix(one.right.instructions)},
        "counts": one.counts,
        "renames": one.renames,
        "differences": [_entry(one, entry) for entry in one.differing()],
    }


def _count(function: Function) -> int | None:
    """Instructions of a function; None where its code fits no cut, or nothing decoded any."""
    instructions = function.instructions
    if not is_cut(function):
        return None
    if instructions and all(one.pipe == UNKNOWN and not fits_instruction(one.data or b"") for one in instructions):
        return None
    return len(instructions)


def _entry(one: FunctionChange, entry: Entry) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "a": _side(one.left.instructions, entry.left),
        "b": _side(one.right.instructions, entry.right),
    }


def _side(instructions: Sequence[Instruction], index: int | None) -> dict[str, Any] | None:
    if index is None:
        return None
    one = instructions[index]
    return {
        "index": index,
        "address": one.address,
        "bytes": None if one.data is None else one.data.hex(),
        "control": one.control,
        "text": one.text,
        "pipe": one.pipe,
    }


def render(changes: Sequence[ImageChange], left: str, right: str, *, limit: int) -> str:
    """limit: differing instructions shown of each function."""
    lines = [f"a: {left}", f"b: {right}"]
    for one in changes:
        lines += _image_lines(one, limit)
    if all(one.equal for one in changes):
        lines.append("no difference")
    return joined(lines)


def _image_lines(one: ImageChange, limit: int) -> Iterator[str]:
    warnings = _warnings(one)
    if one.equal and not warnings:
        return
    yield ""
    yield f"{one.target or one.isa}:"
    yield from (f"  warning: {text}" for text in warnings)
    if one.left is None or one.right is None:
        yield f"  only in {'b' if one.left is None else 'a'}"
        return
    width = max((len(item.name) for item in one.resources), default=0)
    for item in one.resources:
        yield f"  {item.kernel}: {item.name:<{width}}  {_shown(item.left)} -> {_shown(item.right)}"
    yield from (f"  {name}: only in a" for name in one.only_left)
    yield from (f"  {name}: only in b" for name in one.only_right)
    for function in one.functions:
        if not function.equal:
            yield ""
            yield from _function_lines(function, limit)


def _shown(value: Any) -> str:
    return "not told" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _function_lines(one: FunctionChange, limit: int) -> Iterator[str]:
    name = one.left.name if one.left.name == one.right.name else f"{one.left.name} -> {one.right.name}"
    long = [len(side.instructions) for side in (one.left, one.right)]
    nouns = ["undecoded pieces" if _count(side) is None else "instructions" for side in (one.left, one.right)]
    apart = f" {nouns[0]}" if nouns[0] != nouns[1] else ""
    yield f"  {name}: {long[0]}{apart} -> {long[1]} {nouns[1]}"
    counts = one.counts
    yield "    " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind] or kind == "same")
    changed = [kind for kind in KINDS if counts[kind] and kind != "same"]
    if changed == ["moved"]:
        yield "    a pure reorder"
    elif changed == ["renamed"]:
        yield "    a pure change of registers"
    before, after = mix(one.left.instructions), mix(one.right.instructions)
    shifts = [
        f"{pipe} {before.get(pipe, 0)} -> {after.get(pipe, 0)}"
        for pipe in dict.fromkeys((*before, *after))
        if before.get(pipe, 0) != after.get(pipe, 0)
    ]
    if shifts:
        yield "    mix: " + ", ".join(shifts)
    if one.renames:
        shown = [f"{text} ({count})" for text, count in list(one.renames.items())[:8]]
        yield "    registers: " + ", ".join(shown) + (", ..." if len(one.renames) > 8 else "")
    entries = one.differing()
    for entry in entries[:limit]:
        yield from _entry_lines(one, entry)
    if len(entries) > limit:
        yield f"    ({len(entries) - limit} more; --limit 0 shows all)"


def _entry_lines(one: FunctionChange, entry: Entry) -> Iterator[str]:
    mark = _MARKS[entry.kind]
    a = None if entry.left is None else one.left.instructions[entry.left]
    b = None if entry.right is None else one.right.instructions[entry.right]
    if entry.kind == "moved" and b is not None:
        yield f"    {mark} {_where(a, entry.left)} -> {_where(b, entry.right)}  {b.text}"
    elif entry.kind in ("added", "removed"):
        shown = b if a is None else a
        assert shown is not None
        yield f"    {mark} {_where(shown, entry.right if a is None else entry.left)}  {_text(shown, False)}"
    else:
        control = entry.kind == "control"
        yield f"    {mark} {_where(a, entry.left)}  {_text(a, control)}"
        yield f"    {'':<{len(mark)}} {_where(b, entry.right)}  {_text(b, control)}"


def _where(one: Instruction | None, index: int | None) -> str:
    return f"#{index}" if one is None or one.address is None else f"0x{one.address:x}"


def _text(one: Instruction | None, control: bool) -> str:
    if one is None:
        return ""
    parts = [f"[{one.control}]" if control and one.control else "", one.flags, one.text]
    if one.data is not None and (one.pipe == UNKNOWN or one.confidence):
        parts.append(one.data.hex(" "))
    return " ".join(part for part in parts if part)
