"""The log of a search along the pass axis: which limits were asked, and what they said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.trial import Trial


@dataclass(frozen=True)
class Span:
    """Limits first..last, each of them asked, all with one verdict."""

    first: int
    last: int
    verdict: Verdict


def verdict_spans(log: Iterable[Trial]) -> tuple[Span, ...]:
    """Ascending; neighbouring limits of one verdict together, so a profile of 100,000 limits is a few spans.

    A limit that was asked several times is BAD if it ever was (a good object never fails), else GOOD if it ever was.
    """
    weight = {Verdict.UNRESOLVED: 0, Verdict.GOOD: 1, Verdict.BAD: 2}
    verdicts: dict[int, Verdict] = {}
    for trial in log:
        before = verdicts.get(trial.limit, Verdict.UNRESOLVED)
        verdicts[trial.limit] = max(before, trial.verdict, key=weight.__getitem__)
    spans: list[Span] = []
    for limit, verdict in sorted(verdicts.items()):
        if spans and spans[-1].last == limit - 1 and spans[-1].verdict is verdict:
            spans[-1] = Span(spans[-1].first, limit, verdict)
        else:
            spans.append(Span(limit, limit, verdict))
    return tuple(spans)
