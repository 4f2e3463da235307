"""The wheel and the sdist: they hold every file that they need and no other, and say who they are."""

from __future__ import annotations

import email
import importlib.metadata
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("mccprobe", "kernels", "wrappers", "bisect")  # every file in these folders is in the wheel
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def _files(top: Path, *folders: str) -> list[Path]:
    found = []
    for folder in folders:
        for path in sorted((top / folder).rglob("*")):
            if path.is_file():
                found.append(path.relative_to(top))
    return found


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def test_wheel_holds_every_file(wheel: Path, source: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    # kernels, wrappers and recipes of the source tree lie inside the package in a wheel
    links = {"kernels": "_kernels", "wrappers": "_wrappers", "bisect": "_recipes"}
    moved = {"mccprobe": "mccprobe", **{name: f"mccprobe/{link}" for name, link in links.items()}}
    wanted = [f"{moved[path.parts[0]]}/{'/'.join(path.parts[1:])}" for path in _files(source, *SHIPPED)]
    assert len(wanted) > 500
    assert not sorted(set(wanted) - names), "state it under [tool.setuptools] in pyproject.toml"


def test_wheel_holds_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert not [name for name in names if not name.startswith(("mccprobe/", "mccprobe-"))]
    assert not [name for name in names if name.startswith("mccprobe/tests") or name.endswith(".pyc")]


def test_sdist_is_the_repository(sdist: Path, source: Path) -> None:
    """Whoever has the sdist can build, test and release from it."""
    with tarfile.open(sdist) as archive:
        members = {member.name.partition("/")[2]: member for member in archive if member.isfile()}
    top = {path.name for path in source.iterdir() if path.is_dir()} - {"mccprobe.egg-info", "build"}  # of the build
    assert {"mccprobe", "tests", "tools", "docs", "kernels"} <= top
    wanted = _files(source, *sorted(top))
    wanted += [path.relative_to(source) for path in source.iterdir() if path.is_file()]
    assert not sorted(str(path) for path in wanted if str(path) not in members), "state it in MANIFEST.in"
    programs = [str(path) for path in wanted if (source / path).stat().st_mode & 0o100]
    assert "tools/setup" in programs
    assert not [name for name in programs if not members[name].mode & 0o100], "may be run here, not in the sdist"
    assert not [name for name in members if name.startswith(("build/", "dist/", ".venv/")) or name.endswith(".pyc")]


def test_metadata(metadata: Message) -> None:
    assert metadata["Name"] == "mccprobe"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"LICENSE", "THIRD_PARTY_LICENSES.md"} <= set(metadata.get_all("License-File", []))
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().lstrip().startswith("# mccprobe")
    assert metadata["Requires-Python"] == ">=3.11"
    assert len(metadata["Keywords"].split(",")) >= 5
    classifiers = metadata.get_all("Classifier", [])
    assert "Operating System :: POSIX :: Linux" in classifiers
    # the licence is the expression: with PEP 639 a classifier of it is an error
    assert not [text for text in classifiers if text.startswith("License ::")]
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])


def test_every_supported_python_has_a_classifier(metadata: Message) -> None:
    classifiers = metadata.get_all("Classifier", [])
    named = [text.rpartition(" :: ")[2] for text in classifiers if re.search(r":: 3\.\d+$", text)]
    lowest = metadata["Requires-Python"].removeprefix(">=")
    assert named and min(named, key=lambda text: int(text.partition(".")[2])) == lowest
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in named


def test_the_readme_renders_where_packages_are_listed(
    wheel: Path, sdist: Path, execute: Callable[..., Any], tmp_path: Path
) -> None:
    checked = execute(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist, cwd=tmp_path)
    assert checked.code == 0 and checked.stdout.count("PASSED") == 2, checked


def test_the_editable_install_has_this_version() -> None:
    from mccprobe import __version__

    assert importlib.metadata.version("mccprobe") == __version__
