"""One line of `llvm-objdump -d` of Hexagon code: packets of up to four 4-byte words, in braces.

       0:  b0 40 c1 10  10c140b0 {   p0 = cmp.gt(r1,#0); if (!p0.new) jump:nt 0x160
       4:  02 c0 00 78  7800c002     r2 = #0 }

Hexagon writes statements and no mnemonics: the mnemonic here is the statement with registers, numbers
and addresses blanked (`r=add(r,#)`), the operands are what was blanked. Braces become the control field.
A stand-in for VLIW words in learning encodings; nothing of it says anything about MTGPU.
"""

from __future__ import annotations

import re

from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.records import OTHER, Instruction

# Registers of the Hexagon V68 Programmer's Reference Manual, chapter 2; #immediates; addresses.
_BLANK = re.compile(
    r"(?P<place>\b0x[0-9a-fA-F]+)|(?P<number>##?[-+]?(?:0x[0-9a-fA-F]+|\d+))"
    r"|\b(?P<bank>r|p|c|g|s|m|v|w|q|sa|lc|cs)(?P<first>\d+)(?::\d+)?(?!\w)"
)
_HEAD = re.compile(r"[0-9a-f]{8} ?(?P<open>\{?) ?")
_TAIL = re.compile(r" ?(?P<close>\})?(?P<ends>(?: ?:endloop\d{1,2}){0,2})$")  # there are two hardware loops
_TAIL_CHARS = 32  # the longest tail is shorter
_FLOW = re.compile(r"\b(?:jump|call|loop\d|sp\dloop\d|jumpr|callr)\b")


def hexagon_instruction(address: int, data: bytes, fields: list[str], number: int) -> Instruction | None:
    """The instruction of a line whose fields stand behind its bytes; None for another shape."""
    line = " ".join(" ".join(fields).split())
    head = _HEAD.match(line)
    if head is None:
        return None
    statement = line[head.end() :]
    tail = _TAIL.search(statement, max(0, len(statement) - _TAIL_CHARS))
    assert tail is not None  # it matches nothing at the end
    control = f"{head['open']}{tail['close'] or ''}{tail['ends'].replace(' ', '')}"
    text = statement[: tail.start()]
    if text == "<unknown>":
        return Instruction(address, data, text, "", text, UNKNOWN, control=control, line=number)
    operands: list[str] = []
    target = ""

    def blank(match: re.Match[str]) -> str:
        nonlocal target
        operands.append(match[0].lstrip("#"))
        if match["place"] and _FLOW.search(text):
            target = hex(int(match["place"], 16))
        if match["place"]:
            return "@"
        return "#" if match["number"] else match["bank"]  # "##" is a "#" whose upper bits the word before holds

    mnemonic = re.sub(r" (?=[=(])|(?<==) ", "", _BLANK.sub(blank, text))
    if "##" in text:  # its value stands in the word before: the text is not of this word alone
        target = target or "immext"
    return Instruction(
        address, data, mnemonic, ", ".join(operands), text, OTHER, target=target, control=control, line=number
    )
