"""Guards of short instructions and the bits that they are made of: small tables whose answer is known by hand."""

from __future__ import annotations

import pytest

from mccprobe.objects.isa.columns import bit_numbers, sum_of_bits
from mccprobe.objects.isa.encoding import Guard
from mccprobe.objects.isa.fields import Place
from mccprobe.objects.isa.guards import MAX_WIDTH, Stretch, _quorum, _segments, make_guards

OPCODE = 0x8000_0081  # of the words here; operands stand from bit 8 on
ALL = 0xFFFF_FFFF


@pytest.mark.parametrize(
    ("masks", "union"),
    [([], 0), ([5], 5), ([0b011, 0b110], 0b111), ([6, 6], 6), ([1, 2, 4, 7], 7), ([0, 1 << 127, 1], 1 << 127 | 1)],
)
def test_a_bit_of_two_masks_is_one_bit(masks: list[int], union: int) -> None:
    assert sum_of_bits(iter(masks)) == union
    assert sum_of_bits(1 << place for place in bit_numbers(union)) == union


def stretch(*values: int, low: int = 8, width: int = 3, relaxed: int | None = None, places: int = 1) -> Stretch:
    """Words with these values of a field; `places` registers of `width` bits behind each other."""
    words = [OPCODE | value << low for value in values]
    mask = sum_of_bits(1 << bit for bit in range(32) if len({word >> bit & 1 for word in words}) == 1)
    lows = [low + width * number for number in range(places)]
    found = [Place(((1 << width) - 1) << start, start, True, False) for start in lows]
    return Stretch(words, mask, mask if relaxed is None else relaxed, words[0] & mask, found)


def segments(*parts: Stretch, starts: set[int]) -> list[tuple[int, int]]:
    return list(_segments(parts, starts))


def test_a_field_ends_at_a_constant_bit_and_at_the_next_proved_start() -> None:
    three = stretch(0, 7)  # bits 8 to 10 were seen both ways, 11 to 15 never
    assert segments(three, starts={8}) == [(8, 3)]
    six = stretch(0, 63, width=3, places=2)
    assert segments(six, starts={8, 11}) == [(8, 3), (11, 3)]
    assert segments(six, starts={8}) == [(8, 6)], "a start that few classes have is none"
    apart = stretch(0, 0b11100111)  # 8 to 10 and 13 to 15; 11 and 12 are constant
    assert segments(apart, starts={8}) == [(8, 3), (13, 3)]


def test_low_bits_that_never_vary_belong_to_the_field_that_starts_there() -> None:
    """Register pairs are even: bit 8 is 0 in every word, the field is from 8 on."""
    pairs = stretch(0b000, 0b110)
    assert segments(pairs, starts={8}) == [(8, 3)]
    assert segments(pairs, starts=set()) == [(9, 2)]
    second = stretch(0b000_111, 0b110_000, places=2)  # 8 to 10, then 11 constant, 12 and 13
    assert segments(second, starts={8, 11}) == [(8, 3), (11, 3)]


def test_bits_that_were_freed_and_bits_in_which_parts_differ_vary() -> None:
    one = stretch(0b010)  # one word: no bit varies
    assert segments(one, starts={8}) == []
    assert segments(stretch(0b010, relaxed=ALL ^ 0x700), starts={8}) == [(8, 3)]
    assert segments(one, stretch(0b101), starts={8}) == [(8, 3)]


@pytest.mark.parametrize(("width", "found"), [(8, [(8, 8)]), (MAX_WIDTH, [(8, MAX_WIDTH)]), (MAX_WIDTH + 1, [])])
def test_an_immediate_is_no_field_to_guard(width: int, found: list[tuple[int, int]]) -> None:
    assert segments(immediate(0, (1 << width) - 1, width=width), starts={8}) == found


# --- guards -----------------------------------------------------------------------------------------


def immediate(*values: int, width: int = 3) -> Stretch:
    """As `stretch`, but the field is of an immediate: it proves nothing that was not seen."""
    made = stretch(*values, width=width)
    return Stretch(made.words, made.mask, made.relaxed, made.value, [Place(((1 << width) - 1) << 8, 8, False, False)])


LONG = {("op.long", 8): [immediate(0, 7)]}
SHORT = {("op.a", 4): [immediate(0, 3, 4)], ("op.b", 4): [immediate(0, 3, 4)], ("op.c", 4): [immediate(0, 3, 4)]}


def test_what_no_short_word_has_is_refused() -> None:
    """Two classes of four must have a value; what a class has itself it keeps."""
    guards, of_class = make_guards({**SHORT, ("op.d", 4): [immediate(0, 3, 5)], **LONG})
    assert guards == (Guard(4, 8, 3, (1, 2, 5, 6, 7)), Guard(4, 8, 3, (1, 2, 6, 7)))
    assert of_class == {("op.a", 4): (0,), ("op.b", 4): (0,), ("op.c", 4): (0,), ("op.d", 4): (1,)}


def test_two_classes_of_four_suffice_and_one_of_three() -> None:
    odd = immediate(0, 3, 5)
    guards, _ = make_guards({**SHORT, ("op.c", 4): [odd], ("op.d", 4): [odd], **LONG})
    assert guards == (Guard(4, 8, 3, (1, 2, 6, 7)),)
    guards, of_class = make_guards({**SHORT, ("op.c", 4): [odd], **LONG})
    assert guards == (Guard(4, 8, 3, (1, 2, 6, 7)),) and set(of_class.values()) == {(0,)}
    assert [_quorum(classes) for classes in (0, 3, 4, 150, 200, 1000)] == [1, 1, 2, 2, 3, 15]


def test_instructions_of_one_size_need_no_guard() -> None:
    assert make_guards(SHORT) == ((), {})
    assert make_guards({}) == ((), {})


def test_a_proved_register_may_have_every_number() -> None:
    free = stretch(0, 7, relaxed=ALL ^ 0x700)
    guards, of_class = make_guards({**SHORT, ("op.r", 4): [free], **LONG})
    assert guards == (Guard(4, 8, 3, (1, 2, 5, 6, 7)),)
    assert of_class["op.r", 4] == () and of_class["op.a", 4] == (0,)


@pytest.mark.parametrize(("lowest", "refused"), [(0, (1, 5, 7)), (1, (2, 6))])
def test_of_a_register_whose_lowest_bit_stays_half_the_numbers(lowest: int, refused: tuple[int, ...]) -> None:
    """Even or odd ones; and 0, 3 and 4, which the others have."""
    half = stretch(lowest, 6 | lowest, relaxed=ALL ^ 0x600)
    guards, of_class = make_guards({**SHORT, ("op.r", 4): [half], **LONG})
    assert [guards[number].refused for number in of_class["op.r", 4]] == [refused]


def test_a_field_that_few_samples_show_too_narrow_is_guarded_as_wide_as_it_is() -> None:
    narrow = immediate(0, 2, width=2)  # bits 8 and 9: bit 8 never varied, the field starts there
    wide = stretch(0, (1 << MAX_WIDTH + 1) - 1)  # a run of eleven bits from 8 on: an immediate stands there
    four = {**SHORT, ("op.d", 4): [immediate(0, 3, 4)]}
    guards, of_class = make_guards({**four, ("op.n", 4): [narrow], ("op.w", 4): [wide], **LONG})
    (guard,) = guards
    assert guard == Guard(4, 8, 3, (1, 2, 5, 6, 7))
    assert set(of_class.values()) == {(0,)} and len(of_class) == 6
