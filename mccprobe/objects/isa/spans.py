"""Where the functions of an object begin and end, so that a label inside of one does not end it.

A disassembler prints a head for every symbol; which of them are functions is in the symbol table only.
"""

from __future__ import annotations

from collections.abc import Sequence

from mccprobe.objects.binary.records import CodeSymbol
from mccprobe.objects.isa.pipes import pipe_table
from mccprobe.objects.isa.records import Instruction


class Spans:
    """The functions of `code_symbols`, by section and address."""

    def __init__(self, symbols: Sequence[CodeSymbol]) -> None:
        self._at: dict[tuple[str, int], tuple[list[str], int]] = {}
        self._sized = {(symbol.section, symbol.address) for symbol in symbols if symbol.sized}
        for symbol in symbols:
            names, end = self._at.setdefault((symbol.section, symbol.address), ([], symbol.address))
            names.append(symbol.name)
            self._at[symbol.section, symbol.address] = names, max(end, symbol.address + len(symbol.data))

    def names_at(self, section: str, address: int) -> list[str]:
        """Every name of the function that begins there, [] where none begins."""
        return self._at.get((section, address), ([], 0))[0]

    def end_of(self, section: str, address: int) -> int:
        """The address after the function that begins there; `address` itself where none begins."""
        return self._at.get((section, address), ([], address))[1]

    def is_sized(self, section: str, address: int) -> bool:
        """False where the end is only the start of the next function."""
        return (section, address) in self._sized


def is_padding(mnemonic: str, data: bytes | None) -> bool:
    """True for what AMDGPU assemblers fill gaps with: no-operations and zeros."""
    return pipe_table("amdgpu").find(mnemonic).pipe == "NOP" or (data is not None and not any(data))


def without_tail(code: Sequence[Instruction]) -> Sequence[Instruction]:
    """AMDGPU code without the padding after an instruction that never falls through."""
    kept = len(code)
    while kept and is_padding(code[kept - 1].mnemonic, code[kept - 1].data):
        kept -= 1
    return code[:kept] if kept and never_falls_through(code[kept - 1].mnemonic) else code


def never_falls_through(mnemonic: str) -> bool:
    """True for an end of the program, a return and an unconditional branch of AMDGPU."""
    return pipe_table("amdgpu").find(mnemonic).flow in ("end", "jump")
