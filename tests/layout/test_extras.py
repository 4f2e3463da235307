"""Every `pip install 'mccprobe[EXTRA]'` that a user may read names an extra that exists and has what is missing."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from mccprobe.doctor.surroundings import parts_table

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"(?:mccprobe|\.whl)\[([\w, -]+)\]")
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
    assert len(named) > 3, "the texts were not found"
    assert not sorted(one for one in named if one[1].strip() not in EXTRAS)


def _named_by_code() -> Iterator[tuple[str, str, str]]:
    """Place, extra, and the message of the error if it is one, of every `install_command("EXTRA")`."""
    for place, text in _texts():
        if not place.endswith(".py") or "install_command(" not in text:
            continue
        tree = ast.parse(text)
        errors = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "hint=" in ast.unparse(node)]
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if ast.unparse(call.func) == "install_command" and isinstance(call.args[0], ast.Constant):
                around = [error for error in errors if call in ast.walk(error) and error.args]
                message = ast.unparse(around[-1].args[0]) if around else ""
                yield f"{place}:{call.lineno}", str(call.args[0].value), message


def test_an_error_that_names_a_package_hints_at_an_extra_that_has_it() -> None:
    named = list(_named_by_code())
    assert len(named) > 4, "the errors were not found"
    wrong = []
    for place, extra, message in named:
        packages = set(re.findall(r"\w+", message)) & PACKAGES
        if not packages or packages - EXTRAS.get(extra, set()):
            wrong.append(f"{place}: {message} -> {extra}")
    assert not wrong


def test_doctor_names_extras_that_have_the_modules() -> None:
    parts = [part for part in parts_table() if "extra" in part]
    assert {part["extra"] for part in parts} == {"frames", "parquet", "fast", "search", "plots", "pages", "cluster"}
    assert not [part["name"] for part in parts if set(part["modules"]) - EXTRAS[part["extra"]]]


def test_no_text_asks_a_package_index_for_mccprobe() -> None:
    """It may be installed from a file, by pipx, by uv or in a checkout: mccprobe.base.extras knows the command."""
    found = {place for place, text in _texts() if re.search(r"pip install '?mccprobe\b", text)}
    assert found == {"mccprobe/base/extras.py"}  # says why
