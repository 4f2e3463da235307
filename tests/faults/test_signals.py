"""Ctrl-C, SIGTERM and SIGHUP at any stage: exit 130, no traceback, nothing left, and the way on is true."""

from __future__ import annotations

import json
import random
import re
import shlex
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from faults_counts import SHARDS, SIGNALS, SOAKING
from faults_life import SCENES, Chain, Life, Scene, Undisturbed

pytestmark = pytest.mark.toolchain("clang-14")

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KERNEL = Path(__file__).resolve().parents[2] / "kernels" / "gemm"
SIM = ("--toolchain", "sim", "--seed", "1")
WITHOUT_RUN = {
    "check": ("check", "gemm", *SIM),
    "bench": ("bench", "gemm", *SIM),
    "bench-program": ("bench", "--program", "./prog"),
    "report": ("report", str(KERNEL), "--toolchain", "sim"),
    "cycle": ("cycle", "gemm", "--toolchain", "sim"),
    "flags-harvest": ("flags", "harvest", "--compiler", "clang-14"),
    "toolchains": ("toolchains",),
}


def ended_clean(life: Life, chain: Chain) -> None:
    """What a user sees after the signal."""
    assert life.code == 130, life
    assert "error: interrupted\n" in life.stderr, life
    for trials in chain.run.rglob("trials"):
        assert not list(trials.iterdir()), life


def way_on(life: Life, chain: Chain) -> bool:
    """The hint, which must be true. False: nothing was begun, and it says so."""
    document = json.loads(life.stdout)  # one, whenever the signal came
    if document["status"] != "error":  # the answer was out already
        return True
    assert (document["status"], document["code"], document["exit_code"]) == ("error", "interrupted", 130), life
    if not (chain.run / "run.json").is_file():
        assert "--resume run" not in life.stderr, life
        return False
    told = re.search(r"hint: go on with: mccprobe (.*)", life.stderr)
    if told is None:  # before the run's folder was looked at again, or when all was written
        assert "a run that had begun goes on with --resume" in life.stderr, life
    else:
        assert shlex.split(told[1]) == [*chain.scene.command, "--resume", "run"], life
    return True


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize(
    "name", ["search", *(pytest.param(name, marks=pytest.mark.soak) for name in ("bisect", "profile", "why"))]
)
def test_interrupted_at_any_step_and_resumed(
    name: str,
    shard: int,
    tmp_path: Path,
    cache: Path,
    undisturbed: Callable[[str], Undisturbed],
    tally: Callable[..., None],
) -> None:
    rng = random.Random(f"signals {name} {shard}")
    expected, steps = undisturbed(name).answer, undisturbed(name).steps
    interrupts = finished = 0
    for number in range(-(-SIGNALS // SHARDS)):
        chain = Chain(SCENES[name], tmp_path / f"{number}", cache)
        for kind in rng.sample(NUMBERS, len(NUMBERS) if SOAKING else 1):
            life = chain.live(die_at=rng.randint(1, steps // 2), number=kind)
            if life.death is None:  # it ended before, or the signal came when all was done
                assert life.code == expected.code, life
                finished += 1
                break
            ended_clean(life, chain)
            way_on(life, chain)
            interrupts += 1
        if chain.lives[-1].death is not None:
            chain.live()
        answer = chain.answer()
        assert (answer.code, answer.document) == (expected.code, expected.document), chain.lives[-1]
        shutil.rmtree(chain.place)
    tally(f"signals: {name}", interrupts=interrupts, ended_before=finished)


@pytest.mark.parametrize("name", WITHOUT_RUN)
def test_a_command_without_a_run_is_interrupted(
    name: str, tmp_path: Path, cache: Path, tally: Callable[..., None]
) -> None:
    """At the start of one of its processes, or while it writes a temporary file."""
    rng = random.Random(f"without {name}")
    interrupts = 0
    for number in range(SIGNALS):
        chain = Chain(Scene(name, WITHOUT_RUN[name], (), ()), tmp_path / f"{number}", cache)
        program = chain.cwd / "prog"
        program.write_text("#!/bin/sh\nsleep 0.05\necho 42\n")
        program.chmod(0o755)
        chain.given = [*WITHOUT_RUN[name], "--json"]
        life = chain.live(die_at=rng.randint(1, 3 + 2 * number), on="start ", number=rng.choice(NUMBERS))
        if life.death is not None:
            ended_clean(life, chain)
            assert life.stdout == "" or json.loads(life.stdout).get("code", "interrupted") == "interrupted", life
            interrupts += 1
        shutil.rmtree(chain.place)
    tally(f"signals: {name}", interrupts=interrupts)
