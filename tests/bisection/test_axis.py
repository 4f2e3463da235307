"""The core of bisection works on any line of states: here on releases, which are no passes of anything."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe import bisection
from mccprobe.base.errors import BudgetSpent
from mccprobe.bisection.axis import ends, require_answer, search_axis
from mccprobe.oracle.verdict import Outcome, Unbuildable, Verdict
from mccprobe.search.model import Settings, Status

SETTINGS = Settings(endpoint_repeats=1, spot_checks=0, confirm_repeats=1)


@dataclass
class Releases:
    """State N is the N-th release; those in `broken` do not build, those from `first_bad` on are wrong."""

    names: Sequence[str]
    first_bad: int
    broken: frozenset[int] = frozenset()
    kind: str = "releases"
    asked: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.names) - 1

    def prefetch(self, limits: Sequence[int]) -> None:
        pass

    def object_at(self, limit: int) -> str | Unbuildable:
        return Unbuildable("does not build") if limit in self.broken else self.names[limit]

    def run(self, key: str) -> Outcome:
        self.asked.append(key)
        bad = self.names.index(key) >= self.first_bad
        return Outcome(Verdict.BAD if bad else Verdict.GOOD, "")


@given(st.integers(2, 40), st.data())
def test_the_first_bad_release_is_found(count: int, data: st.DataObject) -> None:
    first_bad = data.draw(st.integers(1, count - 1))
    axis = Releases([f"13.{number}" for number in range(count)], first_bad)
    result = search_axis(axis, SETTINGS)
    require_answer(result)
    assert (result.status, result.good, result.bad) == (Status.EDGE, first_bad - 1, first_bad)
    assert ends(axis, result) == (axis.names[first_bad - 1], axis.names[first_bad])


@given(st.integers(3, 30), st.data())
def test_a_release_that_does_not_build_is_never_blamed(count: int, data: st.DataObject) -> None:
    first_bad = data.draw(st.integers(1, count - 1))
    broken = data.draw(st.frozensets(st.integers(1, count - 2), max_size=4)) - {first_bad - 1, first_bad}
    axis = Releases([f"13.{number}" for number in range(count)], first_bad, broken)
    result = search_axis(axis, SETTINGS)
    assert (result.good, result.bad) == (first_bad - 1, first_bad)
    assert not broken & {axis.names.index(name) for name in axis.asked}


def test_a_spent_budget_is_an_error() -> None:
    axis = Releases([str(number) for number in range(100)], 60)
    with pytest.raises(BudgetSpent):
        require_answer(search_axis(axis, Settings(max_runs=2)))


def test_the_core_knows_no_source_and_no_pass() -> None:
    """axis.py imports the search, the verdicts and the errors; neither builds nor targets nor the pass axis."""
    path = Path(bisection.__file__).parent / "axis.py"
    imported = {
        node.module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mccprobe")
    }
    rooms = {module.split(".")[1] for module in imported}
    assert rooms == {"base", "oracle", "search"}
