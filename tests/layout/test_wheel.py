"""The wheel, installed into an environment of its own: it starts, and it holds every file it needs."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("mccprobe", "kernels", "wrappers")  # every file in these folders is in the wheel
BUILD_INPUTS = (*SHIPPED, "bisect", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "setup.py")
GENERATED = ("__pycache__", "*.pyc", "*.egg-info")
SELF_CONTAINED_SETUPTOOLS = (70, 1)  # from this version on setuptools builds wheels without `wheel`


def _run(*command: str | Path, cwd: Path) -> str:
    ran = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, f"{' '.join(map(str, command))}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def _isolation() -> list[str]:
    """Build with our own setuptools where it can: no package index is asked then."""
    version = tuple(int(part) for part in importlib.metadata.version("setuptools").split(".")[:2])
    return ["--no-build-isolation"] if version >= SELF_CONTAINED_SETUPTOOLS else []


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the build reads: the build leaves files next to it."""
    copy = tmp_path_factory.mktemp("source")
    for name in BUILD_INPUTS:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, copy / name, ignore=shutil.ignore_patterns(*GENERATED), symlinks=True
            )
        elif (ROOT / name).exists():
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    _run(*pip, "wheel", "--quiet", "--no-deps", *_isolation(), "--wheel-dir", out, source, cwd=out)
    (built,) = out.glob("mccprobe-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; the packages it depends on are those of this one."""
    place = tmp_path_factory.mktemp("installed")
    environment = place / "env"
    _run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=place)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    _run(
        *pip,
        "--python",
        environment / "bin/python",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=place,
    )
    packages = _run(
        environment / "bin/python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=place
    )
    # A path in a .pth file is searched, but the .pth files there (our editable install) are not read.
    (Path(packages.strip()) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment


def test_installed_wheel_starts(installed: Path, tmp_path: Path) -> None:
    where = _run(installed / "bin/python", "-c", "import mccprobe; print(mccprobe.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed)
    version = importlib.metadata.version("mccprobe")
    assert version in _run(installed / "bin/mccprobe", "--version", cwd=tmp_path)
    help_text = _run(installed / "bin/mccprobe", "--help", cwd=tmp_path)
    assert "bisect" in help_text
    assert _run(installed / "bin/python", "-m", "mccprobe", "--help", cwd=tmp_path).count("\n") > 5


def test_wheel_holds_every_file(wheel: Path, source: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    shipped = [
        # kernels and wrappers of the source tree lie inside the package in a wheel
        path.relative_to(source).as_posix().replace(f"{folder}/", f"mccprobe/_{folder}/", folder != "mccprobe")
        for folder in SHIPPED
        for path in sorted((source / folder).rglob("*"))
        if path.is_file()
    ]
    missing = [name for name in shipped if not any(f"/{held}".endswith(f"/{name}") for held in names)]
    assert not missing, "state it under [tool.setuptools] in pyproject.toml"


def test_wheel_holds_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    strangers = [name for name in names if not name.startswith(("mccprobe/", "mccprobe-"))]
    assert not strangers
    assert not [name for name in names if name.startswith("mccprobe/tests") or name.endswith(".pyc")]
    assert [name for name in names if name.endswith("LICENSE")], "the licence ships"
