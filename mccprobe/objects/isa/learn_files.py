"""Listing files to a table: read, learn, test on what was held out, probe, learn again.

The held-out test comes first and on the listings alone: it says what such a table is worth on code
that it was not learned from. It splits by listing, by function where there is one listing only.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mccprobe.base.errors import InputError
from mccprobe.base.paths import read_file
from mccprobe.objects.isa.decode import Classifier
from mccprobe.objects.isa.encoding import Confidence, EncodingTable, HeldOut, Source
from mccprobe.objects.isa.learn import learn
from mccprobe.objects.isa.listing import parse_listing
from mccprobe.objects.isa.mtgpu.agree import Agreement, with_listings
from mccprobe.objects.isa.operands import Sample, sample_of
from mccprobe.objects.isa.pipes import UNKNOWN
from mccprobe.objects.isa.probe import ProbeResult, ProbeSpec, probe
from mccprobe.objects.isa.records import Listing

MAX_LISTING_BYTES = 1 << 30
TEST_SHARE = 3  # every third listing is held out
MTGPU_WORD_BYTES = 12
MTGPU_ASSUMPTION = (
    "words of 12 bytes with three slots of 4 bytes, aligned to 12 in their section: "
    "one article's geometry, not confirmed here"
)


@dataclass(frozen=True)
class Words:
    """How instructions lie in words."""

    unit: int
    word: int
    slots: int
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Learned:
    """A table, and what happened on the way."""

    table: EncodingTable
    instructions: int
    without_bytes: int
    probes: ProbeResult | None
    open_table: Agreement | None = None  # of MTGPU listings with the open table


def read_listing(path: Path) -> tuple[Listing, Source]:
    """A listing with its source entry. Raises InputError."""
    try:
        if path.stat().st_size > MAX_LISTING_BYTES:
            raise InputError(f"{path}: a listing of more than {MAX_LISTING_BYTES} bytes", hint="split it")
        data = read_file(path, MAX_LISTING_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    listing = parse_listing(data.decode("utf-8", "replace"), str(path))
    digest = hashlib.sha256(data).hexdigest()
    return listing, Source(path.name, digest, listing.format, listing.instruction_count)


def words_of(sizes: set[int], format_name: str, word_bytes: int | None) -> Words:
    """Geometry from the sizes seen, or as given. Raises InputError where they cannot both be true."""
    unit, longest = math.gcd(*sizes), max(sizes)
    if word_bytes is None and "mtgpu" in format_name and sizes == {4}:
        word_bytes = MTGPU_WORD_BYTES
    if word_bytes is None or word_bytes == longest:
        return Words(unit, longest, 1)
    if word_bytes % unit or len(sizes) > 1 or word_bytes < longest:
        seen = ", ".join(str(size) for size in sorted(sizes))
        raise InputError(f"words of {word_bytes} bytes do not fit instructions of {seen} bytes", hint="try auto")
    assumption = MTGPU_ASSUMPTION if word_bytes == MTGPU_WORD_BYTES else f"words of {word_bytes} bytes, aligned"
    return Words(unit, word_bytes, word_bytes // unit, (assumption,))


def learn_files(
    paths: Sequence[Path],
    *,
    word_bytes: int | None = None,
    target: str = "",
    tool: str = "",
    disassembler: str = "",
    template: bytes = b"",
    budget_s: float = 600.0,
    progress: Callable[[str], None] = lambda text: None,
) -> Learned:
    """Learn from listings, and with a disassembler from probes. Raises MccprobeError."""
    listings = [read_listing(path) for path in paths]
    formats = {listing.format for listing, _ in listings}
    targets = {listing.target for listing, _ in listings if listing.target} | ({target} if target else set())
    if len(formats) > 1 or len(targets) > 1:
        mixed = formats if len(formats) > 1 else targets
        names = ", ".join(sorted(mixed))
        raise InputError(f"listings of several kinds: {names}", hint="one table, one instruction set")
    functions = [function for listing, _ in listings for function in listing.functions]
    sizes = {len(one.data) for function in functions for one in function.instructions if one.data}
    if not sizes:
        raise InputError(f"{paths[0]}: no instruction with bytes", hint="llvm-objdump -d and nvdisasm -hex print bytes")
    words = words_of(sizes, next(iter(formats)), word_bytes)
    groups, without_bytes = samples_of(listings, words)
    everything = [sample for group in groups for sample in group]
    if not everything:
        raise InputError(f"{paths[0]}: the disassembler knew none of its instructions")

    def table(samples: Sequence[Sample]) -> EncodingTable:
        return learn(
            samples,
            target=next(iter(targets), ""),
            unit=words.unit,
            word=words.word,
            slots=words.slots,
            tool=tool,
            sources=tuple(source for _, source in listings),
            assumptions=words.assumptions,
        )

    held_out = None
    if len(groups) >= TEST_SHARE:
        progress("learning from two thirds, for the held-out test")
        kept = [s for number, group in enumerate(groups) if number % TEST_SHARE != 1 for s in group]
        asked = [s for number, group in enumerate(groups) if number % TEST_SHARE == 1 for s in group]
        held_out = hold_out_test(table(kept), kept, asked)
    probes = None
    if disassembler:
        spec = ProbeSpec(disassembler, template, words.unit, words.word, words.slots, budget_s=budget_s)
        probes = probe(everything, spec, progress)
        everything += probes.samples
    progress("learning from all")
    result = replace(table(everything), held_out=held_out, probes=probes.counts() if probes else {})
    agreement = with_listings([listing for listing, _ in listings], result.target)
    return Learned(result, len(everything), without_bytes, probes, agreement)


def samples_of(listings: Sequence[tuple[Listing, Source]], words: Words) -> tuple[list[list[Sample]], int]:
    """One group a listing, a function where there is one listing; and how many instructions had no bytes."""
    by_function = len(listings) == 1
    groups: list[list[Sample]] = []
    missing = 0
    for listing, _ in listings:
        if not by_function:
            groups.append([])
        for function in listing.functions:
            if by_function:
                groups.append([])
            for one in function.instructions:
                if one.pipe == UNKNOWN:
                    continue
                slot = (one.address or 0) % words.word // words.unit if words.slots > 1 else -1
                sample = sample_of(one, slot)
                if sample is None:
                    missing += 1
                else:
                    groups[-1].append(sample)
    return [group for group in groups if group], missing


def hold_out_test(table: EncodingTable, learned: Sequence[Sample], asked: Sequence[Sample]) -> HeldOut:
    """Ask about the distinct words of `asked` that are not among those learned from."""
    classifier = Classifier(table)
    known = {(sample.size, sample.slot, sample.word) for sample in learned}
    names = {sample.mnemonic for sample in learned}
    fresh = {(s.size, s.slot, s.word): s for s in asked if (s.size, s.slot, s.word) not in known}
    counts = dict.fromkeys(("answered", "wrong", "certain", "certain_wrong", "pipe_wrong", "unseen", "unseen_named"), 0)
    for sample in fresh.values():
        answer = classifier.answer(sample.word, sample.size, sample.slot)
        wrong = bool(answer.mnemonic) and answer.mnemonic != sample.mnemonic
        certain = answer.confidence is Confidence.CERTAIN
        unseen = sample.mnemonic not in names
        counts["answered"] += bool(answer.mnemonic)
        counts["wrong"] += wrong
        counts["certain"] += certain
        counts["certain_wrong"] += certain and wrong
        counts["pipe_wrong"] += bool(answer.pipe) and answer.pipe != sample.pipe
        counts["unseen"] += unseen
        counts["unseen_named"] += unseen and bool(answer.mnemonic)
    return HeldOut(words=len(fresh), **counts)
