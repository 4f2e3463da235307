"""One version: mccprobe.__version__, and everything that tells a version tells that one."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mccprobe import __version__

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}  # of Keep a Changelog


def test_it_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["dynamic"] == ["version"] and "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "mccprobe.__version__"}
    assigned = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "mccprobe").rglob("*.py"))
        if re.search(r"^__version__\s*=", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert assigned == ["mccprobe/__init__.py"]


def test_every_document_tells_it(run_cli: Callable[..., Any]) -> None:
    assert run_cli("--version").stdout == f"mccprobe {__version__}\n"
    for command in (("plan", "--json"), ("flags", "list", "--json"), ("report", "no-such-file", "--json")):
        assert json.loads(run_cli(*command).stdout)["tool_version"] == __version__, command


def test_the_installed_command_tells_it(mccprobe: Callable[..., Any]) -> None:
    ran = mccprobe("--version")
    assert ran.code == 0 and ran.stdout == f"mccprobe {__version__}\n", ran


def test_the_changelog_keeps_its_form() -> None:
    """Newest first; what is not released stands under Unreleased; kinds of changes as Keep a Changelog names them."""
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    released = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})", text) for text in headings[1:]]
    assert all(released), headings
    versions = [tuple(map(int, found[1].split("."))) for found in released if found]
    assert versions == sorted(versions, reverse=True)
    kinds = re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE)
    assert kinds and set(kinds) <= KINDS
    assert not re.search(r"^(#### |\* )", CHANGELOG, re.MULTILINE)


def test_version_and_changelog_agree() -> None:
    """The version is the newest released one, or a later one that Unreleased is about."""
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", CHANGELOG, re.MULTILINE)
    now = tuple(map(int, re.findall(r"\d+", __version__)))
    newest = tuple(map(int, released[0].split("."))) if released else (0, 0, 0)
    assert now >= newest
    body = CHANGELOG.partition("## [Unreleased]")[2].partition("\n## ")[0]
    assert now == newest or "\n- " in body, "a version that is not released has no changes"
