"""Words of other lengths: NVIDIA's 16 bytes from real listings of cuobjdump, Hexagon's packets from llvm-objdump-14."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.objects.isa.decode import Classifier
from mccprobe.objects.isa.encoding import Confidence
from mccprobe.objects.isa.learn import learn
from mccprobe.objects.isa.learn_files import learn_files, read_listing, samples_of, words_of
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.operands import Sample
from mccprobe.objects.isa.pipes import UNKNOWN

SASS = sorted((Path(__file__).parent / "data" / "sass").glob("*.txt"))
HEXAGON = """
typedef unsigned u32;
int sum(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) { s += a[i] * 3; if (s > 100) s /= 3; } return s; }
u32 hash(u32 h) { for (int i = 0; i < 5; i++) { h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; } return h; }
void copy(char *d, const char *s, int n) { while (n--) *d++ = *s++; }
void axpy(int *x, int *y, int a, int n) { for (int i = 0; i < n; i++) y[i] += a * x[i]; }
long long dot(short *x, short *y, int n) { long long s = 0; for (int i = 0; i < n; i++) s += x[i] * y[i]; return s; }
int most(int *x, int n) { int m = x[0]; for (int i = 1; i < n; i++) m = x[i] > m ? x[i] : m; return m; }
void clear(short *x, int n) { for (int i = 0; i < n; i++) x[i] = 0; }
u32 bits(u32 x, u32 y) { return (x & y) | (x ^ ~y) | (x << 3) | (y >> (x & 7)); }
"""


def test_sass_is_understood_and_decoded_from_the_other_half() -> None:
    listings = [read_listing(path) for path in SASS]
    assert [listing.unknown for listing, _ in listings] == [()] * len(SASS)
    assert {listing.target for listing, _ in listings} == {"sm_80"}
    words = words_of({16}, "nvdisasm", None)
    groups, without = samples_of(listings, words)
    assert without == 0 and sum(map(len, groups)) > 300
    asked = named = certain = 0
    for part in (0, 1):
        learned = [sample for number, group in enumerate(groups) if number % 2 == part for sample in group]
        classifier = Classifier(learn(learned, target="sm_80", unit=16, word=16))
        known, names = {sample.word for sample in learned}, {sample.mnemonic for sample in learned}
        fresh = {s.word: s for group in groups for s in group if s.word not in known}
        for sample in fresh.values():
            answer = classifier.answer(sample.word)
            assert answer.pipe in ("", sample.pipe), (sample, answer)
            assert answer.mnemonic == "" if sample.mnemonic not in names else True
            assert answer.confidence is not Confidence.CERTAIN or answer.mnemonic == sample.mnemonic
            asked, named = asked + 1, named + bool(answer.mnemonic)
            certain += answer.confidence is Confidence.CERTAIN
    assert asked > 200 and named > 60 and certain > 10, (asked, named, certain)  # seven kernels are few


def test_the_table_of_sass_has_its_geometry(tmp_path: Path) -> None:
    learned = learn_files(SASS)
    assert (learned.table.target, learned.table.unit, learned.table.word, learned.table.slots) == ("sm_80", 16, 16, 1)
    assert learned.table.invisible and learned.table.held_out is not None
    assert learned.table.held_out.certain_wrong == learned.table.held_out.unseen_named == 0


@pytest.mark.toolchain("clang-14")
def test_hexagon_packets(tmp_path: Path, compiler: Callable[..., str]) -> None:
    (tmp_path / "h.c").write_text(HEXAGON)
    made = tmp_path / "h.o"
    target = ["-target", "hexagon", "-ffreestanding", "-O2"]
    command = [compiler(14), *target, "-c", str(tmp_path / "h.c"), "-o", str(made)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"clang-14 has no target hexagon: {built.stderr.strip()[-100:]}")
    text = subprocess.run(["llvm-objdump-14", "-d", str(made)], check=True, capture_output=True, text=True).stdout
    listing = parse_listing(text)
    assert (listing.format, listing.unknown) == ("objdump-hexagon", ())
    open_packet = False
    for function in listing.functions:
        for one in function.instructions:
            assert one.data is not None and len(one.data) == 4
            if one.pipe != UNKNOWN:  # that line has no braces
                assert open_packet != one.control.startswith("{"), one
                open_packet = "}" not in one.control
        assert not open_packet
    names = {one.mnemonic for function in listing.functions for one in function.instructions}
    assert {"r=add(r,#)", "immext(#)"} <= names and not any(digit in name for name in names for digit in ("r0", "r1"))
    groups, _ = samples_of([(listing, read_listing(_written(tmp_path, text))[1])], words_of({4}, listing.format, None))
    samples: list[Sample] = [sample for group in groups for sample in group]
    table = learn(samples, target="hexagon", unit=4, word=4)
    answers = [(sample.mnemonic, Classifier(table).answer(sample.word).mnemonic) for sample in samples[:40]]
    assert all(mine in ("", theirs) for theirs, mine in answers) and sum(bool(mine) for _, mine in answers) > 30
    assert table.conflicts == ()


def _written(folder: Path, text: str) -> Path:
    path = folder / "h.lst"
    path.write_text(text)
    return path
