"""The flag x pass x function table, on a real fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.run import Progress, run_bisection
from mccprobe.bisection.passes.workspace import Workspace, open_workspace
from mccprobe.build.ledger import Ledger
from mccprobe.build.session import Session
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.facts import build_facts, without_levels
from mccprobe.explain.flag_sets.pass_table import AS_COMPILED, flag_pass_table
from mccprobe.explain.judged import Judging
from mccprobe.report.record import BisectReport, Confirmation
from mccprobe.report.why_record import PassCell

CASE = Path(__file__).resolve().parents[1] / "cases" / "07-loop-interchange" / "test.c"
FAULT, HARMLESS = "-enable-loopinterchange", "-enable-newgvn"
SWITCH = "-enable-loopinterchange=false"

pytestmark = pytest.mark.toolchain("clang-14")


@dataclass
class Bisected:
    workspace: Workspace
    report: BisectReport

    def table(self, deadline: Deadline | None = None) -> dict[tuple[str, str, str], PassCell]:
        judging = Judging(self.workspace, needed=2)
        cells = flag_pass_table(
            self.workspace, self.report, judging, tell=lambda text: None, deadline=deadline or Deadline()
        )
        found = {(cell.flag, cell.pass_state, cell.function.partition(" on ")[0]): cell for cell in cells}
        assert len(found) == len(cells)
        return found


@pytest.fixture(scope="module")
def bisected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Bisected]]:
    """`bisected(flags)`: one bisection for each set of flags, shared by the tests."""
    session, folder = Session(2), tmp_path_factory.mktemp("table")
    known: dict[tuple[str, ...], BisectReport] = {}

    def make(*flags: str) -> Bisected:
        options = BisectOptions(file=str(CASE), compiler="clang-14", flags=flags, args=("-O3",))
        run, journal = session.open(folder / "+".join(flags))
        request = make_plan(options, folder).request
        if flags not in known:
            known[flags] = run_bisection(request, run, journal, session.executor, Progress())
        return Bisected(open_workspace(request, Ledger(run, journal, session.executor), journal), known[flags])

    yield make
    session.close()


def test_eight_cells(bisected: Callable[..., Bisected]) -> None:
    made = bisected(FAULT)
    assert made.report.culprit is not None and made.report.culprit.function == "relax"
    cells = made.table()
    verdicts = {key: cell.verdict for key, cell in cells.items()}
    assert verdicts == {
        ("on", "on", AS_COMPILED): "BAD",
        ("on", "off", AS_COMPILED): "GOOD",
        ("on", "on", "optnone"): "GOOD",
        ("on", "off", "optnone"): None,
        ("off", "on", AS_COMPILED): "GOOD",
        ("off", "off", AS_COMPILED): None,
        ("off", "on", "optnone"): "GOOD",
        ("off", "off", "optnone"): None,
    }
    before = made.report.culprit.execution - 1
    assert cells["on", "off", AS_COMPILED].how == f"-opt-bisect-limit={before} (it and all later ones)"
    for cell in cells.values():
        judged = cell.verdict is not None
        assert judged == (cell.object is not None) and cell.runs == (2 if judged else 0)
        assert judged or cell.how.startswith("not run: ")
        assert cell.fails == (2 if cell.verdict == "BAD" else 0)
    assert cells["on", "on", AS_COMPILED].object == made.workspace.unit.base[0]


def test_a_switch_fills_every_cell(bisected: Callable[..., Bisected]) -> None:
    """With an option that switches the pass off, no limit is needed."""
    made = bisected(FAULT)
    made.report = replace(made.report, confirmation=Confirmation("option", "", SWITCH))
    cells = made.table()
    assert {cell.how for key, cell in cells.items() if key[1] == "off"} == {SWITCH, f"optnone, {SWITCH}"}
    assert [key for key, cell in cells.items() if cell.verdict == "BAD"] == [("on", "on", AS_COMPILED)]
    assert all(cell.verdict for cell in cells.values())


def test_each_flag_of_a_set_has_rows(bisected: Callable[..., Bisected]) -> None:
    cells = bisected(FAULT, HARMLESS).table()
    settings = {f"without -mllvm {FAULT}": "GOOD", f"without -mllvm {HARMLESS}": "BAD", "on": "BAD", "off": "GOOD"}
    assert {flag: cells[flag, "on", AS_COMPILED].verdict for flag in settings} == settings
    assert {key[0] for key in cells} == set(settings)


def test_without_a_function_four_cells(bisected: Callable[..., Bisected]) -> None:
    made = bisected(FAULT)
    assert made.report.culprit is not None
    made.report = replace(made.report, culprit=replace(made.report.culprit, symbol=None, function=None))
    assert {key[2] for key in made.table()} == {AS_COMPILED}


def test_no_time_left(bisected: Callable[..., Bisected]) -> None:
    cells = bisected(FAULT).table(Deadline(0.0))
    assert all(cell.verdict is None and cell.how.startswith("not run: ") for cell in cells.values())


def test_other_builds(bisected: Callable[..., Bisected]) -> None:
    made = bisected(FAULT)
    facts = build_facts(made.workspace, Judging(made.workspace, needed=2), tell=lambda text: None, deadline=Deadline())
    assert [(fact.build.split(" with")[0].split(":")[0], fact.verdict) for fact in facts] == [
        ("compiler defaults", "GOOD"),
        ("-O0", "GOOD"),
        ("-O2", "BAD"),
        ("-Od3", None),
    ]
    assert "does not take -Od3" in facts[-1].text
    late = build_facts(made.workspace, Judging(made.workspace, needed=2), tell=lambda text: None, deadline=Deadline(0))
    assert {fact.verdict for fact in late} == {None}


def test_levels_are_taken_out() -> None:
    args = ("-O3", "-Od3", "-DO=1", "-mllvm", "-O9x", "-O", "-Ofast", "-I", "-O2")
    assert without_levels(args) == ("-DO=1", "-mllvm", "-O9x", "-I", "-O2")
