"""Every `pip install 'mccprobe[EXTRA]'` that a user may read names an extra that exists and has what is missing."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"mccprobe\[([\w, -]+)\]")
EXTRAS: dict[str, set[str]] = {
    extra: {re.split(r"[<>=!~\[ ]", text, maxsplit=1)[0] for text in needed}
    for extra, needed in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ].items()
}
PACKAGES = set().union(*EXTRAS.values())
PLACES = ("mccprobe", "docs", "kernels", "wrappers", "benchmarks", "tools", "README.md", "README.zh.md", "SECURITY.md")


def _texts() -> Iterator[tuple[str, str]]:
    for place in PLACES:
        top = ROOT / place
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.suffix in {".py", ".toml", ".md", ".rst"} and path.is_file():
                yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def test_every_named_extra_exists() -> None:
    named = {(place, extra) for place, text in _texts() for found in NAMED.findall(text) for extra in found.split(",")}
    assert len(named) > 10, "the hints were not found"
    assert not sorted(one for one in named if one[1].strip() not in EXTRAS)


def test_an_error_that_names_a_package_hints_at_an_extra_that_has_it() -> None:
    checked, wrong = 0, []
    for place, text in _texts():
        if not place.endswith(".py"):
            continue
        for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and node.args):
            hint = next((keyword.value for keyword in call.keywords if keyword.arg == "hint"), None)
            message = call.args[0]
            if not isinstance(hint, ast.Constant) or not isinstance(message, ast.Constant):
                continue
            for extra in NAMED.findall(str(hint.value)):
                packages = set(re.findall(r"\w+", str(message.value))) & PACKAGES
                checked += bool(packages)
                if not packages or packages - EXTRAS.get(extra, set()):
                    wrong.append(f"{place}:{call.lineno}: {message.value} -> {extra}")
    assert checked > 4, "the errors were not found"
    assert not wrong
