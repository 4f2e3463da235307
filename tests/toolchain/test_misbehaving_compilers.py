"""Compilers that misbehave at one limit: that limit cannot be judged, the search goes on, nothing is left."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.base.errors import StaleCompileCache, ToolchainError
from mccprobe.bisection.passes.pass_axis import PassAxis
from mccprobe.build.ledger import Ledger
from mccprobe.oracle.verdict import Unbuildable, Verdict
from mccprobe.search.model import Settings, Status
from mccprobe.search.procedure import bisect

pytestmark = pytest.mark.toolchain("clang-14")

Bench = Callable[..., PassAxis]
FAULT_AT = 20  # as in fakes/driver.sh
SEARCH = Settings(spot_checks=0)


@pytest.fixture(autouse=True)
def _clean_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAKE_SDK", raising=False)


@pytest.mark.clean
def test_the_fault_of_a_well_behaved_fake_is_found(bench: Bench) -> None:
    result = bisect(bench("mcc_ok"), SEARCH)
    assert (result.status, result.good, result.bad) == (Status.EDGE, FAULT_AT - 1, FAULT_AT)


AT_ONE_LIMIT = {
    "mcc_hangs_with_child": "compile: timeout after",
    "mcc_exits_0_without_output": "compile: exit 0 but no output was written",
    "mcc_crashes_at_one_limit": "compile: signal SIGSEGV",
}
# only what hangs is to meet its time limit, which must be far above what the other compiles take on a busy machine
LIMIT_S = {name: 5.0 if "hangs" in name else 60.0 for name in AT_ONE_LIMIT}


@pytest.mark.clean
@pytest.mark.parametrize("name", AT_ONE_LIMIT)
def test_one_limit_cannot_be_judged_and_the_edge_is_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("FAKE_LIMIT_AT", "0")  # the good end itself
    axis = bench(name, timeout_s=LIMIT_S[name])
    at_zero = axis.object_at(0)
    assert isinstance(at_zero, Unbuildable) and at_zero.reason.startswith(AT_ONE_LIMIT[name])
    result = bisect(axis, SEARCH)
    assert (result.status, result.good, result.bad) == (Status.EDGE, FAULT_AT - 1, FAULT_AT)
    assert result.good_end is not None and result.good_end > 0


@pytest.mark.clean
@pytest.mark.parametrize("name", AT_ONE_LIMIT)
@pytest.mark.parametrize("where", [FAULT_AT - 1, FAULT_AT])
def test_beside_the_edge_the_limit_is_told_and_no_neighbour_is_accused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str, where: int
) -> None:
    monkeypatch.setenv("FAKE_LIMIT_AT", str(where))
    result = bisect(bench(name, timeout_s=LIMIT_S[name]), SEARCH)
    assert result.status is Status.EDGE
    assert (result.good, result.bad) == ((FAULT_AT - 2, FAULT_AT) if where < FAULT_AT else (FAULT_AT - 1, FAULT_AT + 1))
    assert result.edges[0].unresolved == (where,)


@pytest.mark.clean
def test_a_flood_of_messages_is_not_kept(bench: Bench, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LIMIT_AT", "5")
    axis = bench("mcc_floods_stderr")
    tracemalloc.start()
    try:
        outcome = ledger.compile(axis.unit.job(5))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome.object is not None and outcome.log.ran == 5
    assert len(outcome.diagnostics) < 1 << 20
    assert peak < 16 << 20, f"{peak} bytes at the peak for a gigabyte of messages"


@pytest.mark.clean
def test_a_stale_cache_is_refused_at_the_first_wrong_log(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("FAKE_CACHE", str(tmp_path_factory.mktemp("cache")))
    axis = bench("mcc_stale_cache")
    axis.total = 100  # what a compiler without the cache would have counted
    with pytest.raises(StaleCompileCache, match=r"asked for -opt-bisect-limit=7, but .* log shows \d+ executions"):
        axis.object_at(7)


@pytest.mark.clean
def test_the_same_cache_in_a_folder_of_each_compile_does_no_harm(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("FAKE_CACHE", str(elsewhere))
    monkeypatch.setenv("MUSA_CACHE_PATH", str(elsewhere))
    result = bisect(bench("mcc_honours_cache_path"), SEARCH)
    assert (result.status, result.good, result.bad) == (Status.EDGE, FAULT_AT - 1, FAULT_AT)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.clean
def test_a_driver_without_jobs_is_refused(bench: Bench) -> None:
    with pytest.raises(ToolchainError, match="-### shows no jobs"):
        bench("mcc_without_jobs")


@pytest.mark.clean
def test_a_compiler_without_bisect_lines_counts_nothing(bench: Bench) -> None:
    assert bench("mcc_prints_no_bisect").total == 0


# --- in device code, through mcc's own toolchain -----------------------------------------------------


@pytest.mark.clean
@pytest.mark.parametrize("name", ["mcc_ok", "mcc_honours_cache_path"])
def test_the_fault_in_device_code_is_found(
    device_bench: Bench, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_CACHE", str(tmp_path / "elsewhere"))
    axis = device_bench(name)
    assert axis.unit.recorded.offload and axis.unit.recorded.from_bitcode
    result = bisect(axis, SEARCH)
    assert (result.status, result.good, result.bad) == (Status.EDGE, FAULT_AT - 1, FAULT_AT)


@pytest.mark.clean
def test_of_two_architectures_only_the_one_that_runs_decides(device_bench: Bench, ledger: Ledger) -> None:
    axis = device_bench("mcc_ok", "mp_31", "mp_22")
    verdicts, objects = [], set()
    for index in (0, 1):
        axis.unit.recorded.active = index
        at_zero = ledger.compile(axis.unit.job(0)).object
        assert at_zero is not None
        objects.add(at_zero)
        verdicts.append(axis.judge.run(at_zero).verdict)
    # here both architectures have the very same object; it makes two programs all the same
    assert len(objects) == 1
    assert sorted(verdicts) == [Verdict.BAD, Verdict.GOOD]
