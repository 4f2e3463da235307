"""Disks that are full or may not be written: one clear error, a journal that can be read, and a way on."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults_counts import DISKS
from faults_disk import small_disk
from faults_life import SCENES, TESTS, Chain, Life, Scene, Undisturbed, lines

OPTIONS = ["size=4k", pytest.param("ro", marks=pytest.mark.soak)]
LISTING = TESTS / "isa_learn" / "data" / "sass" / "axpy_f32.txt"
ASSEMBLY = TESTS / "isa" / "data" / "demo-mp22.s"
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


KEPT = "kept.out"  # on the disk before there was no room any more
WRITTEN_OVER = {
    "journal-csv": ("journal", "export", "--journal", "book.jsonl", "--csv", "{file}"),
    "journal-parquet": ("journal", "export", "--journal", "book.jsonl", "--parquet", "{file}"),
    "flags-harvest": ("flags", "harvest", "--compiler", "clang-14", "-o", "{file}"),
    "isa-learn": ("isa", "learn", "--from", str(LISTING), "-o", "{file}"),
    "report-html": ("report", str(ASSEMBLY), "--html", "{file}"),
}


@pytest.mark.parametrize("name", WRITTEN_OVER)
def test_a_file_that_is_written_over_stays_where_there_is_no_room(name: str, tmp_path: Path, cache: Path) -> None:
    """Whole or as it was: neither half a file nor a draft, and what the last command wrote is not lost."""
    if name == "journal-parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    if name == "report-html":
        pytest.importorskip("jinja2", reason="jinja2 is not installed")
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    chain.given = ["journal", "note", "a thought " * 50, "--journal", "book.jsonl", "--json"]
    assert chain.live().code == 0
    with small_disk(chain.cwd / "disk", "4m") as disk:
        chain.enter(disk.prefix, disk.root)
        kept = disk.place / KEPT
        chain.given = [*(word.format(file=kept) for word in WRITTEN_OVER[name]), "--json"]
        assert chain.live().code == 0, chain.lives[-1]
        before = disk.seen(kept).read_bytes()
        assert before
        disk.fill()
        clear_error(chain.live(), 4, *NO_ROOM)
        assert disk.seen(kept).read_bytes() == before
        assert {path.name for path in disk.seen(disk.place).iterdir()} == {KEPT, "filler"}


def test_an_answer_is_shown_though_the_journal_has_no_room(tmp_path: Path, cache: Path) -> None:
    """What was measured for an hour is not lost because the line about it could not be written."""
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    with small_disk(chain.cwd / "disk", "64k") as disk:
        chain.enter(disk.prefix, disk.root)
        disk.fill()
        words = ["check", "barrier", "--toolchain", "sim", "--seed", "1", "--journal", str(disk.place / "book.jsonl")]
        chain.given = words
        life = chain.live()
        assert life.code == 4 and "book.jsonl: cannot be written: the disk is full" in life.stderr, life
        assert "gate PASSED" in life.stdout, life
        chain.given = [*words, "--json"]
        clear_error(chain.live(), 4, *NO_ROOM)  # one document, and it tells the error


def test_a_reduction_without_room(tmp_path: Path, cache: Path) -> None:
    """No bug of ours, and what was found so far is still there and still believed."""
    if shutil.which("cvise") is None:
        pytest.skip("cvise is not installed")
    chain = on_disk(SCENES["bisect"], tmp_path / "chain", cache)
    with small_disk(chain.run.parent, "64m") as disk:
        chain.enter(disk.prefix, disk.root)
        assert chain.live().code == 0
        reduced = disk.seen(chain.run) / "reduced"
        reduced.mkdir()
        source = (chain.cwd / "field.c").read_bytes()
        (reduced / "source.sha256").write_text(hashlib.sha256(source).hexdigest())
        (reduced / "best.c").write_bytes(source)
        before = {path.name: path.read_bytes() for path in reduced.iterdir()}
        disk.fill()
        chain.given = ["reduce", str(chain.run), "--budget", "5s", "--json"]
        clear_error(chain.live(), 4, *NO_ROOM)
        assert {name: (reduced / name).read_bytes() for name in before} == before
