"""A flag that is refused, and a compiler that gives no answer: only the first is the user's to mend."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mccprobe.base.errors import ExitCode
from mccprobe.base.process import RunSpec, run
from mccprobe.targets.llvm.flag_probe import not_taken

COMPILER = cast("Any", SimpleNamespace(driver=("mcc",), incomplete=""))
ARGV = ("-mllvm", "-x")


def test_a_refused_flag_is_the_users() -> None:
    error = not_taken(COMPILER, ARGV, "x", "mcc: Unknown command line argument '-x'.")
    assert error.exit_code is ExitCode.USAGE and "does not take -mllvm -x" in error.message


def test_a_probe_without_an_answer_accuses_no_flag(tmp_path: Path) -> None:
    told = run(RunSpec(["sleep", "60"], cwd=tmp_path, timeout_s=0.1)).describe()
    error = not_taken(COMPILER, ARGV, "x", told)
    assert error.exit_code is ExitCode.TOOLCHAIN and "gave no answer: timeout after" in error.message
    assert "does not take" not in error.message


@pytest.mark.parametrize("complaint", ["", "\n"])
def test_a_compiler_that_says_nothing(complaint: str) -> None:
    assert "does not take -mllvm -x" in not_taken(COMPILER, ARGV, "x", complaint).message
