"""Operand text to (kind, numbers): what a form is made of, and the values that fields are found by.

`v[4:7]` is kind `v` with 4 and 3 (the span), `-|v2|` kind `v` with neg and abs set, `offset:16` kind
`offset:#` with 16. Nothing here knows an instruction set but SPECIAL: names that stand for numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mccprobe.objects.isa.records import Instruction

# nvdisasm writes the last register of a file by name (CUDA binary utilities, "Instruction set reference")
SPECIAL = {"RZ": ("R", 255), "URZ": ("UR", 63), "PT": ("P", 7), "UPT": ("UP", 7)}

_BETWEEN = re.compile(r",\s*+|\s++")
_TOKEN = re.compile(
    r"(?<![\w.])(?:(?P<bank>[A-Za-z]*)\[(?P<first>\d{1,18}):(?P<last>\d{1,18})\]"
    r"|(?P<hex>[-+]?0x[0-9a-fA-F]{1,32})(?!\w)"
    r"|(?P<real>[-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|INF|NAN|QNAN)(?![\w.]))"
    r"|(?P<register>[A-Za-z]{1,3})(?P<number>\d{1,18})(?!\w)"
    r"|(?P<special>U?RZ|U?PT)(?!\w)"
    r"|(?P<integer>[-+]?\d{1,18})(?!\w))"
)
_LABEL = re.compile(r"`?\(?\.L|BB\d+_\d+")
FLAGS = ("negative", "absolute", "inverted", "reuse")  # end the numbers of a register, after number and span
_CACHE_LIMIT = 1 << 16
_CACHED_CHARS = 64  # longer ones do not come again

Operand = tuple[str, tuple[int, ...]]
_cache: dict[str, Operand] = {}


class Sample(NamedTuple):
    """One line of a listing, ready to be learned from. whole: its text depends on nothing but the word."""

    word: int
    size: int
    slot: int
    mnemonic: str
    form: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]
    text: str
    pipe: str
    whole: bool
    probe: bool


def parse_operand(text: str) -> Operand:
    """(kind, numbers). The kind decides how many numbers there are; flags come last, as 0 or 1."""
    known = _cache.get(text)
    if known is None:
        known = _parse(text)
        if len(text) <= _CACHED_CHARS and len(_cache) < _CACHE_LIMIT:
            _cache[text] = known
    return known


def _parse(text: str) -> Operand:
    if _LABEL.match(text):
        return "L", ()
    negative = inverted = absolute = reuse = 0
    body = text
    if body.endswith(".reuse"):
        body, reuse = body[:-6], 1
    if re.match(r"-[^\d.]", body):
        body, negative = body[1:], 1
    if body[:1] in ("!", "~"):
        body, inverted = body[1:], 1
    if len(body) > 2 and body[0] == body[-1] == "|":
        body, absolute = body[1:-1], 1
    numbers: list[int] = []
    register = False

    def kind(match: re.Match[str]) -> str:
        nonlocal register
        if match["first"]:
            numbers.extend((int(match["first"]), int(match["last"]) - int(match["first"])))
            register = True
            return match["bank"] or "[:]"
        if match["register"] or match["special"]:
            bank, number = SPECIAL.get(match[0]) or (match["register"], int(match["number"] or 0))
            numbers.extend((number, 0))
            register = True
            return bank
        if match["real"]:
            return "f"
        numbers.append(int(match["hex"] or match["integer"], 0 if match["hex"] else 10))
        return "#"

    name = _TOKEN.sub(kind, body)
    if register:
        numbers.extend((negative, absolute, inverted, reuse))
    elif negative or inverted or absolute:
        name = text if not numbers else f"{'-' * negative}{'!' * inverted}{'|' * absolute}{name}"
    return name, tuple(numbers)


def _fields(text: str) -> Iterator[str]:
    """The operands: parted by commas and blanks, but not within brackets."""
    start = 0
    opening = closing = -1  # the next brackets behind the place; looked for once each, so that long texts cost little
    for between in _BETWEEN.finditer(text):
        place = between.end()
        if opening < place:
            opening = text.find("[", place) if opening != len(text) else opening
            opening = len(text) if opening < 0 else opening
        if closing < place:
            closing = text.find("]", place) if closing != len(text) else closing
            closing = len(text) if closing < 0 else closing
        if closing >= opening:
            yield text[start : between.start()]
            start = place
    yield text[start:]


def sample_of(instruction: Instruction, slot: int = -1, *, probe: bool = False) -> Sample | None:
    """A sample, None where the listing gave no bytes."""
    data = instruction.data
    if not data or not instruction.mnemonic:
        return None
    operands = [parse_operand(part) for part in _fields(instruction.operands.strip()) if part]
    if instruction.flags:
        operands.insert(0, parse_operand(instruction.flags.lstrip("@")))
    kinds = tuple(kind for kind, _ in operands)
    return Sample(
        int.from_bytes(data, "little"),
        len(data),
        slot,
        instruction.mnemonic,
        kinds,
        tuple(numbers for _, numbers in operands),
        instruction.text,
        instruction.pipe,
        not instruction.target and "L" not in kinds,
        probe,
    )
