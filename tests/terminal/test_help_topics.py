"""`mccprobe help`: the tables hold everything that the code has, and nothing that it has not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.base.errors import EXIT_CODE_MEANINGS
from mccprobe.bisection.passes.run import Status
from mccprobe.cli import COMMANDS
from mccprobe.cli.help_cmd import ENVIRONMENT, MEANINGS, TOPICS, WORDS
from mccprobe.oracle.checks import Expected, ReferenceOracle
from mccprobe.oracle.verdict import Verdict
from mccprobe.targets import registry

RunCli = Callable[..., Any]
# how a variable is read: Python, C and C++, shell, and through a helper that takes its name
READS = (
    re.compile(r"environ(?:\.get\(|\[|\.pop\()\s*\"((?:MCCPROBE|MCCSIM)_[A-Z_]+)\""),
    re.compile(r"(?:getenv|choice)\(\"((?:MCCPROBE|MCCSIM)_[A-Z_0-9]+)\""),
    re.compile(r"\$\{?((?:MCCPROBE)_[A-Z_]+)[-:}]"),
    re.compile(r"\(\"--\w+\", [^)]*\), \(\"(MCCPROBE_[A-Z]+)\","),
)


def read_by_the_code(root: Path) -> set[str]:
    found = set()
    for folder in (root / "mccprobe", root / "wrappers"):
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix in (".py", ".c", ".cpp", ".h", ""):
                text = path.read_text("utf-8", "replace")
                found |= {name for pattern in READS for name in pattern.findall(text)}
    return found


def test_without_a_topic_all_there_is_is_listed(run_cli: RunCli) -> None:
    run = run_cli("help")
    assert run.code == 0 and all(f"\n  {name} " in run.stdout for name in (*TOPICS, *COMMANDS)), run
    names = {row["name"] for row in json.loads(run_cli("help", "--json").stdout)["rows"]}
    assert {*TOPICS, *COMMANDS} <= names and set(TOPICS) == set(MEANINGS)


@pytest.mark.parametrize("words", [("bisect",), ("flags",), ("flags", "search")], ids=" ".join)
def test_a_command_is_explained_as_by_its_own_help(words: tuple[str, ...], run_cli: RunCli) -> None:
    assert run_cli("help", *words).stdout == run_cli(*words, "--help").stdout
    document = json.loads(run_cli("help", *words, "--json").stdout)
    assert document["topic"] == " ".join(words)
    assert any(row["name"].startswith(("--flag", "search", "--space")) for row in document["rows"])


@pytest.mark.parametrize("words", [("bisekt",), ("flags", "serch"), ("exit-code",), ("bisect", "gemm")], ids=" ".join)
def test_what_is_neither_a_topic_nor_a_command(words: tuple[str, ...], run_cli: RunCli) -> None:
    run = run_cli("help", *words)
    assert run.code == 2 and f"no topic and no command {' '.join(words)}\n" in run.stderr
    assert any(name in run.stderr for name in ("close: bisect", "close: search", "close: exit-codes", "topics: "))


def test_words_say_of_a_crash_what_the_reference_does(tmp_path: Path) -> None:
    program = tmp_path / "crashes"
    program.write_text("#!/bin/sh\nkill -SEGV $$\n", "utf-8")
    program.chmod(0o755)
    outcome = ReferenceOracle(Expected(b"", 0)).judge(program, tmp_path)
    assert outcome.verdict is Verdict.BAD
    assert [word for word in ("GOOD", "BAD", "UNRESOLVED") if "crash" in WORDS[word]] == [outcome.verdict.value]


def test_every_variable_that_is_read_is_explained(root: Path) -> None:
    read = read_by_the_code(root)
    ours = {name for name in ENVIRONMENT if name.startswith(("MCCPROBE_", "MCCSIM_"))}
    assert {"MCCPROBE_CACHE", "MCCPROBE_MCC", "MCCPROBE_LOG", "MCCSIM_WARP", "MCCPROBE_TRACE_DIR"} <= read
    assert ours == read


def test_every_word_of_a_verdict_and_of_a_status_is_explained() -> None:
    assert {verdict.value for verdict in Verdict} | {status.value for status in Status} <= set(WORDS)


def test_every_toolchain_is_explained() -> None:
    assert set(registry.names()) <= set(TOPICS["toolchains"]())


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_as_text_and_as_rows(topic: str, run_cli: RunCli) -> None:
    text = run_cli("help", topic)
    rows = json.loads(run_cli("help", topic, "--json").stdout)["rows"]
    assert text.code == 0 and rows
    for row in rows:
        assert row["name"] in text.stdout and row["meaning"] in text.stdout


def test_facts_are_the_page_that_sources_cite(run_cli: RunCli) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "mtgpu.md").read_text("utf-8")
    assert run_cli("help", "facts").stdout == page
    rows = json.loads(run_cli("help", "facts", "--json").stdout)["rows"]
    assert any(row["name"].startswith("5.4 ") for row in rows)  # flags cite it so


def test_exit_codes_are_those_of_the_errors(run_cli: RunCli) -> None:
    rows = json.loads(run_cli("help", "exit-codes", "--json").stdout)["rows"]
    assert {row["name"]: row["meaning"] for row in rows} == {str(int(c)): m for c, m in EXIT_CODE_MEANINGS.items()}


def test_an_unknown_topic_names_the_known_ones(run_cli: RunCli) -> None:
    run = run_cli("help", "everything")
    assert run.code == 2
    assert all(topic in run.stderr for topic in TOPICS)
