"""A bisection over one axis: a line of states, each with a verdict, from GOOD at the start to BAD at the end.

What a state is, only its axis knows: the first N pass executions of one unit (`bisection/passes`), and as well the
units of a build that come from the bad side, compiler releases, or objects with a metric. Nothing here knows a
source file, a compiler or a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from mccprobe.base.errors import BudgetSpent, OracleUnusable
from mccprobe.oracle.verdict import Verdict
from mccprobe.search.model import SearchResult, Settings, Status, Target
from mccprobe.search.procedure import bisect
from mccprobe.search.trial import Trial


class Axis(Target, Protocol):
    """A search's target that can name what it counts.

    States are 0 to `total`: 0 is the good end, `total` the bad one.
    """

    @property
    def kind(self) -> str:
        """What a state counts, in the plural: "pass executions"."""
        ...


def search_axis(
    axis: Axis,
    settings: Settings,
    *,
    known: Mapping[str, Verdict] | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    prefer: Callable[[], int | None] | None = None,
) -> SearchResult:
    """Find neighbouring states that are GOOD and BAD. known: verdicts of objects that were judged before.

    on_trial: called with each trial as soon as it is known. prefer: a state to ask early, where one is known.
    """
    return bisect(axis, settings, known=known or {}, on_trial=on_trial, prefer=prefer)


def require_answer(result: SearchResult, *, unstable: bool = False) -> None:
    """Raise BudgetSpent or OracleUnusable for a search without an answer.

    unstable: the objects themselves change from build to build, so that the oracle is not to blame.
    """
    if result.status is Status.BUDGET:
        raise BudgetSpent(
            "the budget of oracle runs is spent before the answer is certain: " + "; ".join(result.notes),
            hint="raise --max-runs; the journal keeps what was learnt (--resume)",
        )
    if result.status is Status.ORACLE_UNUSABLE and not unstable:
        raise OracleUnusable("; ".join(result.notes) or "the oracle cannot be used", hint=_oracle_hint(result))


def ends(axis: Axis, result: SearchResult) -> tuple[str | None, str | None]:
    """Keys of the objects on both sides of the edge, else of both ends; None where one cannot be built."""
    good = axis.object_at(result.good if result.good is not None else 0)
    bad = axis.object_at(result.bad if result.bad is not None else axis.total)
    return (good if isinstance(good, str) else None), (bad if isinstance(bad, str) else None)


def _oracle_hint(result: SearchResult) -> str:
    if any("timeout" in note for note in result.notes):
        return "raise --timeout, or count a program that never ends as wrong with --bad-if timeout"
    if any("SIGILL" in note for note in result.notes):
        return "if no instruction is missing here, it is a trap: count that as wrong with --bad-if crash"
    return "the check must pass every time on the good side and be able to fail; `cmd || echo FAIL` always exits 0"
