"""The cheap part of the screen: few builds, and it still finds what the program does wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mccprobe.bisection.passes.workspace import Workspace
from mccprobe.explain.screen.cheap import cheap_screen
from mccprobe.report.why_record import ScreenOutcome

Opener = Callable[..., Workspace]

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


@pytest.mark.parametrize(
    ("text", "check", "word"),
    [
        (OVERFLOW, "ASan and UBSan", "signed integer overflow"),
        (OUTSIDE, "ASan and UBSan", "global-buffer-overflow"),
        (UNSET, "MSan", "use-of-uninitialized-value"),
    ],
)
def test_the_cheap_part_finds_it(opened: Opener, text: str, check: str, word: str) -> None:
    result = cheap_screen(opened(text, reference="-O0"))
    assert not result.clean and check in result.reason
    [found] = [row for row in result.checks if row.name == check]
    assert found.outcome is ScreenOutcome.FINDING and word in found.text


def test_a_right_program_is_clean_and_few_builds_are_made(opened: Opener) -> None:
    workspace = opened(RIGHT, reference="-O0")
    result = cheap_screen(workspace)
    assert result.clean and result.reason == ""
    assert {row.name: row.outcome for row in result.checks} == {
        "ASan and UBSan": ScreenOutcome.CLEAN,
        "MSan": ScreenOutcome.CLEAN,
        "warnings": ScreenOutcome.CLEAN,
        "-ftrivial-auto-var-init=pattern": ScreenOutcome.CLEAN,
        "-fno-strict-aliasing": ScreenOutcome.CLEAN,
    }
