"""The stream in 12-byte words of three 4-byte slots, as the article describes MTGPU (section 16).

    word    12 bytes in a row, counted from the start of the function
    slot     4 bytes in a row in a word:  | slot 0 | slot 1 | slot 2 |
    instruction   one statement of the disassembler; a word may hold up to three

This geometry is one article's, and real objects refute it: there an instruction has 1 to 4 dwords and bit 31
marks the last (`mtgpu.cut`). Where the bytes fit that cut the state is `dwords` and no words are formed. Else it
is the listing's view: `confirmed` if addresses step by 12 (at least three steps, none otherwise), `assumed` if
nothing in the addresses is against it, `unknown` if there are no bytes, or the addresses contradict it. Other
instruction sets have `none`. What an empty slot looks like is not public: counted are slots of four zero bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from mccprobe.objects.isa.mtgpu.cut import cut, fits_instruction
from mccprobe.objects.isa.mtgpu.listing import MISFIT
from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import Function

WORD_BYTES = 12  # article, section 16: "each VLIW word is 12 bytes = 3 slots of 4 bytes"
SLOT_BYTES = 4
SLOTS_PER_WORD = WORD_BYTES // SLOT_BYTES
MOST_ELIDED_BYTES = 1 << 20  # zeros that a disassembler left out; more is no one function
STEPS_TO_CONFIRM = 3  # fewer steps of 12 may be chance
EMPTY_SLOT = b"\0" * SLOT_BYTES  # an assumption, see above


@dataclass(frozen=True)
class Geometry:
    """state: `dwords`, `confirmed`, `assumed`, `unknown` or `none`. reason: why, for people."""

    state: str
    reason: str

    @property
    def words_known(self) -> bool:
        return self.state in ("confirmed", "assumed")


@dataclass(frozen=True)
class Word:
    """One word. instructions: indices of those that start in it; slots: its bytes, the last may be short."""

    address: int
    slots: tuple[bytes, ...]
    instructions: tuple[int, ...]


NOT_MTGPU = Geometry("none", "12-byte words are MTGPU's")
CUT = Geometry("dwords", "every instruction ends at its first dword with bit 31, as in all public objects")
REFUTED = Geometry("unknown", "the listing's steps are not the instructions that bit 31 marks in its bytes")
NO_CUT = Geometry("unknown", "bytes that end no instruction (no bit 31 within 4 dwords)")


def geometry(function: Function, isa: str) -> Geometry:
    """What the addresses of one function say about 12-byte words."""
    if isa != "mtgpu":
        return NOT_MTGPU
    instructions = function.instructions
    if any(one.data is None or one.address is None for one in instructions) or not instructions:
        return Geometry("unknown", "the listing has no bytes")
    if all(fits_instruction(one.data or b"") for one in instructions):
        return CUT
    if any(one.mnemonic == MISFIT for one in instructions):
        return NO_CUT
    if all(one.pipe == UNKNOWN for one in instructions):
        return Geometry("assumed", "nothing was disassembled, words are cut from the start of the function")
    addresses = [one.address or 0 for one in instructions]
    steps = [after - before for before, after in pairwise(addresses) if after != before]
    extents: dict[int, int] = {}
    for one in instructions:
        if one.address is not None:
            extents[one.address] = max(extents.get(one.address, 0), len(one.data or b""))
    if any(step < 0 for step in steps):
        return Geometry("unknown", "addresses go backwards")
    if any(address + size > after for (address, size), (after, _) in pairwise(extents.items())):
        return Geometry("unknown", "instructions overlap")
    if any(step % SLOT_BYTES for step in steps) or any(size % SLOT_BYTES for size in extents.values()):
        return Geometry("unknown", f"addresses step by {_some(steps)}: no 4-byte slots")
    total = max(address + size for address, size in extents.items()) - min(extents)
    if total > sum(extents.values()) + MOST_ELIDED_BYTES:
        return Geometry("unknown", "addresses are too far apart")
    if cut(image_of(function)[1]).fits:
        return REFUTED
    if steps and all(step == WORD_BYTES for step in steps) and len(steps) >= STEPS_TO_CONFIRM:
        return Geometry("confirmed", f"all {len(steps)} steps between addresses are 12 bytes")
    if total % WORD_BYTES:
        return Geometry("unknown", f"{total} bytes are no whole number of 12-byte words")
    if not steps:
        return Geometry("assumed", "one address only")
    return Geometry("assumed", f"addresses step by {_some(steps)}; whole 12-byte words fit")


def _some(steps: list[int]) -> str:
    distinct = sorted(set(steps))
    return ", ".join(map(str, distinct[:4])) + (", ..." if len(distinct) > 4 else "")


def image_of(function: Function) -> tuple[int, bytes]:
    """Start and bytes of a function put together from its instructions; gaps (elided zeros) are zero."""
    start = min(one.address or 0 for one in function.instructions)
    end = max((one.address or 0) + len(one.data or b"") for one in function.instructions)
    code = bytearray(end - start)
    for one in function.instructions:
        place = (one.address or 0) - start
        code[place : place + len(one.data or b"")] = one.data or b""
    return start, bytes(code)


def iter_words(start: int, code: bytes) -> Iterator[Word]:
    """Words of a piece of code that no disassembler looked at."""
    for place in range(0, len(code), WORD_BYTES):
        word = code[place : place + WORD_BYTES]
        slots = tuple(word[slot : slot + SLOT_BYTES] for slot in range(0, len(word), SLOT_BYTES))
        yield Word(start + place, slots, ())


def words_of(function: Function) -> list[Word]:
    """Words of a function whose geometry is confirmed or assumed."""
    start, code = image_of(function)
    inside: dict[int, list[int]] = {}
    for index, one in enumerate(function.instructions):
        inside.setdefault(((one.address or 0) - start) // WORD_BYTES, []).append(index)
    return [
        Word(word.address, word.slots, tuple(inside.get(place, ())))
        for place, word in enumerate(iter_words(start, code))
    ]


def empty_slots(words: list[Word]) -> int:
    """Slots of four zero bytes."""
    return sum(slot == EMPTY_SLOT for word in words for slot in word.slots)
