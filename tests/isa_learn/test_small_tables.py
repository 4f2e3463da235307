"""Learning from a handful of words: which bits are operands and which rows come out, worked out by hand.

Words have the opcode in bits 0 to 7, one register in bits 8 to 12 and one in bits 16 to 20.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from mccprobe.objects.isa.columns import Columns
from mccprobe.objects.isa.encoding import EncodingTable, Field, Row
from mccprobe.objects.isa.fields import FieldFinder, Place
from mccprobe.objects.isa.learn import MIN_CONSTANT_BITS, learn
from mccprobe.objects.isa.operands import Sample
from mccprobe.objects.isa.pipes import UNKNOWN

ALL = 0xFFFFFFFF
FIRST, SECOND = 0x1F << 8, 0x1F << 16
FIXED = ALL ^ FIRST ^ SECOND  # what a word of two registers holds beside them
V2 = ("v", "v")
# seven pairs of numbers: no two of their ten bits are equal in all seven
PAIRS = ((1, 31), (2, 1), (4, 2), (8, 4), (16, 8), (31, 0), (0, 16))

FOUR = ((1, 3), (2, 5), (4, 6), (0, 0))  # three bits of each that are equal nowhere else


def register(number: int, *flags: int) -> tuple[int, ...]:
    """As operands are read: number, span beyond it, then negative, absolute, inverted, reuse."""
    return (number, 0, *flags, *[0] * (4 - len(flags)))


def sample(
    word: int,
    name: str,
    form: tuple[str, ...] = V2,
    values: tuple[tuple[int, ...], ...] = (),
    *,
    size: int = 4,
    text: str = "",
    pipe: str = "ALU",
    probe: bool = False,
) -> Sample:
    return Sample(word, size, -1, name, form, values, text or f"{name} {word:x}", pipe, True, probe)


def two(opcode: int, name: str, pairs: Iterable[tuple[int, int]] = PAIRS, *, above: int = 0) -> list[Sample]:
    """Words of two registers; `above`: what stands in bits 21 to 31."""
    return [sample(opcode | a << 8 | b << 16 | above, name, V2, (register(a), register(b))) for a, b in pairs]


def found(samples: list[Sample], *keys: list[Sample]) -> tuple[FieldFinder, list[Place]]:
    """The finder after all keys have voted, and the places that it proves for `samples`."""
    finder = FieldFinder()
    for key in keys:
        finder.add(key, columns_of(key))
    finder.finish()
    return finder, finder.operand_places(samples, columns_of(samples))


def columns_of(samples: list[Sample]) -> Columns:
    return Columns([one.word for one in samples], 8 * samples[0].size)


# --- fields -----------------------------------------------------------------------------------------


def test_registers_are_found_where_they_stand() -> None:
    finder, places = found(two(0x81, "add"), two(0x81, "add"))
    assert finder.fields() == (Field(4, "v", 0, 8, 5, 1), Field(4, "v", 0, 16, 5, 1))
    assert places == [Place(FIRST, 8, True, False), Place(SECOND, 16, True, False)]
    again, _ = found(two(0x81, "add"), two(0x81, "add"), two(0x82, "sub"))
    assert again.fields() == finder.fields(), "one more key of a form is no further place"


@pytest.mark.parametrize(
    ("pairs", "keys", "places"),
    [
        (FOUR[:3], 9, 0),  # three words vote for nothing
        (FOUR, 2, 0),
        (FOUR, 4, 2),  # a key of four words counts a third
        ((*FOUR, (7, 0)), 1, 0),
        ((*FOUR, (7, 0), (0, 7)), 1, 2),  # and so does one of five, but not one of six
        (PAIRS, 1, 2),
    ],
)
def test_few_words_prove_little(pairs: tuple[tuple[int, int], ...], keys: int, places: int) -> None:
    finder, _ = found(two(0x81, "k"), *(two(0x81 + number, f"k{number}", pairs) for number in range(keys)))
    assert len(finder.fields()) == places


def test_one_word_of_a_known_form_has_its_operands_there() -> None:
    rare = two(0x90, "rare", [(5, 3)])
    _, places = found(rare, two(0x81, "add"))
    assert places == [Place(FIRST, 8, True, False), Place(SECOND, 16, True, False)]
    other = [rare[0]._replace(values=(register(4), register(3)))]  # the text says 4, bits 8 to 12 say 5
    _, places = found(other, two(0x81, "add"))
    assert places == [Place(FIRST ^ 1 << 8, 8, True, False), Place(SECOND, 16, True, False)]


@pytest.mark.parametrize(
    ("number", "word", "places"),
    [
        (5, 5 << 8 | 9 << 16, [Place(FIRST, 8, True, False)]),
        (9, 5 << 8 | 9 << 16, [Place(SECOND, 16, True, False)]),
        (5, 5 << 8 | 5 << 16, []),  # two places fit: neither is proved
        (7, 5 << 8 | 9 << 16, []),  # none fits
        (0, 5 << 8, []),  # a zero is everywhere
    ],
)
def test_another_form_borrows_the_one_place_that_fits(number: int, word: int, places: list[Place]) -> None:
    one = [sample(0x90 | word, "one", ("v",), (register(number),))]
    assert found(one, two(0x81, "add"))[1] == places
    assert found(one)[1] == [], "nobody has voted"


def test_every_word_of_a_key_must_fit() -> None:
    words = [sample(0x90 | a << 8 | 1 << 16, "one", ("v",), (register(a),)) for a in (5, 6)]
    assert found(words, two(0x81, "add"))[1] == [Place(FIRST, 8, True, False)]
    liar = words[1]._replace(values=(register(7),))
    assert found([words[0], liar], two(0x81, "add"))[1] == []


def test_a_flag_is_a_place_of_one_bit() -> None:
    """`-v3`: bit 24, seen both ways and unlike every other bit."""
    words = [
        sample(one.word | negative << 24, one.mnemonic, V2, (register(a, negative), register(b)))
        for one, (a, b), negative in zip(two(0x81, "add"), PAIRS, (1, 1, 1, 0, 0, 0, 0), strict=True)
    ]
    finder, places = found(words, words)
    assert Field(4, "v", 2, 24, 1, 1) in finder.fields() and len(finder.fields()) == 3
    # a role is only asked from four bits on; a flag is one bit, so it is borrowed by its place
    assert Place(1 << 24, 24, False, True) in places and len(places) == 3


def test_bits_that_stand_in_many_places_prove_none() -> None:
    """The number once more in bits 21 to 25: with two candidates a key is worth half, and two keys one."""

    def doubled(opcode: int, times: int) -> list[Sample]:
        return [
            sample(opcode | sum(a << 6 * turn for turn in range(times)) << 8, f"k{opcode}", ("v",), (register(a),))
            for a, _ in PAIRS
        ]

    assert found(doubled(1, 2), doubled(1, 2))[0].fields() == ()
    both = found(doubled(1, 2), doubled(1, 2), doubled(2, 2))[0].fields()
    assert both == (Field(4, "v", 0, 8, 5, 1), Field(4, "v", 0, 14, 5, 1))
    six = [  # so many candidates of each bit are not counted at all
        [one._replace(size=8, word=one.word | one.word >> 8 << 40) for one in doubled(opcode, 3)] for opcode in range(8)
    ]
    assert found(six[0], *six)[0].fields() == ()


def test_a_place_at_the_end_of_the_word_is_one() -> None:
    top = [sample(0x81 | a << 27, "top", ("v",), (register(a),)) for a, _ in PAIRS]
    finder, _ = found(top, top)
    assert finder.fields() == (Field(4, "v", 0, 27, 5, 1),)
    other = [sample(0x82 | 9 << 27 | 3 << 8, "other", V2, (register(9), register(3)))]
    assert found(other, top)[1] == [Place(0x1F << 27, 27, True, False)]


def test_a_number_that_is_printed_shifted_has_its_bits_but_no_place() -> None:
    """Four times what stands in bits 0 to 4: bit 0 of the number would lie below the word."""
    words = [sample(0x81 << 24 | a, "load", ("v",), (register(4 * a),)) for a, _ in PAIRS]
    finder, places = found(words, words)
    assert finder.fields() == () and places == [Place(0x1F, 0, True, False)]


def test_an_immediate_is_no_register() -> None:
    words = [sample(0x81 | a << 8, "movi", ("#",), ((a,),)) for a, _ in PAIRS]
    finder, places = found(words, words)
    assert finder.fields() == (Field(4, "#", 0, 8, 5, 1),)
    assert places == [Place(FIRST, 8, False, False)]


# --- rows -------------------------------------------------------------------------------------------


def table(*samples: Sample, word: int = 4) -> EncodingTable:
    return learn(samples, target="toy", unit=4, word=word)


def rows(learned: EncodingTable, name: str) -> list[Row]:
    return [row for row in learned.rows if row.mnemonic == name]


def test_bits_that_are_equal_in_all_words_say_the_name() -> None:
    learned = table(*two(0x81, "add"))
    assert learned.rows == (
        Row("add", V2, 4, -1, 0, 7, 0, 0x81, FIXED, FIXED),
        Row("add", None, 4, -1, 0, 7, 0, 0x81, FIXED, FIXED),
    )
    assert (learned.pipes, learned.refused_rows, learned.guards) == ({"add": "ALU"}, 0, ())


def test_one_word_is_freed_of_the_operands_that_others_prove() -> None:
    (rare,) = two(0x90, "rare", [(5, 3)])
    form, general = rows(table(*two(0x81, "add"), rare), "rare")
    assert form == Row("rare", V2, 4, -1, 0, 1, 0, rare.word, ALL, FIXED)
    assert general == Row("rare", None, 4, -1, 0, 1, 0, rare.word, ALL, ALL), "over all forms nothing is freed"


@pytest.mark.parametrize("size", [4, 8])
def test_a_bit_that_alone_keeps_another_word_out_is_opcode(size: int) -> None:
    """The other word differs from the rare one in bit 10 alone; an instruction of 8 bytes counts by its first 4."""
    (rare,) = two(0x90, "rare", [(5, 3)])
    foreign = sample(rare.word ^ 1 << 10 | (7 << 32 if size == 8 else 0), "other", (), size=size)
    form, _ = rows(table(*two(0x81, "add"), rare, foreign, word=size), "rare")
    assert form.relaxed == FIXED | 1 << 10
    further = sample(rare.word ^ 1 << 10 ^ 1 << 17, "other", ())  # once bit 10 is free, bit 17 keeps it out
    form, _ = rows(table(*two(0x81, "add"), rare, further), "rare")
    assert form.relaxed == FIXED | 1 << 17
    mine = sample(rare.word ^ 1 << 10, "rare", ())  # of its own name: nothing to keep out
    assert rows(table(*two(0x81, "add"), rare, mine), "rare")[1].relaxed == FIXED


def test_a_word_of_another_slot_keeps_nothing_out() -> None:
    """One bit away from the rare word: opcode where it stands in the same slot, of no account in another one."""
    known = [one._replace(slot=0) for one in [*two(0x81, "add"), *two(0x90, "rare", [(5, 3)])]]
    foreign = known[-1]._replace(word=known[-1].word ^ 1 << 10, mnemonic="other", form=(), values=())
    for slot, kept in ((0, 1 << 10), (1, 0)):
        learned = learn([*known, foreign._replace(slot=slot)], target="toy", unit=4, word=8, slots=2)
        assert rows(learned, "rare")[0].relaxed == FIXED | kept, slot


@pytest.mark.parametrize(("names", "silent"), [(2, {}), (3, {4: 1 << 30})])
def test_a_bit_that_never_shows_in_the_text_says_nothing(names: int, silent: dict[int, int]) -> None:
    words = []
    for number in range(names):
        words += [sample(0x40 + number | bit << 30, f"k{number}", (), text=f"k{number} off") for bit in (0, 1)]
    lonely = sample(0x60, "lonely", ())
    learned = table(*words, lonely)
    assert learned.invisible == silent
    assert rows(learned, "lonely")[0].relaxed == ALL ^ silent.get(4, 0)
    assert learned.rows[0].strict == ALL ^ 1 << 30
    probed = [one._replace(probe=True) for one in words]  # what a probe says is no listing's word for it
    assert table(*probed, lonely).invisible == {}
    jumps = [one._replace(whole=False) for one in words]  # their text hangs on the address too
    assert table(*jumps, lonely).invisible == {}


def test_two_encodings_of_one_name_are_two_rows() -> None:
    """0x81 and 0x84 leave bits 0 and 2 open, and 0x80 falls in: so the name is split."""
    words = [*two(0x81, "add"), *two(0x84, "add")]
    (one, _) = rows(table(*words), "add")
    assert (one.samples, one.strict) == (14, FIXED ^ 0b101), "as long as nothing else falls in they are one"
    learned = table(*words, sample(0x80 | 5 << 8, "mul", ()))
    forms = [row for row in rows(learned, "add") if row.form]
    assert sorted((row.value, row.strict, row.samples) for row in forms) == [(0x81, FIXED, 7), (0x84, FIXED, 7)]
    assert sorted(row.part for row in forms) == [0, 1]
    assert len([row for row in rows(learned, "add") if row.form is None]) == 2


@pytest.mark.parametrize(("bits", "kept"), [(MIN_CONSTANT_BITS - 1, 0), (MIN_CONSTANT_BITS, 2)])
def test_a_row_of_few_constant_bits_is_refused(bits: int, kept: int) -> None:
    """It would take data for code."""
    learned = table(sample(1, "wild", ()), sample(1 | ALL << bits & ALL, "wild", ()))
    assert (len(learned.rows), learned.refused_rows) == (kept, 2 - kept)
    assert all(row.strict == (1 << bits) - 1 for row in learned.rows)


def test_an_immediate_of_a_short_word_stays() -> None:
    """It may announce a longer word; in words of the longest size it is freed as registers are."""
    movi = [sample(0x81 | a << 8, "movi", ("#",), ((a,),)) for a, _ in PAIRS]
    rare = sample(0x90 | 5 << 8, "seti", ("#",), ((5,),))
    assert rows(table(*movi, rare), "seti")[0].relaxed == ALL ^ FIRST
    long = sample(0xF0 | 1 << 40, "long", (), size=8)
    assert rows(table(*movi, rare, long, word=8), "seti")[0].relaxed == ALL


def test_words_that_the_disassembler_did_not_know_teach_nothing() -> None:
    words = two(0x81, "add")
    unknown = sample(0x99, "<unknown>", (), pipe=UNKNOWN)
    assert table(*words, unknown) == table(*words)
    assert table(unknown).rows == ()


def test_probed_words_are_counted_and_words_said_twice_are_one() -> None:
    words = two(0x81, "add")
    probed = [one._replace(probe=True) for one in two(0x81, "add", [(3, 3), (9, 9)])]
    row = table(*words, *words, *probed).rows[0]
    assert (row.samples, row.probed) == (9, 2)
    assert table(*words, words[0]._replace(probe=True)).rows[0].probed == 0, "the listing said it first"
