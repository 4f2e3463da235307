"""Selections, dead ends and comparisons: nothing is accused that was not seen to be bad."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mccprobe.journal.entry import Entry, Figure, Kind
from mccprobe.journal.review import Selection, compare, dead_ends, newest
from mccprobe.oracle.verdict import Verdict

GOOD, BAD, UNRESOLVED = Verdict.GOOD, Verdict.BAD, Verdict.UNRESOLVED
HEALTHY = {"peak": 97.1}


def _entries(*given: Entry) -> list[Entry]:
    return [replace(one, id=f"{n:04x}", time=f"2026-11-30T00:00:{n:02d}Z") for n, one in enumerate(given)]


def _check(verdict: Verdict | None, *flags: str, kind: Kind = "check", **more: Any) -> Entry:
    return Entry(kind, kernel="gemm", kernel_commit="c1", toolchain="mcc", flags=flags, verdict=verdict, **more)


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        ([_check(BAD, "-x")], [("-x",)]),
        ([_check(BAD, "-x"), _check(BAD, "-x")], [("-x",)]),
        ([_check(BAD, "-x"), _check(GOOD, "-x")], []),  # good later
        ([_check(GOOD, "-x"), _check(BAD, "-x")], [("-x",)]),
        ([_check(BAD, "-x"), _check(GOOD, "-y")], [("-x",)]),  # of others nothing follows
        ([_check(BAD, "-x", "-y"), _check(GOOD, "-y", "-x")], []),  # the same set
        ([_check(UNRESOLVED, "-x"), _check(None, "-x")], []),  # says nothing
        ([_check(BAD, "-x"), _check(UNRESOLVED, "-x")], [("-x",)]),  # and lifts nothing
        ([_check(BAD)], []),  # the kernel itself was wrong
        ([_check(BAD, "-x", kind="bisect"), _check(BAD, "-y", kind="why")], []),  # verdicts of limits
        ([_check(BAD, "-x", kind="bisect", dead_end=True)], [("-x",)]),
        ([_check(GOOD, "-x", dead_end=True, text="slower"), _check(GOOD, "-x")], [("-x",)]),  # right, and slow
        ([Entry("note", "swizzle", dead_end=True), Entry("note", "double buffer", dead_end=True)], [(), ()]),
        ([_check(BAD, "-x", simulated=True), _check(GOOD, "-x")], [("-x",)]),  # the stand-in is another machine
    ],
)
def test_dead_ends(given: list[Entry], flags: list[tuple[str, ...]]) -> None:
    assert [one.flags for one in dead_ends(_entries(*given))] == flags


def test_a_dead_end_that_was_good_at_the_same_commit_is_told_as_flaky() -> None:
    good, bad = _check(GOOD, "-x"), _check(BAD, "-x", text="max_err 350")
    (found,) = dead_ends(_entries(good, bad))
    assert [one.id for one in found.contradicted] == ["0000"] and found.reason == "max_err 350"
    (found,) = dead_ends(_entries(replace(good, kernel_commit="c0"), bad))
    assert found.contradicted == ()
    (found,) = dead_ends(_entries(replace(good, kernel_commit=None), replace(bad, kernel_commit=None)))
    assert found.contradicted == ()  # unknown is not the same as unknown


def _bench(value: float | None, unit: str = "TFLOPS", **more: Any) -> Entry:
    given = {"kernel": "gemm", "kernel_commit": "c1", "toolchain": "mcc", "verdict": GOOD, "health": HEALTHY}
    return Entry("bench", figures={"speed": Figure(value, unit)}, **{**given, **more})


def test_two_like_entries_have_a_ratio_and_no_caveat() -> None:
    found = compare(_bench(57.0, flags=("-a",)), _bench(67.0, flags=("-a", "-b")))
    assert found.caveats == () and found.flags_added == ("-b",) and found.flags_removed == ()
    assert found.rows[0].ratio == pytest.approx(67 / 57) and not found.rows[0].problem


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        (_bench(None), _bench(1.0), "not measured"),
        (_bench(0.0), _bench(1.0), "the first is 0"),
        (_bench(1.0, "ms"), _bench(1.0, "s"), "units differ: ms and s"),
        (_bench(1.0), replace(_bench(1.0), figures={}), "not in the second"),
        (replace(_bench(1.0), figures={}), _bench(1.0), "not in the first"),
    ],
)
def test_no_ratio_where_it_has_no_meaning(first: Entry, second: Entry, problem: str) -> None:
    (row,) = compare(first, second).rows
    assert row.ratio is None and row.problem == problem


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kernel": "conv"}, "kernel differs: gemm and conv"),
        ({"kernel_commit": "c2"}, "kernel commit differs: c1 and c2"),
        ({"kernel_commit": None}, "kernel commit differs: c1 and unknown"),
        ({"toolchain": "clang"}, "toolchain differs"),
        ({"simulated": True}, "the second is SIMULATED: its figures say nothing of a GPU"),
        ({"verdict": None}, "the second was not checked"),
        ({"verdict": BAD}, "the second is BAD: its figures do not count"),
        ({"verdict": UNRESOLVED}, "the second is UNRESOLVED"),
        ({"health": None}, "device health was not recorded for both"),
        ({"health": {"peak": 61.0}}, "device health differs: peak 97.1 and peak 61.0"),
    ],
)
def test_what_speaks_against_a_comparison_is_told(changes: dict[str, Any], said: str) -> None:
    (caveat,) = compare(_bench(1.0), _bench(2.0, **changes)).caveats
    assert said in caveat


def test_unknown_and_dirty_commits_are_caveats_of_both() -> None:
    for commit, said in ((None, "is not known"), ("c1-dirty", "need not be the same")):
        (caveat,) = compare(_bench(1.0, kernel_commit=commit), _bench(2.0, kernel_commit=commit)).caveats
        assert said in caveat


def test_selections() -> None:
    first, second, third = _entries(
        _check(BAD, "-mllvm -mtgpu-if-convert", text="Branches"),
        Entry("note", "idea", why="bank Conflicts"),
        _bench(1.0),
    )
    every = [first, second, third]

    def chosen(**wanted: Any) -> list[Entry]:
        return [one for one in every if Selection(**wanted).takes(one)]

    assert chosen() == every
    assert chosen(kinds=frozenset({"note", "bench"})) == [second, third]
    assert chosen(kernel="GEMM", verdicts=frozenset({"GOOD"})) == [third]
    assert chosen(verdicts=frozenset({"none"})) == [second]
    assert chosen(flag="if-convert") == [first]
    assert chosen(text="conflicts") == [second] and chosen(text="branches") == [first]
    assert chosen(since="2026-11-30T00:00:01") == [second, third] and chosen(since="2027") == []
    assert list(newest(every, 2)) == [second, third] and list(newest(every, 0)) == every
