"""Flip probing with a disassembler that is a function of the test: what is asked, in which code, and when it ends."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from mccprobe.base.errors import InputError, ToolchainError
from mccprobe.base.process import RunResult, RunSpec
from mccprobe.objects.binary.elf import SHF_EXECINSTR, parse_elf
from mccprobe.objects.isa.operands import Sample
from mccprobe.objects.isa.probe import ProbeSpec, flips, probe

SECTION = struct.Struct("<IIQQQQIIQQ")
SHT_NULL, SHT_PROGBITS, SHT_STRTAB, SHT_RELA, SHT_NOBITS = 0, 1, 3, 4, 8


def template(*, code: int = 16, address: int = 0, relocations: bool = True) -> bytes:
    """An AMDGPU object: a small section of code, a larger one, one without bytes in the file, relocations of both."""
    names = b"\0.init\0.text\0.bss\0.rela.text\0.shstrtab\0"
    header_size, small = 64, 4
    at = header_size + small + code
    rows = [SECTION.pack(*[0] * 10)]
    rows.append(SECTION.pack(1, SHT_PROGBITS, 2 | SHF_EXECINSTR, 0x9000, header_size, small, 0, 0, 4, 0))
    rows.append(SECTION.pack(7, SHT_PROGBITS, 2 | SHF_EXECINSTR, address, header_size + small, code, 0, 0, 4, 0))
    rows.append(SECTION.pack(13, SHT_NOBITS, 2 | SHF_EXECINSTR, 0, at, 4096, 0, 0, 4, 0))
    if relocations:
        rows.append(SECTION.pack(18, SHT_RELA, 0, 0, at, 24, 0, 2, 8, 24))
    rows.append(SECTION.pack(29, SHT_STRTAB, 0, 0, at + 24, len(names), 0, 0, 1, 0))
    body = b"\xaa" * small + b"\xbb" * code + b"\xcc" * 24 + names
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
        len(rows),
        len(rows) - 1,
    )
    return header + body + b"".join(rows)


def code_of(data: bytes) -> tuple[int, bytes]:
    """Address and bytes of the section that was the larger one of the template."""
    section = parse_elf(data, "x").sections[2]
    return section.address, data[section.offset : section.offset + section.size]


class Tool:
    """In place of `process.run`: names words of four bytes by their highest one.

    opcodes: the highest bytes that it knows. dies: words on which it is killed. seconds: what a run takes.
    nop: a highest byte with a name of its own. long: one behind which another word belongs to the instruction.
    """

    def __init__(
        self, opcodes: Sequence[int], dies: Sequence[int] = (), seconds: float = 0.0, nop: int = -1, long: int = -1
    ) -> None:
        self.opcodes, self.dies, self.seconds, self.nop, self.long = set(opcodes), set(dies), seconds, nop, long
        self.clock_s = 0.0  # time that all runs have taken
        self.specs: list[RunSpec] = []
        self.files: list[bytes] = []

    def words(self, run: int = -1) -> list[int]:
        code = code_of(self.files[run])[1]
        return [word for (word,) in struct.iter_unpack("<I", code)]

    def __call__(self, spec: RunSpec) -> RunResult:
        self.specs.append(spec)
        self.files.append(Path(spec.argv[-1]).read_bytes())
        address, code = code_of(self.files[-1])
        self.clock_s += self.seconds
        lines = ["x:\tfile format elf64-amdgpu", "", f"{address:016x} <k>:"]
        words = self.words()
        while words:
            here = address + len(code) - 4 * len(words)
            word = words.pop(0)
            if word in self.dies:  # what it has said before is thrown away with it
                return RunResult(-11, "\n".join(lines).encode() + b"\n", b"", self.seconds)
            name = "v_nop" if word >> 24 == self.nop else f"v_op{word >> 24:x} v{word & 255}"
            rest = f" {words.pop(0):08X}" if word >> 24 == self.long and words else ""
            lines.append(f"\t{name if word >> 24 in self.opcodes else '<unknown>'}    // {here:012X}: {word:08X}{rest}")
        return RunResult(0, "\n".join(lines).encode() + b"\n", b"", self.seconds)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[Tool], Tool]:
    def use(tool: Tool) -> Tool:
        monkeypatch.setattr("mccprobe.objects.isa.probe.process.run", tool)
        return tool

    return use


def sample(word: int, *, size: int = 4, slot: int = -1, name: str = "", form: tuple[str, ...] = ("v",)) -> Sample:
    name = name or f"v_op{word >> 24:x}"
    return Sample(word, size, slot, name, form, (), f"{name} {word}", "VALU", True, False)


def spec_of(tool: str = "objdump", **changes: object) -> ProbeSpec:
    return ProbeSpec(**{"disassembler": tool, "template": template(), "unit": 4, "word": 4, "follow": 0, **changes})  # type: ignore[arg-type]


# --- which words ------------------------------------------------------------------------------------


def test_every_bit_of_a_word_is_flipped_once() -> None:
    assert flips([sample(0b1010_0000, size=1)]) == [((0b1010_0000 ^ 1 << bit), 1, -1) for bit in range(8)]
    assert flips([]) == []


def test_known_words_and_words_asked_already_are_left_out() -> None:
    """0 and 1 are known and one bit apart: of 16 flips two are known, and 3 comes of both 1 and 2."""
    asked = [word for word, _, _ in flips([sample(0, size=1), sample(1, size=1)])]
    assert sorted(asked) == sorted({1 << bit for bit in range(1, 8)} | {1 | 1 << bit for bit in range(1, 8)})
    assert len(asked) == len(set(asked))
    elsewhere = flips([sample(0, size=1, slot=0), sample(1, size=1, slot=1)])  # another slot is another word
    assert (1, 1, 0) in elsewhere and (0, 1, 1) in elsewhere and len(elsewhere) == 16


@pytest.mark.parametrize(
    ("count", "chosen"),
    [(1, [0]), (2, [0, 0xF0]), (3, [0, 0xF0, 0x0E]), (9, [0, 0xF0, 0x0E, 1])],
)
def test_of_a_key_the_words_most_unlike_each_other_are_flipped(count: int, chosen: list[int]) -> None:
    """The first; then 0xF0, 4 bits from it; then 0x0E, 3 bits from the first and 7 from the second."""
    words = [sample(word, size=1, name="k") for word in (0, 1, 0x0E, 0xF0)]
    known = {one.word for one in words}
    expected = {word ^ 1 << bit for word in chosen for bit in range(8)} - known
    assert {word for word, _, _ in flips(words, count)} == expected


def test_each_key_is_flipped() -> None:
    """A key is a mnemonic with its size, slot and form."""
    words = [sample(0, size=1, name="k"), sample(0xF, size=1, name="k", form=("s",)), sample(0xF0, size=1, name="l")]
    assert len(flips(words, 1)) == 24


# --- what is asked ----------------------------------------------------------------------------------


def test_each_step_finds_the_opcodes_one_bit_further(install: Callable[[Tool], Tool]) -> None:
    """From opcode 0 a flip reaches the opcodes of one bit; following those, of two; and so on."""
    for follow in (0, 1, 2, 3):
        install(Tool(range(16)))
        result = probe([sample(0)], spec_of(follow=follow))
        names = {one.mnemonic for one in result.samples}
        assert names == {f"v_op{op:x}" for op in range(16) if op.bit_count() <= follow + 1}
        assert result.complete and all(one.probe for one in result.samples)
        assert len({one.word for one in result.samples}) == len(result.samples) == result.decoded
    assert result.counts() == {
        "asked": result.asked,
        "decoded": result.decoded,
        "runs": result.runs,
        "killers": 0,
        "complete": 1,
    }


def test_without_anything_new_the_following_ends(install: Callable[[Tool], Tool]) -> None:
    tool = install(Tool([0]))
    result = probe([sample(0)], spec_of(follow=6))
    assert (result.asked, result.decoded, result.runs) == (32, 24, 2) == (32, 24, len(tool.files))


def test_a_word_that_kills_is_cornered_by_halves(install: Callable[[Tool], Tool]) -> None:
    tool = install(Tool(range(256), dies=[1 << 5]))
    result = probe([sample(0)], spec_of())
    assert result.killers == [(1 << 5).to_bytes(4, "little").hex()] == ["20000000"]
    assert (result.asked, result.decoded, result.complete) == (32, 31, True)
    # the check, the batch of 32, then of each pair of halves one dies: 16, 8, 4, 2 and 1
    assert result.runs == len(tool.files) == 1 + 1 + 2 * int(math.log2(32))
    assert {one.word for one in result.samples} == {1 << bit for bit in range(32) if bit != 5}


def test_words_go_in_batches(install: Callable[[Tool], Tool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mccprobe.objects.isa.probe.BATCH_WORDS", 10)
    tool = install(Tool(range(256)))
    told: list[str] = []
    result = probe([sample(0)], spec_of(), told.append)
    assert [len(tool.words(run)) for run in range(len(tool.files))] == [1, 10, 10, 10, 2]
    assert [text.partition(",")[0] for text in told] == [f"probing: {done} of 32 words" for done in (0, 10, 20, 30)]
    assert (result.asked, result.decoded) == (32, 32) and told[1].startswith("probing: 10 of 32 words, 10 decoded")


@pytest.fixture
def timed(install: Callable[[Tool], Tool], monkeypatch: pytest.MonkeyPatch) -> Callable[[Tool], Tool]:
    """As `install`, with a clock that the runs of the tool alone move on."""

    def use(tool: Tool) -> Tool:
        monkeypatch.setattr("mccprobe.objects.isa.probe.time", SimpleNamespace(monotonic=lambda: 100.0 + tool.clock_s))
        return install(tool)

    return use


def test_halving_ends_with_the_budget(timed: Callable[[Tool], Tool]) -> None:
    """Each run takes a second: the check, the batch and two halves of it are over after four."""
    timed(Tool(range(256), dies=[1 << 5, 1 << 20], seconds=1.0))
    result = probe([sample(0)], spec_of(budget_s=3.5, follow=3))
    assert (result.runs, result.seconds, result.complete) == (4, 4.0, False)
    assert (result.asked, result.decoded, result.killers) == (0, 0, [])


def test_what_is_left_is_told_from_what_the_batches_took(
    timed: Callable[[Tool], Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mccprobe.objects.isa.probe.BATCH_WORDS", 8)
    timed(Tool(range(256), seconds=5.0))
    told: list[str] = []
    result = probe([sample(0)], spec_of(), told.append)
    assert [text.partition("decoded")[2] for text in told] == [
        "",
        ", about 15 s left",
        ", about 10 s left",
        ", about 5 s left",
    ]
    assert result.seconds == 25.0


def test_a_disassembler_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = RunResult(None, b"", b"", 0.0, error="no file")
    monkeypatch.setattr("mccprobe.objects.isa.probe.process.run", lambda spec: failed)
    with pytest.raises(ToolchainError, match="objdump could not be started: no file"):
        probe([sample(0)], spec_of())


@pytest.mark.parametrize(("batch", "asked"), [(4, 0), (64, 0)])
def test_with_the_budget_gone_nothing_more_is_asked(
    batch: int, asked: int, install: Callable[[Tool], Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mccprobe.objects.isa.probe.BATCH_WORDS", batch)
    tool = install(Tool(range(256)))
    result = probe([sample(0)], spec_of(budget_s=-1.0, follow=3))
    assert (result.complete, result.asked, len(tool.files)) == (False, asked, 1), "the check alone was run"
    assert result.counts()["complete"] == 0


# --- how it is asked --------------------------------------------------------------------------------


def test_the_object_keeps_everything_but_its_code(install: Callable[[Tool], Tool]) -> None:
    tool = install(Tool(range(256)))
    before = template()
    probe([sample(0)], spec_of(template=before))
    after = tool.files[-1]
    assert after[: 64 + 4 + 16 + 24] == before[: 64 + 4 + 16 + 24], "header, old code and what follows it"
    old, new = parse_elf(before, "x").sections, parse_elf(after, "x").sections
    assert [s.type for s in new] == [SHT_NULL, SHT_PROGBITS, SHT_PROGBITS, SHT_NOBITS, SHT_NULL, SHT_STRTAB]
    for number in (1, 3, 5):
        assert new[number] == old[number]
    assert (new[2].offset, new[2].size) == (len(after) - 128, 128) and new[2].offset % 256 == 0
    assert (new[2].name, new[2].address, new[2].flags) == (old[2].name, old[2].address, old[2].flags)
    assert set(tool.words()) == {1 << bit for bit in range(32)}


def test_places_are_counted_from_where_the_code_lies(install: Callable[[Tool], Tool]) -> None:
    install(Tool(range(256)))
    assert probe([sample(0)], spec_of(template=template(address=0x100))).decoded == 32


def test_a_template_without_code_is_refused(install: Callable[[Tool], Tool]) -> None:
    install(Tool(range(256)))
    data = bytearray(template(relocations=False))
    for number in (1, 2):
        at = struct.unpack_from("<Q", data, 40)[0] + number * SECTION.size
        struct.pack_into("<Q", data, at + 8, 2)  # no longer of code; what is left has no bytes in the file
    with pytest.raises(InputError, match="probe object: no section with code"):
        probe([sample(0)], spec_of(template=bytes(data)))


@pytest.mark.parametrize(("tool", "options"), [("/opt/x/nvdisasm", ["-hex"]), ("llvm-objdump-14", ["-d"])])
def test_the_command_line(tool: str, options: list[str], install: Callable[[Tool], Tool]) -> None:
    runs = install(Tool(range(256)))
    probe([sample(0)], spec_of(tool))
    spec = runs.specs[0]
    assert list(spec.argv) == [tool, *options, str(spec.cwd / "probe.o") if spec.cwd else ""]
    assert spec.cwd is not None and not spec.cwd.exists(), "nothing stays behind"


@pytest.mark.parametrize(("seconds", "limit_s"), [(0.0, 3.0), (0.5, 5.0), (2.9, 29.0), (9.0, 30.0)])
def test_a_hang_is_waited_for_ten_times_as_long_as_a_batch_took(
    seconds: float, limit_s: float, install: Callable[[Tool], Tool]
) -> None:
    tool = install(Tool(range(256), seconds=seconds))
    probe([sample(0)], spec_of())
    assert [spec.timeout_s for spec in tool.specs] == [30.0, limit_s]


def test_a_disassembler_that_says_otherwise_is_refused(install: Callable[[Tool], Tool]) -> None:
    """One known word in ten may be named otherwise, not more."""
    known = [sample(number << 24) for number in range(10)]
    install(Tool(range(1, 256)))
    assert probe(known, spec_of()).runs > 1
    install(Tool(range(2, 256)))
    with pytest.raises(ToolchainError, match="objdump names 8 of 10 known words as the listing does"):
        probe(known, spec_of())


def test_in_words_of_several_slots_the_others_hold_what_was_seen_there(install: Callable[[Tool], Tool]) -> None:
    """Each slot is filled with a no-operation of that slot, else with its most frequent word."""
    nop, other, often, rare = 0x01000007, 0x05000001, 0x02000009, 0x03000001
    known = [sample(nop, slot=0, name="v_nop"), *[sample(other, slot=0)] * 2]
    known += [sample(often, slot=1), sample(often, slot=1), sample(rare, slot=1)]
    tool = install(Tool(range(256), nop=1))
    result = probe(known, spec_of(unit=4, word=8, slots=2, samples_of_key=1))
    words = tool.words(0)
    assert len(words) % 2 == 0
    pairs = list(zip(words[::2], words[1::2], strict=True))
    assert pairs == [(nop, often), (other, often), (nop, often), (nop, rare)]
    assert {one.slot for one in result.samples} == {0, 1}
    assert result.decoded == result.asked == len(flips(known, 1))


def test_in_sets_of_several_sizes_probes_stand_far_apart(install: Callable[[Tool], Tool]) -> None:
    """A flip can make a word longer: four of the longest instructions lie between two probes, filled up."""
    known = [sample(0x01000007), sample(0x0200000900000003, size=8, name="v_op0")]
    tool = install(Tool(range(256), long=0))
    probe(known, spec_of(word=8, samples_of_key=1))
    words = tool.words(0)
    assert len(words) == 2 * 4 * 8 // 4
    assert words[:8] == [0x01000007] * 8, "the short one, and itself as what fills the rest"
    assert words[8:] == [0x00000003, 0x02000009, *[0x01000007] * 6]
