"""Registers in the operands of an instruction: which, and which of them are written.

Register banks are those of public texts (MTGPU: R AR SH SL I X, `p0`; fragments `R14[4:2][2:1]` are
count:stride pairs, inferred from one public sample where they reproduce its register count). Which
operand is written is known by mnemonic: the first one of those listed here, the last one in AT&T x86. Of every
other mnemonic, and under a guard, all operands are read, so that no changed address passes for a new name.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import OTHER, Instruction

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
_MEMORY = re.compile(r"[\[(]")
_GUARDS = ("@", "!", "P", "p")  # NVIDIA's, MTGPU's; not its EX, not x86's prefixes
_FRAGMENT = re.compile(r"\[(\d{1,9}):(\d{1,9})\]")
_PATTERNS = {"mtgpu": _MTGPU, "amdgpu": _AMDGPU, "nvidia": _NVIDIA}

# Mnemonics whose first operand is written, and only written; of every other one all operands are read. A mnemonic that
# changes a part of its first operand, changes it under a condition, or adds to it (MMA), reads it as well.
_MTGPU_WRITES = re.compile(
    r"(?:FOP\.(?:MOV|ADD|MUL)|BIT(?:\.(?:ROT|LUT|LSL|LSR|AND|OR|XOR|ASR_INT32|ROL))*|INT\.(?:ADD|MUL|MADD)"
    r"|INT\.BYP(?:\.(?!MOVC)[A-Z]+)*|(?:DMA|LSU)\.LD(?:\.B\d+)*|LDMA\.RD(?:\.(?:B|BST)\d+)*|SHUFFLE\.IDX)"
)
_AMD_WRITES = re.compile(
    r"(?:v_(?!cmpx|swap|writelane|movreld|nop|f?mac|pk_fmac|dot\w*c_|interp_p2|smfmac|swmmac)\w+"
    r"|s_(?:mov(?!rel)|movk|not|wqm|quadmask|brev|bcnt|ff[01]|flbit|clz|ctz|cls|sext|abs|add_|addc|sub_|subb|min_|max_"
    r"|cselect|and|or|xor|nand|nor|xnor|lshl|lshr|ashr|bfm|bfe|mul_|pack|getpc|getreg|call|swappc|load_|buffer_load"
    r"|scratch_load|memtime|memrealtime)\w*"
    r"|(?:t?buffer|image|global|flat|scratch)_load_(?!lds)\w+|image_(?:sample|gather|get)\w*"
    r"|ds_(?:read|load|bpermute|permute|swizzle|append|consume)\w*)"
)
_AMD_PART = re.compile(r"_d16|_sdwa|_dpp")  # a part of the register, or of the lanes
_AMD_MODIFIER = re.compile(r"(?:^|\s)(?:lds|dst_sel|row_\w+|quad_perm|wave_\w+|dpp8)\b")
_NVIDIA_READS_ALL = frozenset({"BARRIER", "BRANCH", "NOP", OTHER, UNKNOWN})
_NVIDIA_STORES = re.compile(r"(?:ST|RED|CCTL|R2P)(?![A-Z]*X)")
_X86_OVERWRITES = re.compile(r"^(?:mov(?!s[bwlq]$)|lea|set|pop|v(?!fm|fnm)|cvt|pshuf|pop)")
_X86_READS_ALL = re.compile(r"^(?:cmp(?!xchg)|test|j|call|ret|push|nop|ucomis|comis|bt[lqw]?$|vucomis|vcomis|v?ptest)")

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
    """Which operand is only written, None if none is for certain; a memory operand never is."""
    if not operands:
        return None
    first = operands[0]
    if isa == "mtgpu":
        return 0 if _MTGPU_WRITES.fullmatch(mnemonic) and not _MEMORY.search(_MTGPU.sub("", first)) else None
    if isa == "amdgpu":
        part = _AMD_PART.search(mnemonic) or any(map(_AMD_MODIFIER.search, operands))
        memory = _MEMORY.search(_AMDGPU.sub("", first))
        return 0 if _AMD_WRITES.fullmatch(mnemonic) and not part and not memory else None
    if isa == "nvidia":
        reads = pipe in _NVIDIA_READS_ALL or _NVIDIA_STORES.match(mnemonic) or _MEMORY.search(first)
        return None if reads else 0
    if isa != "x86" or _X86_READS_ALL.match(mnemonic) or not _X86_OVERWRITES.match(mnemonic) or "(" in operands[-1]:
        return None
    return len(operands) - 1


class Roles(NamedTuple):
    """The registers that an instruction reads and those that it writes."""

    read: tuple[Register, ...]
    written: tuple[Register, ...]


@functools.lru_cache(maxsize=CACHED)
def _roles(mnemonic: str, operands: str, pipe: str, isa: str, guard: str) -> Roles:
    parts = split_operands(operands)
    place = None if guard else _written_operand(mnemonic, parts, pipe, isa)
    read = list(registers_of(guard, isa))
    read += [register for index, part in enumerate(parts) if index != place for register in registers_of(part, isa)]
    return Roles(tuple(read), registers_of(parts[place], isa) if place is not None else ())


def roles(one: Instruction, isa: str) -> Roles:
    """What an instruction reads and writes, by the conventions above."""
    guard = one.flags if one.flags.startswith(_GUARDS) else ""  # under a guard the old value may stay
    return _roles(one.mnemonic, one.operands, one.pipe, isa, guard)
