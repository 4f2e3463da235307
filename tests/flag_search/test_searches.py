"""Strategies, ablation and what is kept, on tables: no compiler, and the right answer is known."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccprobe.base.errors import BudgetSpent, JournalUnreadable, OracleUnusable, SourceDoesNotCompile
from mccprobe.build.executor import LocalExecutor
from mccprobe.build.journal import Journal
from mccprobe.build.store import RunDirectory
from mccprobe.journal.book import Book
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.tuning.check.build import BuildFailure
from mccprobe.tuning.flag_search.ablation import ablate
from mccprobe.tuning.flag_search.evaluate import Evaluator, SearchLimits
from mccprobe.tuning.flag_search.record import Recorder
from mccprobe.tuning.flag_search.run import Hooks, SearchRequest, run_search
from mccprobe.tuning.flag_search.shares import Measured, Share, exact_share, paired
from mccprobe.tuning.flag_search.space import AS_IT_IS, Dimension, Point, Setting, Space
from mccprobe.tuning.flag_search.strategies import article, exhaustive, smallest_wrong
from mccprobe.tuning.flag_search.subjects import COMPILED_ONLY, Made

Names = frozenset[str]


def make_space(*names: str, groups: dict[str, str] | None = None, values: int = 1) -> Space:
    """One dimension a name, each with choices NAME, NAME2, ..."""
    made = []
    for name in names:
        texts = [name, *(f"{name}{number}" for number in range(2, values + 1))]
        choices = (AS_IT_IS, *(Setting(text, (text,)) for text in texts))
        made.append(Dimension(name, (groups or {}).get(name, "ir"), choices, name))
    return Space(tuple(made), "test")


class Tool:
    name, simulated, driver = "clang", False, ("clang",)


@pytest.fixture(autouse=True)
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has none that could change."""
    monkeypatch.setattr("mccprobe.tuning.flag_search.run.require_unchanged", lambda toolchain: None)


@dataclass
class TableSubject:
    """value(names) of the flags that are set; wrong, unbuilt: names that make it so; noop: names without effect."""

    value: Callable[[Names], float]
    wrong: Names = frozenset()
    unbuilt: Names = frozenset()
    noop: Names = frozenset()
    needs: dict[str, str] = field(default_factory=dict)  # without effect unless the other is there
    compile_only: bool = False
    beside: tuple[str, ...] = ()
    flaky: bool = False
    name: str = "table"
    heading: str = ""
    toolchain: Any = field(default_factory=Tool)
    builds: list[Names] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def build(self, flags: Any, defines: Any, folder: Path, executor: Any = None) -> Made | BuildFailure:
        names = frozenset(flag[0] for flag in flags)
        with self.lock:
            self.builds.append(names)
        if names & self.unbuilt:
            return BuildFailure("compile: exit 1", ("cc",), "x.c: error: no")
        idle = {name for name, other in self.needs.items() if other not in names}
        text = " ".join(sorted(names - self.noop - idle))
        return Made(hashlib.sha256(text.encode()).hexdigest(), (), folder / (text or "-"))

    def names(self, made: Made) -> Names:
        return frozenset(made.folder.name.replace("-", "").split())

    def judge(self, made: Made, executor: Any = None) -> Outcome:
        with self.lock:
            self.judged.append(made.folder.name)
        if self.compile_only:
            return Outcome(Verdict.UNRESOLVED, COMPILED_ONLY)
        bad = self.names(made) & self.wrong
        return Outcome(Verdict.BAD, f"wrong by {sorted(bad)}", 12.0) if bad else Outcome(Verdict.GOOD, "right", 0.0)

    def run_argv(self, made: Made) -> tuple[str, ...]:
        return ("run",)

    def why(self, flags: Any, defines: Any) -> tuple[str, ...]:
        return ("mccprobe", "why", *(flag[0] for flag in flags))

    def described(self) -> dict[str, Any]:
        return {"table": self.name}


@dataclass
class TableMeter:
    """noise(ordinal): factor of each reading; None for an exact count."""

    subject: TableSubject
    noise: Callable[[int], float] | None = None
    objective: str = "instructions"
    unit: str = "instructions"
    label: str = "a table"
    measured: int = 0

    @property
    def exact(self) -> bool:
        return self.noise is None

    def _read(self, made: Made, ordinal: int) -> Measured:
        self.measured += 1
        value = self.subject.value(self.subject.names(made)) * (self.noise(ordinal) if self.noise else 1.0)
        return Measured(value, (value,))

    def measure(self, made: Made, executor: Any = None) -> Measured:
        return self._read(made, 0)

    def compare(self, made: Made, base: Made, executor: Any = None) -> Share:
        if self.exact:
            return exact_share(self.measure(made).value, self.measure(base).value)
        return paired(lambda at: self._read(base, 2 * at), lambda at: self._read(made, 2 * at + 1))


@dataclass
class Opened:
    evaluator: Evaluator
    run: RunDirectory
    journal: Journal


@pytest.fixture
def open_search(tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """`open_search(space, subject, meter)`; the same folder again resumes."""
    executor = LocalExecutor(2)
    journals: list[Journal] = []

    def make(space: Space, subject: TableSubject, meter: Any = None, limits: SearchLimits | None = None) -> Opened:
        for journal in journals:
            journal.close()
        run = RunDirectory(tmp_path / "run")
        journals.append(Journal(run.journal))
        evaluator = Evaluator(
            space,
            subject,
            meter or TableMeter(subject),
            journals[-1],
            executor,
            run.root / "builds",
            limits or SearchLimits(),
        )
        return Opened(evaluator, run, journals[-1])

    yield make
    executor.shutdown(cancel=True)
    for journal in journals:
        journal.close()


def point(space: Space, *names: str) -> Point:
    return tuple(1 if one.name in names else 0 for one in space.dimensions)


OpenSearch = Callable[..., Any]


def additive(**shares: float) -> Callable[[Names], float]:
    """Each flag multiplies the value."""

    def value(names: Names) -> float:
        found = 1000.0
        for name in names:
            found *= shares.get(name, 1.0)
        return found

    return value


# --- strategies -----------------------------------------------------------------------------------


def test_the_article_s_search(open_search: OpenSearch) -> None:
    """Section 16: 10 and 9 % alone, 18 % together; a wrong one that would be best; one that costs."""
    groups = {"postra": "scheduling", "ilp": "scheduling", "fence": "memory"}
    space = make_space("postra", "ilp", "fence", "regs", "ifconv", groups=groups)
    subject = TableSubject(
        additive(postra=0.90, ilp=0.91, fence=0.92, regs=0.5, ifconv=1.01), wrong=frozenset({"regs"})
    )
    evaluator = open_search(space, subject).evaluator
    evaluator.one(space.baseline)
    best = article(evaluator)
    assert best == point(space, "postra", "ilp", "fence")
    order = [space.texts(trial.point) for trial in sorted(evaluator.trials.values(), key=lambda one: one.ordinal)]
    assert order[1:6] == [("postra",), ("ilp",), ("fence",), ("regs",), ("ifconv",)]
    assert not [one for one in order[6:] if "regs" in one or "ifconv" in one]
    assert smallest_wrong(evaluator) == [point(space, "regs")]


def test_what_does_nothing_alone_is_tried_together(open_search: OpenSearch) -> None:
    """Section 18: flags hardly worth it alone. `wide` pays only with `vector`."""
    space = make_space("vector", "wide", "other")
    subject = TableSubject(lambda names: 1000.0 - 100 * ("vector" in names) - 50 * (names >= {"vector", "wide"}))
    evaluator = open_search(space, subject).evaluator
    evaluator.one(space.baseline)
    assert set(space.texts(article(evaluator))) >= {"vector", "wide"}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_exhaustive_is_the_best_of_all_that_are_right(seed: int) -> None:
    """Against brute force, whatever the table: interplay, wrong, unbuildable, equal objects."""
    source = random.Random(seed)
    names = ["a", "b", "c"]
    table = {
        frozenset(some): source.randint(1, 50) for count in range(4) for some in itertools.combinations(names, count)
    }
    pick = [frozenset(source.sample(names, source.randint(0, 1))) for _ in range(3)]
    subject = TableSubject(lambda found: table[found], wrong=pick[0], unbuilt=pick[1], noop=pick[2])
    space = make_space(*names)
    executor = LocalExecutor(1)
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory(Path(folder))
        journal = Journal(run.journal)
        builds = Path(folder) / "builds"
        evaluator = Evaluator(space, subject, TableMeter(subject), journal, executor, builds, SearchLimits())
        evaluator.one(space.baseline)
        best = exhaustive(evaluator, 8)
        journal.close()
    executor.shutdown(cancel=True)
    # (what has no effect is not wrong; a flag that does not compile never counts)
    allowed = [some for some in table if not some & subject.unbuilt and not (some - subject.noop) & subject.wrong]
    least = min(table[some - subject.noop] for some in allowed)
    assert evaluator.trials[best].value == least
    assert evaluator.trials[best].verdict is Verdict.GOOD
    assert len(subject.judged) == len(set(subject.judged)), "an object was judged twice"


def test_what_changes_nothing_alone_is_tried_with_the_best(open_search: OpenSearch) -> None:
    """Its object alone is that of the build as it is: wider vectors need vectors."""
    space = make_space("wide", "vector", "idle")
    subject = TableSubject(additive(vector=0.8, wide=0.9), needs={"wide": "vector"}, noop=frozenset({"idle"}))
    evaluator = open_search(space, subject).evaluator
    evaluator.one(space.baseline)
    best, _ = ablate(evaluator, article(evaluator))
    assert space.texts(best) == ("wide", "vector")


def test_equal_objects_are_measured_once(open_search: OpenSearch) -> None:
    space = make_space("a", "n1", "n2", "n3")
    subject = TableSubject(additive(a=0.9), noop=frozenset({"n1", "n2", "n3"}))
    opened = open_search(space, subject)
    exhaustive(opened.evaluator, 16)
    assert len(subject.builds) == 16 and sorted(subject.judged) == ["-", "a"]
    assert opened.evaluator.counters.measured == 2
    same = [trial.same_as for trial in opened.evaluator.trials.values()]
    assert same.count(None) == 2


def test_several_values_of_one_flag(open_search: OpenSearch) -> None:
    space = make_space("f", "g", values=3)
    subject = TableSubject(additive(f=0.9, f2=0.8, f3=0.85, g3=0.95))
    evaluator = open_search(space, subject).evaluator
    evaluator.one(space.baseline)
    assert set(space.texts(article(evaluator))) == {"f2", "g3"}


# --- ablation -------------------------------------------------------------------------------------


def test_useless_flags_are_dropped(open_search: OpenSearch) -> None:
    space = make_space("good", "useless", "harmful", "best")
    subject = TableSubject(additive(good=0.9, harmful=1.02, best=0.8))
    evaluator = open_search(space, subject).evaluator
    everything = point(space, "good", "useless", "harmful", "best")
    evaluator.many([space.baseline, everything])
    left, parts = ablate(evaluator, everything)
    assert space.texts(left) == ("good", "best")
    assert [(part.text, part.dropped) for part in parts] == [
        ("harmful", True),
        ("useless", True),
        ("good", False),
        ("best", False),
    ]
    shares = {part.text: part.share.ratio for part in parts if part.share}
    assert shares["good"] == pytest.approx(0.9) and shares["best"] == pytest.approx(0.8)
    assert all(part.share and part.share.exact and part.share.interval is None for part in parts)


def test_of_two_that_do_the_same_one_stays(open_search: OpenSearch) -> None:
    space = make_space("one", "other")
    subject = TableSubject(lambda names: 900.0 if names else 1000.0)
    evaluator = open_search(space, subject).evaluator
    evaluator.many([space.baseline, point(space, "one", "other")])
    left, parts = ablate(evaluator, point(space, "one", "other"))
    assert len(space.texts(left)) == 1 and [part.dropped for part in parts] == [True, False]


def test_what_is_wrong_without_it_is_needed(open_search: OpenSearch) -> None:
    space = make_space("fast", "cure")
    subject = TableSubject(additive(fast=0.5, cure=1.1))
    subject.judge = lambda made, executor: (  # type: ignore[method-assign]
        TableSubject.judge(TableSubject(subject.value, wrong=frozenset({"fast"})), made)
        if subject.names(made) == {"fast"}
        else TableSubject.judge(TableSubject(subject.value), made)
    )
    evaluator = open_search(space, subject).evaluator
    both = point(space, "fast", "cure")
    evaluator.many([space.baseline, both])
    left, parts = ablate(evaluator, both)
    assert left == both
    assert [part.needed.startswith("without it wrong") for part in parts] == [False, True]


def test_shares_with_noise_have_intervals(open_search: OpenSearch) -> None:
    """2 % of noise: 10 % are shown, half a percent is not, and is dropped."""
    source = random.Random(5)
    noise = [1 + source.uniform(-0.02, 0.02) for _ in range(1000)]
    space = make_space("good", "hardly")
    subject = TableSubject(additive(good=0.9, hardly=0.999))
    evaluator = open_search(space, subject, TableMeter(subject, lambda at: noise[at])).evaluator
    both = point(space, "good", "hardly")
    evaluator.many([space.baseline, both])
    left, parts = ablate(evaluator, both)
    assert space.texts(left) == ("good",)
    (good,) = [part for part in parts if not part.dropped]
    assert good.share and good.share.interval and not good.share.exact
    assert good.share.interval.low < 0.9 < good.share.interval.high < 1
    (dropped,) = [part for part in parts if part.dropped]
    assert dropped.share and dropped.share.interval and dropped.share.interval.high >= 1


# --- budget, resume, journal ----------------------------------------------------------------------


def test_a_budget_of_trials(open_search: OpenSearch) -> None:
    space = make_space("a", "b", "c")
    subject = TableSubject(additive(a=0.9))
    evaluator = open_search(space, subject, None, SearchLimits(max_trials=5)).evaluator
    with pytest.raises(BudgetSpent):
        exhaustive(evaluator, 8)
    assert len(evaluator.trials) == 5 == len(subject.builds)


def test_resume_runs_nothing_again(open_search: OpenSearch) -> None:
    space = make_space("a", "b", "n")
    subject = TableSubject(additive(a=0.9, b=0.8), wrong=frozenset({"b"}), noop=frozenset({"n"}))
    first = open_search(space, subject).evaluator
    exhaustive(first, 8)
    known = dict(first.trials)
    again = TableSubject(subject.value, wrong=subject.wrong, noop=subject.noop)
    second = open_search(space, again).evaluator
    assert exhaustive(second, 8) == exhaustive(first, 8) == point(space, "a")
    assert not again.builds and second.trials == known and second.counters.replayed == 8


def test_an_object_whose_first_line_is_lost_is_not_judged_again(open_search: OpenSearch) -> None:
    """Killed between two lines: a trial with an equal object is there, the one that was judged is not."""
    space = make_space("n")
    subject = TableSubject(additive(), noop=frozenset({"n"}))
    opened = open_search(space, subject)
    opened.evaluator.one((0,))
    opened.evaluator.one((1,))
    lines = opened.run.journal.read_text().splitlines(keepends=True)
    opened.run.journal.write_text("".join(line for line in lines if '"named":{}' not in line))
    again = TableSubject(subject.value, noop=subject.noop)
    trial = open_search(space, again).evaluator.one((0,))
    assert again.builds and not again.judged and trial.state == "right" and trial.same_as == 0


def test_a_journal_of_another_space(open_search: OpenSearch) -> None:
    open_search(make_space("a"), TableSubject(additive())).evaluator.many([(0,), (1,)])
    with pytest.raises(JournalUnreadable, match="no trial of this space"):
        open_search(make_space("b"), TableSubject(additive()))


def test_what_is_built_is_in_the_journal_before_it_is_used(open_search: OpenSearch) -> None:
    opened = open_search(make_space("a", "b"), TableSubject(additive(a=0.5)))
    opened.evaluator.many([(0, 0), (1, 0)])
    lines = [json.loads(line) for line in opened.run.journal.read_text().splitlines()]
    trials = {tuple(line["named"]): (line["state"], line["value"]) for line in lines if line["t"] == "trial"}
    assert trials == {(): ("right", 1000.0), ("a",): ("right", 500.0)}


# --- whole searches -------------------------------------------------------------------------------


def whole(opened: Any, subject: TableSubject, book: Path, *, strategy: str = "exhaustive", meter: Any = None) -> Any:
    request = SearchRequest(subject, opened.evaluator.space, meter or TableMeter(subject), strategy, bound=64)
    recorder = Recorder(Book(book), subject, request.space, request.meter, opened.run.root, why="because", commit=None)
    report = run_search(request, opened.run, opened.journal, opened.evaluator.executor, recorder, {}, Hooks())
    recorder.search(report)
    return report


def test_wrong_is_a_finding_and_never_a_winner(open_search: OpenSearch, tmp_path: Path) -> None:
    space = make_space("a", "b")
    subject = TableSubject(additive(a=0.9, b=0.1), wrong=frozenset({"b"}))
    report = whole(open_search(space, subject), subject, tmp_path / "book")
    assert report.status == "found" and report.winner.flags == ("a",) and report.winner.confirmed
    assert [(one.flags, one.why) for one in report.findings] == [(("b",), ("mccprobe", "why", "b"))]
    entries = Book(tmp_path / "book").entries()
    assert {entry.flags: str(entry.verdict) for entry in entries if entry.kind == "trial"} == {
        (): "GOOD",
        ("a",): "GOOD",
        ("b",): "BAD",
        ("a", "b"): "BAD",
    }
    assert sum(entry.kind == "trial" for entry in entries) == 4 and entries[-1].kind == "search"
    assert entries[-1].flags == ("a",) and entries[-1].figures["ratio"].value == pytest.approx(0.9)
    assert {entry.why for entry in entries} == {"because"}


def test_a_book_that_a_kill_left_behind_is_completed(open_search: OpenSearch, tmp_path: Path) -> None:
    space = make_space("a", "b")
    subject = TableSubject(additive(a=0.9))
    whole(open_search(space, subject), subject, tmp_path / "first")
    whole(open_search(space, subject), subject, tmp_path / "second")
    whole(open_search(space, subject), subject, tmp_path / "second")
    texts = [entry.text for entry in Book(tmp_path / "second").entries()]
    assert len(texts) == len(set(texts)) == 5


def test_compiled_only_is_no_winner(open_search: OpenSearch, tmp_path: Path) -> None:
    space = make_space("a")
    subject = TableSubject(additive(a=0.9), compile_only=True)
    report = whole(open_search(space, subject), subject, tmp_path / "book")
    assert report.status == "compiled-only" and report.winner is None and report.lowest.flags == ("a",)
    assert {trial.state for trial in report.trials} == {"compiled only"}


def test_a_winner_that_does_not_hold_is_none(open_search: OpenSearch, tmp_path: Path) -> None:
    """The gate says BAD at the last look: no winner, and it is told."""
    space = make_space("a")
    subject = TableSubject(additive(a=0.9))
    seen: list[str] = []
    plain = subject.judge

    def judge(made: Any, executor: Any) -> Any:
        seen.append(made.folder.name)
        bad = TableSubject(subject.value, wrong=frozenset({"a"}))
        return bad.judge(made) if seen.count("a") > 1 else plain(made)

    subject.judge = judge  # type: ignore[method-assign]
    report = whole(open_search(space, subject), subject, tmp_path / "book")
    assert report.status == "nothing-better" and report.winner is None and "no winner" in report.notes[0]


def test_luck_is_no_winner(open_search: OpenSearch, tmp_path: Path) -> None:
    """30 flags without effect, 2 % of noise: each search shows that some helps, and a new measurement that none does.

    Without that every fourth of these searches had a winner; each that is left has a chance of 2 % more.
    """
    names = [f"f{number}" for number in range(30)]
    winners, lucky = [], 0
    for seed in range(40):
        source = random.Random(seed)
        subject = TableSubject(additive())
        meter = TableMeter(subject, lambda at, source=source: source.lognormvariate(0, 0.02))  # type: ignore[misc]
        space, place = make_space(*names), tmp_path / f"run-{seed}"
        with closing(Journal(RunDirectory(place).journal)) as journal:
            request = SearchRequest(subject, space, meter)
            recorder = Recorder(None, subject, space, meter, place, why="", commit=None)
            executor = open_search(space, subject).evaluator.executor
            report = run_search(request, RunDirectory(place), journal, executor, recorder, {}, Hooks())
        lines = [json.loads(line) for line in (place / "journal.jsonl").read_text().splitlines()]
        lucky += any(one["t"] == "share" and one["again"] for one in lines)
        winners += [report.winner] if report.winner is not None else []
    assert lucky >= 5, "nothing was there to be fooled by"
    assert len(winners) <= 1, [winner.share for winner in winners]


def test_a_share_that_was_measured_anew_is_not_measured_a_third_time(open_search: OpenSearch) -> None:
    space, noise = make_space("a"), itertools.cycle((1.0, 1.01))
    subject = TableSubject(additive(a=0.9))
    meter = TableMeter(subject, lambda at: next(noise))
    first = open_search(space, subject, meter).evaluator
    first.many([(0,), (1,)])
    shares = first.compare((1,), (0,)), first.compare((1,), (0,), again=True)
    count = meter.measured
    second = open_search(space, subject, meter).evaluator
    assert (second.compare((1,), (0,)), second.compare((1,), (0,), again=True)) == shares
    assert meter.measured == count


def test_the_build_without_flags_must_be_a_measure(open_search: OpenSearch, tmp_path: Path) -> None:
    space = make_space("a")
    subject = TableSubject(additive())
    subject.judge = lambda made, executor: TableSubject.judge(  # type: ignore[method-assign]
        TableSubject(subject.value, wrong=frozenset({"a"})), made
    )
    broken = TableSubject(additive())
    broken.build = lambda *a: TableSubject(broken.value, unbuilt=frozenset({"x"})).build(  # type: ignore[method-assign]
        (("x",),), (), tmp_path
    )
    with pytest.raises(SourceDoesNotCompile, match="without flags"):
        whole(open_search(space, broken), broken, tmp_path / "book")


def test_a_wrong_baseline_is_refused(open_search: OpenSearch, tmp_path: Path) -> None:
    subject = TableSubject(additive())
    bad = TableSubject(subject.value)
    bad.names = lambda made: frozenset({"x"})  # type: ignore[method-assign]
    bad.wrong = frozenset({"x"})
    with pytest.raises(OracleUnusable, match="without flags is wrong"):
        whole(open_search(make_space("a"), bad), bad, tmp_path / "book")
