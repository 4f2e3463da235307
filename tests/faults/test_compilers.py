"""Compilers and programs under fire: what hangs, floods, fills the disk, lies or changes accuses nobody."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults_counts import SOAKING
from faults_disk import small_disk
from faults_life import FAKES, Chain, Scene, lines

pytestmark = pytest.mark.toolchain("clang-14")

FAULT_AT = 20  # as in fakes/driver.sh
PROGRAM = """#include <stdio.h>
static int sum(const int *v, int n) { int s = 0; for (int i = 0; i < n; ++i) s += v[i]; return s; }
int main(int argc, char **argv) {
  int v[4] = {1, 2, argc, 4};
  printf("%d GOOD %s\\n", sum(v, 4), argv[0] ? "" : "?");
  return 0;
}
"""
FLOOD_BYTES = 1 << 30 if SOAKING else 64 << 20
MOST_MEMORY_KIB = 400 << 10  # a clang takes 100 MiB


@pytest.fixture
def bisect(tmp_path: Path, cache: Path) -> Callable[..., Chain]:
    """`bisect("mcc_ok")`: a chain with this fake and a program that it miscompiles from execution 20 on."""

    def make(fake: str, *options: str, run: str = "run") -> Chain:
        chain = Chain(Scene(fake, ("bisect",), (), ()), tmp_path / "chain", cache, run=run)
        (chain.cwd / "program.c").write_text(PROGRAM)
        chain.more["FAKE_STATE"] = str(chain.logs / "state")
        out = run if run == "run" else str(chain.run)
        chain.given = [
            "bisect",
            "program.c",
            "--toolchain",
            "clang",
            "--compiler",
            str(FAKES / fake),
            "--flag=-fake-fault",
            "--jobs",
            "2",
            "--spot-checks",
            "0",
            *options,
            "--json",
            "-o",
            out,
            "--",
            "-O2",
        ]
        return chain

    return make


def exposed(chain: Chain) -> dict[str, Any]:
    """Done, nobody called found: the limit beside the edge could not be judged."""
    life = chain.live()
    assert life.code == 0, life
    document: dict[str, Any] = json.loads(life.stdout)
    assert document["status"] == "exposed" and document["monotone"] is None, life
    (edge,) = document["edges"]
    assert (edge["execution"], edge["from"], edge["to"]) == (FAULT_AT, "GOOD", "BAD"), life
    return document


def test_a_grandchild_that_left_the_session_is_ended(bisect: Callable[..., Chain]) -> None:
    chain = bisect("mcc_hangs_with_daemon", "--compile-timeout", "4")
    chain.more["FAKE_LIMIT_AT"] = str(FAULT_AT - 1)
    exposed(chain)  # and Chain looks for processes


def test_a_killed_run_leaves_no_hanging_compiler(bisect: Callable[..., Chain]) -> None:
    """kill -9 of mccprobe while a compiler hangs: it, its child and the one that left the session end too."""
    chain = bisect("mcc_hangs_with_daemon")
    chain.more["FAKE_LIMIT_AT"] = "0"
    life = chain.live_for(4.0)
    assert life.death, life


@pytest.mark.parametrize("where", [FAULT_AT - 1, pytest.param(FAULT_AT, marks=pytest.mark.soak)])
def test_a_corrupt_object_is_no_verdict(where: int, bisect: Callable[..., Chain]) -> None:
    chain = bisect("mcc_writes_a_corrupt_object")
    chain.more["FAKE_LIMIT_AT"] = str(where)
    life = chain.live()
    document = json.loads(life.stdout)
    assert life.code == 0 and document["status"] == "exposed", life
    (edge,) = document["edges"]
    assert edge["execution"] == (FAULT_AT if where < FAULT_AT else FAULT_AT + 1) and edge["unresolved"] == [where], life
    runs = [json.loads(line) for line in lines(chain.run / "journal.jsonl")[1:]]
    assert not [one for one in runs if one["t"] == "run" and one["verdict"] == "BAD" and "link" in one["reason"]]


def test_a_compiler_that_changes_in_the_middle_accuses_nobody(bisect: Callable[..., Chain]) -> None:
    chain = bisect("mcc_changes_in_the_middle")
    life = chain.live()
    document = json.loads(life.stdout)
    assert (life.code, document["code"]) == (3, "compiler-changed"), life
    assert "it was mcc version 3.1.0 (a fake of mccprobe's tests), it is mcc version 3.2.0" in document["message"]
    assert not (chain.run / "result.json").exists(), "an answer of two compilers is none"
    chain.given = ["bisect", "--resume", "run", "--json"]
    again = chain.live()
    assert again.code == 4 and "cannot be resumed: version, fingerprint changed" in again.stderr, again


def test_a_compiler_that_fills_the_disk(bisect: Callable[..., Chain]) -> None:
    chain = bisect("mcc_fills_the_disk", run="disk/run")
    chain.run.parent.mkdir()
    try:
        with small_disk(chain.run.parent, "16m") as disk:
            chain.enter(disk.prefix, disk.root)
            chain.more["FAKE_LIMIT_AT"] = "0"
            life = chain.live()
            assert life.code == 4 and "the disk is full" in life.stderr and "--resume" in life.stderr, life
            free = os.statvfs(disk.seen(disk.place))
            assert free.f_bavail * free.f_frsize > 8 << 20, "what it wrote is gone"
            chain.more["FAKE_LIMIT_AT"] = "-7"
            chain.given = ["bisect", "--resume", str(chain.run), "--json"]
            life = chain.live()
            assert life.code == 0 and json.loads(life.stdout)["culprit"]["execution"] == FAULT_AT, life
    except OSError as error:
        pytest.skip(f"{error} (clang-14 is there)")


@pytest.mark.soak  # in the suite: tests/toolchain
def test_a_flood_of_messages_needs_no_memory(bisect: Callable[..., Chain]) -> None:
    chain = bisect("mcc_floods_stderr")
    chain.more |= {"FAKE_LIMIT_AT": str(FAULT_AT), "FAKE_FLOOD_BYTES": str(FLOOD_BYTES)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    life = chain.live()
    assert life.code == 0 and json.loads(life.stdout)["culprit"]["execution"] == FAULT_AT, life
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert most == before or most < MOST_MEMORY_KIB, f"{most} KiB at the peak"


def test_a_check_that_prints_without_end(bisect: Callable[..., Chain]) -> None:
    """It exits as its verdict says; what it prints is counted and dropped."""
    chain = bisect("mcc_ok")
    check = chain.cwd / "check"
    check.write_text(f'#!/bin/sh\nhead -c {FLOOD_BYTES // 64} /dev/zero\n"$1" | grep -q GOOD\n')
    check.chmod(0o755)
    chain.given[2:2] = ["--oracle", str(check)]
    life = chain.live()
    assert life.code == 0 and json.loads(life.stdout)["culprit"]["execution"] == FAULT_AT, life
    assert (chain.run / "journal.jsonl").stat().st_size < 1 << 20
