"""Run folders that another user prepared: no link is followed out of them, no replaced file is executed or used."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.base.errors import ChangedRunFile, JournalUnreadable, RunDirectoryUnusable, UnsafeRunFolder
from mccprobe.base.files import file_digest, replace_file
from mccprobe.build.journal import Journal
from mccprobe.build.kept import KeptFiles
from mccprobe.build.store import RunDirectory, keep_object
from mccprobe.cli import main
from mccprobe.targets.llvm.opt_bisect import LogSummary

PROGRAMS = Path(__file__).parents[1] / "cli" / "programs"
CallCli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `bisect` that found its pass, and the sources that it needs, in one folder that does not move."""
    folder = tmp_path_factory.mktemp("finished")
    shutil.copytree(PROGRAMS, folder / "programs")
    code = main(
        [
            "-q",
            "bisect",
            str(folder / "programs" / "field.c"),
            "--compiler",
            "clang-14",
            "--flag",
            "-enable-loopinterchange",
            "-o",
            str(folder / "run"),
            "--",
            "-O3",
            str(folder / "programs" / "field_main.c"),
        ]
    )
    assert code == 0
    shutil.copytree(folder / "run", folder / "kept")
    return folder


@pytest.fixture
def run(finished: Path) -> Path:
    """The run as it ended; each test may ruin it."""
    shutil.rmtree(finished / "run")
    return Path(shutil.copytree(finished / "kept", finished / "run"))


pytestmark = pytest.mark.toolchain("clang-14")


def resumed(run: Path, call_cli: CallCli) -> tuple[int, dict[str, object], str]:
    code, out, err = call_cli("-q", "bisect", "--resume", run, "--json")
    return code, json.loads(out), err


@pytest.mark.parametrize("name", ["result.json", "report.txt", "journal.jsonl", "run.json", "unit/x", "x"])
def test_a_link_is_not_followed(name: str, run: Path, tmp_path: Path, call_cli: CallCli) -> None:
    outside = tmp_path / "outside"
    shutil.copy(run / name, outside) if (run / name).exists() else outside.write_text("keep me\n")
    before = outside.read_bytes()
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(outside)
    code, document, err = resumed(run, call_cli)
    assert (code, document["code"]) == (4, "unsafe-run-folder"), err
    assert str(run / name) in str(document["message"]), err
    assert outside.read_bytes() == before


@pytest.mark.parametrize("name", ["objects", "programs", "unit", "trials"])
def test_a_folder_that_is_a_link_is_not_followed(name: str, run: Path, tmp_path: Path, call_cli: CallCli) -> None:
    outside = Path(shutil.copytree(run / name, tmp_path / "outside"))
    (outside / "mine").write_text("keep me\n")
    before = sorted(path.name for path in outside.iterdir())
    shutil.rmtree(run / name)
    (run / name).symlink_to(outside)
    code, document, err = resumed(run, call_cli)
    assert (code, document["code"]) == (4, "unsafe-run-folder"), err
    assert sorted(path.name for path in outside.iterdir()) == before


def test_a_fifo_does_not_block(run: Path, call_cli: CallCli) -> None:
    (run / "run.json").unlink()
    os.mkfifo(run / "run.json")
    code, document, err = resumed(run, call_cli)
    assert (code, document["code"]) == (4, "unsafe-run-folder"), err


@pytest.mark.parametrize("command", ["bug-report", "reduce"])
def test_no_other_command_follows_links(command: str, run: Path, tmp_path: Path, call_cli: CallCli) -> None:
    (run / "where").symlink_to(tmp_path)
    code, out, err = call_cli(command, run)
    assert code == 4 and str(run / "where") in err, (out, err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["why", "flags search"])
def test_runs_of_other_commands(kind: str, tmp_path: Path, call_cli: CallCli) -> None:
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    run.mkdir()
    (run / "run.json").write_text("{}")
    (run / "bisect").symlink_to(outside)
    code, _, err = call_cli(*kind.split(), "--resume", run)
    assert code == 4 and str(run / "bisect") in err, err
    assert list(outside.iterdir()) == []


def test_every_program_and_object_is_compared_with_its_hash(run: Path, call_cli: CallCli, tmp_path: Path) -> None:
    """One after the other: what is used again is refused, what is not used again changes nothing."""
    expected, refused = json.loads((run / "result.json").read_text())["culprit"], set()
    for path in sorted([*(run / "programs").iterdir(), *(run / "objects").iterdir()]):
        whole, ran = path.read_bytes(), tmp_path / "ran"
        path.write_bytes(f"#!/bin/sh\ntouch {ran}\n".encode())
        code, document, err = resumed(run, call_cli)
        if code == 0:
            assert document["culprit"] == expected, path
        else:
            assert (code, document["code"]) == (4, "changed-run-file"), err
            assert str(path) in str(document["message"]), err
            refused.add(path.parent.name)
        assert not ran.exists(), f"{path} was executed"
        path.write_bytes(whole)
    assert refused == {"programs", "objects"}


def test_the_rest_of_the_program_cannot_be_exchanged(run: Path, call_cli: CallCli) -> None:
    shutil.rmtree(run / "programs")  # so that they are linked again
    (rest,) = (run / "unit").glob("rest-*.o")
    rest.write_bytes((run / "unit" / "bisected" / "0.bc").read_bytes())
    code, document, err = resumed(run, call_cli)
    assert (code, document["code"]) == (4, "changed-run-file"), err
    assert str(rest) in str(document["message"]), err


def test_the_bad_object_cannot_be_exchanged(run: Path, call_cli: CallCli) -> None:
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    verdicts = {line["object"]: line["verdict"] for line in lines if line["t"] == "run"}
    bad = next(name for name, verdict in verdicts.items() if verdict == "BAD")
    good = next(name for name, verdict in verdicts.items() if verdict == "GOOD")
    shutil.copyfile(run / "objects" / good, run / "objects" / bad)
    code, document, err = resumed(run, call_cli)
    assert (code, document["code"]) == (4, "changed-run-file"), err


def test_a_program_that_no_journal_knows_is_linked_again(run: Path, call_cli: CallCli, tmp_path: Path) -> None:
    """A run of an earlier mccprobe recorded no hash of its programs."""
    journal, ran = run / "journal.jsonl", tmp_path / "ran"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"t":"file"' not in line))
    for path in (run / "programs").iterdir():
        path.write_text(f"#!/bin/sh\ntouch {ran}\n")
    code, document, err = resumed(run, call_cli)
    assert (code, document["status"]) == (0, "found"), err
    assert not ran.exists()


def test_an_untouched_run_is_resumed_without_work(run: Path, call_cli: CallCli) -> None:
    def recorded() -> list[str]:
        """Without compiles: some are started ahead of need."""
        return [line for line in (run / "journal.jsonl").read_text().splitlines() if '"t":"compile"' not in line]

    before = recorded()
    code, document, err = resumed(run, call_cli)
    assert (code, document["status"]) == (0, "found"), err
    assert recorded() == before


# --- the parts --------------------------------------------------------------------------------------


def test_links_in_scratch_folders_are_what_programs_leave(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    (run.root / "trials" / "link").symlink_to(tmp_path)
    RunDirectory(tmp_path / "run").clear_trials()
    assert not list((run.root / "trials").iterdir()) and tmp_path.is_dir()
    (run.root / "objects" / "link").symlink_to(tmp_path)
    with pytest.raises(UnsafeRunFolder, match="a symbolic link"):
        RunDirectory(tmp_path / "run")


def test_a_small_file_of_a_run_replaces_a_link(tmp_path: Path) -> None:
    outside, link = tmp_path / "outside", tmp_path / "result.json"
    outside.write_text("keep me")
    link.symlink_to(outside)
    replace_file(link, b"new", follow=False)
    assert (outside.read_text(), link.read_text(), link.is_symlink()) == ("keep me", "new", False)


def test_an_object_replaces_what_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    made = tmp_path / "made"
    made.write_bytes(b"object")
    planted = tmp_path / "objects" / file_digest(made)
    planted.write_bytes(b"other")
    assert keep_object(made, tmp_path / "objects") == planted.name
    assert planted.read_bytes() == b"object"


def test_kept_files(tmp_path: Path) -> None:
    lines: list[dict[str, str]] = []
    kept = KeptFiles(tmp_path)
    kept.attach({}, lines.append)
    made, place = tmp_path / "made", tmp_path / "program"
    assert not kept.usable(place)
    made.write_bytes(b"program")
    kept.keep(made, place)
    assert kept.usable(place) and lines == [{"t": "file", "name": "program", "sha256": file_digest(place)}]
    later = KeptFiles(tmp_path)
    assert not later.usable(place), "it is in no journal"
    later.attach({"program": file_digest(place)}, lines.append)
    assert later.usable(place)
    last = KeptFiles(tmp_path)
    last.attach({"program": "0" * 64}, lines.append)
    with pytest.raises(ChangedRunFile, match="program: changed since the run recorded it"):
        last.usable(place)


def test_a_journal_that_is_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "journal.jsonl").symlink_to(tmp_path / "real")
    with pytest.raises(RunDirectoryUnusable):
        Journal(tmp_path / "journal.jsonl")
    assert (tmp_path / "real").read_bytes() == b""


def test_an_object_outside_of_the_run_is_no_object(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    line = {
        "t": "compile",
        "id": "a",
        "object": "0" * 64,
        "reason": "",
        "seconds": 0.1,
        "log": LogSummary(0, 0).to_dict(),
        "diagnostics": "",
    }
    head = json.dumps({"t": "journal", "version": 2})
    path.write_text(f"{head}\n{json.dumps(line)}\n")
    Journal(path).close()
    path.write_text(f"{head}\n{json.dumps({**line, 'object': '../../etc/passwd'})}\n")
    with pytest.raises(JournalUnreadable, match="line 2"):
        Journal(path)
