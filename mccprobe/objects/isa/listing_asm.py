"""Assembly text: `mcc --musa-device-only -S` for MTGPU, `clang -S` for AMDGPU. No addresses, no bytes.

A statement of MTGPU is `[N-sD---]`, an optional `EX`, opcode, operands, between tabs; what the letters
of the control field mean is not public, so it is kept as text. A label opens a function where the text
declares it one (`.type NAME,@function`, `.amdhsa_kernel NAME`; `.globl` or `.size` outside of a function whose
own `.size` follows), or where no function is open; every other label belongs to the function that holds it.
The metadata block is passed over here: `mccprobe.objects.binary` reads it.
"""

from __future__ import annotations

import re

from mccprobe.objects.isa.listing_build import LOCAL_LABEL, FunctionBuilder
from mccprobe.objects.isa.pipes import pipe_table
from mccprobe.objects.isa.records import Instruction, Listing, UnknownLine

_MTGPU = re.compile(
    r"^\s*(?:\[([^\]\s]{2,16})\]\s*)?(?:(EX|!?[Pp]\d+|@!?[Pp]\d+)\s+)?([A-Z][A-Z0-9_]*(?:\.\w+)*)(?:\s+(.*))?$"
)
_AMDGPU = re.compile(r"^\s+([a-z]\w*)(?:\s+(.*))?$")
_LABEL = re.compile(r'^("[^"]*"|[^\s:"\[\]]+):\s*(.*)$')
_DIRECTIVE = re.compile(r"^\s*\.[A-Za-z_][\w.]*(?:\s|$)|^\s*[\w.$]+\s*=\s*\S")
_TYPE = re.compile(r'^\s*\.type\s+("[^"]*"|[^,\s]+)\s*,\s*[@%](\w+)')
_COMMON = re.compile(r'^\s*\.l?comm\s+("[^"]*"|[^,\s]+)\s*,\s*(\d{1,18})\b')
_SIZE = re.compile(r'^\s*\.size\s+("[^"]*"|[^,\s]+)')
_DECLARED = re.compile(
    r'^[ \t]*+(?:\.type[ \t]++("[^"\n]*+"|[^,\s]++)[ \t]*+,[ \t]*+[@%]?(\w++)'
    r'|\.(amdhsa_kernel|globa?l|size)[ \t]++("[^"\n]*+"|[^,\s;]++))',
    re.MULTILINE,
)
_SECTION = re.compile(r"^\s*\.(text|data|rodata|bss|section|pushsection|popsection|previous)\b\s*(.*)$")
_CODE_SECTION = re.compile(r'^(?:"?\.(?:text|init|fini)\b|[^,]+,\s*"[^"]*x)')
_REGISTER = re.compile(r"^(?:[svap]\d+|ttmp\d+|vcc|exec|m0|scc|off|null)$")
_NAME = re.compile(r"^[A-Za-z_.$][\w.$@]*$")
_TARGET = re.compile(r'^\s*\.(?:amdgcn_target|mtgpu_target)\s+"?([^"\s]+)"?')
_METADATA_BOUNDS = {
    ".mtgpu_metadata.start": ".mtgpu_metadata.end",
    ".amdgpu_metadata": ".end_amdgpu_metadata",
    ".amdhsa_kernel": ".end_amdhsa_kernel",
}
_COMMENT = {"mtgpu": re.compile(r"\s*(?:;|//).*$"), "amdgpu": re.compile(r"\s*(?:;|//).*$")}


class _AssemblyParser:
    def __init__(self, isa: str) -> None:
        self.isa = isa
        self.table = pipe_table(isa)
        self.statement = _MTGPU if isa == "mtgpu" else _AMDGPU
        self.comment = _COMMENT[isa]
        self.build = FunctionBuilder()
        self.unknown: list[UnknownLine] = []
        self.symbols: dict[str, int] = {}
        self.objects: set[str] = set()
        self.functions: set[str] = set()
        self.named: set[str] = set()  # by .globl or .size: functions where nothing says otherwise
        self.sized: set[str] = set()
        self.sections = [True]  # whether each section of the stack holds code; the last one is open
        self.before = True
        self.target = ""
        self.until = ""  # the directive that ends the block being passed over

    def parse(self, text: str) -> Listing:
        self.read_declarations(text)
        lines = text.split("\n")
        for number, raw in enumerate(lines, 1):
            line = self.comment.sub("", raw) if ";" in raw or "//" in raw else raw.rstrip()
            if self.until:
                if line.strip().startswith(self.until):
                    self.until = ""
                continue
            if not line or line.isspace():
                continue
            if not self.line(line, number):
                self.unknown.append(UnknownLine(number, raw.rstrip("\r")))
        self.build.close()
        name = "mcc-s" if self.isa == "mtgpu" else "amdgpu-s"
        return Listing(
            name,
            tuple(self.build.functions),
            tuple(self.unknown),
            target=self.target,
            lines=len(lines) - (not lines[-1]),
            symbols=self.symbols,
        )

    def read_declarations(self, text: str) -> None:
        """What the whole text says of its symbols: a declaration may follow its label."""
        for found in _DECLARED.finditer(text):
            typed, kind, directive, name = found.groups(default="")
            if typed:
                (self.functions if "func" in kind.lower() else self.objects).add(typed.strip('"'))
            elif directive == "amdhsa_kernel":
                self.functions.add(name.strip('"'))
            else:
                self.named.add(name.strip('"'))
                if directive == "size":
                    self.sized.add(name.strip('"'))

    def opens_a_function(self, name: str) -> bool:
        if name in self.functions or not self.build.name:
            return True
        return name in self.named and self.build.name not in self.sized

    def line(self, line: str, number: int) -> bool:
        first = line[0]
        if first in "\t [":
            found = self.statement.match(line)
            if found is not None:
                self.instruction(found, number)
                return True
        if first not in "\t ":
            found = _LABEL.match(line)
            if found is not None:
                self.label(found[1].strip('"'))
                return not found[2] or self.line("\t" + found[2], number)
        return self.directive(line)

    def instruction(self, found: re.Match[str], number: int) -> None:
        if self.isa == "mtgpu":
            control, flags, mnemonic, operands = found.groups(default="")
        else:
            mnemonic, operands = found.groups(default="")
            control = flags = ""
        kind = self.table.find(mnemonic)
        target = ""
        if kind.flow in ("branch", "jump", "call") and operands:
            last = operands.rpartition(",")[2].strip()
            target = last if _NAME.match(last) and not _REGISTER.match(last) else ""
        text = f"{mnemonic} {operands}" if operands else mnemonic
        self.build.current.append(
            Instruction(None, None, mnemonic, operands, text, kind.pipe, target, control, flags, number)
        )

    def label(self, name: str) -> None:
        if name.startswith(".Lfunc_end"):
            self.build.label(name)
            self.build.close()
        elif LOCAL_LABEL.match(name):
            self.build.label(name)
        elif name in self.objects:
            self.build.close()
        elif not self.sections[-1]:
            return  # a table of data between two pieces of code
        elif self.opens_a_function(name):
            self.build.start(name, None)
        else:
            self.build.label(name)

    def directive(self, line: str) -> bool:
        word = line.split(None, 1)[0]
        if word in _METADATA_BOUNDS:
            self.until = _METADATA_BOUNDS[word]
            return True
        found = _TYPE.match(line)
        if found:
            return True
        found = _SECTION.match(line)
        if found:
            self.section(found[1], found[2])
            return True
        found = _COMMON.match(line)
        if found:
            self.symbols[found[1].strip('"')] = int(found[2])
            return True
        found = _TARGET.match(line)
        if found:
            self.target = found[1].rpartition("-")[2]
            return True
        found = _SIZE.match(line)
        if found:
            if found[1].strip('"') == self.build.name:
                self.build.close()
            return True
        return _DIRECTIVE.match(line) is not None

    def section(self, word: str, rest: str) -> None:
        code = word == "text" or (word.endswith("section") and _CODE_SECTION.match(rest) is not None)
        if word == "popsection":
            self.sections = self.sections[:-1] or [True]
        elif word == "pushsection":
            self.sections.append(code)
        else:
            code = self.before if word == "previous" else code
            self.before, self.sections[-1] = self.sections[-1], code


def parse_assembly(text: str, isa: str) -> Listing:
    """The listing of assembly text for `mtgpu` or `amdgpu`."""
    return _AssemblyParser(isa).parse(text)
