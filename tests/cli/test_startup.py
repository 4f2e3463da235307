"""Start-up: what `--help` and `--version` load, and whose `bisect` Python finds in this repository."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HEAVY = {"pandas", "numpy", "rich", "capstone", "elftools", "msgpack"}  # each costs 20 to 600 ms


def _loaded(*arguments: str, cwd: Path) -> set[str]:
    """Top-level modules that `python -m mccprobe ARGUMENTS` loads, as the interpreter reports them."""
    command = [sys.executable, "-X", "importtime", "-m", "mccprobe", *arguments]
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    names = re.findall(r"^import time: .*\|\s*([\w.]+)$", ran.stderr, flags=re.MULTILINE)
    assert "mccprobe" in names
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["bisect", "--help"]], ids=" ".join)
def test_start_up_loads_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    assert not _loaded(*arguments, cwd=tmp_path) & HEAVY


def test_bisect_is_the_standard_library_here(root: Path) -> None:
    """`python -c` and `python -m` put the working directory first: the folder bisect/ must not win."""
    program = "import sys, bisect, random; assert sys.path[0] == ''; print(bisect.__file__)"
    ran = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert Path(ran.stdout.strip()) == Path(sysconfig.get_path("stdlib")) / "bisect.py"


def test_starts_in_the_repository_and_elsewhere(run_cli: Callable[..., Any], root: Path, tmp_path: Path) -> None:
    unsafe = {"PYTHONSAFEPATH": None}  # let the working directory come first on sys.path, as for a user
    here, elsewhere = (run_cli("--version", cwd=cwd, env=unsafe) for cwd in (root, tmp_path))
    assert here.code == 0, here
    assert re.search(r"\d+\.\d+\.\d+", here.stdout), here
    assert elsewhere.stdout == here.stdout, elsewhere
