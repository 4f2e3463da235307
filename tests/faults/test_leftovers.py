"""What a command leaves where it could not finish: nothing, or what was there before."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from faults_disk import small_disk
from faults_life import SCENES, TESTS, Chain
from test_disks import NO_ROOM, clear_error
from test_disks import _tools as _tools  # what it skips without

SIM = ("barrier", "--toolchain", "sim", "--seed", "1", "--journal", "", "--json")
COMMANDS = {
    "check": ("check", *SIM),
    "lab": ("check", *SIM, "--lab"),
    "bench": ("bench", *SIM, "--rounds", "1", "--warmups", "0"),
    "cycle": ("cycle", *SIM, "--rounds", "1", "--warmups", "0"),
    "overlay": ("overlay", "accumulators-16", "--header", "crt/mma.h", "--replace", "__frag_base<float, 32>",
                "__frag_base<float, 8>", *SIM[1:]),
}  # fmt: skip


ROOM = {"full": "256k", "later": "272k"}  # the second one: enough for the objects, not for what ld.lld maps


@pytest.mark.parametrize(
    ("name", "room"),
    [pytest.param(name, room, marks=[] if room == "later" else pytest.mark.soak) for room in ROOM for name in COMMANDS],
)
def test_a_folder_that_was_named_for_a_build(name: str, room: str, tmp_path: Path, cache: Path) -> None:
    """A build that finds no room leaves neither its folder nor those that were made for it; what was there stays."""
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    with small_disk(chain.cwd / "disk", ROOM[room]) as disk:
        chain.enter(disk.prefix, disk.root)
        own = disk.seen(disk.place) / "mine"
        own.mkdir()
        (own / "kept").write_text("kept")
        if room == "full":
            disk.fill()
        for place in ("new/below", *(["mine"] if room == "full" or name == "check" else [])):
            chain.given = [*COMMANDS[name], "-o", str(disk.place / place)]
            life = chain.live()
            clear_error(life, 4, *NO_ROOM)
            assert "hint: free space, or choose another place with -o DIR" in life.stderr
            left = {str(path.relative_to(disk.seen(disk.place))) for path in disk.seen(disk.place).rglob("*")}
            assert left - {"filler"} == {"mine", "mine/kept"}, (life, left)


def test_what_was_named_for_figures(tmp_path: Path, cache: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    with small_disk(chain.cwd / "disk", "64k") as disk:
        chain.enter(disk.prefix, disk.root)
        (disk.seen(disk.place) / "filler").write_bytes(bytes(56 << 10))  # room for a folder, not for a figure
        chain.given = [
            "report",
            str(TESTS / "isa" / "data" / "demo-mp22.s"),
            "--figures",
            str(disk.place / "figures"),
            "--json",
        ]
        clear_error(chain.live(), 4, *NO_ROOM)
        assert {path.name for path in disk.seen(disk.place).rglob("*")} == {"filler"}


@pytest.mark.parametrize("room", ["32k", pytest.param("64k", marks=pytest.mark.soak)])
def test_a_cache_without_room(room: str, tmp_path: Path, cache: Path) -> None:
    """Neither what was asked of clang nor an SDK is left half, and what a killed build left goes with the next."""
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    with small_disk(chain.cwd / "disk", room) as disk:
        chain.enter(disk.prefix, disk.root)
        chain.more["MCCPROBE_CACHE"] = str(disk.place)
        dead = disk.seen(disk.place) / "sim" / ".building-dead"
        dead.mkdir(parents=True)
        (dead / "half").write_text("half")
        chain.given = ["check", "barrier", "--toolchain", "sim", "--json"]
        life = chain.live()
        clear_error(life, life.code, *NO_ROOM)
        left = {path.name.partition("-")[0] for path in (disk.seen(disk.place) / "sim").iterdir()}
        assert left == {"clang", "lock"} and not list(disk.seen(disk.place).rglob("clang-*.[!j]*")), left
        disk.fill()
        (stamp,) = disk.seen(disk.place).rglob("clang-*.json")
        stamp.unlink()
        disk.fill()
        life = chain.live()
        clear_error(life, life.code, *NO_ROOM)
        assert {path.name for path in (disk.seen(disk.place) / "sim").iterdir()} == {"lock"}


def test_an_edit_is_told_though_the_journal_has_no_room(tmp_path: Path, cache: Path) -> None:
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    kernel = chain.cwd / "kernels" / "barrier"
    for name in ("barrier", "common"):
        shutil.copytree(TESTS.parent / "kernels" / name, kernel.parent / name)
    with small_disk(chain.cwd / "disk", "64k") as disk:
        chain.enter(disk.prefix, disk.root)
        disk.fill()
        chain.given = [
            "edit",
            "begin",
            str(kernel),
            "--toolchain",
            "sim",
            "--seed",
            "1",
            "--journal",
            str(disk.place / "book.jsonl"),
        ]
        life = chain.live()
        assert life.code == 4 and "book.jsonl: cannot be written: the disk is full" in life.stderr, life
        assert "edit begin barrier: edit open" in life.stdout, life


def test_a_wrapper_that_was_being_written(tmp_path: Path, cache: Path) -> None:
    """kill -9 in the middle of an install leaves a draft, and the next install takes it away."""
    if not (compilers := sorted((cache / "sim").glob("*/bin/mcc"))):
        pytest.skip("the stand-in SDK is not built")
    chain = Chain(SCENES["bisect"], tmp_path / "chain", cache)
    chain.given = ["wrapper", "install", "--mcc", str(compilers[0]), "--prefix", "prefix", "--set", "gemm-s4000"]
    folder = chain.cwd / "prefix" / "bin"
    for step in ("link", "rename"):  # to a place where nothing is, over the wrapper that is there
        assert chain.live(die_at=1, on=f"{step} {folder}").death, chain.lives[-1]
        left = [path.name for path in folder.iterdir() if path.name != "mcc"]
        assert len(left) == 1 and left[0].startswith(".mcc"), left
        assert chain.live().code == 0 and [path.name for path in folder.iterdir()] == ["mcc"], chain.lives[-1]
    assert chain.live(die_at=1, on=f"rename {folder}").death, chain.lives[-1]
    chain.given = ["wrapper", "remove", "--prefix", "prefix"]
    assert chain.live().code == 0 and not list(folder.iterdir()), chain.lives[-1]
