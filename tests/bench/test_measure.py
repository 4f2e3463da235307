"""What is timed and what is refused, with timers that tell given times."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mccprobe.oracle.kernel.spec import Case, shipped_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.tuning.bench.clock import EMULATION, ProcessTimer, Reading
from mccprobe.tuning.bench.health import Health
from mccprobe.tuning.bench.measure import Side, measure
from mccprobe.tuning.bench.session import BenchSettings, Contender, Hooks, bench_kernels
from mccprobe.tuning.check.check import Coverage, GateReport
from mccprobe.tuning.check.score import BASELINE_GFLOPS, grader_score, speed_points

CASE = Case("large", 8192, 8192, 16384)
Launches = Mapping[str, int]


@dataclass
class ToldTimer:
    """Times as given, in turn; everything else of a reading as set."""

    times: list[float | None]
    label: str = "device events"
    kernel_performance: bool = True
    resolution_ms: float = 0.001
    verdict: Verdict = Verdict.GOOD
    reason: str = ""
    outputs: list[str] = field(default_factory=lambda: ["same"])
    launches: Launches | None = field(default_factory=lambda: {"k": 1})
    zero_share: float | None = 0.0
    log: list[str] | None = None
    name: str = ""
    count: int = 0

    def read(self, ordinal: int) -> Reading:
        if self.log is not None:
            self.log.append(f"{self.name}{ordinal}")
        time = self.times[self.count % len(self.times)]
        output = self.outputs[self.count % len(self.outputs)]
        self.count += 1
        return Reading(time, self.verdict, self.reason, output, self.launches, self.zero_share)


def gate(*checked: str, unchecked: tuple[str, ...] = (), faults: tuple[str, ...] = ()) -> GateReport:
    """A report that passed with these kernels (its cases are those of `passing_case`)."""
    from mccprobe.tuning.check.build import CaseResult
    from mccprobe.tuning.check.cases import PlannedCase
    from mccprobe.tuning.check.check import CheckedCase

    case = Case("c", 1, 1, 1)
    result = CaseResult(case, 1, Verdict.GOOD, "", 0.0, 1.0, dict.fromkeys(checked, 1), 0.1, device="MTT S4000")
    coverage = [Coverage(name, ("c",), True) for name in checked] + [Coverage(name, (), False) for name in unchecked]
    return GateReport(
        shipped_kernel("gemm"),
        "mcc",
        False,
        "full",
        (),
        (),
        None,
        None,
        (CheckedCase(PlannedCase(case, "declared", None, False), result),),
        (),
        tuple(coverage),
        faults,
    )


def test_figures_of_a_checked_kernel() -> None:
    source = random.Random(1)
    timer = ToldTimer([30 * source.gauss(1, 0.01) for _ in range(20)])
    found = measure([Side("k", timer, gate("k"), CASE)])
    assert not found.refused
    (side,) = found.sides
    assert side.summary.count == 20
    assert side.tflops is not None
    assert side.tflops.median == pytest.approx(2 * 8192 * 8192 * 16384 / 30e-3 / 1e12, rel=0.02)
    assert side.launches == {"k": 20}


def test_a_measurement_kernel_has_no_tflops() -> None:
    """M blocks of N threads with K steps are no 2*M*N*K operations."""
    report = replace(gate("k"), kernel=shipped_kernel("barrier"))
    found = measure([Side("k", ToldTimer([1.0]), report, CASE)])
    assert not found.refused and found.sides[0].tflops is None
    assert any("no shape of a GEMM; no TFLOPS" in note for note in found.notes)


def test_pairs_are_read_in_turn_and_the_order_changes() -> None:
    log: list[str] = []
    sides = [Side(n, ToldTimer([1.0], log=log, name=n), gate("k"), CASE) for n in "AB"]
    measure(sides, rounds=20)
    pairs = [log[at : at + 2] for at in range(0, 40, 2)]
    assert all(sorted(pair) == [f"A{round_}", f"B{round_}"] for round_, pair in enumerate(pairs))
    first = "".join(pair[0][0] for pair in pairs)
    assert first.count("A") == first.count("B") == 10
    assert first not in ("AB" * 10, "BA" * 10)


@pytest.mark.parametrize("states", ["FSSF", "FS", "FFSS", "FSS", "FFS", "FFSSS"])
def test_a_clock_in_step_with_the_turns_makes_no_difference(states: str) -> None:
    """Two equal builds under the article's two clocks (55 and 80 TFLOPS), which change every 2 or 3 readings.

    In strict turns FSSF gives A all of F and B all of S. What is left is the 5 % of a 95 % interval.
    """
    shown = 0
    for seed in range(40):
        clock, source = itertools.cycle(states), random.Random(seed)
        for _ in range(seed % len(states)):
            next(clock)

        class Shared(ToldTimer):
            def read(self, ordinal: int, clock: Iterator[str] = clock, source: random.Random = source) -> Reading:
                self.times = [(27.5 if next(clock) == "F" else 40.0) * source.gauss(1, 0.005)]
                return super().read(ordinal)

        found = measure([Side(name, Shared([]), gate("k"), CASE) for name in "AB"])
        assert found.ratio is not None
        shown += found.ratio.shown != "not shown"
        assert any("two states" in note for note in found.notes)
    assert shown <= 4


def test_warm_runs_are_read_and_dropped() -> None:
    timer = ToldTimer([100.0, 100.0, 1.0, 1.0, 1.0])
    found = measure([Side("p", timer)], rounds=3, warm_runs=2)
    assert found.sides[0].samples_ms == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("timer", "report", "reason"),
    [
        (ToldTimer([1.0], zero_share=1.0), gate("k"), "all-zero input"),
        (ToldTimer([1.0], launches={"other": 1}), gate("k"), "timed but never checked by a correctness case: other"),
        (ToldTimer([1.0], launches={"k": 1, "fast": 1}), gate("k", unchecked=("fast",)), "never checked"),
        (ToldTimer([1.0], launches=None), gate("k"), "does not report"),
        (ToldTimer([1.0], verdict=Verdict.BAD, reason="9 wrong"), gate("k"), "the output after timing is BAD: 9 wrong"),
        (ToldTimer([1.0], verdict=Verdict.UNRESOLVED), gate("k"), "UNRESOLVED"),
        (ToldTimer([None]), gate("k"), "no time"),
        (ToldTimer([0.0]), gate("k"), "no time"),
        (ToldTimer([1.0]), gate("k", faults=("kernel fast is unchecked",)), "the gate did not pass: kernel fast"),
    ],
)
def test_refusals_have_no_figures(timer: ToldTimer, report: GateReport, reason: str) -> None:
    found = measure([Side("k", timer, report, CASE)], rounds=3)
    assert any(words in found.refused for words in reason.split("|")), found.refused
    assert found.sides == ()
    assert found.ratio is None
    assert found.to_dict()["status"] == "refused"


def test_a_failed_gate_is_not_even_read() -> None:
    timer = ToldTimer([1.0])
    measure([Side("k", timer, gate("k", faults=("x",)), CASE)])
    assert timer.count == 0


def test_an_output_that_goes_wrong_late_is_seen() -> None:
    class Late(ToldTimer):
        def read(self, ordinal: int) -> Reading:
            self.verdict = Verdict.BAD if ordinal == 19 else Verdict.GOOD
            return super().read(ordinal)

    assert "BAD" in measure([Side("k", Late([1.0]), gate("k"), CASE)]).refused


def test_emulation_gives_no_tflops() -> None:
    found = measure([Side("k", ToldTimer([1.0], label=EMULATION, kernel_performance=False), gate("k"), CASE)])
    assert found.sides[0].tflops is None
    assert not found.kernel_performance
    assert any("SIMULATED" in note and "no TFLOPS" in note for note in found.notes)


def test_programs_must_print_the_same() -> None:
    changing = ToldTimer([5.0], verdict=Verdict.UNRESOLVED, outputs=["a", "b"])
    assert "from run to run" in measure([Side("p", changing)], rounds=4).refused
    one, other = (ToldTimer([5.0], verdict=Verdict.UNRESOLVED, outputs=[text]) for text in "ab")
    assert "different results" in measure([Side("p", one), Side("q", other)], rounds=4).refused


def test_every_reading_gets_the_file_of_standard_input(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("8\n")
    timer = ProcessTimer(("cat",), stdin=numbers)
    outputs = {timer.read(0).output, timer.read(1).output, ProcessTimer(("cat", str(numbers))).read(0).output}
    assert len(outputs) == 1 and ProcessTimer(("cat",)).read(0).output not in outputs


def test_two_states_are_told() -> None:
    source = random.Random(4)
    times: list[float | None] = [(27.5 if n % 2 else 40.0) * source.gauss(1, 0.01) for n in range(20)]
    found = measure([Side("k", ToldTimer(times), gate("k"), CASE)])
    assert found.sides[0].clusters is not None
    assert any("two states" in note and "DVFS" in note for note in found.notes)


def test_a_process_that_is_mostly_its_start_is_told() -> None:
    found = measure([Side("p", ToldTimer([2.0], resolution_ms=1.0), None)], rounds=6)
    assert any("starting any process" in note for note in found.notes)


def test_too_few_pairs_are_told() -> None:
    found = measure([Side(n, ToldTimer([1.0]), gate("k"), CASE) for n in "AB"], rounds=3)
    assert found.ratio is not None
    assert found.ratio.interval is None
    assert any("too few" in note for note in found.notes)


def test_a_health_that_is_asked_for_and_not_known_is_no_health() -> None:
    """The GEMM does not run, so nobody knows whether the device has throttled: nothing is built or timed."""

    class Mcc:
        name, simulated = "mcc", False

    contenders = [Contender("gemm", shipped_kernel("gemm"))]
    unknown = Health(None, "unknown: the shipped GEMM gave no time")
    settings = BenchSettings(min_health=70.0)
    report = bench_kernels(contenders, Mcc(), settings, Path("/nowhere"), Hooks(), health=unknown)  # type: ignore[arg-type]
    assert "--min-health 70" in report.refused
    assert "gave no time" in report.refused
    assert report.gates == ()


# --- the grader's score ---------------------------------------------------------------------------


def test_points_for_speed() -> None:
    assert speed_points(BASELINE_GFLOPS) == (70.0, False)
    assert speed_points(0.3 * BASELINE_GFLOPS) == (70.0, False)
    points, assumed = speed_points(0.15 * BASELINE_GFLOPS)
    assert points == pytest.approx(35)
    assert assumed


def test_the_score_needs_mcc_on_an_s4000() -> None:
    from dataclasses import replace

    report = gate("k")
    assert "n/a" in grader_score(replace(report, simulated=True)).reason
    assert "n/a" in grader_score(replace(report, toolchain="clang")).reason
    other = replace(report.cases[0], result=replace(report.cases[0].result, device="MTT S80"))
    assert "not an S4000" in grader_score(replace(report, cases=(other,))).reason
    legacy = replace(
        report.cases[0], planned=replace(report.cases[0].planned, case=Case("small", 1, 1, 1, legacy=True))
    )
    full = grader_score(replace(report, cases=(legacy,)), case=CASE, gflops=73_800.0)
    assert full.points == 100.0
    assert full.assumed == ()
    slow = grader_score(replace(report, cases=(legacy,)), case=CASE, gflops=5_000.0)
    assert slow.points is not None
    assert 30 < slow.points < 100
    assert any("not published" in text for text in slow.assumed)
    assert grader_score(replace(report, cases=(legacy,)), case=Case("c", 8, 8, 8), gflops=73_800.0).points is None
