"""The rules of tests/conftest.py themselves: CI is not green by skipping, `clean` tests leave nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"

RAN = """
import pytest
@pytest.mark.toolchain
def test_ran():
    pass
"""
SKIPS_14 = """
import pytest
@pytest.mark.toolchain
def test_skips():
    pytest.skip("clang++-14 does not work here")
"""
SKIPS_13 = SKIPS_14.replace("clang++-14", "clang-13")
SKIPS_UNNAMED = SKIPS_14.replace("clang++-14", "something")
OTHER_TOOL = """
import pytest
@pytest.mark.toolchain
def test_skips(request):
    request.node.user_properties.append(("toolchain", "clang-14"))  # what the marker names, and what works here
    pytest.skip("clang-offload-bundler-19 is not installed")
"""
OTHER_PACKAGE = OTHER_TOOL.replace("clang-offload-bundler-19", "llvm-19-dev")
NO_TOOL_TOLD = OTHER_TOOL.replace("clang-offload-bundler-19 is not", "nothing is")
NO_TERMINAL = """
import pytest
@pytest.mark.toolchain("clang-14")
def test_skips(machine_lacks):
    machine_lacks("terminal", "pty.openpty(): out of pty devices")
@pytest.mark.toolchain("clang-14")
def test_skips_too(machine_lacks):
    machine_lacks("/sys", "mountpoint")
"""
TERMINAL_IN_OTHER_WORDS = SKIPS_14.replace("clang++-14 does not work here", "it needs a terminal")
NEEDS_99 = """
import pytest
@pytest.mark.toolchain("clang-99")
def test_needs():
    raise AssertionError("not reached")
@pytest.mark.toolchain
def test_asks(compiler):
    compiler(99)
    raise AssertionError("not reached")
"""
NO_TOOLCHAIN = "def test_plain():\n    pass\n"


def _pytest(folder: Path, *arguments: str, ci: bool, **files: str) -> tuple[int, str]:
    """Run pytest on `files` under our conftest; exit status and output."""
    tests = folder / "tests"
    tests.mkdir()
    text = CONFTEST.read_text(encoding="utf-8")
    assert text.count("CHILD_GRACE_S = 20.0") == 1  # here processes are left on purpose
    (tests / "conftest.py").write_text(text.replace("CHILD_GRACE_S = 20.0", "CHILD_GRACE_S = 0.5"), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers = toolchain: as in the project\n")
    for name, text in files.items():
        (tests / f"test_{name}.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI"))}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *arguments]
    ran = subprocess.run(
        command,
        cwd=folder,
        env=environment | ({"CI": "true"} if ci else {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return ran.returncode, ran.stdout + ran.stderr


def _last_words(output: str) -> list[str]:
    return re.findall(r"^CI: (.*)$", output, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a": RAN}, []),
        ({"a": RAN, "b": SKIPS_13}, []),
        ({"a": RAN, "b": SKIPS_14}, ["test_skips was skipped; CI must have clang-14"]),
        ({"a": RAN, "b": SKIPS_UNNAMED}, ["test_skips was skipped and names no tool"]),
        ({"a": RAN, "b": OTHER_TOOL}, []),
        ({"a": RAN, "b": OTHER_PACKAGE}, []),
        ({"a": RAN, "b": NO_TOOL_TOLD}, ["test_skips was skipped; CI must have clang-14"]),
        ({"a": RAN, "b": NO_TERMINAL}, []),
        ({"a": RAN, "b": TERMINAL_IN_OTHER_WORDS}, ["test_skips was skipped and names no tool"]),
        ({"b": SKIPS_13}, ["no real-compiler test ran (1 skipped)"]),
        ({"a": NO_TOOLCHAIN}, ["no real-compiler test ran (0 skipped)"]),
    ],
    ids="ran optional required unnamed other-tool other-package no-tool-told no-terminal other-words all-skipped "
    "none-there".split(),
)
def test_ci_fails_unless_real_compilers_ran(tmp_path: Path, files: dict[str, str], words: list[str]) -> None:
    code, output = _pytest(tmp_path, ci=True, **files)
    assert [said.partition("::")[2] or said for said in _last_words(output)] == words, output
    assert code == (1 if words else 0), output


def test_ci_sees_skips_of_parallel_workers(tmp_path: Path) -> None:
    code, output = _pytest(tmp_path, "-p", "xdist", "-n", "2", ci=True, a=RAN, b=SKIPS_14)
    assert code == 1
    assert len(_last_words(output)) == 1, output


def test_elsewhere_skips_are_fine_and_say_what_was_tried(tmp_path: Path) -> None:
    code, output = _pytest(tmp_path, ci=False, a=NEEDS_99)
    assert code == 0, output
    assert output.count("clang-99 does not work here: tried `clang-99 -x c probe -o probe.exe`") >= 1, output
    assert "2 skipped" in output


def test_ci_with_a_choice_of_tests_is_not_judged_for_the_whole(tmp_path: Path) -> None:
    code, output = _pytest(tmp_path, "tests/test_a.py", ci=True, a=NO_TOOLCHAIN, b=SKIPS_14)
    assert code == 0, output


DIRTY = """
import pathlib, subprocess, sys, pytest

@pytest.mark.clean
def test_tidy():
    pathlib.Path("x").write_text("")
    pathlib.Path("x").unlink()
    subprocess.run(["true"], check=True)

@pytest.mark.clean("out*")
def test_allowed():
    pathlib.Path("out-1").mkdir()
    pathlib.Path("out-1/log").write_text("")

@pytest.mark.clean
def test_file():
    pathlib.Path("stray").write_text("")

@pytest.mark.clean
def test_temporary():
    import tempfile
    tempfile.mkstemp()

@pytest.mark.clean
def test_child():
    subprocess.Popen(["sleep", "60"])

@pytest.mark.clean
def test_orphan():
    subprocess.run(["sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & exit 0"], check=True)
"""


def test_clean_finds_what_is_left_behind(tmp_path: Path) -> None:
    code, output = _pytest(tmp_path, "-rE", ci=False, a=DIRTY)
    faults = dict(re.findall(r"^ERROR \S+::(test_\w+) - AssertionError: (.{0,20})", output, re.MULTILINE))
    assert code == 1
    assert set(faults) == {"test_file", "test_temporary", "test_child", "test_orphan"}, output
    assert all(faults[name].startswith("processes left") for name in ("test_child", "test_orphan"))
    assert "6 passed" in output
