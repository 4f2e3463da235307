"""Text of `llvm-objdump -d`: AMDGPU and x86 as LLVM 13 to 19 and GNU objdump print them, MTGPU by assumption.

    AMDGPU   TAB mnemonic operands      // 000000000074: BF850020 <k+0xf8>
    Hexagon  see `listing_hexagon`
    x86      <8 wide address>: 74 1e                  TAB je TAB 0x34 <f+0x34>
    MTGPU    no public sample exists. Assumed: one of the two shapes above, with the statement as
             `mcc -S` writes it (an optional [N-sD---] control field, an optional EX, opcode, operands);
             bytes in pairs are in memory order, groups of more digits are little-endian words.

Lines of relocations (`-r`), source (`-S`), labels (`--symbolize-operands`) and elided zeros are
understood and carry no instruction. A head inside of a function is a label of it: by the symbol table where
the caller has the object (`Spans`), else by the flow of AMDGPU code (`listing_build.join_labelled`).
"""

from __future__ import annotations

import re

from mccprobe.objects.isa.listing_build import LOCAL_LABEL, FunctionBuilder
from mccprobe.objects.isa.listing_hexagon import hexagon_instruction
from mccprobe.objects.isa.pipes import UNKNOWN, PipeTable, pipe_table
from mccprobe.objects.isa.records import Instruction, Listing, UnknownLine
from mccprobe.objects.isa.spans import Spans

_FORMAT = re.compile(r"^.*:\s+file format (\S+)\s*$")
_HEAD = re.compile(r"^(?:([0-9a-fA-F]{1,16}) )?<(.*)>:\s*$")
_RELOCATION = re.compile(r"^\s*[0-9a-fA-F]+:\s+R_\w+|^\t\t\t?[0-9a-fA-F]{8,}:\s+\S")
_BYTES = re.compile(r"^(?:[0-9a-fA-F]{2}(?: |$))+ *$")
_PASSED_OVER = re.compile(r"^(?:Disassembly of section .*|\s*[;#].*|\s*\.\.\.\s*|SYMBOL TABLE:|\s*)$")
_SECTION = "Disassembly of section "
_MTGPU_STATEMENT = re.compile(r"^(?:\[([^\]\s]{2,16})\]\s*)?(?:(EX)\s+)?(\S+)\s*(.*)$")
_X86_TARGET = re.compile(r"^(?:0x)?([0-9a-fA-F]{1,16})(?: <.*>)?$")
_SYMBOL = re.compile(r"<(.+?)>\s*$")
_X86_PREFIXES = frozenset({"lock", "rep", "repz", "repe", "repne", "repnz", "notrack", "bnd", "xacquire", "xrelease"})
_ISA_OF_FORMAT = (("hexagon", "hexagon"), ("amdgpu", "amdgpu"), ("mtgpu", "mtgpu"), ("x86", "x86"), ("i386", "x86"))
_AMD_WORD_DIGITS = 8
_ADDRESS_DIGITS = 16
_DIGITS = re.compile(r"[0-9a-fA-F]+")


def bytes_of(code: str) -> bytes | None:
    """Bytes in memory order from hexadecimal groups; None if it is no such text.

    A group of two digits is a byte, a longer one a little-endian word, as LLVM prints instruction words.
    """
    try:
        if len(code) == _AMD_WORD_DIGITS and " " not in code:
            return bytes.fromhex(code)[::-1]
        if len(code) % 3 == 2 and not code[2::3].strip():  # pairs, one space between them
            return bytes.fromhex(code)
        return b"".join([bytes.fromhex(group)[::-1] for group in code.split()])
    except ValueError:
        return None


def address_of(digits: str) -> int | None:
    """A place of at most 64 bits; int() would take signs, underscores and numbers of any length."""
    return int(digits, 16) if len(digits) <= _ADDRESS_DIGITS and _DIGITS.fullmatch(digits) else None


class _ObjdumpParser:
    """State of one pass over the text."""

    def __init__(self, spans: Spans | None) -> None:
        self.build = FunctionBuilder()
        self.unknown: list[UnknownLine] = []
        self.spans = spans
        self.section = ""
        self.end = 0  # of the current function, by its symbol
        self.format = ""
        self.isa = ""
        self.table: PipeTable = pipe_table("x86")

    def use(self, isa: str) -> None:
        self.isa = self.isa or isa
        self.table = pipe_table(isa)

    def parse(self, text: str) -> Listing:
        lines = text.split("\n")
        for number, line in enumerate(lines, 1):
            if line[-1:] == "\r":
                line = line[:-1]
            if line[:1] == "\t" and self.amd_line(line, number):
                continue
            if line and line[-1] != ":" and self.address_line(line, number):
                continue
            if line and not self.other_line(line):
                self.unknown.append(UnknownLine(number, line))
        self.end_section()
        isa = self.isa or "x86"
        return Listing(
            f"objdump-{isa}", tuple(self.build.functions), tuple(self.unknown), lines=len(lines) - (not lines[-1])
        )

    # --- one instruction a line, bytes in a comment at its end (AMDGPU) ---------------------------

    def amd_line(self, line: str, number: int) -> bool:
        head, mark, tail = line.partition("//")
        if not mark:
            return False
        where, mark, code = tail.partition(":")
        if not mark:
            return False
        code, mark, symbol = code.partition("<")
        data = bytes_of(code.strip())
        address = address_of(where.strip())
        if address is None or not data:
            return False
        if not self.isa:
            self.use("mtgpu" if head.lstrip().startswith("[N") else "amdgpu")
        statement = head.strip()
        if self.isa == "mtgpu":
            return self.mtgpu(address, data, statement, number, symbol.rstrip("> \r"))
        mnemonic, _, operands = statement.partition(" ")
        operands = operands.lstrip()
        kind = self.table.find(mnemonic)
        target = ""
        if kind.flow:
            target = self.target_of(symbol.rstrip("> \r"), operands)
        self.build.current.append(
            Instruction(address, data, mnemonic, operands, statement, kind.pipe, target, "", "", number)
        )
        return True

    def target_of(self, symbol: str, operands: str) -> str:
        """The target of a branch: an address where the symbol's is known, else as written."""
        if symbol:
            base, mark, offset = symbol.rpartition("+0x")
            known = self.build.symbols.get(base if mark else symbol)
            if known is None:
                return symbol
            try:
                return hex(known + int(offset, 16)) if mark else hex(known)
            except ValueError:
                return symbol
        first = operands.partition(",")[0].strip()
        if first[:1].isdigit() or first.startswith(("s[", "-")) or not first:
            return ""
        known = self.build.symbols.get(first)
        return first if known is None else hex(known)

    # --- address first, then bytes, then the statement (x86, most of LLVM) ------------------------

    def address_line(self, line: str, number: int) -> bool:
        head, *rest = line.split("\t")
        where, mark, code = head.partition(":")
        if not mark:
            return False
        code = code.strip()
        address = address_of(where.lstrip())
        if address is None:
            return False
        if not code and rest and _BYTES.match(rest[0]):  # GNU objdump: the bytes are a field of their own
            code, rest = rest[0], rest[1:]
        data = None
        if code:
            data = bytes_of(code)
            if data is None:
                return False
        words = [field.strip() for field in rest if field.strip()]
        if not words:
            return data is not None and self.continued(address, data)
        if not self.isa:
            self.use("mtgpu" if words[0].startswith("[N") else "x86")
        if self.isa == "hexagon":
            made = hexagon_instruction(address, data or b"", words, number)
            self.build.current += [made] if made is not None else []
            return made is not None
        if self.isa == "mtgpu":
            statement = " ".join(words)
            if "//" in statement or ";" in statement:
                statement = statement.partition(" //")[0].partition(";")[0].rstrip()
            symbol = _SYMBOL.search(statement) if statement[-1:] == ">" else None
            return self.mtgpu(address, data, statement, number, symbol[1] if symbol else "")
        return self.x86(address, data, words, number)

    def continued(self, address: int, data: bytes) -> bool:
        """GNU objdump breaks long instructions: the line belongs to the one before."""
        current = self.build.current
        if not current or current[-1].data is None or current[-1].address is None:
            return False
        if current[-1].address + len(current[-1].data) != address:
            return False
        current[-1] = current[-1]._replace(data=current[-1].data + data)
        return True

    def x86(self, address: int, data: bytes | None, words: list[str], number: int) -> bool:
        if len(words) == 1:  # GNU objdump, and instructions without operands
            mnemonic, _, operands = words[0].partition(" ")
        else:
            mnemonic, operands = words[0], " ".join(words[1:])
        flags = ""
        while mnemonic in _X86_PREFIXES and operands:
            flags = f"{flags} {mnemonic}".strip()
            mnemonic, _, operands = operands.partition(" ")
        if "#" in operands:
            operands = operands.partition("#")[0]
        operands = operands.strip()
        kind = self.table.find(mnemonic)
        target = ""
        if kind.flow and operands:
            found = _X86_TARGET.match(operands)
            target = hex(int(found[1], 16)) if found else ""
            if operands[0] == "<" and operands[-1] == ">":  # --symbolize-operands
                target = operands[1:-1]
        text = f"{mnemonic} {operands}" if operands else mnemonic
        self.build.current.append(
            Instruction(address, data, mnemonic, operands, text, kind.pipe, target, "", flags, number)
        )
        return True

    # --- MTGPU, by assumption ------------------------------------------------------------------------

    def mtgpu(self, address: int, data: bytes | None, statement: str, number: int, symbol: str) -> bool:
        found = _MTGPU_STATEMENT.match(statement)
        if found is None:
            return False
        control, flags, mnemonic, operands = found[1] or "", found[2] or "", found[3], found[4]
        kind = self.table.find(mnemonic)
        target = ""
        if kind.flow in ("branch", "jump", "call"):
            place = _X86_TARGET.match(operands)
            target = self.target_of(symbol, operands.partition(" <")[0])
            if not target and place:
                target = hex(int(place[1], 16))
        text = f"{mnemonic} {operands}" if operands else mnemonic
        self.build.current.append(
            Instruction(address, data, mnemonic, operands, text, kind.pipe, target, control, flags, number)
        )
        return True

    # --- everything else ---------------------------------------------------------------------------

    def other_line(self, line: str) -> bool:
        if line[-1] == ":":
            head = _HEAD.match(line)
            if head:
                self.head(head[2], int(head[1], 16) if head[1] else None)
                return True
        if _PASSED_OVER.match(line):
            if line.startswith(_SECTION):
                self.end_section()
                self.section = line.removeprefix(_SECTION).rstrip().removesuffix(":")
            return True
        if _RELOCATION.match(line):
            return True
        found = _FORMAT.match(line)
        if found:
            self.end_section()
            self.format = found[1]
            isa = next((isa for word, isa in _ISA_OF_FORMAT if word in found[1]), "")
            if isa:
                self.use(isa)
            return True
        return line.endswith("():") or line.startswith("In archive ")

    def end_section(self) -> None:
        self.build.end_section(joined=self.spans is None and self.isa == "amdgpu")
        self.end = 0

    def head(self, name: str, address: int | None) -> None:
        if self.spans is not None and address is not None:
            if self.build.address is not None and self.build.address <= address < self.end:
                self.build.label(name)
                self.build.symbols[name] = address
                return
            names = self.spans.names_at(self.section, address)
            if names:
                self.build.start(name if name in names else names[0], address)
                self.build.symbols.update(dict.fromkeys((name, *names), address))
                self.end = self.spans.end_of(self.section, address)
                return
            self.end = 0
        if LOCAL_LABEL.match(name) and (self.build.current or self.build.name):
            self.build.label(name)
            if address is not None:
                self.build.symbols[name] = address
            return
        self.build.start(name, address)


def parse_objdump(text: str, spans: Spans | None = None) -> Listing:
    """The listing of `llvm-objdump -d`; of the instruction sets in it the first is the listing's."""
    return _ObjdumpParser(spans).parse(text)


def undecoded(listing: Listing) -> int:
    """Encodings that the disassembler itself did not know."""
    return sum(one.pipe == UNKNOWN for function in listing.functions for one in function.instructions)
