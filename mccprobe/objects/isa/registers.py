"""Registers in the operands of an instruction: which, and which of them are written.

Register banks are those of public texts (MTGPU: R AR SH SL I X, `p0`; fragments `R14[4:2][2:1]` are
count:stride pairs, inferred from one public sample where they reproduce its register count). Which
operand is written is a convention of the assembly language: the first one, except in stores and
compares; the last one in AT&T x86.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from mccprobe.objects.isa.records import Instruction

MOST_REGISTERS = 1024  # in one operand: more is no register range, whatever the text says
CACHED = 1 << 15  # texts: a listing repeats few of them; about 20 MB when full


class Register(NamedTuple):
    """A register or a range of them: bank, first index, how many in a row."""

    bank: str
    first: int
    size: int


_MTGPU = re.compile(
    r"(?<![\w.])(?P<bank>AR|SH|SL|R|I|X|p)"
    r"(?:\[(?P<low>\d{1,4}):(?P<high>\d{1,4})\]|(?P<one>\d{1,4})(?!\d)(?P<shape>(?:\[\d{1,4}:\d{1,4}\])*))"
)
_AMDGPU = re.compile(
    r"(?<![\w.])(?P<bank>[vsa])(?:\[(?P<low>\d{1,4}):(?P<high>\d{1,4})\]|(?P<one>\d{1,4})(?!\w))(?P<shape>)"
)
_NVIDIA = re.compile(r"(?<![\w.])(?P<bank>UR|UP|R|P)(?P<one>\d{1,4})(?!\d)(?P<low>)(?P<high>)(?P<shape>)")
_X86 = re.compile(r"%([a-z][a-z0-9]*)")
_FRAGMENT = re.compile(r"\[(\d{1,9}):(\d{1,9})\]")
_PATTERNS = {"mtgpu": _MTGPU, "amdgpu": _AMDGPU, "nvidia": _NVIDIA}

# pipes, and beginnings of mnemonics, whose first operand is read
_MTGPU_READS_ALL = frozenset({"DMA.ST", "LSU.ST", "LDMA.WR", "CTRL", "COND", "AP"})
_AMD_READS_ALL = re.compile(
    r"^(?:s_cmp|s_bitcmp|s_cbranch|s_branch|s_waitcnt|s_nop|s_setpc|s_store|s_buffer_store|s_endpgm|s_barrier|"
    r"(?:buffer|tbuffer|image|global|flat|scratch)_(?:store|atomic)|ds_write|ds_store|ds_add_u32|exp\b)"
)
_X86_OVERWRITES = re.compile(r"^(?:mov(?!s[bwlq]$)|lea|set|pop|v(?!fm|fnm)|cvt|pshuf|pop)")
_X86_READS_ALL = re.compile(
    r"^(?:cmp(?!xchg)|test|j|call|ret|push|nop|ucomis|comis|bt[lqw]?$|vucomis|vcomis|v?ptest)"
)

_LEGACY = {"ax": "a", "bx": "b", "cx": "c", "dx": "d", "si": "si", "di": "di", "bp": "bp", "sp": "sp"}


@functools.cache
def _x86_family(name: str) -> tuple[str, str]:
    """(canonical register, width class): eax is ("ra", "e"), r8d ("r8", "d"), ymm3 ("v3", "ymm")."""
    if name[:3] in ("xmm", "ymm", "zmm"):
        return "v" + name[3:], name[:3]
    found = re.fullmatch(r"r(\d{1,9})([dwb]?)", name)
    if found:
        return "r" + found[1], found[2]
    if name[1:] in _LEGACY and name[0] in "re":
        return "r" + _LEGACY[name[1:]], name[0]
    if name in _LEGACY:
        return "r" + _LEGACY[name], "w"
    if len(name) == 2 and name[0] in "abcd" and name[1] in "lh":
        return "r" + name[0], name[1]
    if len(name) == 3 and name[2] == "l" and name[:2] in _LEGACY:
        return "r" + _LEGACY[name[:2]], "l"
    return name, ""


def _span(shape: str) -> int:
    """Registers from the first to the last of a fragment: 1 + sum of (count - 1) * stride."""
    span = 1 + sum((int(count) - 1) * int(stride) for count, stride in _FRAGMENT.findall(shape) if int(count))
    return min(span, MOST_REGISTERS)


def _register(found: re.Match[str]) -> Register:
    if found["low"]:
        low, high = int(found["low"]), int(found["high"])
        return Register(found["bank"], min(low, high), min(abs(high - low) + 1, MOST_REGISTERS))
    return Register(found["bank"], int(found["one"]), _span(found["shape"] or ""))


@functools.lru_cache(maxsize=CACHED)
def shape_of(text: str, isa: str) -> tuple[str, tuple[Register, ...]]:
    """The text with its registers blanked (bank and size stay), and the registers in order."""
    found: list[Register] = []
    if isa == "x86":

        def blank_x86(match: re.Match[str]) -> str:
            name, width = _x86_family(match[1])
            found.append(Register(name, 0, 1))
            return "%" + width + ("v" if name[0] == "v" and width else "?")

        return _X86.sub(blank_x86, text), tuple(found)

    def blank(match: re.Match[str]) -> str:
        register = _register(match)
        found.append(register)
        return f"{register.bank}#{register.size}{match['shape'] or ''}"

    pattern = _PATTERNS.get(isa)  # none: nothing is known of how this set writes its registers
    return (pattern.sub(blank, text), tuple(found)) if pattern else (text, ())


def registers_of(text: str, isa: str) -> tuple[Register, ...]:
    """The registers that stand in a text, in order."""
    return shape_of(text, isa)[1]


def split_operands(operands: str) -> list[str]:
    """Operands at the commas outside of brackets and parentheses."""
    parts, depth, start = [], 0, 0
    for place, character in enumerate(operands):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth <= 0:
            parts.append(operands[start:place].strip())
            start = place + 1
    rest = operands[start:].strip()
    return [*parts, rest] if rest or parts else []


def _written_operand(mnemonic: str, operands: list[str], pipe: str, isa: str) -> int | None:
    """Which operand is only written, None if none is for certain."""
    if not operands:
        return None
    if isa == "mtgpu":
        return None if pipe in _MTGPU_READS_ALL or pipe in ("other", "unknown") else 0
    if isa == "amdgpu":
        return None if _AMD_READS_ALL.match(mnemonic) else 0
    if isa == "nvidia":
        return None if mnemonic.startswith(("ST", "RED", "BRA", "EXIT", "BAR")) else 0
    if _X86_READS_ALL.match(mnemonic) or not _X86_OVERWRITES.match(mnemonic) or "(" in operands[-1]:
        return None
    return len(operands) - 1


class Roles(NamedTuple):
    """The registers that an instruction reads and those that it writes."""

    read: tuple[Register, ...]
    written: tuple[Register, ...]


@functools.lru_cache(maxsize=CACHED)
def _roles(mnemonic: str, operands: str, pipe: str, isa: str) -> Roles:
    parts = split_operands(operands)
    place = _written_operand(mnemonic, parts, pipe, isa)
    read = [register for index, part in enumerate(parts) if index != place for register in registers_of(part, isa)]
    return Roles(tuple(read), registers_of(parts[place], isa) if place is not None else ())


def roles(one: Instruction, isa: str) -> Roles:
    """What an instruction reads and writes, by the conventions above."""
    return _roles(one.mnemonic, one.operands, one.pipe, isa)
