"""What the tests of the command line share: small programs, and one that clang 14 compiles wrongly."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
INTERCHANGE = ("--flag", "-enable-loopinterchange")
ANSWER = """#include <stdio.h>
int twice(int n) { int s = 0; for (int i = 0; i < n; i++) s += 2; return s; }
int main(void) { printf("%d\\n", twice(21)); return 0; }
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of the test's own with the programs in it; the test may change them."""
    return Path(shutil.copytree(PROGRAMS, tmp_path / "programs"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A program without a fault."""
    path = tmp_path / "prog.c"
    path.write_text(ANSWER)
    return path
