"""Runs that nobody disturbs, and the table of what was run and seen."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from faults_life import SCENES, Chain, Undisturbed

Tally = Callable[..., None]
KEY = "tally"


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Callable[[str], Undisturbed]:
    """`undisturbed("why")`: that scene's run without any fault; each is run once."""
    known: dict[str, Undisturbed] = {}

    def ask(name: str) -> Undisturbed:
        if name not in known:
            chain = Chain(SCENES[name], tmp_path_factory.mktemp(name) / "chain", cache)
            started = time.monotonic()
            life = chain.live()
            known[name] = Undisturbed(chain.answer(), life.steps, time.monotonic() - started, chain.run)
        return known[name]

    return ask


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    """`tally("bisect", kills=3, resumes=3)`: numbers of one row are added up over the tests."""

    def tell(row: str, **numbers: int) -> None:
        request.node.user_properties.append((KEY, (row, numbers)))

    return tell


@pytest.fixture(scope="session")
def cache() -> Path:
    return Path(os.environ["MCCPROBE_CACHE"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "call":
                continue
            for key, value in report.user_properties:
                if key == KEY:
                    for name, number in value[1].items():
                        rows[value[0]][name] += number
    if rows:
        terminalreporter.section("what was run and seen")
        for row, numbers in sorted(rows.items()):
            terminalreporter.write_line(f"{row:<28} " + ", ".join(f"{n} {name}" for name, n in numbers.items()))
