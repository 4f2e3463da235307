"""Flip probing against a disassembler that dies, and the bulk decoder against the plain one."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.errors import InputError, ToolchainError
from mccprobe.objects.isa.bulk import BulkClassifier
from mccprobe.objects.isa.decode import Classifier
from mccprobe.objects.isa.learn import learn
from mccprobe.objects.isa.learn_files import learn_files, words_of
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.operands import Sample, sample_of
from mccprobe.objects.isa.probe import ProbeSpec, flips, probe

KILLER = 0x7E040302 ^ 1 << 30  # one bit away from a known word


def small_object(code: bytes) -> bytes:
    """A relocatable AMDGPU object with nothing but code."""
    names = b"\0.text\0.shstrtab\0"
    body = code + names
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01".ljust(16, b"\0"),
        1,
        224,
        1,
        0,
        0,
        64 + len(body),
        0x30,
        64,
        0,
        0,
        64,
        3,
        2,
    )
    sections = struct.pack("<IIQQQQIIQQ", *[0] * 10)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 6, 0, 64, len(code), 0, 0, 4, 0)
    sections += struct.pack("<IIQQQQIIQQ", 7, 3, 0, 0, 64 + len(code), len(names), 0, 0, 1, 0)
    return header + body + sections


@pytest.fixture
def disassembler(monkeypatch: pytest.MonkeyPatch) -> str:
    """Names words by their two highest bytes, dies of KILLER, and knows no word with bit 31."""
    monkeypatch.setenv("FAKE_DIES", f"{KILLER:x}")
    return str(Path(__file__).resolve().parents[1] / "fakes/objdump_hangs_on_a_word")


def known() -> list[Sample]:
    lines = [
        f"\tv_op{op:x} v{a}, v{b}    // {0:012X}: {op << 16 | b << 8 | a:08X}"
        for op in (0x7E04, 0x7E05, 0x0200)
        for a, b in ((2, 3), (1, 1), (7, 4))
    ]
    text = "x:\tfile format elf64-amdgpu\n\n0000000000000000 <k>:\n" + "\n".join(lines) + "\n"
    functions = parse_listing(text).functions
    return [sample for f in functions for one in f.instructions if (sample := sample_of(one)) is not None]


def test_probing_survives_a_disassembler_that_dies(disassembler: str) -> None:
    samples = known()
    assert len(samples) == 9
    result = probe(samples, ProbeSpec(disassembler, small_object(b"\0" * 16), 4, 4, follow=0))
    asked = flips(samples)
    assert result.asked == len(asked) and result.complete
    assert result.killers == [KILLER.to_bytes(4, "little").hex()]
    assert result.decoded == sum(not word >> 31 and word != KILLER for word, _, _ in asked)
    assert all(sample.mnemonic == f"v_op{sample.word >> 16:x}" and sample.probe for sample in result.samples)
    table = learn([*samples, *result.samples], target="t", unit=4, word=4)
    assert Classifier(table).answer(0x7E04C0C1).mnemonic == "v_op7e04"


@pytest.mark.clean
def test_probing_survives_a_disassembler_that_hangs(disassembler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = known()[:3]  # of one key: few words, few halves
    hanger = samples[0].word ^ 1 << 20
    monkeypatch.setenv("FAKE_HANGS", f"{hanger:x}")
    monkeypatch.setattr("mccprobe.objects.isa.probe.BATCH_WORDS", 4)  # a hang, one for each half: three waits
    monkeypatch.setattr("mccprobe.objects.isa.probe.MIN_TIMEOUT_S", 1.0)
    monkeypatch.setattr("mccprobe.objects.isa.probe.FIRST_TIMEOUT_S", 5.0)
    result = probe(samples, ProbeSpec(disassembler, small_object(b"\0" * 16), 4, 4, samples_of_key=1, follow=0))
    killers = {KILLER, hanger}
    assert set(result.killers) == {word.to_bytes(4, "little").hex() for word in killers} and result.complete
    asked = flips(samples, 1)
    assert result.asked == len(asked)
    assert result.decoded == sum(not word >> 31 and word not in killers for word, _, _ in asked)


@pytest.mark.clean
def test_a_disassembler_that_dies_of_everything_ends_with_the_budget(
    disassembler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [word for word, _, _ in flips(known())]
    monkeypatch.setenv("FAKE_HANGS", ",".join(f"{word:x}" for word in words))
    monkeypatch.setattr("mccprobe.objects.isa.probe.MIN_TIMEOUT_S", 0.3)
    monkeypatch.setattr("mccprobe.objects.isa.probe.FIRST_TIMEOUT_S", 2.0)
    result = probe(known(), ProbeSpec(disassembler, small_object(b"\0" * 16), 4, 4, follow=0, budget_s=1.0))
    assert not result.complete and result.decoded == 0 and result.asked < len(words)


@pytest.mark.clean("*.lst", "*.json", "*.o")
def test_the_command_says_on_how_many_words_the_disassembler_died(
    disassembler: str, run_cli: Callable[..., Any]
) -> None:
    listing = ["x:\tfile format elf64-amdgpu\n\n0000000000000000 <k>:"]
    listing += [f"\t{sample.text}    // {0:012X}: {sample.word:08X}" for sample in known()]
    Path("a.lst").write_text("\n".join(listing) + "\n")
    Path("a.o").write_bytes(small_object(b"\0" * 16))
    command = ["isa", "learn", "--from", "a.lst", "-o", "t.json", "--probe", disassembler, "--probe-object", "a.o"]
    names = {"FAKE_NAMES": "7e04,7e05,200"}  # each new name is asked about again, which takes minutes
    run = run_cli(*command, env={"FAKE_DIES": f"{KILLER:x}", **names})
    assert run.code == 0 and "the disassembler died on 1" in run.stdout, run
    run = run_cli(*command, env={"FAKE_DIES": f"{known()[0].word:x}"})  # of a word that it wrote itself
    assert run.code == 3 and "known words" in run.stderr, run


def test_another_disassembler_is_refused(tmp_path: Path, disassembler: str) -> None:
    samples = [sample._replace(mnemonic="other") for sample in known()]
    with pytest.raises(ToolchainError, match="names 0 of 9 known words"):
        probe(samples, ProbeSpec(disassembler, small_object(b"\0" * 16), 4, 4))
    with pytest.raises(ToolchainError, match="could not be started"):
        probe(known(), ProbeSpec(str(tmp_path / "none"), small_object(b"\0" * 16), 4, 4))


def test_bulk_answers_are_the_plain_ones() -> None:
    pytest.importorskip("numpy")
    rng = random.Random(7)
    classifier = Classifier(learn(known(), target="t", unit=4, word=4))
    words = [rng.choice(known()).word ^ (rng.random() < 0.5) << rng.randrange(32) for _ in range(500)]
    code = b"".join(word.to_bytes(4, "little") for word in words)
    bulk = BulkClassifier(classifier)
    numbers = [number for chunk in bulk.classify(code) for number in chunk.tolist()]
    assert [bulk.answers[number] for number in numbers] == [classifier.answer(word) for word in words]
    assert sum(bulk.pipes(code).values()) == len(words)


def test_geometry() -> None:
    assert words_of({4, 8}, "objdump-amdgpu", None).slots == 1
    mtgpu = words_of({4}, "objdump-mtgpu", None)
    assert (mtgpu.unit, mtgpu.word, mtgpu.slots) == (4, 12, 3) and "not confirmed" in mtgpu.assumptions[0]
    assert words_of({16}, "nvdisasm", None).word == 16
    with pytest.raises(InputError, match="do not fit"):
        words_of({4, 8}, "objdump-amdgpu", 12)


def test_listings_without_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.lst"
    path.write_text("x:\tfile format elf64-amdgpu\n\n0000000000000000 <k>:\n")
    with pytest.raises(InputError, match="no instruction with bytes"):
        learn_files([path])
