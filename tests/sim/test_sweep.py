"""The quick way of the emulator (runtime/sweep.h) changes nothing but the time: threads that do what a random table
says give the same numbers, traps, findings and number of switches without it."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mccprobe.targets.sim.toolchain import sim_toolchain
from mccprobe.tuning.lab.session import lab_flags

pytestmark = pytest.mark.toolchain("clang-14", "clang++-14")

SOURCE = Path(__file__).resolve().parent / "scripted.mu"
TIMEOUT_S = 300.0  # ends hangs; measures nothing
SCRIPTS = 60
NOTHING, END = 0, 9
OPERATIONS = (1, 1, 2, 3, 4, 5, 6, 6, 7, 8, 10, 11)
THREADS = (128, 256, 96, 200, 384)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """scripted.mu, and the same instrumented for the laboratory."""
    sim = sim_toolchain(Path(os.environ["MCCPROBE_CACHE"]))
    built = []
    for name, flags in (("plain", ()), ("watched", lab_flags(sim))):
        program = tmp_path_factory.mktemp("scripted") / name
        options = ["--offload-arch=mp_22", "-O2", *(argument for flag in flags for argument in flag)]
        command = [*sim.driver, *options, str(SOURCE), "-lmusart", "-o", str(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stderr
        built.append(program)
    return built[0], built[1]


def script(chance: random.Random) -> tuple[int, int, str]:
    """Threads, steps and the table. Most threads do the same; a few leave it, at one step or from there on."""
    threads, steps = chance.choice(THREADS), chance.randint(3, 12)
    common = [chance.choice(OPERATIONS) for _ in range(steps)]
    lines = [list(common) for _ in range(threads)]
    for _ in range(chance.choice((0, 0, 1, 1, 2, 5))):
        first = chance.randrange(threads)
        last = chance.choice((first, first, min(first + chance.randrange(1, 40), threads - 1), threads - 1))
        step, other = chance.randrange(steps), chance.choice((*OPERATIONS, NOTHING, END))
        for line in lines[first : last + 1]:
            line[step] = other
    return threads, steps, "\n".join("".join(f"{one:x}" for one in line) for line in lines) + "\n"


def ran(
    program: Path, drawn: tuple[int, int, str], sweep: str, divergence: str, report: Path | None
) -> tuple[Any, ...]:
    """Exit code, numbers, messages without times, and what the laboratory found."""
    env = {**os.environ, "MCCSIM_SWEEP": sweep, "MCCSIM_DIVERGE": divergence, "MCCSIM_VERBOSE": "1"}
    if report:
        env["MCCSIM_LAB"] = str(report)
    threads, steps, table = drawn
    done = subprocess.run(
        [program, str(threads), str(steps)],
        input=table,
        env=env,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    said = re.sub(r"[0-9.]+ ms", "TIME", done.stderr)
    return done.returncode, done.stdout, said, json.loads(report.read_text()) if report else None


@pytest.mark.parametrize("divergence", ["trap", "first", "lane"])
@pytest.mark.parametrize("watched", [False, True], ids=["plain", "watched"])
def test_the_quick_way_changes_nothing(
    programs: tuple[Path, Path], tmp_path: Path, watched: bool, divergence: str
) -> None:
    chance = random.Random(f"{divergence} {watched}")
    codes = set()
    for _ in range(SCRIPTS):
        drawn = script(chance)
        report = tmp_path / "lab.json" if watched else None
        quick = ran(programs[watched], drawn, "1", divergence, report)
        assert quick == ran(programs[watched], drawn, "0", divergence, report), drawn
        codes.add(quick[0])
    assert codes >= {0, 125}  # both ends of a run have been compared
