"""The stand-in toolchain, and a program of small kernels that break one rule each."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mccprobe.targets.sim.toolchain import SimToolchain, sim_toolchain
from mccprobe.tuning.lab.record import Observation, read_observation
from mccprobe.tuning.lab.session import lab_flags

HERE = Path(__file__).resolve().parent
TIMEOUT_S = 300.0  # ends hangs; measures nothing

Observe = Callable[..., Observation]


@pytest.fixture(scope="session")
def sim() -> SimToolchain:
    return sim_toolchain(Path(os.environ["MCCPROBE_CACHE"]))


@pytest.fixture(scope="session")
def rules(sim: SimToolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """rules.mu, instrumented."""
    program = tmp_path_factory.mktemp("rules") / "program"
    options = ["--offload-arch=mp_22", "-O2", *(argument for flag in lab_flags(sim) for argument in flag)]
    command = [*sim.driver, *options, str(HERE / "rules.mu"), "-lmusart", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture
def observe(rules: Path, tmp_path: Path) -> Observe:
    """`observe("race", WARP="32")`: what the emulator reports on one kernel of rules.mu."""

    def run(name: str, **settings: str) -> Observation:
        report = tmp_path / "lab.json"
        env = {**os.environ, "MCCSIM_LAB": str(report), "MCCSIM_DIVERGE": "first"}
        env |= {f"MCCSIM_{key}": value for key, value in settings.items()}
        done = subprocess.run(
            [str(rules), name], env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        observation = read_observation(report, name)
        assert done.returncode == (125 if observation.ended else 0), done
        return observation

    return run


@pytest.fixture(scope="session")
def marked() -> dict[str, int]:
    """Line numbers of rules.mu by their `@name`."""
    lines = (HERE / "rules.mu").read_text(encoding="utf-8").splitlines()
    return {line.partition("// @")[2]: number for number, line in enumerate(lines, 1) if "// @" in line}
