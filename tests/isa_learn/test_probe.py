"""Flip probing against a disassembler that dies, and the bulk decoder against the plain one."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

import pytest

from mccprobe.errors import InputError, ToolchainError
from mccprobe.isa.bulk import BulkClassifier
from mccprobe.isa.decode import Classifier
from mccprobe.isa.learn import learn
from mccprobe.isa.learn_files import learn_files, words_of
from mccprobe.isa.listing import parse_listing
from mccprobe.isa.operands import Sample, sample_of
from mccprobe.isa.probe import ProbeSpec, flips, probe

KILLER = 0x7E040302 ^ 1 << 30  # one bit away from a known word


def small_object(code: bytes) -> bytes:
    """A relocatable AMDGPU object with nothing but code."""
    names = b"\0.text\0.shstrtab\0"
    body = code + names
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01".ljust(16, b"\0"), 1, 224, 1, 0, 0, 64 + len(body), 0x30,
        64, 0, 0, 64, 3, 2,
    )  # fmt: skip
    sections = struct.pack("<IIQQQQIIQQ", *[0] * 10)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 6, 0, 64, len(code), 0, 0, 4, 0)
    sections += struct.pack("<IIQQQQIIQQ", 7, 3, 0, 0, 64 + len(code), len(names), 0, 0, 1, 0)
    return header + body + sections


@pytest.fixture
def disassembler(tmp_path: Path) -> str:
    """Names words by their two highest bytes, aborts on KILLER, and knows no word with bit 31."""
    path = tmp_path / "llvm-objdump-that-dies"
    path.write_text(f"""#!{sys.executable}
import os, struct, sys
data = open(sys.argv[2], "rb").read()
at, size = struct.unpack_from("<QQ", data, struct.unpack_from("<Q", data, 40)[0] + 64 + 24)
print("x:\\tfile format elf64-amdgpu\\n\\nDisassembly of section .text:\\n\\n0000000000000000 <k>:")
for n in range(0, size, 4):
    word = struct.unpack_from("<I", data, at + n)[0]
    if word == {KILLER}:
        os.abort()
    name = "<unknown>" if word >> 31 else f"v_op{{word >> 16:x}} v{{word & 255}}, v{{word >> 8 & 255}}"
    print(f"\\t{{name:<50}} // {{n:012X}}: {{word:08X}}")
""")
    path.chmod(0o755)
    return str(path)


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
    result = probe(samples, ProbeSpec(disassembler, small_object(b"\0" * 16), 4, 4, follow=False))
    asked = flips(samples)
    assert result.asked == len(asked) and result.complete
    assert result.killers == [KILLER.to_bytes(4, "little").hex()]
    assert result.decoded == sum(not word >> 31 and word != KILLER for word, _, _ in asked)
    assert all(sample.mnemonic == f"v_op{sample.word >> 16:x}" and sample.probe for sample in result.samples)
    table = learn([*samples, *result.samples], target="t", unit=4, word=4)
    assert Classifier(table).answer(0x7E04C0C1).mnemonic == "v_op7e04"


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
