"""What a user gets: sdist and wheel, built once for all workers, and the wheel in an environment of its own.

`make release-check` sets RELEASE_CHECK=1: pipx and uv then install the wheel with its dependencies from the package
index, and all steps run. Without it one environment is made without an index, by links to the packages that the wheel
requires in the environment that runs the tests, and only short steps run.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONG = bool(os.environ.get("RELEASE_CHECK"))
INSTALLERS = ("pipx", "uv") if LONG else ("pip",)
STEP_TIMEOUT_S = 600.0  # ends hangs; measures nothing
# not of the source: what builds, tests and runs leave behind
GENERATED = shutil.ignore_patterns(
    ".git", ".venv", "mccprobe-out", "fuzz-out", "results", "*.egg-info", "__pycache__", "*.pyc",
    ".test-cache", ".*_cache", ".hypothesis",
)  # fmt: skip


def left_out(folder: str, names: list[str]) -> set[str]:
    """`build` and `dist` are generated only at the top: mccprobe/build is a package."""
    top = {"build", "dist"} if Path(folder) == ROOT else set()
    return GENERATED(folder, names) | (top & set(names))


@dataclass(frozen=True)
class Ran:
    command: str
    code: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        return f"$ {self.command}\nexit {self.code}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


def execute(*command: str | Path, cwd: Path, env: Mapping[str, str | None] | None = None) -> Ran:
    """Run a command with `env` added to the environment; None as a value removes."""
    environment = {**os.environ, "PYTHONSAFEPATH": "1", **(env or {})}
    ran = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env={name: value for name, value in environment.items() if value is not None},
        stdin=subprocess.DEVNULL,
        timeout=STEP_TIMEOUT_S,
    )
    return Ran(shlex.join(map(str, command)), ran.returncode, ran.stdout, ran.stderr)


def must(*command: str | Path, cwd: Path, env: Mapping[str, str | None] | None = None) -> str:
    ran = execute(*command, cwd=cwd, env=env)
    assert ran.code == 0, ran
    return ran.stdout


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """`once(name, make)`: a folder that `make` fills, made by the first worker that asks for it."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent

    def folder(name: str, make: Callable[[Path], None]) -> Path:
        place = shared / f"release-{name}"
        with (shared / f"release-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (place / "complete").exists():
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir()
                make(place)
                (place / "complete").touch()
        return place

    return folder


def _build(place: Path) -> None:
    """place/source: a copy of the tree (a build leaves files in it). place/dist: sdist, and the wheel made from it."""
    shutil.copytree(ROOT, place / "source", ignore=left_out, symlinks=True)
    isolated = [] if LONG else ["--no-isolation"]  # without isolation no package index is asked
    must(sys.executable, "-m", "build", *isolated, "--outdir", place / "dist", place / "source", cwd=place)


@pytest.fixture(scope="session", name="execute")
def execute_fixture() -> Callable[..., Ran]:
    """`execute(*command, cwd=, env=)`: any command; `.code`, `.stdout`, `.stderr`; `str()` shows all of it."""
    return execute


@pytest.fixture(scope="session")
def long() -> bool:
    """True in `make release-check`."""
    return LONG


@pytest.fixture(scope="session")
def built(once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    return once("built", _build)


@pytest.fixture(scope="session")
def source(built: Path) -> Path:
    return built / "source"


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    (found,) = (built / "dist").glob("*.whl")
    return found


@pytest.fixture(scope="session")
def sdist(built: Path) -> Path:
    (found,) = (built / "dist").glob("*.tar.gz")
    return found


def _needed() -> set[str]:
    """Packages that mccprobe requires, and what they require, no extra among them."""
    spec = importlib.util.spec_from_file_location("licences", ROOT / "tools/licences.py")
    assert spec is not None and spec.loader is not None
    licences = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(licences)
    needed: set[str] = licences.installed_by("")
    return needed


def _with_pip(place: Path, wheel: Path) -> None:
    environment = place / "env"
    must(sys.executable, "-m", "venv", "--without-pip", environment, cwd=place)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", environment / "bin/python"]
    must(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=place)
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(must(environment / "bin/python", "-c", asked, cwd=place).strip())
    for name in _needed():  # links to what the wheel requires, so that no extra is there by chance
        files = distribution(name).files or ()
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            (packages / top).symlink_to(Path(str(distribution(name).locate_file(top))).resolve())
    (place / "bin").symlink_to(environment / "bin")


def _with_pipx(place: Path, wheel: Path) -> None:
    folders = {"PIPX_HOME": str(place / "home"), "PIPX_BIN_DIR": str(place / "bin"), "PIPX_MAN_DIR": str(place / "man")}
    must(sys.executable, "-m", "pipx", "install", wheel, cwd=place, env=folders)


def _with_uv(place: Path, wheel: Path) -> None:
    folders = {"UV_CACHE_DIR": "cache", "UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin"}
    must(
        sys.executable,
        "-m",
        "uv",
        "tool",
        "install",
        "--python",
        sys.executable,
        wheel,
        cwd=place,
        env={name: str(place / folder) for name, folder in folders.items()},
    )


@pytest.fixture(scope="session", params=INSTALLERS)
def installed(request: pytest.FixtureRequest, once: Callable[[str, Callable[[Path], None]], Path], wheel: Path) -> Path:
    """The folder of an installation of the wheel; bin/mccprobe in it is the command."""
    make = {"pip": _with_pip, "pipx": _with_pipx, "uv": _with_uv}[request.param]
    return once(request.param, lambda place: make(place, wheel))


@pytest.fixture
def mccprobe(installed: Path, tmp_path: Path) -> Callable[..., Ran]:
    """`mccprobe("report", "gemm", env={...}, before=(...))`: the installed command, outside of the repository."""
    cwd = tmp_path / "cwd"
    cwd.mkdir()

    def run(*args: str | Path, env: Mapping[str, str | None] | None = None, before: tuple[str, ...] = ()) -> Ran:
        return execute(*before, installed / "bin/mccprobe", *args, cwd=cwd, env=env)

    return run
