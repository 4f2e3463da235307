"""The ends once more, when an answer rests on them: a check that depends on the time is right at one moment only.

The reference was GOOD when the run began. If limit 0 is BAD later, either the fault is there without any pass or the
check has changed its mind. So the two are asked in turn: a reference that is BAD now accuses the check.
"""

from __future__ import annotations

import time

from mccprobe.base.errors import OracleUnusable
from mccprobe.bisection.judge import Judge
from mccprobe.bisection.passes.pass_axis import PassAxis
from mccprobe.bisection.passes.reference import Reference
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.search.model import SearchResult, Status

TURNS = 3
PAUSES_S = (0.1, 0.3, 0.9)  # before each turn, where a command of the user decides: it may look at the clock
_HINT = "the check must depend on the program alone: not on the time, the load or what an earlier run left"


def ask_ends_again(
    result: SearchResult, axis: PassAxis, judge: Judge, reference: Reference | None, *, command: bool
) -> None:
    """Raise OracleUnusable if an end contradicts the answer now. command: the user's own command decides."""
    if result.status is Status.WRONG_AT_ZERO:
        end, expected = _lowest(axis), Verdict.BAD
    elif result.status is Status.NO_DIFFERENCE:
        end, expected = axis.object_at(axis.total), Verdict.GOOD
    elif result.status is Status.EDGE and command and result.failure_rate is None:
        _ask(judge, axis.object_at(result.good_end or 0), Verdict.GOOD, f"limit {result.good_end or 0}")
        return
    else:
        return
    name = "limit 0" if result.status is Status.WRONG_AT_ZERO else "the bad build"
    for turn in range(TURNS):
        if command:
            time.sleep(PAUSES_S[turn])
        if reference is not None:
            _ask(reference.judge, reference.object, Verdict.GOOD, "the reference")
        _ask(judge, end, expected, name)


def _lowest(axis: PassAxis) -> object:
    return next((key for key in (axis.object_at(0), axis.object_at(axis.total)) if isinstance(key, str)), None)


def _ask(judge: Judge, key: object, expected: Verdict, name: str) -> None:
    outcome: Outcome | None = judge.run(key) if isinstance(key, str) else None
    if outcome is not None and outcome.verdict not in (expected, Verdict.UNRESOLVED):
        raise OracleUnusable(
            f"{name} was {expected} when the search ran and is {outcome.verdict} now ({outcome.reason}): "
            "the answer of the check changes with time",
            hint=_HINT,
        )
