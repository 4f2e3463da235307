"""Learning a consistent toy instruction set recovers it; what was never seen is never named."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.objects.isa.columns import Columns
from mccprobe.objects.isa.decode import Classifier
from mccprobe.objects.isa.encoding import Confidence
from mccprobe.objects.isa.guards import cubes
from mccprobe.objects.isa.learn import learn
from mccprobe.objects.isa.operands import Sample, parse_operand, sample_of
from mccprobe.objects.isa.records import Instruction
from mccprobe.objects.isa.stream import KNOWN, OUT_OF_STEP, UNKNOWN_WORD, Decoder


@dataclass(frozen=True)
class Toy:
    """A toy instruction set: size bytes; opcode at bit 0 of `opcode_bits`; `fields` of (low, width) above it."""

    size: int
    opcode_bits: int
    fields: tuple[tuple[int, int], ...]
    opcodes: tuple[int, ...]

    def instruction(self, opcode: int, values: tuple[int, ...], address: int = 0) -> Instruction:
        word = opcode
        for (low, width), value in zip(self.fields, values, strict=True):
            word |= (value & ((1 << width) - 1)) << low
        operands = ", ".join(f"r{value}" for value in values)
        name = f"op{chr(97 + opcode % 26)}{chr(97 + opcode // 26)}"
        return Instruction(address, word.to_bytes(self.size, "little"), name, operands, f"{name} {operands}", "toy")

    def samples(self, rng: random.Random, per_opcode: int, opcodes: tuple[int, ...] | None = None) -> list[Sample]:
        """Random operands, all-zero and all-one ones among them, so that each operand bit is seen both ways."""
        found = []
        for opcode in opcodes or self.opcodes:
            ends = [tuple(0 for _ in self.fields), tuple((1 << width) - 1 for _, width in self.fields)]
            rows = ends + [tuple(rng.randrange(1 << width) for _, width in self.fields) for _ in range(per_opcode)]
            for values in rows:
                sample = sample_of(self.instruction(opcode, values))
                assert sample is not None
                found.append(sample)
        return found


@st.composite
def toys(draw: st.DrawFn) -> Toy:
    size = draw(st.sampled_from([4, 8, 16]))
    bits = draw(st.integers(7, 9))
    fields = []
    low = bits
    for _ in range(draw(st.integers(1, 3))):
        width = draw(st.integers(4, 7))
        fields.append((low, width))
        low += width
    opcodes = draw(st.lists(st.integers(0, (1 << bits) - 1), min_size=3, max_size=24, unique=True))
    return Toy(size, bits, tuple(fields), tuple(opcodes))


@settings(max_examples=40, deadline=None)
@given(toys(), st.integers(0, 1 << 30))
def test_a_toy_instruction_set_is_recovered(toy: Toy, seed: int) -> None:
    rng = random.Random(seed)
    classifier = Classifier(learn(toy.samples(rng, 60), target="toy", unit=toy.size, word=toy.size))
    for sample in toy.samples(rng, 10):
        answer = classifier.answer(sample.word)
        assert answer.mnemonic == sample.mnemonic
        assert answer.confidence is Confidence.CERTAIN and answer.pipe == "toy" and answer.size == toy.size


@settings(max_examples=40, deadline=None)
@given(toys(), st.integers(0, 1 << 30))
def test_an_opcode_never_seen_is_never_named(toy: Toy, seed: int) -> None:
    rng = random.Random(seed)
    learned, unseen = toy.opcodes[:-1], toy.opcodes[-1:]
    classifier = Classifier(learn(toy.samples(rng, 12, learned), target="toy", unit=toy.size, word=toy.size))
    for sample in toy.samples(rng, 20, unseen):
        assert classifier.answer(sample.word).mnemonic == ""


@settings(max_examples=40, deadline=None)
@given(toys(), st.integers(0, 1 << 30))
def test_few_samples_of_a_form_borrow_its_fields(toy: Toy, seed: int) -> None:
    rng = random.Random(seed)
    rare, common = toy.opcodes[0], toy.opcodes[1:]
    samples = [*toy.samples(rng, 12, common), *toy.samples(rng, 0, (rare,))[1:]]  # one word, all fields ones
    classifier = Classifier(learn(samples, target="toy", unit=toy.size, word=toy.size))
    answers = {classifier.answer(s.word).mnemonic for s in toy.samples(rng, 10, (rare,))}
    assert answers <= {samples[-1].mnemonic, ""}
    assert {classifier.answer(s.word).mnemonic for s in toy.samples(rng, 5, common)} <= {s.mnemonic for s in samples}


def test_the_same_samples_give_the_same_table() -> None:
    toy = Toy(4, 8, ((8, 6), (14, 6)), (1, 2, 3, 200))
    samples = toy.samples(random.Random(1), 10)
    assert learn(samples, target="t", unit=4, word=4) == learn(samples, target="t", unit=4, word=4)


def test_a_word_with_two_names_is_ambiguous_and_reported() -> None:
    toy = Toy(4, 8, ((8, 6),), (1, 2))
    samples = toy.samples(random.Random(1), 10)
    liar = samples[0]._replace(mnemonic="liar")
    table = learn([*samples, liar], target="t", unit=4, word=4)
    assert table.conflicts == ((4, liar.word, tuple(sorted(("liar", samples[0].mnemonic)))),)
    answer = Classifier(table).answer(liar.word)
    assert answer.mnemonic == "" or answer.confidence is not Confidence.CERTAIN


def test_an_operand_without_its_number_is_passed_over() -> None:
    """`r` by itself is of the kind that `r1` is of."""
    toy = Toy(4, 8, ((8, 6),), (1, 2))
    samples = toy.samples(random.Random(1), 10)
    kind, numbers = parse_operand("r")
    odd = samples[3]._replace(word=samples[3].word ^ 1 << 9, form=(kind,), values=(numbers,))
    assert odd.form == samples[3].form and odd.values != samples[3].values
    assert learn([*samples, odd], target="t", unit=4, word=4) == learn(samples, target="t", unit=4, word=4)


def test_slots_are_told_apart_by_address() -> None:
    toy = Toy(4, 8, ((8, 6),), (1, 2, 3))
    rng = random.Random(3)
    samples = [
        sample._replace(slot=slot, mnemonic=f"{sample.mnemonic}.{slot}")
        for slot in range(3)
        for sample in toy.samples(rng, 10)
    ]
    table = learn(samples, target="t", unit=4, word=12, slots=3)
    assert [table.slot_of(address) for address in (0, 4, 8, 12, 28)] == [0, 1, 2, 0, 1]
    code = b"".join(sample.word.to_bytes(4, "little") for sample in samples[:3])
    names = [one.mnemonic for one in next(Decoder(table).decode([(24, code)]))]
    assert names == [f"{sample.mnemonic[:-2]}.{slot}" for slot, sample in enumerate(samples[:3])]


def test_the_stream_is_out_of_step_after_an_unknown_word_of_a_mixed_set() -> None:
    rng = random.Random(5)
    short, long = Toy(4, 8, ((8, 6), (14, 6)), (1, 2, 3)), Toy(8, 8, ((8, 6), (40, 6)), (129, 130))
    table = learn([*short.samples(rng, 20), *long.samples(rng, 20)], target="t", unit=4, word=8)
    known = [short.instruction(1, (n, n + 1)).data for n in range(10)]
    code = b"".join(known[:3]) + b"\xfe\xff\xff\xff" + known[3] + b"\xfd\xff\xff\xff" + b"".join(known[4:])
    states = [one.state for one in next(Decoder(table).decode([(0, code)]))]
    assert states == [KNOWN] * 3 + [UNKNOWN_WORD] + [OUT_OF_STEP] * 2 + [KNOWN] * 6
    assert sum(len(one.data) for one in next(Decoder(table).decode([(0, code + b"\x01")]))) == len(code) + 1


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40), st.integers(0, 2**32 - 1), st.integers(0, 39))
def test_columns_match_as_words_do(words: list[int], mask: int, pick: int) -> None:
    columns = Columns(words, 32)
    value = words[pick % len(words)] & mask
    assert columns.pick(columns.match(mask, value)) == [word for word in words if word & mask == value]
    constant = columns.constant(columns.everything)
    assert all(not (word ^ words[0]) & constant for word in words)


@given(st.sets(st.integers(0, 63)))
def test_cubes_cover_exactly_the_set(values: set[int]) -> None:
    covered = {v for v in range(64) for base, free in cubes(values, 6) if not (v ^ base) & ~free & 63}
    assert covered == values


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("v12", ("v", (12, 0, 0, 0, 0, 0))),
        ("-|v2|", ("v", (2, 0, 1, 1, 0, 0))),
        ("s[4:7]", ("s", (4, 3, 0, 0, 0, 0))),
        ("R3.reuse", ("R", (3, 0, 0, 0, 0, 1))),
        ("!PT", ("P", (7, 0, 0, 0, 1, 0))),
        ("RZ", ("R", (255, 0, 0, 0, 0, 0))),
        ("offset:16", ("offset:#", (16,))),
        ("-0x10", ("#", (-16,))),
        ("1.0", ("f", ())),
        ("vcc", ("vcc", ())),
        ("chrnt=l2_l3", ("chrnt=l2_l3", ())),
        ("R[1:2].s64", ("R.s64", (1, 1, 0, 0, 0, 0))),
        ("`(.L_x_1)", ("L", ())),
    ],
)
def test_operands(text: str, operand: tuple[str, tuple[int, ...]]) -> None:
    assert parse_operand(text) == operand


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([1, 3]), st.booleans())
def test_with_numpy_the_streams_are_those_without(seed: int, slots: int, mixed: bool) -> None:
    pytest.importorskip("numpy")
    rng = random.Random(seed)
    short, long = Toy(4, 8, ((8, 6), (14, 6)), (1, 2, 3)), Toy(8, 8, ((8, 6), (40, 6)), (129, 130))
    samples = [
        sample._replace(slot=slot, mnemonic=f"{sample.mnemonic}.{slot}") if slots > 1 else sample
        for slot in range(slots)
        for sample in short.samples(rng, 20)
    ]
    mixed = mixed and slots == 1
    samples += long.samples(rng, 20) if mixed else []
    table = learn(samples, target="t", unit=4, word=4 * slots if slots > 1 else 8 if mixed else 4, slots=slots)
    functions = []
    for _ in range(6):
        parts = [one.word.to_bytes(one.size, "little") for one in rng.choices(samples, k=rng.randrange(12))]
        parts += [rng.randbytes(4) for _ in range(rng.randrange(4))]
        rng.shuffle(parts)
        functions.append((rng.choice([0, 4, 8, 24, 6]), b"".join(parts) + rng.randbytes(rng.randrange(4))))
    plain, fast = ([list(stream) for stream in Decoder(table, fast=how).decode(functions)] for how in (False, True))
    assert fast == plain
    assert [b"".join(one.data for one in stream) for stream in fast] == [code for _, code in functions]
