"""A calendar clock that jumps a year forth and back at every look changes no answer, budget or time limit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from faults_life import SCENES, Chain, Undisturbed

pytestmark = pytest.mark.toolchain("clang-14")

BUDGETS = {"bisect": ("--timeout", "60"), "why": ("--budget", "1h"), "search": ("--budget", "1h")}


@pytest.fixture
def jumping(tmp_path: Path) -> Path:
    library = tmp_path / "clock_jumps.so"
    source = Path(__file__).resolve().with_name("clock_jumps.c")
    subprocess.run(["clang-14", "-O1", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    look = "import time; print(abs(time.time() - time.time()) > 1e7, abs(time.monotonic() - time.monotonic()) < 60)"
    seen = subprocess.run(
        [sys.executable, "-c", look], env={"LD_PRELOAD": str(library)}, capture_output=True, text=True, check=True
    )
    assert seen.stdout == "True True\n", seen
    return library


@pytest.mark.soak
@pytest.mark.parametrize("name", BUDGETS)
def test_the_same_answer_within_its_budget(
    name: str,
    jumping: Path,
    tmp_path: Path,
    cache: Path,
    undisturbed: Callable[[str], Undisturbed],
    tally: Callable[..., None],
) -> None:
    chain = Chain(SCENES[name], tmp_path / "jumping", cache)
    chain.more["LD_PRELOAD"] = str(jumping)
    arguments = chain.arguments()
    at = arguments.index("-o")
    chain.given = [*arguments[:at], *BUDGETS[name], *arguments[at:]]
    life = chain.live()
    answer, expected = chain.answer(), undisturbed(name).answer
    assert (answer.code, answer.document) == (expected.code, expected.document), life
    seconds = json.loads(life.stdout).get("seconds", 0.0)
    assert 0 <= seconds < 3600, "a time that is told is one of the steady clock"
    tally("clock that jumps", runs=1)


def test_a_time_limit_still_ends_what_hangs(jumping: Path, tmp_path: Path, cache: Path) -> None:
    """And no sooner: the check that takes a fifth of a second passes a limit of three. Of the wrong programs every
    fourth hangs, each for the whole limit; the others are told at once."""
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    chain.more["LD_PRELOAD"] = str(jumping)
    check = chain.cwd / "check"
    wrong = chain.logs / "wrong"
    check.write_text(
        f'#!/bin/sh\n[ "$("$1")" = 1525099781 ] || exec sleep 0.2\necho >>{wrong}\n'
        f"[ $(($(wc -l <{wrong}) % 4)) = 1 ] && exec sleep 1000\nexit 1\n"
    )
    check.chmod(0o755)
    arguments = chain.arguments()
    at = arguments.index("-o")
    limits = ["--oracle", str(check), "--timeout", "3", "--bad-if", "timeout", "--spot-checks", "0"]
    chain.given = [*arguments[:at], *limits, *arguments[at:]]
    life = chain.live()
    document = json.loads(life.stdout)
    assert document["culprit"]["function"] == "settle", life
    runs = [json.loads(line) for line in (chain.run / "journal.jsonl").read_text().splitlines()]
    reasons = [run["reason"] for run in runs if run["t"] == "run" and run["verdict"] == "BAD"]
    ended = sum(reason.startswith("timeout after") for reason in reasons)
    # the check of the program itself runs beside the search, through the same command: its runs are counted there too
    assert len(reasons) <= len(wrong.read_text().splitlines()) and 2 <= ended < len(reasons), reasons
