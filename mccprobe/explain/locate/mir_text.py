"""The text of a MIR file: one machine function in blocks of instructions, the rest kept as it is.

A MIR file is the module's IR as a YAML document, then one YAML document a machine function, whose
`body` holds the blocks (llvm/docs/MIRLangRef.rst). Texts are made ready for mixing when they are read:
  - `killed` and `dead` of virtual registers are dropped: in a mix they would be wrong, and the parser,
    which always verifies, would refuse it. On physical registers they stay: dropping them changes code.
  - `zeroinitializer` vectors in constant pools are written out: llc 14 prints them and cannot read them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_LANES = 4096  # of a vector of zeros that is written out; the widest registers hold 256 bytes

_DOCUMENT = re.compile(r"^(?=---)", re.MULTILINE)
_NAME = re.compile(r"^name: +(?:'([^'\n]+)'|\"([^\"\n]+)\"|(\S+)) *$", re.MULTILINE)
_BODY = re.compile(r"^body: +\|\n", re.MULTILINE)
_BLOCK = re.compile(r"  (bb\.(\d{1,9})\S*?)(?: \(.*\))?:$")
_META = re.compile(r"\s+(?:successors|liveins):")
_FLAG = re.compile(r"\b(?:killed|dead) (?=%)")
_IMPLICIT_FLAG = re.compile(r"\b(implicit-def|implicit) (?:killed|dead) (?=%)")
_ZERO = re.compile(r"^( +value: +'?)<(\d{1,9}) x (i\d+|half|float|double)> zeroinitializer", re.MULTILINE)
_REGISTER = re.compile(r"^  - \{ id: (\d+), class:.*\n", re.MULTILINE)
_REGISTERS = re.compile(r"^registers:(?: +\[\])?\n((?:  - \{ id: .*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class MirBlock:
    """label: as printed ("bb.3.for.body"); head: its line and what stands before the instructions."""

    number: int
    label: str
    head: tuple[str, ...]
    instructions: tuple[str, ...]


@dataclass(frozen=True)
class MirFile:
    """One function of a MIR file, between what stands before and behind it.

    header: the function's document up to its body (registers, frame, constants).
    """

    before: str
    header: str
    blocks: tuple[MirBlock, ...]
    after: str

    @property
    def registers(self) -> dict[str, str]:
        """Virtual register -> its whole line in the header."""
        return {found.group(1): found.group() for found in _REGISTER.finditer(self.header)}

    @property
    def frame(self) -> str:
        """The header without its registers."""
        return _REGISTERS.sub("", self.header)

    def lines(self) -> list[str]:
        """The function for people and diffs: header without registers, blocks, instructions."""
        text = [line for line in self.frame.splitlines() if line.strip()]
        for block in self.blocks:
            text += [*block.head, *(line for one in block.instructions for line in one.splitlines())]
        return text


def readable(text: str) -> str:
    """What llc printed, as llc reads it back."""

    def written_out(found: re.Match[str]) -> str:
        start, count, kind = found.groups()
        if int(count) > MOST_LANES:
            return found.group()
        zero = f"{kind} 0" if kind.startswith("i") else f"{kind} {'0xH0000' if kind == 'half' else '0.000000e+00'}"
        return f"{start}<{count} x {kind}> <{', '.join([zero] * int(count))}>"

    return _ZERO.sub(written_out, text)


def parse_mir(text: str, function: str) -> MirFile | None:
    """The file with this function (its symbol) taken apart; None when it is not in it."""
    documents = _DOCUMENT.split(readable(text))
    for index, document in enumerate(documents):
        name = _NAME.search(document)
        if name is None or next(filter(None, name.groups())) != function:
            continue
        header, body, rest = _split_body(document)
        return MirFile(
            "".join(documents[:index]), _without_flags(header), _blocks(body), rest + "".join(documents[index + 1 :])
        )
    return None


def _split_body(document: str) -> tuple[str, str, str]:
    found = _BODY.search(document)
    if found is None:
        return document, "", ""
    body, end, rest = document[found.end() :].partition("\n...")
    return document[: found.start()], body, (end.lstrip("\n") or "...\n") + rest


def _blocks(body: str) -> tuple[MirBlock, ...]:
    blocks: list[MirBlock] = []
    head: list[str] = []
    instructions: list[str] = []
    label, number, depth = "", -1, 0

    def close() -> None:
        if number >= 0:
            blocks.append(MirBlock(number, label, tuple(head), tuple(instructions)))

    for line in body.splitlines():
        start = _BLOCK.match(line)
        if start:
            close()
            label, number = start.group(1), int(start.group(2))
            head, instructions, depth = [line], [], 0
        elif not line.strip() or line.lstrip().startswith(";"):
            continue  # predecessors, told as a comment
        elif _META.match(line) and not instructions:
            head.append(line)
        else:
            kept = _without_flags(line)
            if depth:
                instructions[-1] += "\n" + kept
            else:
                instructions.append(kept)
            depth += line.rstrip().endswith("{") - (line.strip() == "}")  # a bundle is one instruction
    close()
    return tuple(blocks)


def _without_flags(text: str) -> str:
    return _FLAG.sub("", _IMPLICIT_FLAG.sub(r"\1 ", text))


def print_mir(file: MirFile, instructions: dict[int, list[str]], registers: dict[str, str]) -> str:
    """The file with these instructions in its blocks and these further registers in its header."""
    known = file.registers
    added = "".join(registers[number] for number in sorted(registers, key=int) if number not in known)
    header = file.header
    if added:
        header = _REGISTERS.sub(lambda found: "registers:\n" + found.group(1) + added, header, count=1)
    text = [file.before, header, "body:             |\n"]
    for block in file.blocks:
        text += [line + "\n" for line in block.head]
        text += ["  \n"] if len(block.head) > 1 else []
        text += [line + "\n" for line in instructions.get(block.number, block.instructions)]
        text.append("\n")
    return "".join(text) + file.after
