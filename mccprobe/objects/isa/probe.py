"""Flip probing: ask the installed disassembler about words one bit away from known ones.

For a few samples of each key every bit is flipped, the words are put into the code section of a real
object of the target (headers and notes stay as they are), and the disassembler names them. Its lines
become samples like those of a listing. Probe words are for the disassembler only: a bit that it
ignores cannot be told from a bit that must be zero, so such words must never run.

Disassemblers crash and hang on garbage: words go in batches, a batch that dies is halved, a single
word that kills is noted and left out.
"""

from __future__ import annotations

import struct
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mccprobe.base import process
from mccprobe.base.errors import InputError, ToolchainError
from mccprobe.objects.binary.elf import HEADER, SECTION, SHF_EXECINSTR, SHT_NOBITS, parse_elf
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.operands import Sample, sample_of
from mccprobe.objects.isa.pipes import UNKNOWN

BATCH_WORDS = 512
FOLLOW_STEPS = 6  # gfx908: 4 to 5 until no new mnemonic comes up
SAMPLES_OF_KEY = 2  # the second one as different from the first as can be
FIRST_TIMEOUT_S = 30.0  # a batch; later ten times what a batch took
MIN_TIMEOUT_S = 3.0
STRIDE_WORDS = 4  # longest instructions between two probes: a flip can change the length
CAPTURE_BYTES = 64 << 20
RELOCATIONS = (4, 9)  # SHT_RELA, SHT_REL: they would be printed into the code


@dataclass(frozen=True)
class ProbeSpec:
    """What to ask and how. arguments: what stands between the disassembler and the file."""

    disassembler: str
    template: bytes
    unit: int
    word: int
    slots: int = 1
    samples_of_key: int = SAMPLES_OF_KEY
    follow: int = FOLLOW_STEPS  # how often one sample of each mnemonic that the probing brought up is flipped as well
    budget_s: float = 600.0

    @property
    def arguments(self) -> list[str]:
        return ["-hex"] if Path(self.disassembler).name.startswith("nvdisasm") else ["-d"]


@dataclass
class ProbeResult:
    """What came of it. killers: words, in hex, on which the disassembler died or hung."""

    samples: list[Sample] = field(default_factory=list)
    asked: int = 0
    decoded: int = 0
    runs: int = 0
    killers: list[str] = field(default_factory=list)
    seconds: float = 0.0
    complete: bool = True

    def counts(self) -> dict[str, int]:
        """For the table."""
        return {
            "asked": self.asked,
            "decoded": self.decoded,
            "runs": self.runs,
            "killers": len(self.killers),
            "complete": int(self.complete),
        }


def flips(samples: Sequence[Sample], samples_of_key: int = SAMPLES_OF_KEY) -> list[tuple[int, int, int]]:
    """(word, size, slot) of all words one bit away from chosen samples of each key; known words left out."""
    keys: dict[tuple[str, int, int, tuple[str, ...]], list[int]] = defaultdict(list)
    known = set()
    for sample in samples:
        keys[sample.mnemonic, sample.size, sample.slot, sample.form].append(sample.word)
        known.add((sample.word, sample.size, sample.slot))
    asked: dict[tuple[int, int, int], None] = {}
    for (_, size, slot, _), words in sorted(keys.items()):
        first = words[0]
        chosen = [first]
        while len(chosen) < min(samples_of_key, len(set(words))):
            chosen.append(max(words, key=lambda word: min((word ^ other).bit_count() for other in chosen)))
        for word in chosen:
            for position in range(8 * size):
                entry = (word ^ 1 << position, size, slot)
                if entry not in known:
                    asked[entry] = None
    return list(asked)


def probe(
    samples: Sequence[Sample], spec: ProbeSpec, progress: Callable[[str], None] = lambda text: None
) -> ProbeResult:
    """Flip, ask, collect. Raises ToolchainError if the disassembler cannot even read the unchanged words."""
    prober = _Prober(samples, spec)
    started = time.monotonic()
    prober.check(samples)
    result = prober.result
    prober.ask_all(flips(samples, spec.samples_of_key), started + spec.budget_s, progress)
    flipped = {sample.mnemonic for sample in samples}
    asked = {(sample.word, sample.size, sample.slot) for sample in result.samples}
    for _ in range(spec.follow):
        fresh = {sample.mnemonic: sample for sample in result.samples if sample.mnemonic not in flipped}
        words = [word for word in flips(list(fresh.values()), 1) if word not in asked]
        if not words or not result.complete:
            break
        flipped |= fresh.keys()
        asked.update(words)
        prober.ask_all(words, started + spec.budget_s, progress)
    result.seconds = time.monotonic() - started
    return result


class _Prober:
    def __init__(self, samples: Sequence[Sample], spec: ProbeSpec) -> None:
        self.spec = spec
        self.result = ProbeResult()
        self.patch = _Patch(spec.template)
        self.longest = max(max(sample.size for sample in samples), spec.word)
        self.mixed = len({sample.size for sample in samples}) > 1
        self.filler = _fillers(samples)
        self.timeout_s = FIRST_TIMEOUT_S

    def check(self, samples: Sequence[Sample]) -> None:
        """The object and the disassembler must say of known words what the listing says."""
        known = list({(s.word, s.size, s.slot): s for s in samples}.values())[:64]
        found = self._run([(s.word, s.size, s.slot) for s in known])
        named = {(s.word, s.size): s.mnemonic for s in found or ()}
        agree = sum(named.get((s.word, s.size)) == s.mnemonic for s in known)
        if agree < len(known) * 0.9:
            raise ToolchainError(
                f"{self.spec.disassembler} names {agree} of {len(known)} known words as the listing does",
                hint="give the disassembler that made the listing, and --probe-object of the same target",
            )

    def ask_all(self, words: Sequence[tuple[int, int, int]], deadline: float, progress: Callable[[str], None]) -> None:
        """In batches, until the deadline."""
        began = time.monotonic()
        for start in range(0, len(words), BATCH_WORDS):
            if time.monotonic() > deadline:
                self.result.complete = False
                return
            spent = time.monotonic() - began
            left = f", about {spent / start * (len(words) - start):.0f} s left" if start else ""
            progress(f"probing: {start} of {len(words)} words, {self.result.decoded} decoded{left}")
            self.ask(words[start : start + BATCH_WORDS], deadline)

    def ask(self, words: Sequence[tuple[int, int, int]], deadline: float) -> None:
        """One batch; halves of it where the disassembler dies or hangs, until the deadline."""
        if time.monotonic() > deadline:
            self.result.complete = False
            return
        found = self._run(words)
        if found is not None:
            self.result.asked += len(words)
            self.result.decoded += len(found)
            self.result.samples += found
        elif len(words) == 1:
            self.result.asked += 1
            self.result.killers.append(words[0][0].to_bytes(words[0][1], "little").hex())
        else:
            middle = len(words) // 2
            self.ask(words[:middle], deadline)
            self.ask(words[middle:], deadline)

    def _run(self, words: Sequence[tuple[int, int, int]]) -> list[Sample] | None:
        """Samples of the words that the disassembler could name; None if it died."""
        text, places = self._layout(words)
        with tempfile.TemporaryDirectory(prefix="mccprobe-isa-") as folder:
            path = Path(folder) / "probe.o"
            path.write_bytes(self.patch.with_code(text))
            argv = [self.spec.disassembler, *self.spec.arguments, str(path)]
            ran = process.run(process.RunSpec(argv, Path(folder), None, self.timeout_s, CAPTURE_BYTES))
        self.result.runs += 1
        if ran.returncode is None:
            raise ToolchainError(f"{self.spec.disassembler} could not be started: {ran.error}")
        if not ran.ok:
            return None
        self.timeout_s = max(MIN_TIMEOUT_S, min(FIRST_TIMEOUT_S, 10 * ran.seconds))
        try:
            listing = parse_listing(ran.stdout_text, self.spec.disassembler)
        except InputError:
            return None
        found = []
        for function in listing.functions:
            for instruction in function.instructions:
                place = places.get((instruction.address or 0) - self.patch.address)
                if place is not None and instruction.pipe != UNKNOWN:
                    sample = sample_of(instruction, place, probe=True)
                    if sample is not None:
                        found.append(sample)
        return found

    def _layout(self, words: Sequence[tuple[int, int, int]]) -> tuple[bytes, dict[int, int]]:
        """The code, and offset -> slot of each probe in it."""
        stride = self.longest * (STRIDE_WORDS if self.mixed else 1)
        text = bytearray()
        places = {}
        for word, size, slot in words:
            start = len(text)
            if slot >= 0:
                for number in range(self.spec.slots):
                    text += self.filler.get(number, b"\0" * self.spec.unit)
                at = start + slot * self.spec.unit
                text[at : at + size] = word.to_bytes(size, "little")
            else:
                at = start
                text += word.to_bytes(size, "little")
            places[at] = slot
            filler = self.filler.get(-1, b"")
            while filler and len(text) < start + stride:
                text += filler
            del text[start + stride :]
            text += b"\0" * (start + stride - len(text))
        return bytes(text), places


def _fillers(samples: Sequence[Sample]) -> dict[int, bytes]:
    """Slot -> a short word to put between probes: a no-operation by its name, else the most frequent one."""
    shortest = min(sample.size for sample in samples)
    counts: dict[int, Counter[tuple[bool, int]]] = defaultdict(Counter)
    for sample in samples:
        if sample.size == shortest:
            counts[sample.slot]["nop" in sample.mnemonic.lower(), sample.word] += 1
    return {
        slot: max(found.items(), key=lambda item: (item[0][0], item[1]))[0][1].to_bytes(shortest, "little")
        for slot, found in counts.items()
    }


class _Patch:
    """A real object whose code section can be exchanged. Everything else stays, relocations are taken out."""

    def __init__(self, data: bytes) -> None:
        elf = parse_elf(data, "probe object")
        code = [s for s in elf.sections if s.flags & SHF_EXECINSTR and s.type != SHT_NOBITS and s.size]
        if not code:
            raise InputError("probe object: no section with code", hint="give an object of the target with a kernel")
        self._data = data
        self._section = max(code, key=lambda section: section.size)
        self.address = self._section.address
        self._headers = HEADER.unpack_from(data)[6]
        self._silenced = [s.index for s in elf.sections if s.type in RELOCATIONS]

    def with_code(self, text: bytes) -> bytes:
        """The object with this code; it lies at the end of the file."""
        data = bytearray(self._data)
        data += b"\0" * (-len(data) % 256)
        at = self._headers + self._section.index * SECTION.size
        fields = list(SECTION.unpack_from(data, at))
        fields[4], fields[5] = len(data), len(text)
        SECTION.pack_into(data, at, *fields)
        for index in self._silenced:
            struct.pack_into("<I", data, self._headers + index * SECTION.size + 4, 0)  # SHT_NULL
        return bytes(data) + text
