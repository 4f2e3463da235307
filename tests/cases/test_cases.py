"""Every case through the command line, as a user would call it: status, pass, function, exit code."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
CASES = sorted(path.parent for path in HERE.glob("*/expect.json"))
EXIT_CODES = {"found": 0, "exposed": 0, "wrong-at-zero": 1, "non-deterministic": 0}


def command_line(folder: Path, expect: dict[str, Any]) -> list[str]:
    """`mccprobe bisect` for one case: an LLVM flag as --flag, other differences as --reference."""
    source = next(path for path in folder.iterdir() if path.stem == "test")
    good, bad = list(expect["good_args"]), list(expect["bad_args"])
    flag = bad[len(good) :] if bad[: len(good)] == good and "-mllvm" in bad else []
    options = ["--flag", flag[1], "--"] if flag else ["--reference", shlex.join(good), "--"]
    rest = good if flag else bad
    link = [argument for argument in expect["link_args"] if argument not in rest]
    return ["bisect", str(source), "--compiler", expect["compiler"], "--json", *options, *rest, *link]


def run_case(folder: Path, run_cli: Callable[..., Any], tmp_path: Path, *extra: str) -> tuple[dict[str, Any], Any]:
    expect = json.loads((folder / "expect.json").read_text())
    argv = command_line(folder, expect)
    argv[1:1] = [*extra, "-o", str(tmp_path / "run")]
    return expect, run_cli(*argv)


@pytest.mark.toolchain
@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_case(folder: Path, run_cli: Callable[..., Any], compiler: Callable[..., Any], tmp_path: Path) -> None:
    expect = json.loads((folder / "expect.json").read_text())
    compiler(int(expect["compiler"].rpartition("-")[2]))
    expect, result = run_case(folder, run_cli, tmp_path)
    document = json.loads(result.stdout)
    assert document["status"] == expect["status"], document
    assert result.code == EXIT_CODES[expect["status"]]
    if expect["culprit_pass"] is None:
        assert document["culprit"] is None
        return
    culprit = document["culprit"]
    assert culprit["pass"] == expect["culprit_pass"]
    assert culprit["function"] == expect["culprit_function"]
    assert culprit["total"] == expect["total_passes"]
    assert culprit["execution"] in expect.get("edges", [expect["first_bad_n"]])
    assert culprit["pass_argument"]
    assert document["monotone"] is None  # only a profile tests every object
    assert document["confidence"] >= 0.99
    sides = {(cell["flag"], cell["pass"]): cell["verdict"] for cell in document["table"]}
    assert sides["on", "on"] == "BAD" and sides["on", "off"] == "GOOD" and sides["off", "on"] == "GOOD"


@pytest.mark.toolchain
def test_profile_names_every_edge(run_cli: Callable[..., Any], compiler: Callable[..., Any], tmp_path: Path) -> None:
    """One edge here; three of them: tests/why/test_chain.py."""
    compiler(14)
    expect, result = run_case(HERE / "02-constraint-elim-trunc", run_cli, tmp_path, "--profile")
    document = json.loads(result.stdout)
    found = [(edge["execution"], edge["from"], edge["to"], edge["pass"]) for edge in document["edges"]]
    assert found == [(23, "GOOD", "BAD", expect["culprit_pass"])]
    assert document["monotone"] is True


@pytest.mark.toolchain
def test_reproduce_commands_reproduce(
    run_cli: Callable[..., Any], compiler: Callable[..., Any], tmp_path: Path
) -> None:
    """The printed commands, run as they stand in an empty folder, give both outcomes."""
    compiler(14)
    expect, result = run_case(HERE / "07-loop-interchange", run_cli, tmp_path)
    document = json.loads(result.stdout)
    for side, output in (("good", expect["good_output"]), ("bad", expect["bad_output"])):
        for argv in document["reproduce"][side]:
            last = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert f"{last.stdout.strip()}|rc={last.returncode}" == output


@pytest.mark.toolchain
@pytest.mark.parametrize("name", ["05-newgvn-rem", "12-stack-coloring", "22-linearize-scheduler"])
def test_resume_runs_nothing_twice_and_says_the_same(
    name: str, run_cli: Callable[..., Any], compiler: Callable[..., Any], tmp_path: Path
) -> None:
    """22: what the machine verifier said of a compile that failed is remembered as well."""
    compiler(14)
    _, first = run_case(HERE / name, run_cli, tmp_path)
    before = json.loads(first.stdout)
    again = json.loads(run_cli("bisect", "--resume", str(tmp_path / "run"), "--json").stdout)
    for key in ("culprit", "status", "confirmation", "table", "edges", "notes"):
        assert again[key] == before[key]
    assert again["trials"]["runs"] == 0
    # the log around the culprit is read again; compiles ahead of need may be those that the first run cancelled
    assert again["trials"]["compiles"] <= 4
    assert again["trials"]["replayed"] > 0
