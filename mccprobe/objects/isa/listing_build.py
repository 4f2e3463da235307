"""Collects the instructions and labels of functions while a parser walks through a listing."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Sequence

from mccprobe.objects.isa.pipes import pipe_table
from mccprobe.objects.isa.records import Function, Instruction
from mccprobe.objects.isa.spans import is_padding

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

    def end_section(self, *, joined: bool = False) -> None:
        """Addresses start anew; turns `symbol+0x..` targets of the section into addresses.

        joined: heads that only the flow shows to be labels are joined to the function before them.
        """
        self.close()
        for place in range(self._first_of_section, len(self.functions)):
            self.functions[place] = self._with_addresses(self.functions[place])
        if joined:
            self.functions[self._first_of_section :] = join_labelled(self.functions[self._first_of_section :])
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


def join_labelled(functions: Sequence[Function]) -> list[Function]:
    """AMDGPU functions of one section, with those joined that are parts of one: no symbol table is at hand.

    Two heads belong together where a branch leads from one part to the other (calls and tail calls go through
    registers), or where the code before the second head runs into it. Padding after an end runs into nothing.
    """
    find = pipe_table("amdgpu").find
    starts = [one.address or 0 for one in functions]
    if starts != sorted(starts):
        return list(functions)
    last_of = list(range(len(functions)))  # index -> the last part that something in it reaches
    for index, function in enumerate(functions):
        if index + 1 < len(functions) and _runs_on(function):
            last_of[index] = max(last_of[index], index + 1)
        for one in function.instructions:
            if one.target.startswith("0x") and find(one.mnemonic).flow in ("branch", "jump"):
                place = int(one.target, 16)
                there = max(bisect.bisect_right(starts, place) - 1, 0)
                low, high = sorted((index, there))
                last_of[low] = max(last_of[low], high)
    groups: list[list[Function]] = []
    reach = -1
    for index, function in enumerate(functions):
        if index <= reach:
            groups[-1].append(function)
        else:
            groups.append([function])
        reach = max(reach, last_of[index])
    return [_joined(group) for group in groups]


def _runs_on(function: Function) -> bool:
    """True if the code may run past its end; a call there may be one that does not return."""
    for one in reversed(function.instructions):
        if not is_padding(one.mnemonic, one.data):
            return pipe_table("amdgpu").find(one.mnemonic).flow not in ("end", "jump", "call")
    return False


def _joined(parts: Sequence[Function]) -> Function:
    first, *others = parts
    if not others:
        return first
    instructions, labels = list(first.instructions), dict(first.labels)
    for part in others:
        count = len(instructions)
        labels[part.name] = count
        labels.update((name, count + index) for name, index in part.labels.items())
        instructions += part.instructions
    return Function(first.name, tuple(instructions), labels, first.address)
