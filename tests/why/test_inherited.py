"""What clang takes from its environment unasked: told, kept in every command, carried by a report that stands alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.targets.llvm.driver import ClangDriver
from mccprobe.targets.llvm.inherited import added_arguments, header_folders, inherited, mapped, prefix

PROGRAMS = Path(__file__).resolve().parents[1] / "cli" / "programs"
FLAG = "--flag=-enable-loopinterchange"
TAKEN = {"CPATH": "my headers", "CCC_OVERRIDE_OPTIONS": "# +-DSTEP=1"}


def test_the_words_of_it() -> None:
    found = inherited({"CPATH": "a:/b:", "CCC_OVERRIDE_OPTIONS": "# +-Ia x-g ^-O1", "HOME": "/h", "LIBRARY_PATH": ""})
    assert found == {"CCC_OVERRIDE_OPTIONS": "# +-Ia x-g ^-O1", "CPATH": "a:/b:"}
    assert header_folders(found, Path("/w")) == [Path("/w/a"), Path("/b"), Path("/w")]
    assert added_arguments(found) == ["-Ia", "-O1"]
    moved = mapped(found, lambda part: f"<{part}>", lambda args: [args[0].upper()])
    assert moved == {"CCC_OVERRIDE_OPTIONS": "# +-IA x-g ^-O1", "CPATH": "<a>:</b>:<>"}
    assert prefix(found)[0] == "env" and prefix({}) == ()


def test_an_environment_of_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of ours; what makes each compile write a file of the user's is in neither."""
    for name in ("CPATH", "LIBRARY_PATH", "DEPENDENCIES_OUTPUT"):
        monkeypatch.setenv(name, "/ours")
    driver = ClangDriver(["clang"])
    env = driver.environment(Path("/s"))
    assert (env["CPATH"], env["LIBRARY_PATH"]) == ("/ours", "/ours") and "DEPENDENCIES_OUTPUT" not in env
    driver.inherited = {"CPATH": "theirs"}
    env = driver.environment(Path("/s"))
    assert env["CPATH"] == "theirs" and "LIBRARY_PATH" not in env and "DEPENDENCIES_OUTPUT" not in env


def program(folder: Path) -> Path:
    """Its header is found by CPATH alone, and without STEP it does not compile."""
    (folder / "my headers").mkdir(parents=True)
    shutil.copy(PROGRAMS / "field.h", folder / "my headers")
    source = (PROGRAMS / "field.c").read_text().replace("x++", "x += STEP")
    (folder / "field.c").write_text(source)
    shutil.copy(PROGRAMS / "field_main.c", folder)
    return folder


def shows_the_bug(script: Path, compiler: str, env: dict[str, str]) -> bool:
    argv = ["sh", str(script), compiler]
    done = subprocess.run(argv, cwd=script.parent, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return "BUG PRESENT" in done.stdout


@pytest.mark.toolchain("clang-14")
def test_a_run_and_its_report(tmp_path: Path, compiler: Callable[..., str], run_cli: Callable[..., Any]) -> None:
    clang, folder = compiler(14), program(tmp_path / "work")
    written = tmp_path / "dependencies"
    asked = ("bisect", "field.c", "--toolchain", "clang", "--compiler", clang, FLAG, "-o", "run", "--json")
    options = (*asked, "--", "-O3", "field_main.c")
    run = run_cli(*options, cwd=folder, env={**TAKEN, "DEPENDENCIES_OUTPUT": str(written)})
    assert run.code == 0 and not written.exists(), run
    told = [f"every compile takes {name}='{value}' from the environment" for name, value in TAKEN.items()]
    document = json.loads(run.stdout)
    for sentence in told:
        assert run.stderr.count(sentence) == 1 and sentence in document["notes"], run
    for argv in document["reproduce"]["bad"][:-1]:
        assert {f"{name}={value}" for name, value in TAKEN.items()} < set(argv)
    bare = {name: value for name, value in os.environ.items() if name not in TAKEN}
    for argv in document["reproduce"]["bad"]:
        done = subprocess.run(argv, cwd=folder, env=bare, capture_output=True, text=True, check=True)
    assert done.stdout.strip() in document["oracle"]["bad"]

    other = run_cli("bisect", "--resume", "run", cwd=folder, env=dict.fromkeys(TAKEN))
    assert other.code == 4 and "environment changed since it was started" in other.stderr, other

    made = run_cli("bug-report", "run", "-o", tmp_path / "bug", "--json", cwd=folder)
    assert made.code == 0 and "BUG PRESENT" in made.stdout, made
    assert told[0] in (tmp_path / "bug" / "report.md").read_text().replace("\\", "")
    shutil.rmtree(folder)
    for env in (bare, {**bare, "CPATH": "/not/there", "CCC_OVERRIDE_OPTIONS": "# +-DSTEP=oops"}):
        assert shows_the_bug(tmp_path / "bug/repro.sh", clang, env)
    wrong = {"CCC_OVERRIDE_OPTIONS": "# +-DSTEP=oops"}
    again = run_cli("recheck", tmp_path / "bug.tar.gz", "--compiler", clang, env=wrong)
    assert again.code == 0 and "still there" in again.stdout, again


@pytest.mark.toolchain("clang-14")
def test_a_file_of_options(tmp_path: Path, compiler: Callable[..., str], run_cli: Callable[..., Any]) -> None:
    """As vendors install it: clang says of itself which one it reads."""
    clang, folder = compiler(14), program(tmp_path / "work")
    own, configuration = tmp_path / "own-clang", tmp_path / "own-clang.cfg"
    own.write_text(f'#!/bin/sh\nexec {clang} --config {configuration} "$@"\n')
    own.chmod(0o755)
    configuration.write_text("-DSTEP=1\n--target=x86_64-linux-gnu\n")
    shutil.copy(folder / "my headers/field.h", folder)
    options = ("--toolchain", "clang", FLAG, "--json", "-o", "run", "--", "-O3", "field_main.c")
    run = run_cli("bisect", "field.c", "--compiler", own, *options, cwd=folder)
    assert run.code == 0, run
    sentence = f"the compiler reads {configuration} by itself: its options are in every compile"
    assert sentence in run.stderr and sentence in json.loads(run.stdout)["notes"], run
    made = run_cli("bug-report", "run", "-o", tmp_path / "bug", cwd=folder)
    assert made.code == 0 and "BUG PRESENT" in made.stdout + made.stderr, made
    for name in (own, clang):
        assert shows_the_bug(tmp_path / "bug/repro.sh", str(name), dict(os.environ))
        again = run_cli("recheck", tmp_path / "bug", "--compiler", name)
        assert again.code == 0 and "still there" in again.stdout, again
    configuration.write_text("-DSTEP=2\n--target=x86_64-linux-gnu\n")
    other = run_cli("bisect", "--resume", "run", cwd=folder)
    assert other.code == 4 and "configuration_sha256 changed since it was started" in other.stderr, other
