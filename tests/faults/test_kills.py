"""kill -9 at any moment, then --resume: the same answer, nothing run twice, no line lost, nothing left behind."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from faults_counts import KILLS, LIVES, SHARDS, SOAKING
from faults_life import SCENES, Chain, Moment, Undisturbed, killed_until_done

pytestmark = pytest.mark.toolchain("clang-14")

# What a run writes, in the order of its writing: a kill at the first or second of each hits every stage.
STAGES = {
    "bisect": (
        "journal.jsonl", "run.json", "unit/", "trials/compile-", "programs/", "trials/run-", "result.json",
        "report.txt",
    ),
    "profile": ("journal.jsonl", "trials/compile-", "result.json"),
    "why": (
        "run/.run.json", "flags/journal.jsonl", "bisect/.run.json", "screen", "bisect/.result.json", "where/",
        "variant-", "/mccprobe-report-", "run/.bug-report", "run/.result.json", "report.txt",
    ),
    "search": ("run.json", "trials/build-", "run/journal.jsonl", "mccprobe-out/", "result.json", "report.txt"),
}  # fmt: skip


def moments(rng: random.Random, name: str, plain: Undisturbed, number: int) -> list[Moment]:
    """For the number-th chain: a stage by its name first, then steps and delays at random."""
    stages = STAGES[name]
    first = Moment(step=1 + number // len(stages) % 3, on=stages[number % len(stages)])
    left = plain.seconds
    later = []
    for _ in range(LIVES - 1):
        left *= 0.7  # a life that goes on has less to do
        if SOAKING and rng.random() < 0.4:
            later.append(Moment(seconds=rng.uniform(0.1, left)))
        else:
            later.append(Moment(step=rng.randint(1, plain.steps // 2)))
    return [first, *later]


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("name", ["bisect", pytest.param("profile", marks=pytest.mark.soak), "why", "search"])
def test_killed_and_resumed_until_done(
    name: str,
    shard: int,
    tmp_path: Path,
    cache: Path,
    undisturbed: Callable[[str], Undisturbed],
    tally: Callable[..., None],
) -> None:
    plain = undisturbed(name)
    expected = plain.answer
    rng = random.Random(f"{name} {shard}")
    kills = chains = 0
    stages: Counter[str] = Counter()
    while kills < -(-KILLS // SHARDS) and (SOAKING or not chains):
        chain = Chain(SCENES[name], tmp_path / f"{chains}", cache)
        deaths = killed_until_done(chain, rng, moments(rng, name, plain, chains * SHARDS + shard))
        if chains * SHARDS + shard < len(STAGES[name]):
            assert deaths, f"no step of {STAGES[name][chains * SHARDS + shard]}\n{chain.lives[-1]}"
        answer = chain.answer()
        told = f"deaths: {deaths}\n{chain.lives[-1]}"
        assert (answer.code, answer.document) == (expected.code, expected.document), told
        assert {*answer.journalled} == {*expected.journalled}, told
        assert answer.journalled["run"] == expected.journalled["run"], told
        assert answer.journalled["trial"] == expected.journalled["trial"], told
        again = answer.ran - expected.ran
        assert again.total() <= len(deaths), f"more was run again than was in flight: {again}\n{told}"
        kills, chains = kills + len(deaths), chains + 1
        stages.update(death.kind for death in deaths)
        shutil.rmtree(chain.place)
    tally(f"kill -9: {name}", kills=kills, runs=chains, steps_of_a_run=0 if shard else plain.steps)
    for kind, number in stages.items():
        tally(f"kill -9: died at {kind.split()[0]}", times=number)
