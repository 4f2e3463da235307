"""Edits: what is kept, what is refused, and a kill at every step."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.base.errors import BadDataFile, EditState
from mccprobe.base.files import DRAFT, remove_dead_drafts
from mccprobe.build.store import write_synced
from mccprobe.oracle.kernel.spec import KernelSpec, load_kernel
from mccprobe.oracle.verdict import Verdict
from mccprobe.tuning.check.build import BuildFailure
from mccprobe.tuning.check.check import GateReport
from mccprobe.tuning.cycle import edit
from mccprobe.tuning.cycle.run import LATEST, write_summary
from mccprobe.tuning.cycle.versions import FOLDER, EditStore, read_version, version_of

TOML = """schema_version = 1
name = "mine"
summary = "s"
sources = ["k.mu"]
host_sources = ["../common/host.mu"]
entry = "run"

[[cases]]
name = "c"
m = 16
n = 16
k = 16
"""
RIGHT, WRONG = "right 1\n", "wrong\n"


@pytest.fixture
def kernel(tmp_path: Path) -> KernelSpec:
    folder = tmp_path / "kernels" / "mine"
    folder.mkdir(parents=True)
    (tmp_path / "kernels" / "common").mkdir()
    (tmp_path / "kernels" / "common" / "host.mu").write_text("host")
    (tmp_path / "kernels" / "common" / "shared.h").write_text("header")
    (folder / "kernel.toml").write_text(TOML)
    (folder / "k.mu").write_text(RIGHT)
    (folder / "k.h").write_text("one")
    return load_kernel(folder)


class Gate:
    """Passes a kernel whose source begins with "right"."""

    def __init__(self) -> None:
        self.runs = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self, kernel: KernelSpec) -> GateReport:
        self.runs += 1
        right = kernel.sources[0].read_text().startswith("right")
        self.meanwhile()
        failure = None if right else BuildFailure("wrong numbers")
        return _Told(kernel, "mcc", False, "legacy", (), (), None, failure, (), (), (), ())


class _Told(GateReport):
    @property
    def verdict(self) -> Verdict:
        return Verdict.GOOD if self.failure is None else Verdict.BAD


@pytest.fixture
def gate() -> Gate:
    return Gate()


def source(kernel: KernelSpec) -> Path:
    return kernel.sources[0]


def test_a_right_edit_is_kept(kernel: KernelSpec, gate: Gate) -> None:
    assert edit.begin(kernel, gate).done
    source(kernel).write_text("right 2\n")
    tested = edit.test(kernel, gate)
    assert tested.done
    assert tested.files == ("k.mu",)
    kept = edit.keep(kernel, gate)
    assert kept.done
    assert gate.runs == 2  # the test's answer for these very files counts
    assert kept.good == kept.version
    assert EditStore(kernel).load(kept.version).files[source(kernel)][0] == b"right 2\n"
    with pytest.raises(EditState, match="no edit is open"):
        edit.test(kernel, gate)


def test_a_wrong_edit_is_not_kept(kernel: KernelSpec, gate: Gate) -> None:
    good = edit.begin(kernel, gate).version
    source(kernel).write_text(WRONG)
    outcome = edit.test(kernel, gate)
    assert not outcome.done
    assert "wrong numbers" in outcome.text
    kept = edit.keep(kernel, gate)
    assert not kept.done
    assert kept.good == good
    assert EditStore(kernel).state("open.json") is not None
    back = edit.revert(kernel.folder)
    assert back.done
    assert source(kernel).read_text() == RIGHT
    assert read_version(kernel).digest == good
    assert any("the edit is kept in" in note for note in back.notes)
    store = EditStore(kernel)
    kept_edits = [store.load(path.stem).files[source(kernel)][0] for path in store.versions.iterdir()]
    assert WRONG.encode() in kept_edits  # nothing of the user's work is lost


def test_files_changed_after_the_test_are_tested_again(kernel: KernelSpec, gate: Gate) -> None:
    edit.begin(kernel, gate)
    source(kernel).write_text("right 2\n")
    assert edit.test(kernel, gate).done
    source(kernel).write_text(WRONG)
    assert not edit.keep(kernel, gate).done
    assert source(kernel).read_text() == WRONG


def test_a_test_with_other_flags_is_none(kernel: KernelSpec, gate: Gate) -> None:
    """Right without flags, wrong with those of keep: it is not kept."""
    edit.begin(kernel, gate)
    source(kernel).write_text("right 2\n")
    assert edit.test(kernel, gate, {"flags": []}).done

    def wrong(one: KernelSpec) -> GateReport:
        return _Told(one, "mcc", False, "legacy", (), (), None, BuildFailure("wrong numbers"), (), (), (), ())

    assert not edit.keep(kernel, wrong, {"flags": [["-mllvm", "-x"]]}).done
    assert edit.keep(kernel, wrong, {"flags": []}).done


def test_files_that_change_during_the_test_prove_nothing(kernel: KernelSpec, gate: Gate) -> None:
    edit.begin(kernel, gate)
    gate.meanwhile = lambda: source(kernel).write_text("right 3\n")
    outcome = edit.test(kernel, gate)
    assert not outcome.done
    assert "changed while they were tested" in outcome.text
    gate.meanwhile = lambda: None
    assert edit.keep(kernel, gate).done
    assert gate.runs == 3


def test_two_edits_are_refused(kernel: KernelSpec, gate: Gate) -> None:
    edit.begin(kernel, gate)
    with pytest.raises(EditState, match="open already"):
        edit.begin(kernel, gate)


def test_two_commands_at_once_are_refused(kernel: KernelSpec, gate: Gate) -> None:
    def second() -> None:
        with pytest.raises(EditState, match="at work"):
            edit.begin(kernel, Gate())

    gate.meanwhile = second
    assert edit.begin(kernel, gate).done


def test_a_wrong_kernel_is_no_last_good_version(kernel: KernelSpec, gate: Gate) -> None:
    source(kernel).write_text(WRONG)
    assert not edit.begin(kernel, gate).done
    with pytest.raises(EditState, match="no edit is open"):
        edit.keep(kernel, gate)
    assert edit.begin(kernel, gate, unchecked=True).done
    source(kernel).write_text(RIGHT)
    assert edit.keep(kernel, gate).done


def test_a_changed_judge_is_told(kernel: KernelSpec, gate: Gate) -> None:
    edit.begin(kernel, gate)
    kernel.host_sources[0].write_text("says GOOD to all")
    (kernel.host_sources[0].parent / "shared.h").write_text("other")
    outcome = edit.test(kernel, gate)
    assert any("host.mu changed: it is part of what judges" in note for note in outcome.notes)
    assert set(outcome.files) == {"../common/host.mu", "../common/shared.h"}
    edit.revert(kernel.folder)
    assert kernel.host_sources[0].read_text() == "host"


def test_new_removed_and_executable_files(kernel: KernelSpec, gate: Gate) -> None:
    edit.begin(kernel, gate)
    (kernel.folder / "k.h").unlink()
    source(kernel).chmod(0o755)
    (kernel.folder / "new.h").write_text("new")
    outcome = edit.revert(kernel.folder)
    assert (kernel.folder / "k.h").read_text() == "one"
    assert source(kernel).stat().st_mode & 0o777 == 0o644
    assert (kernel.folder / "new.h").exists()
    assert any("new.h: was not there before, and stays" in note for note in outcome.notes)


def test_an_edit_that_breaks_kernel_toml_can_be_reverted(kernel: KernelSpec, gate: Gate) -> None:
    edit.begin(kernel, gate)
    kernel.path.write_text("not TOML [")
    assert edit.revert(kernel.folder).done
    assert kernel.path.read_text() == TOML


def test_a_damaged_version_is_not_put_back(kernel: KernelSpec, gate: Gate) -> None:
    good = edit.begin(kernel, gate).version
    EditStore(kernel).place(good).write_text("damaged")
    source(kernel).write_text("right, and mine\n")
    with pytest.raises(BadDataFile, match="changed since"):
        edit.revert(kernel.folder)
    assert source(kernel).read_text() == "right, and mine\n"


def test_git_does_not_see_it(kernel: KernelSpec, gate: Gate) -> None:
    edit.begin(kernel, gate)
    assert (kernel.folder / FOLDER / ".gitignore").read_text() == "*\n"


# --- kill -9 -------------------------------------------------------------------------------------

STEPS = ("replace", "rename", "unlink", "link", "mkdir")


def _killed_at(step: int, action: Callable[[], object]) -> bool:
    """Run `action` in a child that is killed before its step-th change of the file system. False if it ended."""
    child = os.fork()
    if child == 0:
        count = 0

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **kwargs: object) -> object:
                nonlocal count
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return call

        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        try:
            action()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("command", ["begin", "test", "keep", "revert"])
def test_a_kill_at_any_step_loses_nothing(kernel: KernelSpec, gate: Gate, command: str) -> None:
    """After the kill the same command, or a revert, ends in a state with right files and a whole last good version."""
    steps = 0
    while True:
        steps += 1
        source(kernel).write_text(RIGHT)
        if command != "begin":
            edit.begin(kernel, gate)
            source(kernel).write_text(WRONG if command == "revert" else "right 2\n")
        actions = {
            "begin": lambda: edit.begin(kernel, gate),
            "test": lambda: edit.test(kernel, gate),
            "keep": lambda: edit.keep(kernel, gate),
            "revert": lambda: edit.revert(kernel.folder),
        }
        killed = _killed_at(steps, actions[command])
        store = EditStore(kernel)
        good = store.state("good.json")
        if good is not None:
            store.load(str(good["digest"]))  # whole, or BadDataFile
        if store.state("open.json") is not None:
            if command == "keep":
                assert actions["keep"]() is not None
                assert source(kernel).read_text() == "right 2\n"
            else:
                edit.revert(kernel.folder)
                assert source(kernel).read_text() == RIGHT
        assert source(kernel).read_text() in (RIGHT, "right 2\n")
        assert store.state("open.json") is None
        edit.begin(kernel, gate)  # any next command
        edit.revert(kernel.folder)
        assert not left_over(kernel), f"killed at step {steps}"
        if not killed:
            break
    assert steps > 2


def left_over(kernel: KernelSpec) -> list[Path]:
    """Drafts in the kernel's folder, beside its host program and in the store; `lock` and .gitignore belong there."""
    store = kernel.folder / FOLDER
    folders = (kernel.folder, kernel.host_sources[0].parent, store, store / "versions")
    names = (".gitignore", FOLDER)
    return [path for folder in folders if folder.is_dir() for path in folder.glob(".*") if path.name not in names]


# --- drafts ----------------------------------------------------------------------------------------


def test_drafts_of_the_dead_go_those_of_the_living_stay(tmp_path: Path) -> None:
    target = tmp_path / "summary.json"
    target.write_text("old")

    def died() -> None:
        write_synced(target, b"never")

    assert _killed_at(1, died)  # before its rename
    dead = [path for path in tmp_path.iterdir() if path != target]
    assert len(dead) == 1
    mine = tmp_path / f".summary.json{DRAFT}mine"
    with mine.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        remove_dead_drafts(tmp_path)
        assert [path for path in tmp_path.iterdir() if path != target] == [mine]
    remove_dead_drafts(tmp_path)
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_text() == "old"


def test_the_next_cycle_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    first, second = tmp_path / "cycle-1", tmp_path / "cycle-2"
    first.mkdir()
    second.mkdir()
    assert _killed_at(2, lambda: write_summary({"a": 1}, first))  # before the rename of the newest one
    assert len(list(tmp_path.iterdir())) == 3
    write_summary({"a": 2}, second)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cycle-1", "cycle-2", LATEST]


# --- an edit folder that came with somebody's kernel ------------------------------------------------


def crafted(kernel: KernelSpec, path: str, text: str = "pwned\n") -> str:
    """An open edit whose last good version has the kernel's files and one more, with a digest that fits."""
    store = EditStore(kernel)
    version = read_version(kernel)
    files = {**version.files, Path(os.path.normpath(kernel.folder / path)): (text.encode(), 0o644)}
    with store.locked():
        whole = version_of(kernel, files)
        store.keep(whole)
        store.write_state("good.json", {"schema_version": 1, "digest": whole.digest})
        store.write_state("open.json", {"schema_version": 1, "from": whole.digest, "test": None, "reverting": False})
    return whole.digest


@pytest.mark.parametrize("path", ["../theirs/notes.txt", "../../notes.txt", "../notes.txt"])
def test_a_path_outside_the_kernel_is_not_written(kernel: KernelSpec, path: str) -> None:
    victim = kernel.folder / path
    victim.parent.mkdir(exist_ok=True)
    victim.write_text("mine")
    source(kernel).write_text(WRONG)
    digest = crafted(kernel, path)
    source(kernel).write_text("right 2\n")
    with pytest.raises(EditState, match="names no source beside it; nothing was put back") as caught:
        edit.revert(kernel.folder)
    assert digest in (caught.value.hint or "")
    assert (victim.read_text(), source(kernel).read_text()) == ("mine", "right 2\n")


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "../../.bashrc", "../common/.hidden", FOLDER + "/good.json"])
def test_a_hidden_path_is_refused(kernel: KernelSpec, path: str) -> None:
    digest = crafted(kernel, path)
    with pytest.raises(BadDataFile, match="which is no file of a kernel"):
        EditStore(kernel).load(digest)


def _member(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    for field, value in fields.items():
        setattr(member, field, value)
    return member


STRANGE_MEMBERS = (
    _member("/etc/motd"),
    _member("sub", tarfile.DIRTYPE),
    _member("k.mu", tarfile.SYMTYPE, linkname="/etc/motd"),
    _member("k.mu", tarfile.LNKTYPE, linkname="k.h"),
    _member("k.mu", tarfile.CHRTYPE),
    _member("k.mu", tarfile.FIFOTYPE),
    _member("k.mu", tarfile.GNUTYPE_SPARSE),
    _member("k.mu", size=1 << 40),
)


@pytest.mark.parametrize("member", STRANGE_MEMBERS, ids=lambda one: f"{one.name} {one.type!r} {one.size}")
def test_an_archive_that_keep_did_not_write_is_refused(kernel: KernelSpec, gate: Gate, member: tarfile.TarInfo) -> None:
    edit.begin(kernel, gate)
    store = EditStore(kernel)
    data = member.tobuf(tarfile.GNU_FORMAT) + bytes(2 * tarfile.BLOCKSIZE)
    digest = hashlib.sha256(data).hexdigest()[:32]
    store.place(digest).write_bytes(data)
    store.write_state("good.json", {"schema_version": 1, "digest": digest})
    with pytest.raises(BadDataFile):
        edit.revert(kernel.folder)
    assert source(kernel).read_text() == RIGHT


@pytest.mark.parametrize("digest", ["../../../elsewhere", "/tmp/x", "", 5, None])
def test_a_good_version_elsewhere_is_refused(kernel: KernelSpec, gate: Gate, digest: object) -> None:
    edit.begin(kernel, gate)
    EditStore(kernel).write_state("good.json", {"schema_version": 1, "digest": digest})
    for command in (lambda: edit.revert(kernel.folder), lambda: edit.test(kernel, gate)):
        with pytest.raises(BadDataFile, match="32 hexadecimal digits"):
            command()


def test_a_link_out_of_the_folder_is_not_followed(kernel: KernelSpec, tmp_path: Path) -> None:
    """Neither a folder nor a file that is a link; and the store itself may be none."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "notes.txt").write_text("mine")
    (kernel.folder / "sub").mkdir()
    crafted(kernel, "sub/notes.txt")
    (kernel.folder / "sub").rmdir()
    (kernel.folder / "sub").symlink_to(theirs)
    with pytest.raises(EditState, match=r"sub/notes.txt, which is .*theirs/notes.txt, lies outside"):
        edit.revert(kernel.folder)
    (kernel.folder / "sub").unlink()
    (kernel.folder / "sub").mkdir()
    (kernel.folder / "sub" / "notes.txt").symlink_to(theirs / "notes.txt")
    with pytest.raises(EditState, match="lies outside"):
        edit.revert(kernel.folder)
    assert (theirs / "notes.txt").read_text() == "mine"
    store = kernel.folder / FOLDER
    store.rename(theirs / "store")
    store.symlink_to(theirs / "store")
    with pytest.raises(EditState, match="is a link"):
        edit.revert(kernel.folder)


def test_a_shared_header_behind_a_link_is_part_of_the_version(kernel: KernelSpec, gate: Gate, tmp_path: Path) -> None:
    """It is noticed when it changes, and left alone when nothing changed."""
    (tmp_path / "shared.h").write_text("shared")
    (kernel.folder / "link.h").symlink_to(tmp_path / "shared.h")
    edit.begin(kernel, gate)
    source(kernel).write_text("right 2\n")
    assert edit.revert(kernel.folder).files == (str(source(kernel)),)
    assert (kernel.folder / "link.h").is_symlink()
    edit.begin(kernel, gate)
    (tmp_path / "shared.h").write_text("other")
    assert edit.test(kernel, gate).files == ("link.h",)
