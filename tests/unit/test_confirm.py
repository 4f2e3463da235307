"""What may be said of an IR pass after a second code generator was asked. A false accusation is the worst bug."""

from __future__ import annotations

import pytest

from mccprobe.bisection.passes.confirm import weigh_plain_back_end
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.report.record import Status

GOOD, BAD = Outcome(Verdict.GOOD, "as the reference"), Outcome(Verdict.BAD, "prints '0'")
HANGS = Outcome(Verdict.UNRESOLVED, "timeout after 2.0 s")
SKIPPED, UNLINKED = Outcome(Verdict.UNRESOLVED, "exit 125"), Outcome(Verdict.UNRESOLVED, "link: exit 1")
CRASH = "compile: signal SIGSEGV"
OTHERS = [GOOD, BAD, HANGS, SKIPPED, UNLINKED, CRASH]


@pytest.mark.parametrize("after", [BAD, HANGS], ids=["bad", "hangs"])
def test_right_before_and_wrong_or_endless_after_is_found(after: Outcome) -> None:
    status, confirmation = weigh_plain_back_end(GOOD, after)
    assert status is Status.FOUND and confirmation.kind == "ir-changed"
    assert "IR before it is GOOD" in confirmation.text
    assert confirmation.text.endswith("the IR after it BAD" if after is BAD else "the IR after it without an end")


@pytest.mark.parametrize("after", [GOOD, SKIPPED, UNLINKED, CRASH], ids=["good", "skipped", "unlinked", "crash"])
def test_without_a_wrong_result_after_nothing_is_found(after: Outcome | str) -> None:
    status, confirmation = weigh_plain_back_end(GOOD, after)
    assert status is Status.EXPOSED and confirmation.kind == "none"
    told = after if isinstance(after, str) else after.reason
    assert after is GOOD or told in confirmation.text


@pytest.mark.parametrize("before", [BAD, HANGS, SKIPPED, UNLINKED, CRASH])
@pytest.mark.parametrize("after", OTHERS)
def test_without_a_right_result_before_nothing_is_found(before: Outcome | str, after: Outcome | str) -> None:
    status, confirmation = weigh_plain_back_end(before, after)
    assert status is Status.EXPOSED and confirmation.kind == "none"
