"""`mccprobe help`: the tables hold everything that the code has, and nothing that it has not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mccprobe.bisect_run.run import Status
from mccprobe.cli.help_cmd import ENVIRONMENT, TOOLCHAINS, TOPICS, WORDS
from mccprobe.errors import EXIT_CODE_MEANINGS
from mccprobe.oracle.verdict import Verdict
from mccprobe.toolchain.choose import NAMES

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


def test_every_variable_that_is_read_is_explained(root: Path) -> None:
    read = read_by_the_code(root)
    ours = {name for name in ENVIRONMENT if name.startswith(("MCCPROBE_", "MCCSIM_"))}
    assert {"MCCPROBE_CACHE", "MCCPROBE_MCC", "MCCPROBE_LOG", "MCCSIM_WARP", "MCCPROBE_TRACE_DIR"} <= read
    assert ours == read


def test_every_word_of_a_verdict_and_of_a_status_is_explained() -> None:
    assert {verdict.value for verdict in Verdict} | {status.value for status in Status} <= set(WORDS)


def test_every_toolchain_is_explained() -> None:
    assert set(NAMES) <= set(TOOLCHAINS)


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
