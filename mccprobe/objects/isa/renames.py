"""Whether two instructions differ only by a consistent choice of registers.

A walk over paired instructions in order keeps, for each register of A, the register of B that holds
its value now. A written operand starts a new value; a read one must agree; a register of B that is
overwritten for another value no longer holds the old one. A register seen for the first time by a
read came from outside (the calling convention fixes it) or from an instruction that was not paired:
it agrees with itself only, or with its place in a range that was renamed as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mccprobe.objects.isa.records import Instruction
from mccprobe.objects.isa.registers import Register, roles, shape_of

_Key = tuple[str, int]


class _Holders:
    """For each register of A, which register of B holds its value."""

    def __init__(self) -> None:
        self.to_right: dict[_Key, _Key] = {}
        self.to_left: dict[_Key, _Key] = {}
        self.lost: set[_Key] = set()  # values of A that B has overwritten

    def agree(self, left: Register, right: Register) -> bool:
        for offset in range(left.size):
            one, two = (left.bank, left.first + offset), (right.bank, right.first + offset)
            held = self.to_right.get(one)
            if held is None:
                if one in self.lost or two in self.to_left or not (one == two or offset):
                    return False
                self.bind(one, two)
            elif held != two:
                return False
        return True

    def bind(self, one: _Key, two: _Key) -> None:
        old_right = self.to_right.pop(one, None)
        if old_right is not None:
            self.to_left.pop(old_right, None)
        old_left = self.to_left.pop(two, None)
        if old_left is not None and old_left != one:
            self.to_right.pop(old_left, None)
            self.lost.add(old_left)
        self.lost.discard(one)
        self.to_right[one] = two
        self.to_left[two] = one

    def write(self, left: Register, right: Register) -> None:
        for offset in range(left.size):
            self.bind((left.bank, left.first + offset), (right.bank, right.first + offset))


def consistent(pairs: Sequence[tuple[Instruction, Instruction]], isa: str) -> list[bool]:
    """For each pair, in order: equal but for registers, and these agree with all pairs before it."""
    holders = _Holders()
    return [_step(holders, left, right, isa) for left, right in pairs]


def _step(holders: _Holders, left: Instruction, right: Instruction, isa: str) -> bool:
    left_shape, right_shape = shape_of(left.text, isa)[0], shape_of(right.text, isa)[0]
    if left_shape != right_shape and not (left.target and left.mnemonic == right.mnemonic):
        return False
    one, two = roles(left, isa), roles(right, isa)
    good = _alike(one.read, two.read) and _alike(one.written, two.written)
    if good:
        for a, b in zip(one.read, two.read, strict=True):
            good &= holders.agree(a, b)
    if good or left.text == right.text:
        for a, b in zip(one.written, two.written, strict=True):
            holders.write(a, b)
    return good


def _alike(left: Sequence[Register], right: Sequence[Register]) -> bool:
    return len(left) == len(right) and all(a.size == b.size for a, b in zip(left, right, strict=True))


def unfollowed_renames(
    one: Sequence[Instruction],
    two: Sequence[Instruction],
    pairs: Mapping[int, int],
    readers: Mapping[int, int],
    isa: str,
) -> set[int]:
    """Indices in A of paired instructions whose value a reader takes in A, and that reader's partner in B does not.

    pairs, readers: index in A -> index in B; readers agree with their partners but for registers. Who wrote a register
    last is meant in the order of the text.
    """
    last_one, last_two = _writers(one, isa), _writers(two, isa)
    return {
        written
        for a, b in readers.items()
        for written, instead in zip(last_one[a], last_two[b], strict=False)
        if written in pairs and pairs[written] != instead
    }


def _writers(code: Sequence[Instruction], isa: str) -> list[list[int]]:
    """For each instruction and each register that it reads: index of the one that wrote it last, -1 for none."""
    last: dict[_Key, int] = {}
    found = []
    for index, item in enumerate(code):
        read, written = roles(item, isa)
        found.append([last.get((one.bank, one.first + at), -1) for one in read for at in range(one.size)])
        last.update(((one.bank, one.first + at), index) for one in written for at in range(one.size))
    return found
