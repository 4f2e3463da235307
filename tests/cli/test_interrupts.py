"""SIGINT, SIGTERM and SIGKILL in the middle: no process left, the journal complete, --resume goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.console import Console
from mccprobe.cli import main

FLAG = ("--flag", "-enable-loopinterchange")
CHANGING = ("--flag", "-align-all-functions=6")  # another object of any source
STAGES = ("compiling the bad build", "searching", "trial 3:", "trial 6:", "spot check")

pytestmark = pytest.mark.toolchain("clang-14")


def begin(*args: str | Path, **settings: Any) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "mccprobe", "bisect", *map(str, args)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)


def until(process: subprocess.Popen[str], mark: str) -> str:
    """Standard error up to the line that holds `mark`."""
    assert process.stderr is not None
    read = ""
    for line in process.stderr:
        read += line
        if mark in line:
            return read
    return read


def interrupted(process: subprocess.Popen[str], place: str) -> None:
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, (process.returncode, stdout, stderr)
    assert "error: interrupted\n" in stderr and f"--resume {place}" in stderr, stderr
    assert "Traceback" not in stderr and stdout == ""
    assert list(Path(place, "trials").iterdir()) == []


@pytest.mark.clean("run", "programs", "out")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
@pytest.mark.parametrize("stage", STAGES)
def test_interrupted_and_resumed(
    stage: str, number: signal.Signals, programs: Path, run_cli: Callable[..., Any]
) -> None:
    process = begin(
        programs / "field.c", "--compiler", "clang-14", *FLAG, "-o", "run", "--", "-O3", programs / "field_main.c"
    )
    until(process, stage)
    process.send_signal(number)
    interrupted(process, "run")
    before = journalled(Path("run"))
    again = run_cli("bisect", "--resume", "run", "--json")
    document = json.loads(again.stdout)
    assert (again.code, document["status"], document["culprit"]["function"]) == (0, "found", "settle"), again
    after = journalled(Path("run"))
    assert after[: len(before)] == before, "what was answered is not asked again"
    answered = [key for key in after if key[0] not in ("note", "file")]
    assert len(answered) == len(set(answered)), "no trial runs twice"


def journalled(run: Path) -> list[tuple[Any, ...]]:
    entries = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    return [
        (entry["t"], entry["id"])
        if entry["t"] == "compile"
        else (entry["t"], *(entry.get(key) for key in ("object", "oracle", "ordinal")))
        for entry in entries
    ]


@pytest.mark.clean("run")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
@pytest.mark.parametrize("where", ["compile", "program", "oracle"])
def test_a_child_that_ignores_signals_does_not_survive(where: str, number: signal.Signals, tmp_path: Path) -> None:
    """A compiler, a program and a check that ignore SIGTERM and have a child of their own."""
    told = tmp_path / "pids"
    stubborn = f"trap '' TERM INT; sleep 300 & echo $$ $! >>'{told}'; wait; wait\n"
    source = tmp_path / "p.c"
    source.write_text("int main(void) { return 0; }\n")
    args: list[str | Path] = [source, *CHANGING, "--compiler", "clang-14", "-o", "run"]
    if where == "compile":
        compiler = tmp_path / "clang-slow"
        compiler.write_text(
            f'#!/bin/sh\ncase "$*" in *"-###"*|*--version*|*/dev/null*) exec clang-14 "$@";; esac\n{stubborn}'
        )
        compiler.chmod(0o755)
        (tmp_path / "other.c").write_text("int other;\n")
        args[args.index("clang-14")] = compiler
        args += ["--", tmp_path / "other.c"]
    elif where == "oracle":
        check = tmp_path / "check"
        check.write_text(f"#!/bin/sh\n{stubborn}")
        check.chmod(0o755)
        args += ["--oracle", check]
    else:
        source.write_text(f'#include <stdlib.h>\nint main(void) {{ return system("{stubborn.strip()}"); }}\n')
    process = begin(*args)
    deadline = time.monotonic() + 60
    while not (told.exists() and told.read_text().endswith("\n")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)
    process.send_signal(number)
    interrupted(process, "run")
    for pid in map(int, told.read_text().split()):
        assert ended(pid), f"process {pid} is still there"


def ended(pid: int) -> bool:
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.clean("run")
def test_many_interrupts_at_once(programs: Path) -> None:
    process = begin(
        programs / "field.c", "--compiler", "clang-14", *FLAG, "-o", "run", "--", "-O3", programs / "field_main.c"
    )
    until(process, "trial 3:")
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.002)
    interrupted(process, "run")


@pytest.mark.clean("run")
@pytest.mark.parametrize("stage", STAGES[1:])
def test_killed_and_resumed(stage: str, programs: Path, run_cli: Callable[..., Any]) -> None:
    process = begin(
        programs / "field.c", "--compiler", "clang-14", *FLAG, "-o", "run", "--", "-O3", programs / "field_main.c"
    )
    until(process, stage)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    time.sleep(0.5)  # compiles that were on their way end by themselves
    lines = Path("run/journal.jsonl").read_text()
    again = run_cli("bisect", "--resume", "run", "--json")
    document = json.loads(again.stdout)
    assert (again.code, document["status"], document["culprit"]["function"]) == (0, "found", "settle"), again
    assert Path("run/journal.jsonl").read_text().startswith(lines[: lines.rfind("\n") + 1])
    assert list(Path("run/trials").iterdir()) == []


@pytest.mark.clean("run")
def test_interrupted_with_json(programs: Path) -> None:
    process = begin(
        programs / "field.c",
        "--compiler",
        "clang-14",
        *FLAG,
        "--json",
        "-o",
        "run",
        "--",
        "-O3",
        programs / "field_main.c",
    )
    until(process, "trial 3:")
    process.terminate()
    stdout, _ = process.communicate(timeout=60)
    document = json.loads(stdout)
    assert (process.returncode, document["status"], document["code"]) == (130, "error", "interrupted")
    assert "--resume run" in document["hint"]


@pytest.mark.clean("run")
def test_a_run_in_use(programs: Path, run_cli: Callable[..., Any]) -> None:
    process = begin(
        programs / "field.c", "--compiler", "clang-14", *FLAG, "-o", "run", "--", "-O3", programs / "field_main.c"
    )
    until(process, "trial 1:")
    os.kill(process.pid, signal.SIGSTOP)
    second = run_cli("bisect", "--resume", "run")
    os.kill(process.pid, signal.SIGCONT)
    assert process.communicate(timeout=60)[0].startswith("FOUND")
    assert second.code == 4 and "in use by another mccprobe" in second.stderr, second


@pytest.mark.clean("run")
def test_nohup_stays_nohup(programs: Path) -> None:
    process = begin(
        programs / "field.c",
        "--compiler",
        "clang-14",
        *FLAG,
        "-o",
        "run",
        "--",
        "-O3",
        programs / "field_main.c",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None,
    )
    until(process, "trial 3:")
    process.send_signal(signal.SIGHUP)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0 and stdout.startswith("FOUND"), (stdout, stderr)


def test_an_interrupt_behind_the_answer_adds_no_second_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = Console.result

    def interrupted(self: Console, text: str) -> None:
        write(self, text)
        raise KeyboardInterrupt

    monkeypatch.setattr(Console, "result", interrupted)
    assert main(["help", "exit-codes", "--json"]) == 130
    shown = capsys.readouterr()
    assert json.loads(shown.out)["topic"] == "exit-codes"
    assert "error: interrupted" in shown.err
    monkeypatch.setattr(Console, "result", write)
    assert main(["help", "nothing", "--json"]) == 2  # the next command in this process tells its error
    assert json.loads(capsys.readouterr().out)["status"] == "error"
