"""docs/reference/mtgpu.md has every section that code, data and tests cite it for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from doc_pages import read_page

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "mtgpu.md"
SUFFIXES = {".py", ".toml", ".md", ".rst", ".c", ".h", ".sh", ""}
# a line break and the comment sign behind it may stand anywhere in a citation
CITED = re.compile(r"mtgpu\.md(?P<places>(?:,?\s+(?:#\s+)?(?:and|sections?|rule|\d+(?:\.\d+)?)\b)+)")
PLACE = re.compile(r"(?P<rule>rule\s+)?(?P<number>\d+(?:\.\d+)?)")
RULES = "1.3"


def places(text: str) -> set[str]:
    """The sections of every citation in `text`; a rule as `1.3 rule 5`."""
    found = set()
    for cited in CITED.finditer(text):
        for place in PLACE.finditer(cited["places"]):
            found.add(f"{RULES} rule {place['number']}" if place["rule"] else place["number"])
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mtgpu.md 5.2", {"5.2"}),
        ("note; mtgpu.md 5.2 and 1.3 rule 9; article section 18", {"5.2", "1.3", "1.3 rule 9"}),
        ("asked: mtgpu.md, sections 1.3 and 11.", {"1.3", "11"}),
        ("may refuse (mtgpu.md\n4.4), then", {"4.4"}),
        ("mtgpu.md 3.4: mcc adds 20 bytes, and 128", {"3.4"}),
        ("(mtgpu.md 4.1, 4.2)", {"4.1", "4.2"}),
        ("not in mtgpu.md", set()),
    ],
)
def test_the_rule_itself(text: str, found: set[str]) -> None:
    assert places(text) == found


def test_every_cited_section_is_in_the_page() -> None:
    headings = {text.split()[0] for _, text in read_page(PAGE).headings}
    rules = PAGE.read_text("utf-8").partition(f"### {RULES} ")[2].partition("\n## ")[0]
    here = headings | {f"{RULES} rule {number}" for number in re.findall(r"^(\d+)\. ", rules, re.MULTILINE)}
    cited = {
        (place, path.relative_to(ROOT).as_posix())
        for folder in ("mccprobe", "tests", "docs", "kernels", "bisect", "benchmarks", "tools", "wrappers", "reports")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in SUFFIXES and path != Path(__file__)
        for place in places(path.read_text("utf-8", errors="replace"))
    }
    assert len({place for place, _ in cited}) > 20, "the citations were not found"
    assert not sorted(one for one in cited if one[0] not in here)
