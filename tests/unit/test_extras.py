"""The command that adds an extra, for each way in which mccprobe can be installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shlex
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from mccprobe.base import extras
from mccprobe.cli import root as command_line
from mccprobe.cli.hints import command_of, hint_for

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LISTED = [
    "click>=8.1",
    *(f'{text}; extra == "{extra}"' for extra, texts in PROJECT["optional-dependencies"].items() for text in texts),
]


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of an installed wheel, with pip, not in PATH."""
    place = tmp_path / "tools and more" / "mccprobe"
    (place / "bin").mkdir(parents=True)
    monkeypatch.setattr(extras, "CHECKOUT", tmp_path / "site-packages")
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: LISTED)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "prefix", str(place))
    monkeypatch.setattr(sys, "executable", str(place / "bin/python"))
    return place


@pytest.mark.parametrize("extra", ["frames", "parquet", "fast", "search", "plots", "pages", "cluster"])
def test_a_wheel_from_a_file(prefix: Path, extra: str) -> None:
    packages = PROJECT["optional-dependencies"][extra]
    given = shlex.split(extras.install_command(extra))
    assert given == [str(prefix / "bin/python"), "-m", "pip", "install", *packages]


def test_pip_by_its_name_where_path_finds_this_one(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: str(prefix / "bin" / name))
    assert extras.install_command("search") == "pip install 'optuna>=4'"
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert "-m pip install 'optuna>=4'" in extras.install_command("search")


def test_pipx_and_uv(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (prefix / "pipx_metadata.json").touch()
    assert extras.install_command("search") == "pipx inject mccprobe 'optuna>=4'"
    (prefix / "pipx_metadata.json").unlink()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # no pip in it
    python = str(prefix / "bin/python")
    assert shlex.split(extras.install_command("search")) == ["pip", "--python", python, "install", "optuna>=4"]
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert shlex.split(extras.install_command("search")) == ["uv", "pip", "install", "--python", python, "optuna>=4"]


def test_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(extras.install_command("pages"))
    assert words[-3:] == ["install", "-e", f"{ROOT}[pages]"]


def test_without_metadata_no_command_is_made_up(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", refuse)
    assert extras.install_command("pages").startswith("install the packages of the extra pages")


def test_the_command_line_shows_all_of_it(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of pip are none of the command's, and stay."""
    for pip in (object(), None):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, pip=pip: pip)
        hint = extras.install_command("pages")
        assert hint_for(hint, command_of(command_line, ["report"])) == hint
