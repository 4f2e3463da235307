"""The log along the pass axis: spans of one verdict, and what several answers of one limit come to."""

from __future__ import annotations

import pytest

from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.search.spans import Span, verdict_spans
from mccprobe.search.trial import Purpose, Trial

GOOD, BAD, UNRESOLVED = Verdict.GOOD, Verdict.BAD, Verdict.UNRESOLVED


def log(*asked: tuple[int, Verdict]) -> list[Trial]:
    return [
        Trial(number, Purpose.SEARCH, limit, f"object {limit}", Outcome(verdict), ran=True)
        for number, (limit, verdict) in enumerate(asked, 1)
    ]


def test_neighbours_of_one_verdict_are_one_span_and_a_gap_parts_them() -> None:
    asked = [(9, BAD), (0, GOOD), (1, GOOD), (2, GOOD), (4, GOOD), (5, UNRESOLVED), (8, BAD)]
    assert verdict_spans(log(*asked)) == (
        Span(0, 2, GOOD),
        Span(4, 4, GOOD),
        Span(5, 5, UNRESOLVED),
        Span(8, 9, BAD),
    )


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([GOOD, BAD], BAD),
        ([BAD, GOOD], BAD),
        ([UNRESOLVED, GOOD], GOOD),
        ([GOOD, UNRESOLVED], GOOD),
        ([UNRESOLVED, UNRESOLVED], UNRESOLVED),
        ([UNRESOLVED, BAD, UNRESOLVED], BAD),
    ],
)
def test_of_several_answers_bad_counts_before_good_before_none(answers: list[Verdict], verdict: Verdict) -> None:
    assert verdict_spans(log(*((3, answer) for answer in answers))) == (Span(3, 3, verdict),)


def test_nothing_asked() -> None:
    assert verdict_spans([]) == ()
