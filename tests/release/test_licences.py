"""THIRD_PARTY_LICENSES.md names what is installed, and nothing there forbids the Apache License of mccprobe."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Licences of packages that are imported, not copied: permissive ones, and MPL-2.0, whose terms hold for its own files
# alone (MPL-2.0 section 3.3; category B of the Apache Software Foundation's policy).
COMPATIBLE = frozenset(
    "0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause CC0-1.0 HPND ISC LicenseRef-Public-Domain MIT MIT-CMU MPL-2.0 PSF-2.0 "
    "Unlicense Zlib".split()
)


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences", ROOT / "tools/licences.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def listed() -> dict[str, str]:
    """Package -> licence of the file."""
    text = (ROOT / "THIRD_PARTY_LICENSES.md").read_text("utf-8")
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (.+?) \| .+ \|$", text, re.M)
    return {name: licence for name, licence in rows if name not in ("package", "---")}


def compatible(expression: str) -> bool:
    """AND needs each side, OR one of them; parentheses as far as packages use them."""
    return all(
        any(choice.strip(" ()") in COMPATIBLE for choice in part.split(" OR "))
        for part in re.split(r" AND (?![^(]*\))", expression)
    )


def test_every_installed_package_is_listed(licences: ModuleType, listed: dict[str, str]) -> None:
    """Extras that are not installed here cannot be walked; in CI all are (tools/setup)."""
    installed = set(licences.installed_by(""))
    for extra in licences.extras_of_users():
        installed |= licences.installed_by(extra)
    assert len(installed) > 20
    assert not sorted(installed - set(listed)), "run tools/licences.py"


def test_what_is_listed_is_what_the_packages_say(licences: ModuleType, listed: dict[str, str]) -> None:
    installed = {name for extra in ["", *licences.extras_of_users()] for name in licences.installed_by(extra)}
    differ = {name: licences.licence_of(name) for name in installed if licences.licence_of(name) != listed.get(name)}
    assert not differ, "run tools/licences.py"


def test_none_is_against_our_licence(listed: dict[str, str]) -> None:
    assert {"click", "pandas", "optuna", "matplotlib"} <= set(listed)
    assert not {name: licence for name, licence in listed.items() if not compatible(licence)}


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("MIT", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-2.0-or-later", False),
        ("MIT AND (GPL-2.0-only OR AGPL-3.0-only)", False),
        ("unknown", False),
    ],
)
def test_the_rule_itself(expression: str, answer: bool) -> None:
    assert compatible(expression) is answer
