"""The open table: what it names, what it leaves unknown, and that each name has its evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mccprobe.objects.isa.mtgpu.decode import Decoder, decoder_of, read_distance
from mccprobe.objects.isa.mtgpu.table import ALL_BITS, CERTAIN, LIKELY, Rule, family_of, open_table

from .words import LAST, branch, decoder, encode, number_of, rule_of, word

FAMILIES = ("mp_2x", "mp_31")
RULES = [(family, rule.id) for family in FAMILIES for rule in open_table(family).rules]


def test_mp_21_and_mp_22_share_a_table_and_mp_31_has_its_own() -> None:
    assert [family_of(target) for target in ("mp_21", "mp_22", "mp_31", "mp_42", "")] == [
        "mp_2x",
        "mp_2x",
        "mp_31",
        "",
        "",
    ]
    assert decoder_of("mp_42") is None


@pytest.mark.parametrize("family", FAMILIES)
def test_every_rule_carries_its_evidence(family: str) -> None:
    table = open_table(family)
    assert all("sha256" in source for source in table.sources) and table.sources
    assert table.distance.fails == 0 and table.distance.holds > 100
    for rule in table.rules:
        assert rule.confidence in (CERTAIN, LIKELY)
        if rule.confidence == CERTAIN:
            assert rule.evidence.fails == 0 and rule.evidence.holds >= 8, rule.id
            assert rule.evidence.instructions >= 8 and rule.evidence.functions >= 4 and rule.evidence.checks, rule.id
        assert all(field.fails == 0 and field.holds for field in rule.fields), rule.id


@pytest.mark.parametrize(("family", "name"), RULES)
def test_a_word_of_each_rule_is_of_its_class(family: str, name: str) -> None:
    rule = rule_of(open_table(family), name)
    (one,) = decoder(family).decode(word(family, name))
    assert one.meaning.rule is not None and (one.meaning.rule.id, one.name) == (name, rule.name)
    if rule.evidence.instructions:
        assert one.meaning.confidence == rule.confidence


@pytest.mark.parametrize(("family", "name"), RULES)
def test_no_rule_asks_for_an_operands_bit(family: str, name: str) -> None:
    """A rule that fixes one would hold for one register alone."""
    rule = rule_of(open_table(family), name)
    assert rule.mask & rule.explained == 0


FIELDS = [
    (family, rule.id, field.name, label.partition("+")[0])
    for family in FAMILIES
    for rule in open_table(family).rules
    for field in rule.fields
    for label in field.banks.values()
]


@given(st.data())
def test_registers_that_are_written_are_read_back(data: st.DataObject) -> None:
    family, name, operand, bank = data.draw(st.sampled_from(FIELDS))
    field = next(one for one in rule_of(open_table(family), name).fields if one.name == operand)
    alone = [weight for weight, bits in enumerate(field.bits) if len(bits) == 1]  # others share bits with an operand
    more = next(int(label.partition("+")[2] or 0) for label in field.banks.values() if label.partition("+")[0] == bank)
    index = more + field.offset + sum(data.draw(st.booleans()) << weight for weight in alone)
    assume(index >= 0)
    (one,) = decoder(family).decode(word(family, name, **{operand: (bank, index)}))
    found = {item.name: item for item in one.meaning.operands}
    assert one.meaning.rule is not None
    if one.meaning.rule.id == name:  # another operand's bits may make it a word of a rule before it
        assert (found[operand].bank, found[operand].first) == (bank, index)


def test_an_unseen_bit_lowers_the_certainty_and_hides_the_registers() -> None:
    table = open_table("mp_2x")
    number = number_of(table, "int.add", dst=("R", 3), a=("R", 1), b=("R", 2))
    rule = rule_of(table, "int.add")
    bits = [bit for bit in range(64) if bit % 32 != 31 and not rule.mask >> bit & 1]
    free = next(bit for bit in bits if rule.novel(number ^ 1 << bit))
    known, unseen = (decoder("mp_2x").decode(encode(value, 3))[0].meaning for value in (number, number ^ 1 << free))
    assert known.confidence == CERTAIN and [item.text for item in known.operands] == ["R3", "R1", "R2"]
    assert unseen.confidence == LIKELY and {item.text for item in unseen.operands} == {"?"}


def test_a_pattern_that_no_rule_has_stays_unknown() -> None:
    for nibble in (1, 2, 3, 5, 6, 7):
        (one,) = decoder("mp_2x").decode((LAST | nibble).to_bytes(4, "little"))
        assert one.meaning.rule is None and one.name == "" and one.meaning.operands == ()


def test_bits_that_explain_one_weight_must_agree() -> None:
    table = open_table("mp_31")
    number = number_of(table, "load", dst=("R", 0), address=("R", 0))
    (both,) = (field.bits[3] for field in rule_of(table, "load").fields if field.name == "dst")
    assert len(both) == 2, "two bits explain weight 8 of a load equally well"
    apart = decoder("mp_31").decode(encode(number | 1 << both[0], 3))[0].meaning
    assert all(item.first is None for item in apart.operands)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("distance", [-256, -3, 2, 255])
def test_distances_of_branches(family: str, distance: int) -> None:
    table = open_table(family)
    number = int.from_bytes(branch(family, "jump", distance), "little") & ~(LAST | LAST << 32)
    assert read_distance(table.distance, number) == distance


def test_a_distance_beyond_the_known_field_is_not_guessed() -> None:
    table = open_table("mp_2x")
    number = int.from_bytes(branch("mp_2x", "jump", 2), "little") | 1 << table.distance.sign[0]
    assert read_distance(table.distance, number & ~(LAST | LAST << 32)) is None


def test_a_branch_that_lands_inside_of_an_instruction_has_no_target() -> None:
    body = branch("mp_2x", "jump", 3) + word("mp_2x", "int.add", 3) + word("mp_2x", "end")
    assert decoder("mp_2x").decode(body)[0].target is None
    body = branch("mp_2x", "jump", 5) + word("mp_2x", "int.add", 3) + word("mp_2x", "end")
    assert decoder("mp_2x").decode(body)[0].target == 20


def test_without_its_evidence_a_rule_is_not_certain() -> None:
    """The confidence of an answer is the rule's own, whatever the word."""
    table = open_table("mp_2x")
    doubted = tuple(replace(rule, confidence=LIKELY) for rule in table.rules)
    one = Decoder(replace(table, rules=doubted)).decode(word("mp_2x", "end"))[0]
    assert one.meaning.confidence == LIKELY


def test_novel_bits_leave_out_what_operands_are_read_from() -> None:
    rule: Rule = rule_of(open_table("mp_2x"), "move")
    assert rule.explained and not rule.novel(rule.seen_one & ALL_BITS) & rule.explained


def test_widths_of_memory_accesses() -> None:
    table: Any = open_table("mp_2x")
    number = number_of(table, "load", dst=("R", 1), address=("R", 2))
    widths = rule_of(table, "load").widths
    assert sorted(size for _, size in widths) == [1, 2, 4, 8]
    clear = number & ~sum(1 << bit for bit, _ in widths)
    four = next(bit for bit, size in widths if size == 4)
    assert decoder("mp_2x").decode(encode(clear | 1 << four, 2))[0].meaning.width == 4
    assert decoder("mp_2x").decode(encode(clear, 2))[0].meaning.width is None
