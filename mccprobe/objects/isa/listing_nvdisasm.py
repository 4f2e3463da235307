"""Text of `nvdisasm -hex` and `cuobjdump -sass`: 16-byte NVIDIA words, or 8-byte ones of older chips.

    .text.kernel:
            /*0010*/              @!P0 BRA `(.L_x_1) ;   /* 0x000000a000008947 */
                                                         /* 0x003fea0003800000 */

The second line of a word continues the first; words are little-endian.
"""

from __future__ import annotations

import re

from mccprobe.objects.isa.listing_build import FunctionBuilder
from mccprobe.objects.isa.pipes import pipe_table
from mccprobe.objects.isa.records import Instruction, Listing, UnknownLine

_INSTRUCTION = re.compile(
    r"^\s*+/\*([0-9a-f]{4,16})\*/\s++(?:\{\s*+)?(?:(@!?U?P[\dT]++)\s++)?([A-Z][\w.]*+)\s*+(.*)$", re.DOTALL
)
_CODE = re.compile(r"/\* 0x([0-9a-f]{16}) \*/$")
_CODE_LENGTH = 24  # characters of such a comment
_CONTINUED = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_FUNCTION = re.compile(r"^\s*(?:\.text\.([^\s:]+):|Function ?: ?(\S+))\s*$")
_LABEL = re.compile(r"^\s*(\.L_?\w+|\.L):\s*$")
_PASSED_OVER = re.compile(r"^\s*+(?:\.[\w.]+.*|//.*|\.{3,}.*|=+|Fatbin .*|[\w ]+ = .*|code for .*|[\w$.]+:|)\s*$")
_DATA = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+\.\w+\s")  # contents of a section that is no code
_SECTION = re.compile(r"^\s*\.section\s+([^\s,]+)")
_TOLD_TARGET = re.compile(r"^\s*\.target\s+(sm_\w+)|^code for (sm_\w+)|^\.headerflags\s.*?\bEF_CUDA_SM(\d+[af]?)\b")
_TARGET = re.compile(r"`\(([^)]+)\)|(?:^|[\s,])(0x[0-9a-f]+)$")


def _operands(rest: str) -> tuple[str, str]:
    """What stands behind a mnemonic: operands, and the digits of the word ("" without). In steps, each over once."""
    rest = rest.rstrip()
    found = _CODE.match(rest, max(0, len(rest) - _CODE_LENGTH))
    if found is not None:
        rest = rest[: found.start()].rstrip()
    return rest.removesuffix("}").rstrip().removesuffix(";").rstrip(), found[1] if found else ""


def parse_nvdisasm(text: str) -> Listing:
    """The listing of `nvdisasm -hex` or `cuobjdump -sass`."""
    table = pipe_table("nvidia")
    build = FunctionBuilder()
    unknown: list[UnknownLine] = []
    lines = text.split("\n")
    in_code, chip = True, ""
    for number, line in enumerate(lines, 1):
        found = _INSTRUCTION.match(line)
        operands, code = _operands(found[4]) if found is not None else ("", "")
        if found is not None and ";" not in operands:
            kind = table.find(found[3])
            place = _TARGET.search(operands) if kind.flow in ("branch", "call") else None
            target = (place[1] or hex(int(place[2], 16))) if place else ""
            body = f"{found[3]} {operands}" if operands else found[3]
            data = bytes.fromhex(code)[::-1] if code else None
            build.current.append(
                Instruction(
                    int(found[1], 16), data, found[3], operands, body, kind.pipe, target, "", found[2] or "", number
                )
            )
            continue
        more = _CONTINUED.match(line)
        if more is not None and build.current and build.current[-1].data:
            build.current[-1] = build.current[-1]._replace(data=build.current[-1].data + bytes.fromhex(more[1])[::-1])
            continue
        if more is not None:
            continue  # the control word that stands before three instructions (before Volta)
        head = _FUNCTION.match(line)
        label = _LABEL.match(line)
        if head is not None:
            build.start(head[1] or head[2], 0)
        elif label is not None:
            build.label(label[1])
        elif section := _SECTION.match(line):
            build.close()
            in_code = section[1].startswith(".text")
        elif told := _TOLD_TARGET.match(line.strip()):
            chip = chip or told[1] or told[2] or f"sm_{told[3]}"
        elif not _PASSED_OVER.match(line) and (in_code or not _DATA.match(line)):
            unknown.append(UnknownLine(number, line))
    build.close()
    functions, strange = tuple(build.functions), tuple(unknown)
    return Listing("nvdisasm", functions, strange, target=chip, lines=len(lines) - (not lines[-1]))
