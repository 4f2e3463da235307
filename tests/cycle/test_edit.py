"""Edits: what is kept, what is refused, and a kill at every step."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.cycle import edit
from mccprobe.cycle.versions import FOLDER, EditStore, read_version
from mccprobe.errors import BadDataFile, EditState
from mccprobe.gate.build import BuildFailure
from mccprobe.gate.check import GateReport
from mccprobe.kernel.spec import KernelSpec, load_kernel
from mccprobe.oracle.verdict import Verdict

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
    kept_edits = [store.load(path.name).files[source(kernel)][0] for path in store.versions.iterdir()]
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
    for path in (EditStore(kernel).versions / good).glob("[0-9]*"):
        path.write_text("damaged")
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
        if not killed:
            break
    assert steps > 2
