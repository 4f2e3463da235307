"""Two runs in one folder: one works, the other is refused in words, and the journal is whole."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faults_counts import PAIRS
from faults_life import LIFE_S, SCENES, Chain, lines

pytestmark = pytest.mark.toolchain("clang-14")
SOAK = pytest.mark.soak
REFUSALS = ("is in use by another mccprobe", "holds a run already", "is not empty")


@pytest.mark.parametrize("name", ["search", pytest.param("bisect", marks=SOAK), pytest.param("why", marks=SOAK)])
def test_two_at_once(name: str, tmp_path: Path, cache: Path, tally: Callable[..., None]) -> None:
    rng = random.Random(f"pairs {name}")
    expected = None
    for number in range(PAIRS):
        chain = Chain(SCENES[name], tmp_path / f"{number}", cache)
        argv = ["-m", "mccprobe", *chain.arguments()]
        first = chain.begin([chain.python, *argv])
        time.sleep(rng.choice((0.0, 0.01, 0.1, 0.3, 0.6)))
        second = chain.begin([chain.python, *argv])
        ended = [(one.communicate(timeout=LIFE_S), one.returncode) for one in (first, second)]
        worked = [(out, err) for (out, err), code in ended if code in (0, 1)]
        refused = [(err, code) for (_, err), code in ended if code not in (0, 1)]
        assert len(worked) == len(refused) == 1, ended
        ((err, code),) = refused
        assert code in (2, 4) and any(text in err for text in REFUSALS) and "Traceback" not in err, ended
        document = json.loads(worked[0][0])
        assert json.loads((chain.run / "result.json").read_text()) == document
        for journal in chain.journals():
            assert all(json.loads(line) for line in lines(journal)) and journal.read_bytes().endswith(b"\n")
        assert json.loads((chain.run / "run.json").read_text())
        answer = chain.settled(document)
        expected = expected or answer
        assert answer == expected
    tally(f"two at once: {name}", pairs=PAIRS)


@SOAK  # in the suite: tests/cli/test_interrupts.py
def test_one_goes_on_while_another_works(tmp_path: Path, cache: Path) -> None:
    chain = Chain(SCENES["why"], tmp_path / "chain", cache)
    first = chain.begin([chain.python, "-m", "mccprobe", *chain.arguments()])
    deadline = time.monotonic() + LIFE_S
    while not (chain.run / "bisect" / "run.json").is_file():
        assert first.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    for command in (["why", "--resume", "run"], ["bisect", "--resume", "run/bisect"]):
        again = chain.begin([chain.python, "-m", "mccprobe", *command, "--json"])
        stdout, stderr = again.communicate(timeout=LIFE_S)
        assert again.returncode == 4 and "is in use by another mccprobe" in stderr, stderr
        assert json.loads(stdout)["code"] == "run-directory"
    stdout, stderr = first.communicate(timeout=LIFE_S)
    assert first.returncode == 0, stderr
