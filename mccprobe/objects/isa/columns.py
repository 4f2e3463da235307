"""Words turned on their side: one integer for each bit position, one bit in it for each word.

Which of thirty thousand words match a mask is then at most as many ANDs as the mask has bits: 20 us,
and no dependency. `zip` over the words' binary digits does the transposition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def bit_numbers(mask: int) -> Iterator[int]:
    """Positions of the one bits, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def sum_of_bits(masks: Iterable[int]) -> int:
    """The union of masks."""
    union = 0
    for mask in masks:
        union |= mask
    return union


class Columns:
    """Words of one width. Column i has bit s set where word s has bit i set."""

    def __init__(self, words: Sequence[int], width: int) -> None:
        self.words = words
        self.width = width
        self.everything = (1 << len(words)) - 1
        digits = [format(word, f"0{width}b") for word in reversed(words)]
        self.ones = [int("".join(column), 2) for column in zip(*digits, strict=True)][::-1]
        self._zeros = [self.everything ^ column for column in self.ones]

    def match(self, mask: int, value: int, among: int | None = None) -> int:
        """Bit s set where word s agrees with `value` under `mask`."""
        found = self.everything if among is None else among
        for position in bit_numbers(mask):
            found &= self.ones[position] if value >> position & 1 else self._zeros[position]
            if not found:
                break
        return found

    def constant(self, among: int) -> int:
        """Mask of the bits that are equal in all of these words."""
        mask = 0
        for position, column in enumerate(self.ones):
            part = column & among
            if part == 0 or part == among:
                mask |= 1 << position
        return mask

    def pick(self, among: int) -> list[int]:
        """The words themselves."""
        return [self.words[position] for position in bit_numbers(among)]
