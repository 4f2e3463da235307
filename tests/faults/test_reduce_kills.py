"""kill -9 while a source is made smaller: nobody is left at work, what was found stays, the same command goes on."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults_counts import KILLS, LIVES, SOAKING
from faults_life import FAKES, SCENES, Chain, Life, Scene

pytestmark = pytest.mark.toolchain("clang-14")

# what `reduce` writes, in the order of its writing, and the reducer that it starts
STAGES = ("untouched/", "rest/journal.jsonl", "task.pickle", "reduced/work", "interesting.sh", "programs/cvise")


def variants_tried(chain: Chain) -> int:
    """How many programs were run so far: the reducer is at work when it grows."""
    log = chain.logs / "runs"
    return len(log.read_bytes().splitlines()) if log.is_file() else 0


def reduced(life: Life, chain: Chain) -> dict[str, Any]:
    assert life.death is None and life.code == 0, life
    document: dict[str, Any] = chain.settled(json.loads(life.stdout))
    left = [str(path) for path in (chain.run / "reduced").rglob("*") if ".mccprobe-draft-" in path.name]
    assert not left, f"left behind: {left}"
    return document


def test_reduce_is_killed_and_goes_on(tmp_path: Path, cache: Path, tally: Callable[..., None]) -> None:
    """By a small reducer that always finds the same, so that the answers can be compared."""
    rng = random.Random("reduce")
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "cvise").symlink_to(FAKES / "cvise_comments")
    chain.more["PATH"] = f"{programs}:{chain.environment()['PATH']}"
    assert chain.live().code == 0
    chain.given = ["reduce", "run", "--jobs", "1", "--json"]
    began = variants_tried(chain)
    expected = reduced(chain.live(), chain)
    smallest = (chain.run / "reduced" / "best.c").read_bytes()
    assert expected["verified"] and expected["bytes_after"] == len(smallest) < expected["bytes_before"]
    ran = variants_tried(chain) - began
    kills = chains = 0
    stages: Counter[str] = Counter()
    while kills < KILLS and (SOAKING or not chains):
        shutil.rmtree(chain.run / "reduced")
        for number in range(LIVES):
            best = chain.run / "reduced" / "best.c"
            before = best.read_bytes() if best.is_file() else b""
            if number or rng.random() < 0.5:
                until = variants_tried(chain) + rng.randint(1, ran)
                life = chain.live_until(lambda until=until: variants_tried(chain) >= until, rng.uniform(0, 0.3))
            else:
                life = chain.live(die_at=1, on=rng.choice(STAGES), how=rng.choice(("before", "half")))
            if life.death is None:
                break
            assert not before or len(best.read_bytes()) <= len(before), f"what was found is lost\n{life}"
            kills += 1
            stages["outside of the reducer" if "ready" not in life.death.kind else "reducer at work"] += 1
        assert kills, chain.lives
        assert reduced(chain.live(), chain) == expected, chain.lives
        assert (chain.run / "reduced" / "best.c").read_bytes() == smallest
        chains += 1
    tally("kill -9: reduce", kills=kills, runs=chains, **{kind.replace(" ", "_"): n for kind, n in stages.items()})


@pytest.mark.soak
def test_why_is_killed_while_the_real_reducer_works(tmp_path: Path, cache: Path, tally: Callable[..., None]) -> None:
    if shutil.which("cvise") is None:
        pytest.skip("cvise is not installed")
    rng = random.Random("why --reduce")
    why = SCENES["why"]
    scene = Scene("why --reduce", why.command, (*why.options, "--reduce"), why.after, why.files, width=2)
    chain = Chain(scene, tmp_path / "chain", cache)
    working = chain.run / "reduced" / "interesting.sh"
    kills = 0
    while kills < LIVES:
        until = variants_tried(chain) + rng.randint(1, 60)
        life = chain.live_until(
            lambda until=until: working.is_file() and variants_tried(chain) >= until, rng.uniform(0, 3)
        )
        if life.death is None:
            break
        kills += 1
    else:
        life = chain.live()
    assert life.code == 0, life
    document = json.loads(life.stdout)
    best = chain.run / "reduced" / "best.c"
    assert document["bisect"]["status"] == "found" and document["reduced"] and best.is_file(), life
    assert len(best.read_bytes()) < len((chain.cwd / "field.c").read_bytes())
    shutil.rmtree(chain.place)
    tally("kill -9: why --reduce", kills=kills, runs=1)
