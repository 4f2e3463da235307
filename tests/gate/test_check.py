"""The gate's rules on host programs of every kind, without a compiler."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mccprobe.oracle.kernel.spec import Case, KernelSpec
from mccprobe.oracle.verdict import Verdict
from mccprobe.report.text.check import render_gate
from mccprobe.tuning.check.build import BuiltKernel, run_case
from mccprobe.tuning.check.check import GateReport, check_built

MakeBuilt = Callable[..., BuiltKernel]
CASE = Case("256x256x512", 256, 256, 512)


def checked(built: BuiltKernel, **options: object) -> GateReport:
    return check_built(built, seeds=(1, 2), **options)  # type: ignore[arg-type]


def test_a_right_kernel_passes(make_built: MakeBuilt) -> None:
    report = checked(make_built())
    assert report.passed, report.reasons()
    assert report.checked_kernels() == {"mega", "small"}
    assert {case.result.seed for case in report.cases if case.planned.why == "declared"} == {1, 2}


def test_the_article_s_three_months(make_built: MakeBuilt) -> None:
    """Its declared cases all go to the small kernel; the fast one is wrong, and only the branch case launches it."""
    report = checked(make_built("[ $kernel = small ] || { status=1 verdict=BAD err=36.2; }"))
    assert report.verdict is Verdict.BAD
    assert all(case.right for case in report.cases if case.planned.why == "declared")
    assert any(case.planned.expected == "mega" and case.result.verdict is Verdict.BAD for case in report.cases)
    assert report.checked_kernels() == {"small"}
    assert report.unchecked({"mega": 20, "small": 1}) == ["mega"]


def test_a_branch_that_nobody_wrote_down_is_found_in_the_object(make_built: MakeBuilt) -> None:
    report = checked(make_built(launchable=("hidden", "mega", "small")))
    assert report.verdict is Verdict.UNRESOLVED
    assert report.reasons() == ["kernel hidden can be launched, but is launched by no case: it is unchecked"]
    assert "hidden: UNCHECKED" in render_gate(report)


def test_a_dispatch_that_the_program_does_not_follow(make_built: MakeBuilt) -> None:
    report = checked(make_built("kernel=small"))
    assert not report.passed
    assert any("kernel.toml says that mega runs, but small ran" in reason for reason in report.reasons())


def test_a_described_kernel_that_is_not_there(make_built: MakeBuilt) -> None:
    report = checked(make_built(launchable=("small",)))
    assert any("mega, which is no kernel of the program" in reason for reason in report.reasons())


def test_a_launch_that_traps_is_no_kernel_that_nobody_launches(make_built: MakeBuilt) -> None:
    """The program ends before it can say what it launched; kernel.toml says it."""
    report = checked(make_built("if [ $kernel = mega ]; then echo 'sim: TRAP x' >&2; exit 125; fi"))
    unchecked = "kernel mega can be launched, but is launched only by cases that were not right: it is unchecked"
    assert unchecked in report.reasons()
    assert report.unchecked({"mega": 1}) == ["mega"]


def test_without_launches_nothing_is_checked(make_built: MakeBuilt) -> None:
    built = make_built()
    built.program.write_text(built.program.read_text().replace('"launches"', '"other"'))
    report = checked(built)
    assert report.verdict is Verdict.UNRESOLVED
    assert any("does not report its launches" in reason for reason in report.reasons())


def test_launchable_kernels_come_from_kernel_toml_where_the_object_does_not_tell(make_built: MakeBuilt) -> None:
    assert checked(make_built(launchable=None)).passed
    nothing = checked(make_built(launchable=None, dispatch=""))
    assert any("cannot tell which kernels can be launched" in reason for reason in nothing.reasons())


def test_a_search_stops_at_the_first_wrong_case(make_built: MakeBuilt) -> None:
    report = checked(make_built("status=1 verdict=BAD err=9"), stop_at_bad=True)
    assert report.verdict is Verdict.BAD
    assert len(report.cases) == 1
    assert report.stopped_early
    assert "not reached" in render_gate(report)


def test_a_refused_shape_that_kernel_toml_promises(make_built: MakeBuilt) -> None:
    body = "[ $kernel = small ] || { status=125 verdict=UNRESOLVED reason='no kernel takes this shape'; }"
    report = checked(make_built(body))
    assert any("mega takes it, but the program refuses it" in reason for reason in report.reasons())


# --- one run -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "verdict", "reason"),
    [
        ("", Verdict.GOOD, "max_err 0.0001"),
        ("status=1 verdict=BAD err=3", Verdict.BAD, "max_err 3"),
        ("status=1 verdict=BAD err=null", Verdict.BAD, "not finite"),
        ("err=0.5", Verdict.BAD, "above 0.01 of kernel.toml; the program itself allows 1"),  # its own tolerance is 1
        ("err=null", Verdict.UNRESOLVED, "without a finite max_err"),
        ("verdict=BAD", Verdict.UNRESOLVED, "exit 0, but its document says BAD"),
        ("m=128", Verdict.UNRESOLVED, "ran m = 128, not 256"),
        ("zeros=1", Verdict.UNRESOLVED, "all-zero input"),
        ("input=zero", Verdict.UNRESOLVED, "all-zero input"),
        ("seed=7", Verdict.UNRESOLVED, "ran seed = 7, not 1"),  # several seeds would be one
        ("elements=0", Verdict.UNRESOLVED, "compared no element"),
        ("mismatches=3", Verdict.UNRESOLVED, "3/65536 wrong, max_err 0.0001: exit 0 all the same"),
        ("mismatches='\"3\"'", Verdict.UNRESOLVED, "mismatches = 3, which is no count"),
        ("mismatches=true", Verdict.UNRESOLVED, "mismatches = True, which is no count"),
        ("mismatches=-3", Verdict.UNRESOLVED, "mismatches = -3, which is no count"),
        ("elements=16384", Verdict.UNRESOLVED, "compared only 16384 of 65536 elements"),  # a quarter of the work
        ("zeros=NaN", Verdict.UNRESOLVED, "zero_share = nan, which is no share"),
        ("zeros='\"0\"'", Verdict.UNRESOLVED, "zero_share = 0, which is no share"),
        ("zeros=-1", Verdict.UNRESOLVED, "zero_share = -1, which is no share"),
        ("input=ones", Verdict.UNRESOLVED, "input = ones, not random or zero"),
        ("err='7, \"max_err\": 0.0001'", Verdict.UNRESOLVED, "without the JSON document"),  # said twice
        ("trap 'kill -ILL $$' EXIT", Verdict.UNRESOLVED, "ends with signal SIGILL"),
        ("mismatches=3 err=0.5", Verdict.BAD, "above 0.01 of kernel.toml"),
        ("err=-1", Verdict.UNRESOLVED, "no error is below 0"),
        ("status=1 verdict=BAD", Verdict.UNRESOLVED, "0/65536 wrong, max_err 0.0001: exit 1 all the same"),
        ("status=125", Verdict.UNRESOLVED, "cannot tell"),
        ("status=3", Verdict.UNRESOLVED, "ends with exit 3"),
        ("exit 0", Verdict.UNRESOLVED, "without the JSON document"),
        ("kill -SEGV $$", Verdict.UNRESOLVED, "SIGSEGV"),
        ("echo 'mccprobe-sim: TRAP divergent WMMA' >&2; exit 125", Verdict.UNRESOLVED, "invalid program"),
        (
            r"printf 'sim: TRAP x: kernel k:\n  lanes 0-31: +0\n  lanes 32-63: +64\nmore\n' >&2; exit 125",
            Verdict.UNRESOLVED,
            "TRAP x: kernel k: lanes 0-31: +0; lanes 32-63: +64",
        ),
        ("exec sleep 60", Verdict.UNRESOLVED, "timeout"),
    ],
)
def test_verdict_of_one_run(make_built: MakeBuilt, body: str, verdict: Verdict, reason: str) -> None:
    built = make_built(body)
    result = run_case(built, CASE, timeout_s=1.0 if "sleep" in body else 60.0)
    assert result.verdict is verdict, result
    assert reason in result.reason
    assert [path.name for path in built.folder.iterdir()] == ["program"]  # nothing is left of a run


@pytest.mark.parametrize("key", ["m", "n", "k", "input", "zero_share"])
def test_a_program_that_does_not_say_what_it_ran(make_built: MakeBuilt, key: str) -> None:
    built = make_built()
    built.program.write_text(built.program.read_text().replace(f'"{key}"', '"other"'))
    result = run_case(built, CASE)
    assert result.verdict is Verdict.UNRESOLVED
    assert f"does not say {key}" in result.reason


def test_a_stricter_program_is_not_called_wrong(make_built: MakeBuilt) -> None:
    """It says wrong by its own tolerance, kernel.toml says right: nobody is accused."""
    built = make_built("status=1 verdict=BAD err=0.005")
    built.program.write_text(built.program.read_text().replace('"tolerance": 1,', '"tolerance": 0.001,'))
    result = run_case(built, CASE)
    assert result.verdict is Verdict.UNRESOLVED
    assert "the program allows only 0.001" in result.reason


def test_a_kernel_without_a_description_is_tried_beside_its_default_case(
    make_kernel: Callable[..., KernelSpec],
) -> None:
    from mccprobe.tuning.check.cases import plan_cases

    planned, left_out = plan_cases(make_kernel(""), "mcc", "legacy")
    assert {entry.case.name for entry in planned} >= {"c", "257x256x512", "256x257x512", "256x256x513"}
    assert left_out == []
