"""Which changes are tried, in which order, and what the matrix says of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mccprobe.bisection.passes.options import BisectOptions
from mccprobe.bisection.passes.plan import make_plan
from mccprobe.bisection.passes.workspace import Workspace, open_workspace
from mccprobe.build.ledger import Ledger
from mccprobe.build.session import Session
from mccprobe.explain import workarounds as module
from mccprobe.explain.deadline import Deadline
from mccprobe.explain.judged import MOST_RUNS, Judging, runs_needed
from mccprobe.explain.locate.changes import possible_changes, stems
from mccprobe.oracle.checks import KernelOracle
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.report.record import BisectReport, Culprit, Status
from mccprobe.report.why_record import StepState
from mccprobe.targets.flags.catalogue import load_catalogue
from mccprobe.targets.flags.harvest import Harvest, read_help
from mccprobe.targets.passes.table import load_pass_table

CASE = Path(__file__).resolve().parents[1] / "cases" / "07-loop-interchange" / "test.c"
SCHEDULER = "Machine Instruction Scheduler"
HELP = """OPTIONS:

  --disable-far-misched            - Disable something of another target
  --enable-misched                 - Enable the machine instruction scheduling pass.
  --misched=<value>                - Machine instruction scheduler to use
    =default                       -   Use the target's default scheduler choice.
    =converge                      -   Standard converging scheduler.
    =ilpmax                        -   Schedule bottom-up for max ILP
  --misched-cluster                - Enable memop clustering.
  --misched-limit=<uint>           - Limit ready list to N instructions
  --misched-assume-no-alias        - Promise something
  --misched-topdown                - Force top-down list scheduling
  --mischedule                     - another word
"""
SETTINGS = "  --misched-cluster = 1 (default: 1)\n  --enable-misched = 1 (default: 1)\n"


@pytest.fixture
def harvest() -> Harvest:
    return read_help(HELP, SETTINGS)


def texts(
    harvest: Harvest | None,
    *,
    title: str = SCHEDULER,
    given: tuple[str, ...] = (),
    symbol: str | None = "f",
    flags: tuple[str, ...] = ("mtgpu-enable-internal-regs-ra",),
    code_generator: bool = True,
) -> list[str]:
    catalogue = load_catalogue()
    found = possible_changes(
        load_pass_table().find(title),
        [catalogue.flags[name] for name in flags],
        catalogue,
        harvest,
        given=given or flags,
        symbol=symbol,
        in_code_generator=code_generator,
    )
    return [" ".join(change.options) or f"optnone {change.function}" for change in found]


def test_the_order_is_what_is_told_first(harvest: Harvest) -> None:
    assert texts(harvest) == [
        "-enable-misched=false",
        "-misched=converge",
        "--internal-opt-user-fop=false",
        "--internal-opt-user-int=false",
        "--internal-opt-user-bit=false",
        "--internal-opt-user-fop=false --internal-opt-user-int=false --internal-opt-user-bit=false",
        "-misched=default",
        "optnone f",
        "-disable-far-misched",
        "-misched-cluster=false",
        "-misched=ilpmax",
    ]


def test_without_a_help_the_catalogues_schedulers_are_tried() -> None:
    found = texts(None)
    assert "-misched=mtgpu-max-ilp" in found and "-misched-cluster=false" not in found


def test_a_flag_that_is_given_is_not_changed(harvest: Harvest) -> None:
    found = texts(harvest, given=("misched", "internal-opt-user-fop"))
    assert not [text for text in found if text.startswith("-misched=") or "user-fop" in text]


def test_an_ir_pass_gets_no_scheduler(harvest: Harvest) -> None:
    found = texts(harvest, title="LoopFlattenPass", flags=(), given=("x",), symbol=None, code_generator=False)
    assert not [text for text in found if "misched" in text or "optnone" in text]


def test_members_of_a_bundle_are_switched_off_again(harvest: Harvest) -> None:
    assert "-mtgpu-enable-const-calc=0" in texts(harvest, title="none", flags=("mtgpu-opt-level",))


def test_stems() -> None:
    flag = load_catalogue().flags["mtgpu-enable-internal-regs-ra"]
    assert stems(load_pass_table().find(SCHEDULER), [flag]) == ("misched", "machine-scheduler", "internal-regs-ra")


# --- the runs of one object ----------------------------------------------------------------------


class ScriptedJudge:
    """Says of each object what its script says, run by run; the last word is repeated."""

    def __init__(self, script: dict[str, str]) -> None:
        self.script = script
        self.asked: list[str] = []
        self.program = SimpleNamespace(linker=None, unit=SimpleNamespace(variant="bad"))

    def run(self, digest: str) -> Outcome:
        number = self.asked.count(digest)
        self.asked.append(digest)
        words = self.script[digest]
        letter = words[min(number, len(words) - 1)]
        verdict = {"g": Verdict.GOOD, "b": Verdict.BAD, "u": Verdict.UNRESOLVED}[letter]
        return Outcome(verdict, letter, float(number))


@pytest.mark.parametrize(
    ("script", "needed", "expected"),
    [
        ("g", 2, (Verdict.GOOD, 0, 2)),
        ("b", 2, (Verdict.BAD, 2, 2)),
        ("gb", 2, (Verdict.BAD, 1, 2)),
        ("gggb", 10, (Verdict.BAD, 1, 4)),
        ("g", 10, (Verdict.GOOD, 0, 10)),
        ("u", 5, (Verdict.UNRESOLVED, 0, 1)),
        ("g", MOST_RUNS + 1, (Verdict.UNRESOLVED, 0, MOST_RUNS)),
    ],
)
def test_fails_and_runs(script: str, needed: int, expected: tuple[Verdict, int, int]) -> None:
    judge = ScriptedJudge({"x": script})
    settings = SimpleNamespace(endpoint_repeats=2)
    workspace = SimpleNamespace(judge=judge, linker=None, request=SimpleNamespace(settings=settings))
    judging = Judging(cast(Workspace, workspace), needed=needed)
    found = judging.of("x")
    assert (found.verdict, found.fails, found.runs) == expected
    assert judging.of("x") is found and len(judge.asked) == expected[2], "one program is judged once"
    assert found.max_err == expected[2] - 1


@pytest.mark.parametrize(
    ("rate", "runs"), [(None, 2), ((1.0, 1.0, 1.0), 2), ((0.5, 0.6, 0.7), 7), ((0.0, 0.1, 0.5), 101)]
)
def test_a_flaky_fault_needs_more_good_runs(rate: tuple[float, float, float] | None, runs: int) -> None:
    report = BisectReport(Status.FOUND, "clang", "", "", False, "", (), failure_rate=rate)
    assert runs_needed(report, least=2, confidence=0.99) == runs
    assert runs_needed(None, least=3, confidence=0.99) == 3


# --- with a real compiler -----------------------------------------------------------------------


@pytest.fixture
def interchange(compiler: Callable[..., str], tmp_path: Path) -> Iterator[Workspace]:
    options = BisectOptions(file=str(CASE), compiler=compiler(14), flags=("-enable-loopinterchange",), args=("-O3",))
    session = Session(2)
    run, journal = session.open(tmp_path / "run")
    request = make_plan(options, tmp_path).request
    yield open_workspace(request, Ledger(run, journal, session.executor), journal)
    session.close()


def matrix(workspace: Workspace, *, deadline: Deadline | None = None, symbol: str | None = "relax") -> Any:
    culprit = Culprit("LoopInterchangePass", "loop-interchange", symbol, symbol, "log", 1, 2)
    flags = [load_catalogue().resolve("-enable-loopinterchange")]
    return module.workarounds(
        workspace,
        flags,
        culprit,
        Judging(workspace, needed=2),
        tell=lambda text: None,
        deadline=deadline or Deadline(),
    )


@pytest.mark.toolchain
def test_matrix_of_a_real_fault(interchange: Workspace) -> None:
    found = matrix(interchange)
    rows = {row.change: row for row in found.rows}
    first, second, *changes = found.rows
    assert (first.change, first.verdict, first.no_effect) == (module.BASELINE, "BAD", False)
    assert (second.change, second.verdict) == ("without -mllvm -enable-loopinterchange", "GOOD")
    assert rows["optnone on relax"].verdict == "GOOD"
    assert "-force-attribute=relax:optnone" in rows["optnone on relax"].argv
    assert found.state is StepState.DONE and not found.untried
    for row in changes:
        assert row.no_effect == (row.object == first.object)
        assert row.runs >= 2 or row.verdict == "UNRESOLVED"
        assert row.speed_s is None


@pytest.mark.toolchain
def test_the_limit_lists_what_was_left_out(interchange: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TRIED", 0)
    found = matrix(interchange)
    assert len(found.rows) == 2
    assert "optnone on relax (only 0 are tried)" in found.untried


@pytest.mark.toolchain
def test_a_spent_budget_keeps_the_baseline(interchange: Workspace) -> None:
    found = matrix(interchange, deadline=Deadline(0.0))
    assert found.state is StepState.BUDGET
    assert [row.change for row in found.rows] == [module.BASELINE]
    assert "optnone on relax (no time left)" in found.untried


@pytest.mark.toolchain
def test_no_function_no_optnone(interchange: Workspace) -> None:
    assert any("names no function" in text for text in matrix(interchange, symbol=None).untried)


# --- speed --------------------------------------------------------------------------------------


def speed(tmp_path: Path, printed: str, *, simulated: bool = False, timing: bool | str = True) -> float | None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}\nEND\n")
    program.chmod(0o755)
    toolchain = SimpleNamespace(simulated=simulated, capabilities=lambda: SimpleNamespace(timing=timing))

    class Run:
        def scratch(self, name: str) -> Any:
            import tempfile

            return tempfile.TemporaryDirectory(dir=tmp_path)

    workspace = SimpleNamespace(
        oracle=KernelOracle("small"),
        request=SimpleNamespace(toolchain=toolchain),
        ledger=SimpleNamespace(run=Run()),
    )
    judge = SimpleNamespace(program=SimpleNamespace(replace=lambda digest: program))
    return module.device_seconds(cast(Workspace, workspace), cast(Any, judge), "0" * 64)


def test_speed_only_by_an_honest_clock(tmp_path: Path) -> None:
    printed = json.dumps({"milliseconds": [90.0, 4.0, 6.0, 5.0]})
    assert speed(tmp_path, printed) == pytest.approx(0.005)  # the first run warms up
    assert speed(tmp_path, printed, simulated=True) is None
    assert speed(tmp_path, printed, timing="not probed") is None
    assert speed(tmp_path, "no document") is None
    assert speed(tmp_path, json.dumps({"milliseconds": [1.0]})) is None
