"""Properties of the search against a linear scan, over arbitrary tables of verdicts."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st
from search_fakes import TableTarget

from mccprobe.oracle.verdict import Verdict
from mccprobe.search.procedure import Purpose, SearchResult, Settings, Status, bisect

relaxed = settings(deadline=None)  # a busy machine is no failure
GOOD, BAD, UNRESOLVED = Verdict.GOOD, Verdict.BAD, Verdict.UNRESOLVED
REPEATS = {Purpose.GOOD_END, Purpose.BAD_END, Purpose.CONFIRM_GOOD, Purpose.CONFIRM_BAD}
CONFIRMATIONS = 6  # planned at the default settings

verdicts = st.sampled_from([GOOD, BAD, UNRESOLVED])
any_settings = st.builds(
    Settings,
    endpoint_repeats=st.integers(1, 3),
    spot_checks=st.integers(0, 8),
    seed=st.integers(0, 9),
    width=st.integers(1, 8),
)


@st.composite
def tables(draw: st.DrawFn, cells: st.SearchStrategy[list[Verdict]]) -> TableTarget:
    """A table of verdicts with equal objects: some neighbours share one, some limits return to an
    earlier object of the same verdict, some limits without a verdict give no object."""
    row = draw(cells)
    keys: list[str | None] = []
    by_key: dict[str, Verdict] = {}
    for limit, verdict in enumerate(row):
        choices = [key for key, other in by_key.items() if other is verdict]
        if verdict is UNRESOLVED and draw(st.booleans()):
            keys.append(None)
            continue
        key = draw(st.sampled_from(choices)) if choices and draw(st.booleans()) else f"k{limit}"
        by_key[key] = verdict
        keys.append(key)
    return TableTarget(keys, by_key)


@st.composite
def monotone_rows(draw: st.DrawFn) -> list[Verdict]:
    """GOOD, then BAD, with UNRESOLVED strewn in; both ends GOOD and BAD or UNRESOLVED."""
    good = [draw(st.sampled_from([GOOD, GOOD, UNRESOLVED])) for _ in range(draw(st.integers(1, 60)))]
    bad = [draw(st.sampled_from([BAD, BAD, UNRESOLVED])) for _ in range(draw(st.integers(0, 60)))]
    return [*good, *bad, BAD]


any_tables = tables(st.lists(verdicts, min_size=1, max_size=80))
monotone_tables = tables(monotone_rows())
resolved_tables = tables(st.lists(st.sampled_from([GOOD, BAD]), min_size=1, max_size=80))


def scan(target: TableTarget) -> list[tuple[int, int]]:
    """All pairs of neighbours with different verdicts, limits without a verdict left out."""
    told = [limit for limit in range(target.total + 1) if target.verdict(limit) is not UNRESOLVED]
    return [(a, b) for a, b in pairwise(told) if target.verdict(a) is not target.verdict(b)]


def check_edge(target: TableTarget, result: SearchResult) -> None:
    """What must hold of any EDGE, whatever the table."""
    assert result.good is not None
    assert result.bad is not None
    assert target.verdict(result.good) is GOOD
    assert target.verdict(result.bad) is BAD
    assert all(target.verdict(limit) is UNRESOLVED for limit in range(result.good + 1, result.bad))
    for edge in result.edges:
        before = edge.unresolved[0] - 1 if edge.unresolved else edge.execution - 1
        assert (target.verdict(before), target.verdict(edge.execution)) == (
            edge.from_verdict,
            edge.to_verdict,
        )
        assert edge.unresolved == tuple(range(before + 1, edge.execution))
        assert all(target.verdict(limit) is UNRESOLVED for limit in edge.unresolved)
    assert result.confidence >= 0.99


preferred = st.none() | st.integers(-1, 60)  # a limit to ask early: it may lie anywhere, and the laws still hold


@relaxed
@given(monotone_tables, any_settings, preferred)
def test_equals_a_linear_scan_where_verdicts_are_monotone(
    target: TableTarget, wanted: Settings, prefer: int | None
) -> None:
    result = bisect(target, wanted, prefer=lambda: prefer)
    edges = scan(target)
    if not edges:
        assert result.status in {Status.WRONG_AT_ZERO, Status.UNDECIDED}
        return
    [(good, bad)] = edges
    lowest_good = next(limit for limit in range(target.total) if target.verdict(limit) is GOOD)
    assert (result.good, result.bad) == (good, bad)
    if result.status is Status.UNDECIDED:
        # nothing but unresolved limits between the ends: the range, not a finding
        assert (good, bad) == (result.good_end, target.total)
        assert result.edges == ()
        return
    assert result.status is Status.EDGE
    check_edge(target, result)
    assert result.good_end is not None
    assert lowest_good <= result.good_end <= good
    assert result.monotone in {True, None}


def check_answer(target: TableTarget, result: SearchResult) -> None:
    """What must hold of any answer of a search without a profile, whatever the table."""
    last = target.verdict(target.total)
    if result.status is Status.EDGE:
        check_edge(target, result)
        assert (result.good, result.bad) in scan(target)
        if result.monotone is not None:
            assert target.asked == set(range(target.total + 1))
            assert result.monotone == (len(scan(target)) == 1 and target.verdict(result.good) is GOOD)
    elif result.status is Status.NO_DIFFERENCE:
        assert last is GOOD
    elif result.status is Status.WRONG_AT_ZERO:
        assert target.verdict(0) is BAD
    elif result.status is Status.ORACLE_UNUSABLE:
        assert last is UNRESOLVED
    else:
        assert result.status is Status.UNDECIDED
        assert last is BAD
        assert target.verdict(0) is not BAD
    if result.status is not Status.EDGE:
        assert result.edges == ()
        assert result.confidence == 0.0


@relaxed
@given(any_tables, any_settings, preferred)
def test_never_a_false_edge(target: TableTarget, wanted: Settings, prefer: int | None) -> None:
    check_answer(target, bisect(target, wanted, prefer=lambda: prefer))


@relaxed
@given(resolved_tables, any_settings, preferred)
def test_run_bound(target: TableTarget, wanted: Settings, prefer: int | None) -> None:
    result = bisect(target, wanted, prefer=lambda: prefer)
    steps = math.ceil(math.log2(target.total)) if target.total else 0
    assert result.runs <= steps + 2 * wanted.endpoint_repeats + wanted.spot_checks + _confirmations(wanted)
    assert sum(trial.purpose is Purpose.SEARCH for trial in result.log) <= steps


@relaxed
@given(any_tables, any_settings, preferred)
def test_run_bound_with_unresolved_limits(target: TableTarget, wanted: Settings, prefer: int | None) -> None:
    result = bisect(target, wanted, prefer=lambda: prefer)
    steps = math.ceil(math.log2(target.total)) if target.total else 0
    unresolved = {trial.limit for trial in result.log if trial.verdict is UNRESOLVED}
    bound = steps + 2 * wanted.endpoint_repeats + wanted.spot_checks + _confirmations(wanted) + len(unresolved)
    if target.verdict(0) is UNRESOLVED:
        bound += 2 * steps + 1 + wanted.endpoint_repeats
    assert result.runs <= bound


def _confirmations(wanted: Settings) -> int:
    return {1: 9, 2: 6, 3: 5}[wanted.endpoint_repeats]


@relaxed
@given(any_tables, any_settings, st.booleans())
def test_an_object_runs_once_outside_the_stated_repeats(target: TableTarget, wanted: Settings, profile: bool) -> None:
    result = bisect(target, Settings(wanted.endpoint_repeats, spot_checks=wanted.spot_checks, profile=profile))
    ran = [trial.key for trial in result.log if trial.ran and trial.purpose not in REPEATS]
    assert len(ran) == len(set(ran))
    tested_at_ends = {t.key for t in result.log if t.ran and t.purpose in {Purpose.GOOD_END, Purpose.BAD_END}}
    assert not tested_at_ends & set(ran)
    assert result.objects_tested == len(target.ran)
    assert result.runs == target.ran.total()
    assert result.limits_built == sum(target.keys[limit] is not None for limit in target.asked)


@relaxed
@given(any_tables, any_settings)
def test_same_answers_same_log(target: TableTarget, wanted: Settings) -> None:
    again = TableTarget(target.keys, target.verdicts)
    assert bisect(target, wanted) == bisect(again, wanted)


# limits 0 to 2 give no object; the gallop to the lowest good limit builds limit 4, whose verdict is known: the
# edge at 4 is found before the one at 7, at which a search that knows nothing arrives
two_edges = TableTarget(
    [None, None, None, "k3", "k4", "k5", "k6", "k7"], {"k3": GOOD, "k4": BAD, "k5": GOOD, "k6": GOOD, "k7": BAD}
)


@relaxed
@given(any_tables, any_settings)
@example(two_edges, Settings())
def test_known_verdicts_are_not_asked_again(target: TableTarget, wanted: Settings) -> None:
    """With every object known only repeats run, and the answer is a right one. Where there are several edges
    it may be another than without that knowledge."""
    target = TableTarget(target.keys, target.verdicts)  # the explicit example is one object for all calls
    result = bisect(target, wanted, known=target.verdicts)
    assert all(trial.purpose in REPEATS for trial in result.log if trial.ran)
    check_answer(target, result)


@relaxed
@given(monotone_tables, any_settings)
def test_known_verdicts_do_not_change_the_only_answer(target: TableTarget, wanted: Settings) -> None:
    plain = bisect(TableTarget(target.keys, target.verdicts), wanted)
    result = bisect(target, wanted, known=target.verdicts)
    assert (result.status, result.good, result.bad) == (plain.status, plain.good, plain.bad)


@relaxed
@given(any_tables)
def test_profile_lists_the_edges_of_a_linear_scan(target: TableTarget) -> None:
    result = bisect(target, Settings(profile=True))
    if result.status is not Status.EDGE:
        assert result.status is bisect(TableTarget(target.keys, target.verdicts), Settings()).status
        return
    check_edge(target, result)
    edges = scan(target)
    assert [edge.execution for edge in result.edges] == [bad for _, bad in edges]
    upwards = [(good, bad) for good, bad in edges if target.verdict(bad) is BAD]
    assert (result.good, result.bad) == upwards[0]
    assert result.monotone == (edges == upwards)
    assert target.ran.total() <= len(target.verdicts) + 4 + CONFIRMATIONS


@relaxed
@given(any_tables, st.integers(2, 20))
def test_profile_with_a_stride_lists_true_edges_in_order(target: TableTarget, stride: int) -> None:
    result = bisect(target, Settings(profile=True, profile_stride=stride))
    if result.status is Status.EDGE:
        check_edge(target, result)
        executions = [edge.execution for edge in result.edges]
        assert executions == sorted(executions)
        assert {edge.execution for edge in result.edges} <= {bad for _, bad in scan(target)}


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 120_000), st.data())
def test_long_programs(total: int, data: st.DataObject) -> None:
    """A binary search stays one where a list of all limits would hurt."""
    first_bad = data.draw(st.integers(1, total))
    changes = sorted({first_bad, *data.draw(st.lists(st.integers(1, total), max_size=40))})
    keys: list[str | None] = []
    key = "k0"
    for limit in range(total + 1):
        if changes and limit == changes[0]:
            key = f"k{changes.pop(0)}"
        keys.append(key)
    table = {name: BAD if int(name[1:]) >= first_bad else GOOD for name in set(keys) if name is not None}
    target = TableTarget(keys, table)
    result = bisect(target, Settings())
    assert (result.status, result.good, result.bad) == (Status.EDGE, first_bad - 1, first_bad)
    assert len(target.asked) <= math.ceil(math.log2(total)) + 2 + 8


def test_the_preferred_limit_is_asked_early_as_far_as_the_bound_allows() -> None:
    """1,416 executions, the code generator from 1,249 on: 1,024 and 1,248, then its 168 alone."""
    verdicts = {str(limit): BAD if limit >= 1352 else GOOD for limit in range(1417)}
    target = TableTarget(list(verdicts), verdicts)
    result = bisect(target, Settings(spot_checks=0), prefer=lambda: 1248)
    searched = [trial.limit for trial in result.log if trial.purpose is Purpose.SEARCH]
    assert searched[:2] == [1024, 1248]
    assert len(searched) <= 10 and result.bad == 1352
