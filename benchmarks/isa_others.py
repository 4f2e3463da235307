"""Learned encodings of other instruction sets: NVIDIA's 16-byte words (nvdisasm) and Hexagon's packets.

    python benchmarks/isa_others.py [--splits 3] [--corpus FOLDER]

Half of the kernels of `isa_corpus.py` are learned from, the other half is asked about; no probing. SASS
needs ptxas and nvdisasm in PATH (registry packages nvidia-cuda-nvcc and nvidia-cuda-nvdisasm); Hexagon's
mnemonics are whole statements with their numbers blanked, and it has no pipes to be right about.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from isa_corpus import make_corpus, missing_tools
from isa_decode import Outcome, accuracy, samples
from measure import machine

from mccprobe.objects.isa.learn import learn
from mccprobe.objects.isa.learn_files import Words

TARGETS = {"sm_80": Words(16, 16, 1), "hexagonv68": Words(4, 4, 1)}
CERTAIN_BOUND = 0.999  # right among the answers with high confidence, issue 3


def measured(cpu: str, folder: Path, splits: int) -> Outcome:
    corpus = make_corpus(folder, ("O1", "O3"), cpu)
    words = TARGETS[cpu]
    total = Outcome()
    print(f"{cpu}: {len(corpus)} kernels, {sum(map(len, corpus.values()))} listings")
    for split in range(1, splits + 1):
        names = sorted(corpus)
        random.Random(split).shuffle(names)
        half = len(names) // 2
        learned, asked = (
            samples([path for name in part for path in corpus[name]], words) for part in (names[:half], names[half:])
        )
        table = learn(learned, target=cpu, unit=words.unit, word=words.word, slots=words.slots)
        total += accuracy(table, learned, asked, f"{cpu}, split {split}")[1]
    return total


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--corpus", type=Path, help="where listings are kept, one folder a target")
    options = parser.parse_args()
    print(machine())
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for cpu in TARGETS:
            if missing := missing_tools(cpu):
                print(f"{cpu}: not measured, not here: {', '.join(missing)}")
                continue
            total = measured(cpu, (options.corpus or Path(folder)) / cpu, options.splits)
            right = 1 - total.certain_wrong / max(1, total.certain)
            good &= right >= CERTAIN_BOUND and not total.pipe_wrong
            print(
                f"{cpu}: new words of {options.splits} splits: {total.asked}, named {total.named / total.asked:.1%}, "
                f"certain {total.certain}, right {right:.3%} (at least {CERTAIN_BOUND:.1%}), "
                f"pipe wrong {total.pipe_wrong}"
            )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
