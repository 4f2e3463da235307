"""What the tests of the wrapper share: the shells to try it in, a compiler that tells its argv, one call."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mccprobe.build.wrapper.flagset import wrapper_sets
from mccprobe.build.wrapper.script import generate

SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
# The kernel's record of its own argv: no shell has touched those bytes.
TELLS_ARGV = '#!/bin/sh\ncat "/proc/$$/cmdline"\n'


@dataclass(frozen=True)
class Call:
    """One call of the wrapper. argv: what the compiler got, None if it was not started; log: the log's line."""

    code: int
    argv: list[bytes] | None
    log: dict[str, Any] | None
    stderr: str


@pytest.fixture(params=SHELLS, scope="session")
def shell(request: pytest.FixtureRequest) -> list[str]:
    """The command that runs a script in one of the shells."""
    command = SHELLS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not here")
    return command


@pytest.fixture(scope="session")
def compiler_that_tells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sdk") / "mcc"
    path.write_text(TELLS_ARGV)
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def wrapper_file(tmp_path_factory: pytest.TempPathFactory, compiler_that_tells: Path) -> Path:
    """A wrapper with the article's set before the compiler that tells."""
    path = tmp_path_factory.mktemp("wrapper") / "mcc"
    path.write_bytes(generate(compiler_that_tells, wrapper_sets("gemm-s4000")))
    path.chmod(0o755)
    return path


RunWrapper = Callable[..., Call]


@pytest.fixture
def call(shell: list[str], wrapper_file: Path, tmp_path: Path) -> RunWrapper:
    """`call(argv, cwd=, env=, wrapper=)` in the shell of this test."""

    def run(
        argv: Sequence[str | bytes],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        wrapper: Path | None = None,
        log: bool = True,
    ) -> Call:
        path = tmp_path / "log.jsonl"
        path.unlink(missing_ok=True)
        environment = {**os.environ, **({"MCCPROBE_LOG": str(path)} if log else {}), **(env or {})}
        done = subprocess.run(
            [*shell, str(wrapper or wrapper_file), *argv],
            cwd=cwd or tmp_path,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=60,
        )
        told = done.stdout.split(b"\0")[2:-1] if done.stdout else None  # without the interpreter and the script
        line = json.loads(path.read_text(encoding="ascii")) if path.exists() else None
        return Call(done.returncode, told, line, done.stderr.decode(errors="replace"))

    return run
