"""Disks that are full or may not be written: one clear error, a journal that can be read, and a way on."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults_counts import DISKS
from faults_disk import small_disk
from faults_life import SCENES, Chain, Life, Scene, Undisturbed, lines

OPTIONS = ["size=4k", pytest.param("ro", marks=pytest.mark.soak)]
NO_ROOM = ("the disk is full", "No space left on device")


@pytest.fixture(autouse=True)
def _tools(tmp_path: Path) -> None:
    if shutil.which("clang-14") is None:
        pytest.skip("clang-14 is not installed")
    try:
        with small_disk(tmp_path / "probe", "64k"):
            pass
    except OSError as error:
        pytest.skip(str(error))


def soak(*values: str) -> Any:
    return pytest.param(*values, marks=pytest.mark.soak)


def clear_error(life: Life, code: int, *told: str) -> None:
    """One error line that names what and why, a hint, the code of the table, and the same as JSON."""
    assert life.code == code, life
    errors = [line for line in life.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1 and any(text in errors[0] for text in told), life
    assert "  hint: " in life.stderr, life
    document = json.loads(life.stdout)
    assert (document["status"], document["exit_code"]) == ("error", code), life


def on_disk(scene: Scene, place: Path, cache: Path) -> Chain:
    """A chain whose run directory lies on the small disk."""
    chain = Chain(scene, place, cache, run="disk/run")
    chain.run.parent.mkdir()
    return chain


@pytest.mark.parametrize("name", ["bisect", soak("search"), soak("why")])
def test_a_full_disk_under_the_run(
    name: str, tmp_path: Path, cache: Path, undisturbed: Callable[[str], Undisturbed], tally: Callable[..., None]
) -> None:
    """At any moment of the run; with room again it goes on, and the answer is the one of a run with room."""
    plain = undisturbed(name)
    expected = plain.answer
    used_k = sum(path.stat().st_blocks for path in plain.run.rglob("*")) // 2
    rng = random.Random(f"disk {name}")
    full = resumed = 0
    for number in range(DISKS):
        chain = on_disk(SCENES[name], tmp_path / f"{number}", cache)
        size_k = 4 * rng.randint(1, used_k // 6) if number else 4 * (used_k // 12)
        with small_disk(chain.run.parent, f"{size_k}k") as disk:
            chain.enter(disk.prefix, disk.root)
            life = chain.live()
            if life.code in (0, 1):
                continue
            clear_error(life, 4, *NO_ROOM)
            begun = (disk.seen(chain.run) / "run.json").is_file()
            again = f"free space and go on with: mccprobe {' '.join(chain.scene.command)} --resume"
            assert not begun or again in life.stderr, life
            full += 1
            for journal in chain.journals():
                whole = journal.read_bytes()
                assert whole.endswith(b"\n") or not whole, f"{journal} ends in the middle of a line"
                assert all(json.loads(line) for line in lines(journal))
            resumed += begun
            disk.remount("size=256m")
            chain.live()
            answer = chain.answer()
            assert (answer.code, answer.document) == (expected.code, expected.document), chain.lives[-1]
    assert full
    tally(f"full disk: {name}", runs=full, resumed=resumed)


def test_a_check_that_fails_for_want_of_room_is_no_verdict(tmp_path: Path, cache: Path) -> None:
    chain = on_disk(SCENES["bisect"], tmp_path / "chain", cache)
    check = chain.cwd / "check"
    check.write_text('#!/bin/sh\n[ "$("$1")" = 1525099781 ] || exit 0\ncat /dev/zero > "$TMPDIR/result" || exit 1\n')
    check.chmod(0o755)
    with small_disk(chain.run.parent, "4m") as disk:
        chain.enter(disk.prefix, disk.root)
        arguments = chain.arguments()
        at = arguments.index("-o")
        chain.given = [*arguments[:at], "--oracle", str(check), *arguments[at:]]
        clear_error(chain.live(), 4, *NO_ROOM)
        (journal,) = chain.journals()
        assert '"verdict":"BAD"' not in journal.read_text()


@pytest.mark.parametrize("name", ["bisect", soak("search")])
def test_a_run_where_nothing_may_be_written(name: str, tmp_path: Path, cache: Path) -> None:
    chain = on_disk(SCENES[name], tmp_path / "chain", cache)
    with small_disk(chain.run.parent, "64m") as disk:
        chain.enter(disk.prefix, disk.root)
        disk.remount("ro")
        clear_error(chain.live(), 4, "Read-only file system")


@pytest.mark.soak
def test_a_disk_that_may_no_longer_be_written(tmp_path: Path, cache: Path) -> None:
    """A file system that went read-only after an error: the run is refused, and goes on once it is mended."""
    chain = on_disk(SCENES["bisect"], tmp_path / "chain", cache)
    with small_disk(chain.run.parent, "64m") as disk:
        chain.enter(disk.prefix, disk.root)
        assert chain.live(die_at=5, on="programs/").death
        disk.remount("ro")
        clear_error(chain.live(), 4, "Read-only file system")
        disk.remount("rw")
        assert chain.live().code == 0
        chain.answer()


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.soak
@pytest.mark.parametrize("name", ["TMPDIR", "MCCPROBE_CACHE"])
def test_temporary_files_and_cache_without_room(name: str, options: str, tmp_path: Path, cache: Path) -> None:
    """Neither is needed to bisect with clang: it works, or says what is missing."""
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    with small_disk(chain.cwd / "disk", "4k") as disk:
        chain.enter(disk.prefix, disk.root)
        disk.remount(options)
        chain.more[name] = str(disk.place)
        life = chain.live()
    if life.code != 0:
        clear_error(life, 4, *NO_ROOM, "Read-only file system")


@pytest.mark.parametrize("options", OPTIONS)
def test_the_stand_in_cannot_be_built(options: str, tmp_path: Path, cache: Path) -> None:
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    chain.given = ["check", "gemm", "--toolchain", "sim", "--json"]
    with small_disk(chain.cwd / "disk", "4k") as disk:
        chain.enter(disk.prefix, disk.root)
        disk.remount(options)
        chain.more["MCCPROBE_CACHE"] = str(disk.place)
        life = chain.live()
    assert life.code in (3, 4), life
    clear_error(life, life.code, *NO_ROOM, "Read-only file system")


OUTPUTS = {
    "plot": ("search", ["--plot", "{disk}/plot.svg"]),
    "book": ("search", ["--journal", "{disk}/journal.jsonl"]),
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.soak
@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_without_room(name: str, options: str, tmp_path: Path, cache: Path) -> None:
    """What is written beside the run: the error comes once, and the run itself can be gone on with."""
    scene, extra = OUTPUTS[name]
    chain = Chain(SCENES[scene], tmp_path / "chain", cache)
    with small_disk(chain.cwd / "disk", "4k") as disk:
        chain.enter(disk.prefix, disk.root)
        (disk.seen(disk.place) / "filler").write_bytes(bytes(4096))
        disk.remount(options)
        arguments = chain.arguments()
        at = arguments.index("-o")
        chain.given = [*arguments[:at], *(word.format(disk=disk.place) for word in extra), *arguments[at:]]
        clear_error(chain.live(), 4, *NO_ROOM, "Read-only file system")
        chain.given = []
        assert chain.live().code in (0, 1)
        chain.answer()


@pytest.mark.parametrize("options", OPTIONS)
def test_a_bug_report_without_room(options: str, tmp_path: Path, cache: Path) -> None:
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    assert chain.live().code == 0
    with small_disk(chain.cwd / "disk", "4k") as disk:
        chain.enter(disk.prefix, disk.root)
        disk.remount(options)
        chain.given = ["bug-report", "run", "-o", str(disk.place / "bug"), "--json"]
        clear_error(chain.live(), 4, *NO_ROOM, "Read-only file system")
        assert not list(disk.seen(disk.place).iterdir())
