"""Collects the instructions and labels of functions while a parser walks through a listing."""

from __future__ import annotations

import re
from collections.abc import Callable

from mccprobe.objects.isa.records import Function, Instruction

# labels inside of a function: mcc's BBf_n, LLVM's .LBB and .Ltmp, objdump's --symbolize-operands L0
LOCAL_LABEL = re.compile(r"^(?:BB\d+_\d+|\.L.*|L\d+)$")
_SYMBOL_OFFSET = re.compile(r"^(.+)\+0x([0-9a-f]+)$")


class FunctionBuilder:
    """Functions in the order of the listing; `current` takes the instructions (bound once, for speed)."""

    def __init__(self) -> None:
        self.functions: list[Function] = []
        self.symbols: dict[str, int] = {}  # heads of the section so far, with their addresses
        self.current: list[Instruction] = []
        self._name = ""
        self._address: int | None = None
        self._labels: dict[str, int] = {}
        self._first_of_section = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def address(self) -> int | None:
        return self._address

    def label(self, name: str) -> None:
        """A label before the next instruction of the function."""
        self._labels[name] = len(self.current)

    def start(self, name: str, address: int | None) -> None:
        """A new function begins."""
        self.close()
        self._name, self._address = name, address
        self._labels = {}
        self.current = []
        if address is not None:
            self.symbols[name] = address

    def close(self) -> None:
        """The function ends; one without instructions is left out (an object, an alias)."""
        if self.current:
            self.functions.append(Function(self._name, tuple(self.current), self._labels, self._address))
        self.current = []
        self._labels = {}
        self._name, self._address = "", None

    def end_section(self) -> None:
        """Addresses start anew; turns `symbol+0x..` targets of the section into addresses."""
        self.close()
        for place in range(self._first_of_section, len(self.functions)):
            self.functions[place] = self._with_addresses(self.functions[place])
        self._first_of_section = len(self.functions)
        self.symbols = {}

    def _with_addresses(self, function: Function) -> Function:
        if not any(one.target and one.target[0] != "0" for one in function.instructions):
            return function
        resolve: Callable[[str], str] = self._resolve
        changed = tuple(
            one._replace(target=resolve(one.target)) if one.target and not one.target.startswith("0x") else one
            for one in function.instructions
        )
        return Function(function.name, changed, function.labels, function.address)

    def _resolve(self, target: str) -> str:
        if target in self.symbols:
            return hex(self.symbols[target])
        found = _SYMBOL_OFFSET.match(target)
        if found and found[1] in self.symbols:
            return hex(self.symbols[found[1]] + int(found[2], 16))
        return target
