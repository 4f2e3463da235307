"""The main job on a machine without mcc: the shipped GEMM on `sim`, through the command line."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

RunCli = Callable[..., Any]
KERNEL = "gemm_wmma_256"  # what the case `small` launches
needs_sim = pytest.mark.toolchain("clang-14")


@pytest.fixture(scope="session")
def schema(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / "reports/bisect.schema.json").read_text()))


def check_answer(document: dict[str, Any]) -> None:
    """What must hold of every bisection of internal-regs-ra on the shipped GEMM."""
    assert document["status"] == "found", document
    assert document["toolchain"] == "sim" and document["simulated"] is True
    culprit = document["culprit"]
    assert (culprit["pass"], culprit["pass_argument"]) == ("Machine Instruction Scheduler", "machine-scheduler")
    assert culprit["function"].startswith(KERNEL) and culprit["function_from"] == "log"
    assert document["confirmation"]["option"] == "-enable-misched=false"
    assert document["confidence"] >= 0.99
    table = {(cell["flag"], cell["pass"]): cell for cell in document["table"]}
    assert {key: cell["verdict"] for key, cell in table.items()} == {
        ("on", "on"): "BAD",
        ("on", "off"): "GOOD",
        ("off", "on"): "GOOD",
        ("off", "off"): "GOOD",
    }
    assert table["on", "on"]["max_err"] > 0.1 > table["off", "on"]["max_err"]


@needs_sim
@pytest.mark.clean("run")
def test_the_flag_is_traced_to_the_scheduler(run_cli: RunCli, schema: dict[str, Any]) -> None:
    run = run_cli("bisect", "--flag", "internal-regs-ra", "--json", "-o", "run")
    assert run.code == 0, run
    assert "stand-in" in run.stderr.splitlines()[0] and "SIMULATED" in run.stderr, run
    document = json.loads(run.stdout)
    jsonschema.validate(document, schema)
    check_answer(document)
    report = (Path("run") / "report.txt").read_text()
    assert report.startswith("SIMULATED FAULT (sim): FOUND")
    for start in ("  pass ", "  confirmed ", "  good side ", "  bad side ", "  on    on "):
        marked = [line for line in report.splitlines() if line.startswith(start)]
        assert marked and all(line.endswith("[sim]") for line in marked), start
    again = run_cli("bisect", "--resume", "run", "--json")
    after = json.loads(again.stdout)
    check_answer(after)
    assert after["trials"]["runs"] == 0 and after["culprit"] == document["culprit"]


@needs_sim
def test_the_recipe_asks_the_same(run_cli: RunCli, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = run_cli("bisect", "--recipe", "internal-regs-ra", "--json", "-o", out)
    check_answer(json.loads(run.stdout))
    # the commands that it prints do what it says
    for side, code in (("good", 0), ("bad", 1)):
        for argv in json.loads(run.stdout)["reproduce"][side]:
            ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == code, ran
        assert json.loads(ran.stdout)["verdict"] == side.upper()


@needs_sim
def test_another_case_gives_the_same_pass(run_cli: RunCli, root: Path, tmp_path: Path) -> None:
    run = run_cli(
        "bisect",
        root / "kernels/gemm",
        "--flag",
        "--mtgpu-enable-internal-regs-ra",
        "--case",
        "256x512x64",
        "--seed",
        "7",
        "--json",
        "-o",
        tmp_path / "run",
        "--",
        "-O2",
    )
    check_answer(json.loads(run.stdout))


@needs_sim
def test_a_flag_without_effect_is_no_difference(run_cli: RunCli, tmp_path: Path) -> None:
    run = run_cli("bisect", "--flag", "FenceSetting=mixed", "--json", "-o", tmp_path / "run")
    assert (run.code, json.loads(run.stdout)["status"]) == (1, "no-difference"), run


@needs_sim
@pytest.mark.clean()
def test_a_users_kernel_gets_no_stand_in(run_cli: RunCli, root: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.mu"
    shutil.copy(root / "kernels/gemm/gemm.mu", mine)
    run = run_cli("bisect", mine, "--flag", "internal-regs-ra")
    assert run.code == 3 and "--toolchain sim" in run.stderr, run
    linked = tmp_path / "kernels"
    linked.mkdir()
    shutil.copy(mine, linked / "gemm.mu")
    assert run_cli("bisect", linked / "gemm.mu", "--flag", "internal-regs-ra").code == 3
