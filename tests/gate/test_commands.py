"""check, bench, cycle and edit as a user calls them, on the stand-in."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mccprobe import cli
from mccprobe.oracle.kernel.spec import Case, load_kernel, shipped_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets.sim.toolchain import SimToolchain
from mccprobe.tuning.bench.clock import EMULATION, events_for
from mccprobe.tuning.bench.health import PROBE_CASE, device_health
from mccprobe.tuning.check.build import BuildFailure, BuiltKernel, build_kernel, run_case
from mccprobe.tuning.check.check import check_built

pytestmark = pytest.mark.toolchain("clang-14")
FAULT = "internal-regs-ra"
Schema = Callable[[str], dict[str, Any]]


@dataclass(frozen=True)
class Called:
    code: int
    stdout: str
    stderr: str


Call = Callable[..., Called]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Call]:
    """`call("check", ...)` in an empty folder."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for name in ("check", "bench", "cycle", "edit"):
        monkeypatch.setitem(cli.COMMANDS, name, (f"mccprobe.cli.{name}_cmd", name, name))
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")

    def run(*args: str | Path) -> Called:
        code = cli.main([str(arg) for arg in args])
        streams = capsys.readouterr()
        return Called(code, streams.out, streams.err)

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def own(tmp_path: Path, root: Path) -> Path:
    """A copy of the shipped GEMM that is a user's own, without its larger cases; the test may change it."""
    shutil.copytree(root / "kernels" / "common", tmp_path / "own" / "common")
    folder = Path(shutil.copytree(root / "kernels" / "gemm", tmp_path / "own" / "gemm"))
    parts = (folder / "kernel.toml").read_text().split("[[cases]]")
    larger = ("medium", "large", "non_square")
    kept = [part for part in parts if not any(f'name = "{name}"' in part for name in larger)]
    assert len(kept) == len(parts) - len(larger)
    (folder / "kernel.toml").write_text("[[cases]]".join(kept))
    return folder


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def built(sim: SimToolchain, folder: Path, tmp_path: Path, **options: Any) -> BuiltKernel:
    found = build_kernel(load_kernel(folder), sim, folder=tmp_path / "build", **options)
    assert isinstance(found, BuiltKernel), found
    return found


# --- check -----------------------------------------------------------------------------------------


def test_check_passes_the_shipped_kernel(call: Call, schema: Schema) -> None:
    result = call("check", "--seed", "4", "--json", "--journal", "book.jsonl")
    assert result.code == 0, result
    document = json.loads(result.stdout)
    Draft202012Validator(schema("check")).validate(document)
    assert document["simulated"]
    assert {entry["kernel"]: entry["checked"] for entry in document["kernels"]} == {
        "gemm_wmma_256": True,
        "gemm_wmma_16": True,
    }
    assert {"correctness_8k"} == {entry["name"] for entry in document["not_run"]}
    assert {case["seed"] for case in document["cases"] if case["name"] == "non_square"} == {4}
    assert document["score"]["points"] is None
    assert "n/a" in document["score"]["reason"]
    assert "SIMULATED" in result.stderr
    assert '"verdict":"GOOD"' in Path("book.jsonl").read_text().replace(" ", "")


def test_check_of_the_flag_of_the_article(call: Call) -> None:
    result = call("check", "gemm", "--flag", FAULT, "--seed", "1", "--stop-at-bad", "--journal", "")
    assert result.code == 1, result
    assert "gate NOT PASSED (BAD)" in result.stdout
    lines = [line for line in result.stdout.splitlines() if "max_err" in line or "gemm_wmma" in line]
    assert lines
    assert all(line.endswith("[sim]") for line in lines)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("no-such-kernel",), 2, "no shipped kernel"),
        (("./nowhere",), 4, "no such kernel"),
        (("-D", "NOPE=1"), 2, "GEMM_PAD_A"),
        (("-D", "GEMM_PAD_A"), 2, "NAME=VALUE"),
        (("--flag", "mtgpu-load-store-optt"), 2, "nearest"),
        (("-D", "GEMM_PAD_A=3"), 4, "does not compile|compile: exit 1"),
    ],
)
def test_mistakes(call: Call, schema: Schema, args: tuple[str, ...], code: int, words: str) -> None:
    result = call("check", *args, "--json", "--journal", "")
    assert result.code == code, result
    assert any(word in result.stderr for word in words.split("|")), result.stderr
    document = json.loads(result.stdout)
    Draft202012Validator(schema("check")).validate(document)
    assert document["status"] == "error"


def test_a_stand_in_is_not_taken_for_a_users_kernel(call: Call, own: Path) -> None:
    result = call("check", own, "--journal", "")
    assert result.code == 3, result
    assert "--toolchain sim" in result.stderr


# --- the gate on real programs -----------------------------------------------------------------------


def test_an_unreported_launch_is_seen_by_the_emulator(sim: SimToolchain, own: Path, tmp_path: Path) -> None:
    """The program says that it ran the large kernel, and ran the small one."""
    change(own / "gemm.mu", "MCCPROBE_LAUNCHED(gemm_wmma_16)", "MCCPROBE_LAUNCHED(gemm_wmma_256)")
    report = check_built(built(sim, own, tmp_path), seeds=(1,))
    assert not report.passed
    assert any("reports launches of gemm_wmma_256, the emulator saw gemm_wmma_16" in text for text in report.reasons())


def test_a_kernel_that_no_case_reaches(sim: SimToolchain, own: Path, tmp_path: Path) -> None:
    """A branch behind a condition that kernel.toml does not mention."""
    change(
        own / "gemm.mu",
        "  if (M % GEMM_BM == 0",
        "  if (M == 7777) {\n    gemm_extra<<<dim3(1), dim3(32)>>>(C);\n  } else if (M % GEMM_BM == 0",
    )
    change(
        own / "gemm.mu",
        'extern "C" musaError_t',
        "template <int N> __global__ void gemm_tile(half *C) {}\n"
        '__global__ void gemm_extra(half *C) {}\nextern "C" musaError_t',
    )
    program = built(sim, own, tmp_path)
    assert program.launchable == ("gemm_extra", "gemm_wmma_16", "gemm_wmma_256")  # a template without instance is none
    report = check_built(program, seeds=(1,))
    assert report.verdict is Verdict.UNRESOLVED
    assert report.reasons() == ["kernel gemm_extra can be launched, but is launched by no case: it is unchecked"]


def test_instances_of_a_template_are_kernels_of_their_own(sim: SimToolchain, own: Path, tmp_path: Path) -> None:
    change(
        own / "gemm.mu",
        'extern "C" musaError_t',
        'template <int N> __global__ void tile(half *C) {}\nextern "C" musaError_t',
    )
    change(
        own / "gemm.mu",
        "  if (M % GEMM_BM == 0",
        "  if (M == 7777) tile<1><<<dim3(1), dim3(32)>>>(C);\n"
        "  tile<2><<<dim3(1), dim3(32)>>>(C);\n  MCCPROBE_LAUNCHED(tile<2>);\n  if (M % GEMM_BM == 0",
    )
    report = check_built(built(sim, own, tmp_path), seeds=(1,))
    assert report.checked_kernels() >= {"tile<2>", "gemm_wmma_256"}
    assert "kernel tile<1> can be launched, but is launched by no case: it is unchecked" in report.reasons()


def test_equal_builds_have_equal_device_objects(sim: SimToolchain, own: Path, tmp_path: Path) -> None:
    first = built(sim, own, tmp_path)
    again = built(sim, own, tmp_path)
    other = built(sim, own, tmp_path, defines={"GEMM_PAD_A": "16"})
    flagged = built(sim, own, tmp_path, flags=(("-mllvm", "-mtgpu-enable-internal-regs-ra"),))
    assert first.device_object == again.device_object
    assert len({first.device_object, other.device_object, flagged.device_object}) == 3
    assert len(again.commands) == 2  # the host program was there already
    assert run_case(other, Case("c", 256, 256, 64)).verdict is Verdict.GOOD


def test_the_level_of_a_flag_wins(sim: SimToolchain, own: Path, tmp_path: Path) -> None:
    found = built(sim, own, tmp_path, flags=(("-O1",),))
    (kernel_compile,) = [command for command in found.commands if str(own / "gemm.mu") in command]
    assert "-O1" in kernel_compile
    assert "-O3" not in kernel_compile


def test_a_build_that_fails(sim: SimToolchain, own: Path, tmp_path: Path) -> None:
    found = build_kernel(load_kernel(own), sim, flags=(("-mllvm", "-no-such-option"),), folder=tmp_path / "build")
    assert isinstance(found, BuildFailure)
    assert "no-such-option" in found.detail


# --- bench -------------------------------------------------------------------------------------------


def test_bench_against_flags(call: Call, own: Path, schema: Schema) -> None:
    result = call(
        "bench",
        own,
        "--toolchain",
        "sim",
        "--seed",
        "1",
        "--seed",
        "2",
        "--rounds",
        "7",
        "--case",
        "256x256x64",
        "--against",
        "none",
        "--set",
        "gemm-s4000",
        "--json",
        "--journal",
        "",
    )
    assert result.code == 0, result
    document = json.loads(result.stdout)
    Draft202012Validator(schema("bench")).validate(document)
    measured = document["measurement"]
    assert measured["label"] == EMULATION
    assert not measured["kernel_performance"]
    assert [side["tflops"] for side in measured["sides"]] == [None, None]
    assert [len(side["samples_ms"]) for side in measured["sides"]] == [7, 7]
    assert measured["ratio"]["low"] <= measured["ratio"]["estimate"] <= measured["ratio"]["high"]
    assert measured["sides"][0]["launches"] == {"gemm_wmma_256": 28}  # 7 rounds of 3 warm-ups and one
    assert document["health"]["value"] is None
    assert "unknown" in document["health"]["reason"]
    assert len(document["gates"]) == 2


def test_bench_text_marks_every_figure(call: Call, own: Path) -> None:
    result = call(
        "bench", own, "--toolchain", "sim", "--seed", "1", "--rounds", "6", "--case", "256x256x64", "--journal", ""
    )
    assert result.code == 0, result
    figures = [line for line in result.stdout.splitlines() if " ms" in line]
    assert figures
    assert all("[sim: emulation time]" in line for line in figures)
    assert "TFLOPS" not in result.stdout.replace("no TFLOPS from it", "")


def test_bench_refuses_zero_input_and_a_wrong_kernel(call: Call, own: Path, schema: Schema) -> None:
    zero = call("bench", "--input", "zero", "--json", "--journal", "")
    wrong = call("bench", own, "--toolchain", "sim", "--flag", FAULT, "--seed", "1", "--json", "--journal", "")
    for result, words in ((zero, "all-zero input"), (wrong, "the gate did not pass")):
        assert result.code == 1, result
        document = json.loads(result.stdout)
        Draft202012Validator(schema("bench")).validate(document)
        assert words in document["refused"]
        assert document["measurement"] is None


def test_zeros_are_seen_whatever_the_program_says(sim: SimToolchain, own: Path, tmp_path: Path) -> None:
    """A host program that fills zeros and calls them random."""
    main = own.parent / "common" / "gemm_main.mu"
    change(main, "if (options.zero) {\n    memset", "if (true) {\n    memset")
    change(main, "if (!options.zero)\n    reference", "if (false)\n    reference")
    program = built(sim, own, tmp_path)
    result = run_case(program, Case("c", 256, 256, 64))
    assert result.input == "random"
    assert result.zero_share == 1.0
    assert result.verdict is Verdict.UNRESOLVED
    assert "all-zero input" in result.reason


def test_bench_of_programs(call: Call, schema: Schema) -> None:
    args = ("--rounds", "6", "--warmups", "0", "--json")
    result = call("bench", "--program", "sleep 0.01", "--against", "sleep 0.05", *args)
    assert result.code == 0, result
    document = json.loads(result.stdout)
    Draft202012Validator(schema("bench")).validate(document)
    assert document["measurement"]["ratio"]["pairs"] == 6
    other = call("bench", "--program", "echo a", "--against", "echo b", *args)
    assert other.code == 1
    assert "different results" in json.loads(other.stdout)["measurement"]["refused"]
    failing = call("bench", "--program", "false", *args)
    assert "exit 1" in json.loads(failing.stdout)["measurement"]["refused"]
    both = call("bench", "gemm", "--program", "true")
    assert both.code == 2


def test_only_the_last_output_needs_to_be_compared(sim: SimToolchain, own: Path, tmp_path: Path) -> None:
    """`--check last`: an output that is never written is found all the same."""
    change(own / "gemm.mu", "    gemm_wmma_256<<<", "    if (false) gemm_wmma_256<<<")
    result = run_case(built(sim, own, tmp_path), Case("c", 256, 256, 64), repeat=3, check="last")
    assert result.verdict is Verdict.BAD


# --- health --------------------------------------------------------------------------------------------


def test_health_of_a_device(sim: SimToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a toolchain that says it is no stand-in, and a mthreads-gmi that answers."""
    import mccprobe.tuning.bench.health as health

    class Device(SimToolchain):
        name = "mcc"
        simulated = False

    tool = tmp_path / "bin" / "mthreads-gmi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho 'Product Name : MTT S4000'\necho '  Graphics clock : 1500 MHz'\necho other\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(health, "PROBE_CASE", replace(PROBE_CASE, m=256, n=256, k=512))
    found = device_health(Device(Path(sim.driver[0]), sim.sdk))
    assert found.value is not None
    assert found.meets(1e9) is False
    assert found.meets(1e-9) is True
    assert found.meets(None) is None
    assert found.details == ("Product Name : MTT S4000", "Graphics clock : 1500 MHz")
    assert device_health(sim).value is None
    assert device_health(sim).meets(70) is None
    assert events_for(replace(_any_built(), simulated=False)).kernel_performance


def _any_built() -> BuiltKernel:
    return BuiltKernel(shipped_kernel("gemm"), "mcc", True, Path("program"), "", ())


# --- cycle and edit ----------------------------------------------------------------------------------


def test_cycle_writes_one_summary(call: Call, own: Path, schema: Schema) -> None:
    result = call(
        "cycle",
        own,
        "--toolchain",
        "sim",
        "--seed",
        "1",
        "--rounds",
        "6",
        "--case",
        "256x256x64",
        "--json",
        "--min-health",
        "70",
    )
    assert result.code == 0, result
    document = json.loads(result.stdout)
    Draft202012Validator(schema("cycle")).validate(document)
    run = Path(document["run_directory"])
    assert json.loads((run / "summary.json").read_text()) == document
    assert json.loads((run.parent / "latest_summary.json").read_text()) == document
    assert "emulation time" in (run / "report.txt").read_text()
    assert document["health"]["met"] is None  # unknown stays unknown
    assert len(document["resources"]["kernels"]) == 2
    assert document["score"]["points"] is None


def test_cycle_of_a_wrong_kernel(call: Call, own: Path, schema: Schema) -> None:
    result = call(
        "cycle", own, "--toolchain", "sim", "--flag", FAULT, "--seed", "1", "--json", "-o", "runs", "--journal", ""
    )
    assert result.code == 1, result
    document = json.loads(result.stdout)
    Draft202012Validator(schema("cycle")).validate(document)
    assert document["verdict"] == "BAD"
    assert document["measurement"] is None
    assert Path("runs/latest_summary.json").is_file()


def test_an_edit_of_a_shipped_kernel_by_its_name(call: Call, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCCPROBE_KERNELS", str(own.parent))
    assert call("edit", "begin", own.name, "--toolchain", "sim", "--unchecked", "--journal", "").code == 0
    before = (own / "gemm.mu").read_text()
    (own / "gemm.mu").write_text("other")
    assert call("edit", "revert", own.name).code == 0
    assert (own / "gemm.mu").read_text() == before
    assert call("edit", "revert", "nosuch").code == 4


def test_edit_of_a_kernel(call: Call, own: Path, schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    validator = Draft202012Validator(schema("edit"))
    sim = ("--toolchain", "sim", "--seed", "1", "--journal", "", "--json")
    before = (own / "gemm.mu").read_text()
    expected = [("begin", 0, True), ("test", 1, False), ("keep", 1, False), ("revert", 0, True)]
    for action, code, done in expected:
        if action == "test":  # the second fragment of B is never used: half of the columns are wrong
            change(own / "gemm.mu", "a[i], b[j], acc", "a[i], b[0], acc")
        result = call("edit", action, own, *(sim if action != "revert" else ("--json",)))
        assert result.code == code, result
        document = json.loads(result.stdout)
        validator.validate(document)
        assert document["done"] is done
    assert (own / "gemm.mu").read_text() == before
    call("edit", "begin", own, *sim, "--unchecked")
    assert call("edit", "test", own, *sim).code == 0
    monkeypatch.setattr("mccprobe.tuning.check.check.check_kernel", None)  # keep runs no second gate
    kept = json.loads(call("edit", "keep", own, *sim).stdout)
    assert kept["done"] and kept["simulated"] and kept["verdict"] is None
    again = call("edit", "keep", own, *sim)
    assert again.code == 2
    assert json.loads(again.stdout)["code"] == "edit-state"
