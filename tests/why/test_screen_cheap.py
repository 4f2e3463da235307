"""The cheap part of the screen: few builds, and it still finds what the program does wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mccprobe.bisection.options import BisectOptions
from mccprobe.bisection.plan import make_plan
from mccprobe.bisection.workspace import Workspace, open_workspace
from mccprobe.build.ledger import Ledger
from mccprobe.build.session import Session
from mccprobe.explain.screen.cheap import cheap_screen
from mccprobe.report.why_record import ScreenOutcome

pytestmark = pytest.mark.toolchain("clang-14")

OVERFLOW = """
#include <stdio.h>
__attribute__((noinline)) static int larger(int x) { return x + 1 > x; }
int main(int count, char **names) { printf("%d\\n", larger(2147483646 + count)); return 0; }
"""
OUTSIDE = """
#include <stdio.h>
static int cells[4], beyond[4];
int main(int count, char **names) { cells[count + 3] = 5; printf("%d\\n", beyond[3]); return 0; }
"""
UNSET = """
#include <stdio.h>
int main(int count, char **names) { int cell[16]; if (count > 9) cell[3] = 7; return cell[3] == 12345; }
"""
RIGHT = """
#include <stdio.h>
int main(int count, char **names) { unsigned x = 4294967295u; printf("%u\\n", x + (unsigned)count); return 0; }
"""


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], Workspace]]:
    session = Session(2)

    def make(text: str) -> Workspace:
        source = tmp_path / "program.c"
        source.write_text(text)
        chosen = BisectOptions(file=str(source), args=("-O2",), compiler="clang-14", reference="-O0")
        run, journal = session.open(tmp_path / "run")
        return open_workspace(make_plan(chosen, tmp_path).request, Ledger(run, journal, session.executor), journal)

    yield make
    session.close()


@pytest.mark.parametrize(
    ("text", "check", "word"),
    [
        (OVERFLOW, "ASan and UBSan", "signed integer overflow"),
        (OUTSIDE, "ASan and UBSan", "global-buffer-overflow"),
        (UNSET, "MSan", "use-of-uninitialized-value"),
    ],
)  # fmt: skip
def test_the_cheap_part_finds_it(opened: Callable[[str], Workspace], text: str, check: str, word: str) -> None:
    result = cheap_screen(opened(text))
    assert not result.clean and check in result.reason
    [found] = [row for row in result.checks if row.name == check]
    assert found.outcome is ScreenOutcome.FINDING and word in found.text


def test_a_right_program_is_clean_and_few_builds_are_made(opened: Callable[[str], Workspace]) -> None:
    workspace = opened(RIGHT)
    result = cheap_screen(workspace)
    assert result.clean and result.reason == ""
    assert {row.name: row.outcome for row in result.checks} == {
        "ASan and UBSan": ScreenOutcome.CLEAN, "MSan": ScreenOutcome.CLEAN, "warnings": ScreenOutcome.CLEAN,
        "-ftrivial-auto-var-init=pattern": ScreenOutcome.CLEAN,
    }  # fmt: skip
