"""Bytes of a function to a stream of answers: step by the size that the table tells, and say where it could not.

With one instruction size every word stands alone. With several, an unknown word leaves the decode out
of step: what follows may be read at a wrong boundary. It is in step again at the start of a function
and after ANCHOR_RUN certain answers in a row; everything between is `out-of-step`, counted, never
believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from mccprobe.isa.decode import Classifier
from mccprobe.isa.encoding import Answer, Confidence

ANCHOR_RUN = 4

KNOWN, AMBIGUOUS, UNKNOWN_WORD, OUT_OF_STEP = "known", "ambiguous", "unknown", "out-of-step"


class Decoded(NamedTuple):
    """One step of the stream. mnemonic: "" unless `state` is `known`; pipe: "" where not told."""

    address: int
    data: bytes
    mnemonic: str
    pipe: str
    confidence: Confidence
    state: str
    rivals: tuple[str, ...] = ()


def decode_stream(classifier: Classifier, code: bytes, address: int) -> list[Decoded]:
    """Decode one function. The sizes of the result add up to `len(code)`."""
    table = classifier.table
    unit, window = table.unit, classifier.window
    mixed = len(table.sizes) > 1
    found: list[Decoded] = []
    anchor = 0  # entries from here on wait for an anchor
    in_step = True
    run = 0
    position = 0
    while position < len(code):
        left = len(code) - position
        word = int.from_bytes(code[position : position + window], "little")
        answer = classifier.answer(word, left, table.slot_of(address + position))
        step = min(answer.size or unit, left)
        found.append(_decoded(answer, address + position, code[position : position + step]))
        if mixed and not answer.size:
            if in_step:
                in_step, anchor = False, len(found)
            run = 0
        elif not in_step:
            run = run + 1 if answer.confidence is Confidence.CERTAIN else 0
            if run == ANCHOR_RUN:
                _disbelieve(found, anchor, len(found) - run)
                in_step = True
        position += step
    if not in_step:
        _disbelieve(found, anchor, len(found))
    return found


def _decoded(answer: Answer, address: int, data: bytes) -> Decoded:
    if answer.mnemonic:
        return Decoded(address, data, answer.mnemonic, answer.pipe, answer.confidence, KNOWN)
    state = AMBIGUOUS if answer.rivals else UNKNOWN_WORD
    return Decoded(address, data, "", answer.pipe, Confidence.NONE, state, answer.rivals)


def _disbelieve(found: list[Decoded], start: int, end: int) -> None:
    for number in range(start, end):
        one = found[number]
        found[number] = Decoded(one.address, one.data, "", "", Confidence.NONE, OUT_OF_STEP)


class StreamCounts(NamedTuple):
    """Steps by state, by confidence and by pipe."""

    total: int
    states: dict[str, int]
    confidence: dict[str, int]
    pipes: dict[str, int]


def count_stream(stream: Iterable[Decoded]) -> StreamCounts:
    """For a report: what share was classified, ambiguous, unknown, out of step."""
    states: Counter[str] = Counter()
    confidence: Counter[str] = Counter()
    pipes: Counter[str] = Counter()
    for one in stream:
        states[one.state] += 1
        if one.mnemonic:
            confidence[one.confidence.name.lower()] += 1
        pipes[one.pipe or "unknown"] += 1
    return StreamCounts(
        states.total(),
        {name: states[name] for name in (KNOWN, AMBIGUOUS, UNKNOWN_WORD, OUT_OF_STEP)},
        {level.name.lower(): confidence[level.name.lower()] for level in reversed(Confidence) if level},
        dict(sorted(pipes.items(), key=lambda item: (-item[1], item[0]))),
    )
