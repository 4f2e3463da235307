"""The wheel, installed and used outside of the repository: what a user types first, and that it is right."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

LONG = bool(os.environ.get("RELEASE_CHECK"))
OVERLAY = ("--header", "crt/mma.h", "--replace", "__frag_base<float, 32>", "__frag_base<float, 8>")


class Step(NamedTuple):
    """One command line, its exit code, a pattern of its result, and whether it is for `make release-check` alone."""

    command: tuple[str, ...]
    expected: str
    code: int = 0
    long: bool = False


STEPS = [
    Step(("--help",), "bisect"),
    Step(("plan", "--problem", "8192x8192x16384"), r"shared memory: .*: fits"),
    Step(("flags", "list"), r"(?m)^mtgpu-enable-internal-regs-ra "),
    Step(("help", "exit-codes"), "interrupted"),
    Step(("help", "kernels"), "What a host program does"),
    Step(("toolchains",), r"(?m)^sim .*SIMULATED"),
    Step(("report", "gemm", "--no-instructions"), r"gemm_wmma_256.*(?s:.)*gfx908 stand-in, not MP22"),
    Step(("report", "no-such-kernel"), "", 4),
    Step(("trace", "--sim-link"), "^-L"),
    Step(("bisect", "--recipe", "internal-regs-ra"), r"FAULT \(sim\): FOUND(?s:.)*Machine Instruction Scheduler"),
    Step(("check", "gemm"), r"gate PASSED \(GOOD\)", long=True),
    Step(("overlay", "accumulators-16", *OVERLAY, "--toolchain", "sim"), "1 place", long=True),
    Step(("bench", "gemm", "--json"), "sim", long=True),
    Step(("why", "--flag", "internal-regs-ra", "--budget", "5m"), "Machine Instruction Scheduler", long=True),
    Step(("doctor",), "sim", long=True),
]


@pytest.mark.toolchain("clang-14")
@pytest.mark.parametrize(
    "step", [step for step in STEPS if LONG or not step.long], ids=lambda step: " ".join(step.command[:2])
)
def test_step(step: Step, mccprobe: Callable[..., Any]) -> None:
    ran = mccprobe(*step.command)
    assert ran.code == step.code and re.search(step.expected, ran.stdout), ran
    assert "Traceback" not in ran.stderr, ran


def test_it_is_the_installed_one(installed: Path, mccprobe: Callable[..., Any], root: Path) -> None:
    """Nothing of the repository is read: the shipped kernel is the wheel's."""
    document = json.loads(mccprobe("report", "gemm", "--no-instructions", "--json").stdout)
    told = json.dumps(document)
    assert document["status"] == "ok" and "_kernels/gemm" in told and str(root / "kernels") not in told


@pytest.mark.toolchain("clang-14")
def test_the_wrapper(mccprobe: Callable[..., Any], execute: Callable[..., Any], tmp_path: Path) -> None:
    """Installed in front of the stand-in's mcc, it adds its set and is removed again."""
    listed = json.loads(mccprobe("toolchains", "--json").stdout)
    (sim,) = (one for one in listed["toolchains"] if one["name"] == "sim")
    given = ("--prefix", tmp_path / "prefix")
    done = mccprobe("wrapper", "install", *given, "--set", "gemm-s4000", "--mcc", sim["path"])
    assert done.code == 0, done
    shown = execute(tmp_path / "prefix/bin/mcc", "--version", cwd=tmp_path)
    assert shown.code == 0 and "mccprobe-sim" in shown.stdout, shown
    assert mccprobe("wrapper", "remove", *given).code == 0
    assert not (tmp_path / "prefix/bin/mcc").exists()
