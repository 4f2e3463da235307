"""Which row answers: tables of a few rows, written by hand, and the answer that the rules give for each word."""

from __future__ import annotations

import pytest

from mccprobe.objects.isa.decode import MEMO_LIMIT, Classifier
from mccprobe.objects.isa.encoding import UNKNOWN, Answer, Confidence, EncodingTable, Guard, HeldOut, Row
from mccprobe.objects.isa.learn_files import hold_out_test
from mccprobe.objects.isa.operands import Sample

NONE, POSSIBLE, LIKELY, CERTAIN = Confidence
V = ("v", "v")
BIG = 0xFFFFFFFF


def row(
    mnemonic: str,
    value: int,
    strict: int,
    relaxed: int | None = None,
    *,
    form: tuple[str, ...] | None = V,
    samples: int = 8,
    size: int = 4,
    slot: int = -1,
    guards: tuple[int, ...] = (),
) -> Row:
    relaxed = strict if relaxed is None else relaxed
    return Row(mnemonic, form, size, slot, 0, samples, 0, value & strict, strict, relaxed, guards)


def classifier(*rows: Row, guards: tuple[Guard, ...] = (), pipes: dict[str, str] | None = None) -> Classifier:
    return Classifier(EncodingTable("toy", 4, 4, 1, "", rows, pipes or {}, (), guards=guards))


def short(answer: Answer) -> tuple[str, str, tuple[str, ...]]:
    return answer.mnemonic, answer.confidence.name.lower(), answer.rivals


ADD, MUL = 0x81, 0x82  # opcodes in the low byte; bits 8 to 15 are operands that were seen as 0x05


@pytest.mark.parametrize(
    ("word", "samples", "level"),
    [
        (0x0581, 8, CERTAIN),
        (0x0581, 7, LIKELY),  # as it was seen; eight words make certain
        (0x0681, 8, LIKELY),
        (0x0681, 7, POSSIBLE),  # with operands that were freed
        (0x0582, 8, NONE),
        (0x10581, 8, NONE),  # another opcode, a bit that was never seen as 1
    ],
)
def test_how_sure_one_row_is(word: int, samples: int, level: Confidence) -> None:
    answer = classifier(row("add", 0x0581, BIG, BIG ^ 0xFF00, samples=samples), pipes={"add": "ALU"}).answer(word)
    assert answer == (UNKNOWN if level is NONE else Answer("add", "ALU", 4, level, 0))


def test_a_row_over_all_forms_agrees_or_objects() -> None:
    """What a freed mask alone says counts as certain where the row over all forms says it too."""
    form = row("add", 0x0581, BIG, BIG ^ 0xFF00)
    agreeing = classifier(form, row("add", 0x81, BIG ^ 0xFF00, form=None))
    assert short(agreeing.answer(0x0681)) == ("add", "certain", ())
    objecting = classifier(form, row("mul", 0x0681, 0xFFFF, form=None))
    assert short(objecting.answer(0x0681)) == ("", "none", ("add", "mul"))
    assert short(objecting.answer(0x0581)) == ("add", "certain", ()), "nothing of another name matches here"
    seen = classifier(form, row("mul", 0x81, 0xFF, form=None))
    assert short(seen.answer(0x0581)) == ("add", "certain", ()), "seen as it stands: no other row talks it down"
    alone = classifier(row("mul", 0x82, 0xFF, form=None))
    assert short(alone.answer(0x0582)) == ("mul", "certain", ())


@pytest.mark.parametrize("turned", [False, True])
def test_two_names_and_none_narrower_are_none(turned: bool) -> None:
    rows = [row("add", 0x0081, 0x00FF), row("sub", 0x0500, 0xFF00)]
    decoder = classifier(*(rows[::-1] if turned else rows), pipes={"add": "ALU", "sub": "ALU"})
    assert decoder.answer(0x0581) == Answer("", "ALU", 4, NONE, rivals=("add", "sub"))
    assert short(decoder.answer(0x0681)) == ("add", "certain", ())
    other = classifier(*rows, pipes={"add": "ALU", "sub": "FPU"})
    assert other.answer(0x0581) == Answer("", "", 4, NONE, rivals=("add", "sub"))
    half = classifier(*rows, pipes={"add": "ALU"})
    assert half.answer(0x0581).pipe == "", "of one of them the pipe is not known"


def test_the_narrower_row_is_the_name() -> None:
    """`nop` is `mov` with all operands 0: whatever it accepts, `mov` accepts too, so it was written for that."""
    wide, narrow = row("mov", 0x81, 0xFF), row("nop", 0x81, BIG)
    for rows in ((wide, narrow), (narrow, wide)):
        assert short(classifier(*rows).answer(0x0081)) == ("nop", "certain", ())
        assert short(classifier(*rows).answer(0x0181)) == ("mov", "certain", ())
    beside = row("nop", 0x0182, BIG)  # narrower, but of other words
    assert short(classifier(wide, beside).answer(0x0081)) == ("mov", "certain", ())


def test_a_strict_match_goes_before_a_freed_one() -> None:
    rows = (row("add", 0x0581, BIG, 0x00FF), row("sub", 0x0681, 0xFFFF, 0xFF00))
    assert short(classifier(*rows).answer(0x0681)) == ("sub", "certain", ())
    both_freed = (row("add", 0x0581, BIG, 0x00FF), row("sub", 0x10681, BIG, 0xFF00))
    assert short(classifier(*both_freed).answer(0x0681)) == ("", "none", ("add", "sub"))


def test_of_rows_of_one_name_the_one_with_most_samples_speaks() -> None:
    few, many = row("add", 0x0581, BIG, samples=2), row("add", 0x81, 0xFF, samples=9, form=("v", "#"))
    for rows, number in (((few, many), 1), ((many, few), 0)):
        assert classifier(*rows).answer(0x0581) == Answer("add", "", 4, CERTAIN, number)


def test_one_name_of_two_sizes_is_no_answer() -> None:
    long = row("add", 0x81, 0xFF | 0xFF << 32, size=8)
    decoder = classifier(row("add", 0x0581, 0xFFFF), long)
    assert decoder.answer(0x0581, 8) == Answer("", "", 0, NONE, rivals=("add",)), "how far to step is not known"
    assert decoder.answer(0x0581, 4) == Answer("add", "", 4, CERTAIN, 0), "the long one does not fit in what is left"
    assert decoder.answer(0x0F_0000_0581, 8) == Answer("add", "", 4, CERTAIN, 0)
    nested = classifier(row("add", 0x81, 0xFF), long)
    assert nested.answer(0x0581, 8) == Answer("add", "", 8, CERTAIN, 1), "the narrower one was written for that"


@pytest.mark.parametrize(("available", "size"), [(8, 8), (9, 8), (7, 0), (4, 0), (0, 0), (None, 8)])
def test_a_row_needs_room(available: int | None, size: int) -> None:
    assert classifier(row("long", 0x83, 0xFF, size=8)).answer(0x83, available).size == size


@pytest.mark.parametrize(("slot", "name"), [(0, "first"), (1, "second"), (2, ""), (-1, "")])
def test_a_row_of_a_slot_answers_there_alone(slot: int, name: str) -> None:
    decoder = classifier(row("first", 0x81, 0xFF, slot=0), row("second", 0x81, 0xFF, slot=1))
    assert decoder.answer(0x81, None, slot).mnemonic == name
    assert classifier(row("any", 0x81, 0xFF)).answer(0x81, None, slot).mnemonic == "any"


def test_a_guard_holds_its_rows_back() -> None:
    """Values 5 and 6 of bits 8 to 10 announce a longer word: what is subject to the guard says nothing there."""
    guard = Guard(4, 8, 3, (5, 6))
    decoder = classifier(row("add", 0x81, 0xFF, guards=(0,)), row("mul", 0x82, 0xFF), guards=(guard,))
    assert [decoder.answer(0x81 | value << 8).mnemonic for value in range(8)] == [*["add"] * 5, "", "", "add"]
    assert [decoder.answer(0x82 | value << 8).mnemonic for value in range(8)] == ["mul"] * 8
    assert decoder.answer(0x81 | 5 << 8) == UNKNOWN
    assert decoder.answer(0x81 | 0b1101 << 8) == UNKNOWN, "bits beside the field play no part"
    assert decoder.answer(0x83 | 5 << 8) == UNKNOWN, "a guard alone names nothing"


def test_a_row_that_is_held_back_leaves_doubt_over_others_of_its_size() -> None:
    guard = Guard(4, 8, 3, (5,))
    held, wide = row("add", 0x81, 0xFF, guards=(0,)), row("any", 0x01, 0x0F)
    decoder = classifier(held, wide, guards=(guard,))
    assert short(decoder.answer(0x0581)) == ("", "none", ("add", "any"))
    assert short(decoder.answer(0x0481)) == ("add", "certain", ())
    long = row("long", 0x0581, 0xFFFF, size=8)
    assert short(classifier(held, long, guards=(guard,)).answer(0x0581, 8)) == ("long", "certain", ())


def test_of_several_guards_each_counts_for_its_own_rows() -> None:
    guards = (Guard(4, 8, 3, (5,)), Guard(4, 8, 3, (6,)))
    decoder = classifier(row("add", 0x81, 0xFF, guards=(0,)), row("mul", 0x82, 0xFF, guards=(1,)), guards=guards)
    assert [decoder.answer(word).mnemonic for word in (0x0581, 0x0681, 0x0582, 0x0682)] == ["", "add", "mul", ""]


def test_an_empty_table_knows_nothing() -> None:
    assert classifier().answer(0) == classifier().answer(BIG) == UNKNOWN


def test_answers_do_not_hang_on_what_was_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is keyed by word, room and slot, and is given back when it is full."""
    rows = (row("add", 0x81, 0xFF), row("first", 0x82, 0xFF, slot=0), row("long", 0x83, 0xFF, size=8))
    asked = [(word, room, slot) for word in (0x81, 0x82, 0x83) for room in (4, 8) for slot in (-1, 0)] * 2
    fresh = [classifier(*rows).answer(*one) for one in asked]
    decoder = classifier(*rows)
    assert [decoder.answer(*one) for one in asked] == fresh
    assert len(asked) < MEMO_LIMIT
    monkeypatch.setattr("mccprobe.objects.isa.decode.MEMO_LIMIT", 2)
    bounded = classifier(*rows)
    assert [bounded.answer(*one) for one in asked] == fresh and len(bounded._memo) <= 2


def test_what_a_table_says_of_words_held_out() -> None:
    """One certain and wrong, one likely and right, one of a name never seen, one that was learned from."""

    def asked(word: int, mnemonic: str, pipe: str) -> Sample:
        return Sample(word, 4, -1, mnemonic, V, (), f"{mnemonic} {word:x}", pipe, True, False)

    rows = (row("add", 0x0581, BIG, BIG ^ 0xFF00),)
    table = EncodingTable("toy", 4, 4, 1, "", rows, {"add": "ALU"}, ())
    learned = [asked(0x0981, "add", "ALU"), asked(0x82, "mul", "MUL")]
    fresh = [asked(0x0581, "mul", "MUL"), asked(0x0681, "add", "ALU"), asked(0x99, "nop", "CTRL"), learned[0]]
    assert hold_out_test(table, learned, fresh) == HeldOut(
        words=3, answered=2, wrong=1, certain=1, certain_wrong=1, pipe_wrong=1, unseen=1, unseen_named=0
    )
