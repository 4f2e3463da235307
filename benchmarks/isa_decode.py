"""Learned encodings: how right on kernels not learned from, how much is named, how fast.

    python benchmarks/isa_decode.py [--probe] [--splits 3] [--corpus FOLDER]

Kernels of `isa_corpus.py`, three optimisation settings each, split by kernel: two thirds are learned
from. Times are CPU seconds of one run on this machine, medians of 5 after a first pass over the text.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from isa_corpus import make_corpus
from measure import machine, median

from mccprobe.objects.binary.elf import parse_elf
from mccprobe.objects.isa.bulk import BulkClassifier
from mccprobe.objects.isa.decode import Classifier
from mccprobe.objects.isa.encoding import Confidence, EncodingTable
from mccprobe.objects.isa.learn import learn
from mccprobe.objects.isa.learn_files import Words, read_listing, samples_of
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.operands import Sample
from mccprobe.objects.isa.probe import ProbeSpec, probe
from mccprobe.objects.isa.stream import Decoder, Stream

GFX9 = Words(4, 8, 1)
TEXT_BYTES = 64 << 20
LISTING_CHARACTERS = 8 << 20


def samples(paths: Sequence[Path], words: Words = GFX9) -> list[Sample]:
    groups, _ = samples_of([read_listing(path) for path in paths], words)
    return [sample for group in groups for sample in group]


@dataclass(frozen=True)
class Outcome:
    """Answers to words, counted."""

    asked: int = 0
    named: int = 0
    wrong: int = 0
    certain: int = 0
    certain_wrong: int = 0
    pipe_wrong: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


def accuracy(
    table: EncodingTable, learned: Sequence[Sample], asked: Sequence[Sample], label: str
) -> tuple[Outcome, Outcome]:
    """Of all instructions, and of distinct words that are not among those learned from."""
    found = []
    classifier = Classifier(table)
    names = {sample.mnemonic for sample in learned}
    known = {(sample.size, sample.word) for sample in learned}
    fresh = list({(s.size, s.word): s for s in asked if (s.size, s.word) not in known}.values())
    for kind, items in (("instructions", asked), ("new words", fresh)):
        answers = [(sample, classifier.answer(sample.word, sample.size)) for sample in items]
        named = [(sample, answer) for sample, answer in answers if answer.mnemonic]
        wrong = sum(sample.mnemonic != answer.mnemonic for sample, answer in named)
        certain = [pair for pair in named if pair[1].confidence is Confidence.CERTAIN]
        certain_wrong = sum(sample.mnemonic != answer.mnemonic for sample, answer in certain)
        pipe_wrong = sum(bool(answer.pipe) and answer.pipe != sample.pipe for sample, answer in answers)
        outcome = Outcome(len(items), len(named), wrong, len(certain), certain_wrong, pipe_wrong)
        found.append(outcome)
        unseen = [answer for sample, answer in answers if sample.mnemonic not in names]
        print(
            f"{label:<24} {len(items):>6} {kind:<12} coverage {len(named) / max(1, len(items)):7.2%}  wrong {wrong}  "
            f"certain {len(certain)} ({certain_wrong} wrong)  pipe wrong {pipe_wrong}  "
            f"of unseen mnemonics {len(unseen)}, named {sum(bool(one.mnemonic) for one in unseen)}"
        )
    return found[0], found[1]


def code_of(objects: Sequence[Path]) -> bytes:
    code = bytearray()
    for path in objects:
        elf = parse_elf(path.read_bytes(), str(path))
        code += b"".join(elf.section_bytes(section) for section in elf.sections if section.name == ".text")
    return bytes(code[: len(code) // 8 * 8])


def speed(table: EncodingTable, objects: Sequence[Path], listings: Sequence[Path]) -> bool:
    code = code_of(objects)
    text = code * (TEXT_BYTES // len(code))
    bulk = BulkClassifier(Classifier(table))
    start = time.perf_counter()
    for _ in bulk.classify(code):
        pass
    print(f"first pass over {len(code):,} bytes of code (states are made): {time.perf_counter() - start:.2f} s")

    def seconds(work: object) -> float:
        begin = time.process_time()  # a busy machine does not decide
        assert callable(work)
        work()
        return time.process_time() - begin

    decoder = Decoder(table)

    def streams(part: bytes) -> list[Stream]:
        return list(decoder.decode([(0, part)]))

    listing = "".join(path.read_text() for path in listings)
    listing *= LISTING_CHARACTERS // len(listing) + 1
    figures = [
        ("masks, both tables, MB/s", median(lambda: seconds(lambda: list(bulk.classify(text)))), text, 25),
        ("streams with steps and states, MB/s", median(lambda: seconds(lambda: streams(code))), code, 5),
        ("pipe look-up, MB/s", median(lambda: seconds(lambda: bulk.pipes(text))), text, 100),
        ("listings parsed, MB/s", median(lambda: seconds(lambda: parse_listing(listing))), listing, 10),
    ]
    holds = True
    for name, took, what, bound in figures:
        rate = len(what) / took / 1e6
        holds &= rate >= bound
        print(f"{name:<48} {rate:10.1f}  (at least {bound})  {'ok' if rate >= bound else 'MISSED'}")
    return holds


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--probe", action="store_true", help="one probing round for each split (a minute each)")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--corpus", type=Path)
    options = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        corpus = make_corpus(options.corpus or Path(folder))
        own = [name for name in corpus if not name.startswith("gemm")]
        products = samples([path for name in corpus if name.startswith("gemm") for path in corpus[name]])
        objects = [path.with_suffix(".o") for name in corpus for path in corpus[name]]
        spec = ProbeSpec("llvm-objdump-14", corpus["spill"][0].with_suffix(".o").read_bytes(), 4, 8)
        table = None
        for split in [*range(1, options.splits + 1), 0]:
            names = sorted(own)
            random.Random(split).shuffle(names)
            cut = len(names) * 2 // 3 if split else len(names)
            learned = samples([path for name in names[:cut] for path in corpus[name]])
            asked = samples([path for name in names[cut:] for path in corpus[name]])
            for step in ("listings", "probed") if options.probe else ("listings",):
                if step == "probed":
                    result = probe(learned, spec)
                    print(f"  {result.counts()} in {result.seconds:.1f} s")
                    learned = [*learned, *result.samples]
                table = learn(learned, target="gfx908", unit=4, word=8)
                if split:
                    accuracy(table, learned, asked, f"split {split}, {step}")
                else:
                    accuracy(table, learned, products, f"GEMM objects, {step}")
        assert table is not None
        return 0 if speed(table, objects, [path for name in own for path in corpus[name]]) else 1


if __name__ == "__main__":
    sys.exit(main())
