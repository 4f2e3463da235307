"""Checks of decoded functions against their notes and their sources: what a rule says must agree with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hypotheses import INT_C, Guess, Place
from objects import COUNTED, Sample

from mccprobe.objects.isa.mtgpu.decode import Decoded, Operand

UNROLLED = "matrixMultiplication"  # its loop may load several elements at a time
SIMPLE = ("VectorAdd", "vectorAddition", "elementWiseMultiplication")


class Verdict(NamedTuple):
    """One check of one instruction. field: of that operand, "" for its class."""

    rule: str
    field: str
    check: str
    holds: bool


def operands(sample: Sample, decoded: Sequence[Decoded]) -> Iterator[Verdict]:
    """Registers below the note's counts, words of the shared bank among those that the note declares."""
    if sample.registers is None:
        return
    counts = {"R": sample.registers["temp"], "AR": sample.registers["attribute"]}
    yield from defined(decoded)
    for one in decoded:
        for operand in one.meaning.operands:
            rule = one.meaning.rule
            assert rule is not None
            if operand.first is None:
                continue
            count = counts.get(operand.bank)
            if count is not None:
                holds = operand.first + operand.span <= count
                yield Verdict(rule.id, operand.name, "register below the note's count", holds)
            elif operand.bank == "SH":
                yield Verdict(rule.id, operand.name, "word that the note declares", operand.first in sample.words)


def defined(decoded: Sequence[Decoded]) -> Iterator[Verdict]:
    """A register of a thread is written before it is read, in the order of the code.

    No verdict on what is not among the written ones after an instruction that may have written anything.
    """
    written: set[tuple[str, int]] = set()
    anything = False
    for one in decoded:
        rule = one.meaning.rule
        for operand in one.meaning.operands:
            if operand.role != "read" or operand.bank != "R" or operand.first is None:
                continue
            wanted = {("R", operand.first + at) for at in range(operand.span)}
            if wanted <= written or not anything:
                assert rule is not None
                yield Verdict(rule.id, operand.name, "register written before it is read", wanted <= written)
        known = [operand for operand in one.meaning.operands if operand.role == "written"]
        anything = anything or rule is None or (rule.pipe in _WRITERS and not known)
        for operand in known:
            anything = anything or operand.first is None
            written |= {(operand.bank, (operand.first or 0) + at) for at in range(operand.span)}


_WRITERS = frozenset({"INT", "BIT", "FOP", "FP64", "LM", "DMA.LD", "LSU.LD", "DMA.AT", "LSU.AT"})


def counts(sample: Sample, decoded: Sequence[Decoded]) -> Iterator[Verdict]:
    """Classes as often as in the source; every function ends once."""
    found = Counter(one.name for one in decoded)
    for one in decoded:
        if one.meaning.rule is not None and one.name == "end":
            yield Verdict(one.meaning.rule.id, "", "one end in a function", found["end"] == 1)
    expected = sample.expected
    if expected is None:
        return
    local = sum(one.meaning.rule is not None and one.meaning.rule.id == "store.local" for one in decoded)
    for one in decoded:
        if one.name in COUNTED:
            assert one.meaning.rule is not None
            wanted = expected[one.name]
            if one.name == "load shared" and local:  # the store reads shared memory itself
                wanted = {count - local for count in wanted}
            yield Verdict(one.meaning.rule.id, "", "as often as in the source", found[one.name] in wanted)


def missing(sample: Sample, decoded: Sequence[Decoded]) -> list[str]:
    """Classes that the source has and the code does not."""
    found = Counter(one.name for one in decoded)
    local = sum(one.meaning.rule is not None and one.meaning.rule.id == "store.local" for one in decoded)
    short = []
    for name, wanted in (sample.expected or {}).items():
        adjusted = {count - local for count in wanted} if name == "load shared" else wanted
        if found[name] not in adjusted:
            short.append(f"{name}: {found[name]}, the source has {sorted(adjusted)}")
    return short


def of_guess(
    guess: Guess, place: int, sample: Sample, decoded: Sequence[Decoded], number: int, targets: set[int]
) -> Iterator[Verdict]:
    """The checks that this rule names, at one instruction."""
    one = decoded[place]
    before = decoded[place - 1].name if place else ""
    after = decoded[place + 1] if place + 1 < len(decoded) else None
    by_name = {operand.name: operand for operand in one.meaning.operands}
    for check in guess.checks:
        found: bool | None = None
        if check == "lands":
            found = one.target is not None
        elif check == "after-mask":
            found = before == "lane mask"
        elif check == "next-is-target":
            found = after is None or after.piece.offset in targets
        elif check == "before-barrier":
            found = after is not None and after.name in ("barrier", "end")
        elif check == "float-only":
            found = sample.type == "f"
        elif check == "double-only":
            found = sample.type == "d"
        elif check == "width" and sample.size is not None and sample.template != "histogramCalculation":
            seen = width(guess, number)
            wanted = (sample.size,) if sample.template != UNROLLED else _burst(sample.size)
            found = None if seen is None else seen in wanted
        elif check == "mask-branch" and after is not None and after.name in ("branch", "jump"):
            found = after.name == "branch"
        elif check == "argument":
            found = _argument(sample, by_name.get("a"))
        elif check == "counter":
            found = _counter(sample, by_name)
        elif check == "chain":
            found = _chain(sample, place, decoded, by_name.get("c"))
        elif check == "imms":
            found = _imms(sample, by_name.get("b"))
        elif check == "index":
            found = _index(sample, by_name.get("a"))
        elif check == "before-mask":
            found = _bound(sample, by_name.get("a"), by_name.get("b"))
        elif check == "pairs":
            found = _pair(number, by_name.get("a"))
        elif check in ("sums", "products", "widened"):
            found = _alone(check, guess, sample, decoded)
        if found is not None:
            yield Verdict(guess.id, "", _WORDS[check], found)


_WORDS = {
    "lands": "its target is the start of an instruction",
    "after-mask": "directly after a lane mask",
    "next-is-target": "what follows it is a branch target, or the end",
    "before-barrier": "directly before a barrier or the end",
    "float-only": "in kernels of float only",
    "double-only": "in kernels of double only",
    "width": "its width is the element's size",
    "mask-branch": "a branch directly after it is conditional",
    "argument": "it reads an argument's word of the note",
    "counter": "it steps its own register by a constant",
    "chain": "its third operand comes from the shift before it",
    "imms": "its shift amount from the note fits the element's size",
    "index": "its factor is the block's size or an argument",
    "before-mask": "it compares with the argument of the source's condition",
    "pairs": "the second register of a pair is the next one",
    "sums": "the only sum of a kernel that adds two elements",
    "products": "the only product of a kernel that multiplies two elements",
    "widened": "the only conversion of a kernel with one index",
}


def _burst(size: int) -> tuple[int, ...]:
    return size, 2 * size, 4 * size


def width(guess: Guess, number: int) -> int | None:
    """Bytes of a load or store by its bits, None where they are of no known width."""
    found = [size for bit, size in guess.widths if number >> bit & 1]
    return found[0] if len(found) == 1 else None


def _imms(sample: Sample, operand: Operand | None) -> bool | None:
    """An address shifts its high part by 32 - log2(size); only such words of the note count."""
    if operand is None or operand.bank != "SH" or operand.first is None or sample.size is None:
        return None
    value = sample.imms.get(operand.first)
    if value is None:
        return False
    if sample.template in SIMPLE and value in (29, 30, 31):
        return value == 32 - sample.size.bit_length() + 1
    return True


def _argument(sample: Sample, operand: Operand | None) -> bool | None:
    if operand is None or operand.bank != "SH" or operand.first is None or sample.registers is None:
        return None
    return operand.first in sample.words


def _chain(sample: Sample, place: int, decoded: Sequence[Decoded], operand: Operand | None) -> bool | None:
    """Whether the last writer of the third operand in its block is a shift: so addresses of 64 bits are made."""
    packs = sample.template == UNROLLED and (sample.size or 0) < 4  # elements of less than a register, put together
    if operand is None or operand.first is None or packs:
        return None
    for one in reversed(decoded[:place]):
        rule = one.meaning.rule
        if rule is None or rule.flow:
            return None
        for item in one.meaning.operands:
            if item.role == "written" and (item.bank, item.first) == (operand.bank, operand.first):
                return rule.id == "bit.two"
    return None


def _counter(sample: Sample, by_name: dict[str, Operand]) -> bool | None:
    """A sum with a constant, in a kernel whose source has a loop with a counter."""
    one, two, step = by_name.get("dst"), by_name.get("a"), by_name.get("b")
    if sample.template != UNROLLED or one is None or two is None or step is None:
        return None
    if step.bank != "C" or one.first is None or (one.bank, one.first) != (two.bank, two.first):
        return None
    return True


def _index(sample: Sample, operand: Operand | None) -> bool | None:
    if operand is None or operand.bank != "SH" or operand.first is None:
        return None
    return sample.words.get(operand.first) in ("block", "user", "hidden")


def _bound(sample: Sample, one: Operand | None, two: Operand | None) -> bool | None:
    words = [item.first for item in (one, two) if item is not None and item.bank == "SH" and item.first is not None]
    if not words:
        return None
    return all(sample.words.get(word) in ("user", "block", "hidden") for word in words)


def _pair(number: int, low: Operand | None) -> bool | None:
    """The bits of the third operand hold the second register of a pair."""
    if low is None or low.first is None or low.bank not in ("R", "AR"):
        return None
    return value(INT_C, number) == low.first + 1


def value(place: Place, number: int) -> int:
    """The bits of a place, whatever its bank."""
    total = 0
    for weight, bits in enumerate(place.bits):
        first = bits if isinstance(bits, int) else bits[0]
        total |= (number >> first & 1) << weight
    return total


def _alone(check: str, guess: Guess, sample: Sample, decoded: Sequence[Decoded]) -> bool | None:
    """In a kernel that does one such operation, one instruction of this rule."""
    wanted = {
        "sums": (("VectorAdd", ""), ("vectorAddition", "i"), ("vectorAddition", "j")),
        "products": (("elementWiseMultiplication", "i"), ("elementWiseMultiplication", "j")),
        "widened": tuple((name, letter) for name in SIMPLE for letter in ("", "i", "j", "f", "l", "m", "d")),
    }[check]
    if (sample.template, sample.type) not in wanted:
        return None
    return sum(one.meaning.rule is not None and one.meaning.rule.id == guess.id for one in decoded) == 1
