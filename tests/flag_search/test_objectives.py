"""What is measured, and what is refused because it would mean nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.errors import ToolchainError, UsageError
from mccprobe.oracle.kernel.spec import shipped_kernel
from mccprobe.targets.amdgcn.toolchain import AmdgcnToolchain
from mccprobe.targets.clang.toolchain import ClangToolchain
from mccprobe.targets.sim.toolchain import SimToolchain
from mccprobe.tuning.bench.statistics import Interval
from mccprobe.tuning.flag_search.objectives import (
    Instructions,
    _perf_value,
    _refs_value,
    default_objective,
    make_meter,
)
from mccprobe.tuning.flag_search.report import share_dict, shown_share
from mccprobe.tuning.flag_search.shares import Measured, Share, exact_share, paired
from mccprobe.tuning.flag_search.subjects import CompiledKernel, GatedKernel, GateSettings, Made, OrdinaryProgram

SIM = GatedKernel(shipped_kernel("gemm"), SimToolchain(Path("mcc")), GateSettings())
AMD = CompiledKernel((), (), AmdgcnToolchain(Path("clang-14"), Path("ld.lld-14")), "gemm")
HERE: Any = None  # an executor: nothing of this needs a device
PROGRAM = OrdinaryProgram(Path("x.c"), ["-O2"], ClangToolchain(["clang-14"]))


class Mcc(SimToolchain):
    name = "mcc"
    simulated = False


DEVICE = GatedKernel(shipped_kernel("gemm"), Mcc(Path("mcc")), GateSettings())


def test_exact_shares() -> None:
    assert exact_share(90.0, 100.0) == Share(0.9, None, exact=True) and exact_share(90.0, 100.0).better
    assert not exact_share(100.0, 100.0).better and not exact_share(101.0, 100.0).better
    assert exact_share(0.0, 0.0).ratio == 1.0 and exact_share(3.0, 0.0).ratio is None
    assert exact_share(None, 1.0).ratio is None and not exact_share(None, 1.0).better


def test_a_share_with_noise_must_be_shown() -> None:
    assert Share(0.9, Interval(0.85, 0.99, 0.95), exact=False).better
    assert not Share(0.9, Interval(0.85, 1.01, 0.95), exact=False).better
    assert not Share(0.9, None, exact=False).better


def test_paired_readings() -> None:
    share = paired(lambda at: Measured(100.0 + at), lambda at: Measured(50.0 + at / 2))
    assert share.ratio == 0.5 and share.interval == Interval(0.5, 0.5, 0.95) and share.better
    failed = paired(lambda at: Measured(100.0), lambda at: Measured(None, reason="it crashed"))
    assert failed.ratio is None and failed.reason == "it crashed"


def test_how_a_share_is_told() -> None:
    assert shown_share(exact_share(90.0, 100.0)) == "-10.00 % (noise-free)"
    assert shown_share(Share(0.9, Interval(0.85, 0.95, 0.95), exact=False)) == "-10.00 % [-15.00, -5.00] at 95%"
    assert shown_share(Share(None, None, exact=False, reason="it crashed")) == "unknown: it crashed"
    assert share_dict(exact_share(9.0, 10.0))["no_interval"] == "noise-free: no interval"


def test_what_the_tools_print() -> None:
    assert _perf_value("# started on x\n\n123456,,instructions:u,10,100.00,,\n") == 123456
    assert _perf_value("<not supported>,,instructions:u,0,100.00,,\n") is None
    assert _perf_value("<not counted>,,instructions:u,0,100.00,,\n") is None
    assert _refs_value("==1== \n==1== I   refs:      1,127,065\n") == 1127065
    assert _refs_value("valgrind: failed to start") is None


@pytest.mark.parametrize(
    ("subject", "objective", "told"),
    [
        (SIM, "time", "never the kernel's"),
        (SIM, "instructions", "never the kernel's"),
        (SIM, "registers", "device code"),
        (AMD, "time", "nothing can be run"),
        (AMD, "instructions", "nothing can be run"),
        (PROGRAM, "registers", "device code"),
        (PROGRAM, "spills", "device code"),
        (DEVICE, "instructions", "not the device's"),
    ],
)
def test_refused(subject: Any, objective: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        make_meter(objective, subject, 10.0)


def test_defaults_are_honest() -> None:
    assert [default_objective(one) for one in (SIM, AMD, PROGRAM, DEVICE)] == [
        "code-size",
        "registers",
        "instructions",
        "time",
    ]


def test_labels_carry_the_stand_in() -> None:
    assert "SIMULATED" in make_meter("code-size", SIM, 1.0).label
    assert "not MP22" in make_meter("registers", AMD, 1.0).label


def test_an_object_that_does_not_tell(tmp_path: Path) -> None:
    path = tmp_path / "0.o"
    path.write_bytes(b"no object at all")
    measured = make_meter("spills", AMD, 1.0).measure(Made("x", (path,), tmp_path), HERE)
    assert measured.value is None and measured.reason


# --- the counters -----------------------------------------------------------------------------------

FAKE_PERF = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
log=$2
while [ "$1" != -- ]; do shift; done
shift
"$@" || exit
printf '%s,,instructions:u,1,100.00,,\\n' "@count@" >"$log"
"""


def with_perf(monkeypatch: pytest.MonkeyPatch, folder: Path, count: str) -> None:
    folder.mkdir()
    (folder / "perf").write_text(FAKE_PERF.replace("@count@", count))
    (folder / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder) + ":/usr/bin:/bin")


def program(tmp_path: Path) -> Made:
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return Made("x", (), tmp_path, path)


def test_perf_is_taken_where_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_perf(monkeypatch, tmp_path / "bin", "4242")
    meter = Instructions(PROGRAM, 30.0)
    made = program(tmp_path)
    meter.settle(made)
    assert meter.tool == "perf stat" and meter.exact
    assert meter.measure(made, HERE) == Measured(4242.0, (4242.0,))
    assert meter.compare(made, made, HERE) == Share(1.0, None, exact=True)


def test_a_counter_with_noise_gives_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_perf(monkeypatch, tmp_path / "bin", "$(date +%N | cut -c1-6 | sed s/^/9/)")
    meter = Instructions(PROGRAM, 30.0)
    made = program(tmp_path)
    meter.settle(made)
    assert not meter.exact and len(meter.measure(made, HERE).samples) == 5
    share = meter.compare(made, made, HERE)
    assert not share.exact and share.interval is not None and not share.better


def test_without_any_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_perf(monkeypatch, tmp_path / "bin", "<not supported>")
    monkeypatch.setattr(
        "mccprobe.tuning.flag_search.objectives.which", lambda name: None if name == "valgrind" else name
    )
    with pytest.raises(ToolchainError, match="neither perf nor valgrind"):
        Instructions(PROGRAM, 30.0)


def test_a_program_that_fails_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_perf(monkeypatch, tmp_path / "bin", "1")
    meter = Instructions(PROGRAM, 30.0)
    made = program(tmp_path)
    (tmp_path / "program").write_text("#!/bin/sh\nexit 3\n")
    measured = meter.measure(made, HERE)
    assert measured.value is None and "exit 3" in measured.reason
