"""The site builds without a warning, and holds what is made from the code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mccprobe.base.errors import ExitCode
from mccprobe.cli import COMMANDS
from mccprobe.cli.help_cmd import ENVIRONMENT
from mccprobe.targets.flags.catalogue import load_catalogue

pytest.importorskip("sphinx", reason="sphinx is not here (extra `docs`)")

ROOT = Path(__file__).resolve().parents[2]
TAG = re.compile(r"(?s)<(?:script|style|svg).*?</(?:script|style|svg)>|<[^>]+>")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    argv = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(place)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return place


def words(page: Path) -> str:
    return " ".join(TAG.sub(" ", page.read_text(encoding="utf-8")).split())


def test_every_command_is_in_the_reference(site: Path) -> None:
    text = words(site / "reference/commands.html")
    assert not [name for name in (*COMMANDS, "help") if f"mccprobe {name}" not in text]
    assert "mccprobe flags search" in text and "--strategy" in text, "subcommands of groups, with their options"


def test_codes_flags_and_formats_are_in_the_reference(site: Path) -> None:
    codes = words(site / "reference/exit-codes.html")
    assert not [code for code in ExitCode if f" {int(code)} " not in codes]
    variables = words(site / "reference/environment.html")
    assert not [name for names in ENVIRONMENT for name in names.split(", ") if name not in variables]
    flags = words(site / "reference/flags.html")
    assert not [name for name in load_catalogue().flags if name not in flags]
    formats = words(site / "reference/json.html") + words(site / "reference/files.html")
    for path in (ROOT / "reports").glob("*.schema.json"):
        assert f"reports/{path.name}" in formats, path.name
        keys = json.loads(path.read_text(encoding="utf-8")).get("properties", {})
        assert not [key for key in keys if key not in formats], path.name


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    """Links may lead to other sites; scripts, styles, fonts and pictures come from the site itself."""
    tags = r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(?:https?:)?//[^\"]+\""
    loads = re.compile(tags + r"|url\(\s*['\"]?https?:")
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css")]
    assert not [(path.name, found) for path in files for found in loads.findall(path.read_text(encoding="utf-8"))]


def test_external_links_are_listed(site: Path) -> None:
    listed = (site / "external-links.txt").read_text(encoding="utf-8").split()
    assert "https://llvm.org/docs/HowToSubmitABug.html" in listed


def test_the_build_refuses_a_dead_link(tmp_path: Path) -> None:
    """-W is what the other tests rest on: here is something that it must refuse."""
    (tmp_path / "index.md").write_text("# Title\n\n[nowhere](missing.md)\n")
    (tmp_path / "conf.py").write_text('extensions = ["myst_parser"]\n')
    argv = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(tmp_path), str(tmp_path / "out")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False, env={**os.environ})
    assert done.returncode != 0 and "missing.md" in done.stderr
