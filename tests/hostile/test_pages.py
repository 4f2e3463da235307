"""Pages of hostile names: text stays text, whatever HTML, a template or SVG would make of it."""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from .reader import ROOT
from .test_names import STEERING, Ask, ask

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from mccprobe.report.pages.render_html import render_html

__all__ = ["ask"]  # the fixture
NAMES = (
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)", "javascript:alert(1)",
    "</style><b>", "</title><svg onload=alert(1)>", "-->]]>", "{{7*7}}{%raw%}", "$x^{2}$\\alpha", "&lt;b&gt;&amp;",
    "http://x.example/", "\x1b[2J\x9b\u202egpj", "a\nb",
)  # fmt: skip


class Tags(HTMLParser):
    """Which elements and attributes there are, where they lead, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.leads_to: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        self.leads_to |= {value or "" for name, value in attrs if name in ("href", "src", "xlink:href", "action")}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


PLAIN = {path.name: json.loads(path.read_text("utf-8")) for path in (ROOT / "tests/pages/data").glob("*.json")}
PAGES = {"bench": "bench_page", "bisect": "bisect_page", "flags": "search_page", "why": "why_page"}
# whose values are texts of compilers, programs and people; those of other keys are words of ours
FREE = frozenset(
    "function symbol title version compiler source text reason diff command summary what name kernel file before after "
    "working_directory device note message told description subject lines object".split()
)


def named(value: Any, name: str, key: str = "") -> Any:
    """The same document with this name in every free text."""
    if isinstance(value, dict):
        return {one: named(item, name, one) for one, item in value.items()}
    if isinstance(value, list):
        return [named(item, name, key) for item in value]
    return value + name if isinstance(value, str) and key in FREE else value


def page_of(file: str, document: dict[str, Any]) -> str:
    module = importlib.import_module(f"mccprobe.report.pages.{PAGES[re.split('[-.]', file)[0]]}")
    return render_html(getattr(module, PAGES[re.split("[-.]", file)[0]])(document))


def require_harmless(page: str, plain: Tags) -> None:
    found = Tags(page)
    for tag in ("script", "style", "img", "svg", "iframe", "object", "form", "link", "base", "meta", "b", "title"):
        assert found.elements[tag] <= plain.elements[tag], tag
    assert not {one for one in found.attributes if one.startswith("on")}
    assert found.attributes <= plain.attributes | {"title", "class", "id"}
    assert all(one.startswith(("#", "data:")) for one in found.leads_to), found.leads_to
    assert not (STEERING - {"\n"}) & set(page)


@pytest.mark.parametrize("file", sorted(PLAIN))
def test_pages_of_results(file: str) -> None:
    plain = Tags(page_of(file, PLAIN[file]))
    text = page_of(file, named(PLAIN[file], "".join(NAMES)))
    assert "<script>alert" not in text and "alert(1)" in "".join(Tags(text).texts)
    require_harmless(text, plain)


def test_page_of_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask) -> None:
    monkeypatch.chdir(tmp_path)
    listing = (ROOT / "tests/isa/data/demo-mp22.s").read_bytes()
    name = json.dumps("".join(NAMES), ensure_ascii=False).encode()  # as YAML takes it between double quotes
    hostile = listing.replace(b".name:           _Z5demo1Pf", b".name:           " + name)
    assert hostile != listing
    pages = []
    for number, data in enumerate((listing, hostile)):
        Path(f"{number}<b>.s").write_bytes(data)
        assert ask("report", f"{number}<b>.s", "--html", f"{number}.html")[0] == 0
        pages.append(Path(f"{number}.html").read_text("utf-8"))
    assert "{{7*7}}" in "".join(Tags(pages[1]).texts)
    require_harmless(pages[1], Tags(pages[0]))
