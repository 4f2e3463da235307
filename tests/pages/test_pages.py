"""Pages from documents: what they say, what they mark, what they escape. No browser here."""

from __future__ import annotations

import copy
import functools
import html
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mccprobe.report.pages.bench_page import bench_page
from mccprobe.report.pages.bisect_page import MOST_NAME, bisect_page
from mccprobe.report.pages.blocks import Code, Notes, Page
from mccprobe.report.pages.render_html import render_html
from mccprobe.report.pages.search_page import search_page
from mccprobe.report.pages.why_page import why_page
from mccprobe.report.record import Status

DATA = Path(__file__).parent / "data"
REPORTS = Path(__file__).resolve().parents[2] / "reports"
MAKERS: dict[str, Callable[[dict[str, Any]], Page]] = {
    "bisect": bisect_page, "why": why_page, "flags-search": search_page, "bench": bench_page,
}  # fmt: skip
SCHEMAS = {name: f"{name}.schema.json" for name in MAKERS}
NAMES = sorted(path.stem for path in DATA.glob("*.json"))
HOSTILE = (
    "</style></script><script>window.hit=1</script><img src=//x.invalid/y onerror=window.hit=1>\x1b[2J\x00\udc9f$x$"
)


def kind_of(name: str) -> str:
    return max((kind for kind in MAKERS if name.startswith(kind)), key=len)


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return found


def page_of(name: str, **changes: Any) -> Page:
    return MAKERS[kind_of(name)]({**document(name), **changes})


@functools.cache
def html_of(name: str) -> str:
    return render_html(page_of(name))


class Elements(HTMLParser):
    """Names of elements, their attributes, and the text outside of style and script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._hidden = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._hidden = tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


@pytest.mark.parametrize("name", NAMES)
def test_the_documents_are_what_the_commands_print(name: str) -> None:
    schema = json.loads((REPORTS / SCHEMAS[kind_of(name)]).read_text("utf-8"))
    assert MAKERS[kind_of(name)](document(name)).headline
    if kind_of(name) == "why":  # it refers to the schema of bisect
        assert {"flag_sets", "bisect"} <= set(schema["$defs"]["report"]["properties"])
        return
    jsonschema.validate(document(name), schema)


@pytest.mark.parametrize("name", NAMES)
def test_one_document_gives_one_page(name: str) -> None:
    assert html_of(name) == render_html(page_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_loads_nothing_and_its_ids_are_its_own(name: str) -> None:
    found = Elements(html_of(name))
    for tag, attributes in found.elements:
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form", "image", "foreignobject"}
        for key in ("src", "href", "xlink:href", "action", "srcset"):
            assert (attributes.get(key) or "#").startswith("#"), (tag, attributes)
        assert not [key for key in attributes if key.startswith("on")], (tag, attributes)
        assert "url(" not in (attributes.get("style") or "").replace("url(#", "")
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    anchors = {(a.get("href") or "")[1:] for tag, a in found.elements if tag == "a"}
    assert anchors <= set(ids)
    policy = next(a["content"] for _, a in found.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and policy.startswith("default-src 'none'")
    assert "unsafe-inline" not in policy.partition("script-src")[2]


@pytest.mark.parametrize("name", NAMES)
def test_figures_have_no_colour_of_their_own(name: str) -> None:
    svgs = re.findall(r"<svg.*?</svg>", html_of(name), re.DOTALL)
    assert bool(svgs) is bool(page_of(name).figures())
    for svg in svgs:
        without_references = re.sub(r'href="#[^"]*"|url\(#[^)]*\)', "", svg)
        assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", without_references)
        assert "font-family" not in svg and "font:" not in svg


@pytest.mark.parametrize("name", [name for name in NAMES if document(name).get("simulated")])
def test_a_stand_in_is_marked_wherever_it_speaks(name: str) -> None:
    page = page_of(name)
    text = html_of(name)
    assert "SIMULATED" in page.mark and page.warning
    marked = [section for section in page.sections if section.key != "space"]
    assert all(section.mark for section in marked)
    for rows in re.findall(r"<tbody>.*?</tbody>", text, re.DOTALL):
        for row in re.findall(r"<tr>.*?</tr>", rows, re.DOTALL):
            assert 'class="mark"' in row or "choices" in text
    for caption in re.findall(r"<figcaption>.*?</figcaption>", text, re.DOTALL):
        assert 'class="mark"' in caption
    if kind_of(name) in ("bisect", "why"):
        assert Elements(text).text.count("# SIMULATED: sim, not mcc") >= 2


@pytest.mark.parametrize("name", [name for name in NAMES if not document(name).get("simulated")])
def test_what_is_real_has_no_mark(name: str) -> None:
    assert 'class="mark"' not in html_of(name)


@pytest.mark.parametrize(
    ("status", "named"),
    [
        (status, named)
        for status in Status
        for named in (True, False)
        if status is not Status.ERROR and (named or status is not Status.FOUND)  # found names a pass
    ],
)
def test_only_what_is_confirmed_is_said_to_be(status: Status, named: bool) -> None:
    given = document("bisect")
    page = page_of("bisect", status=status.value, culprit=given["culprit"] if named else None)
    title = given["culprit"]["pass"]
    assert (title in page.headline) is named
    if status is Status.FOUND:
        assert page.headline.endswith("turns the result wrong: confirmed")
    else:
        assert "turns the result wrong" not in page.headline
        assert ": confirmed" not in page.headline
    if named and status is not Status.FOUND:
        assert "not confirmed" in page.headline or "non-deterministic" in page.headline


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (None, "a function that the log does not name"),
        ("gemm<int>(half*, int)", "gemm<int>"),
        ("ns::gemm<" + "cute::C<128>, " * 20 + "int>(half*)", "ns::gemm<...>"),
        ("_Z" + "7mangled" * 20, "_Z7mangled7mangled7mangled7mangled7mangled7mangled7mangle..."),
        ("operator<(T, T)", "operator<(T, T)"),
    ],
)
def test_a_headline_has_room_for_the_name(function: str | None, shown: str) -> None:
    """The whole name stands below it."""
    given = document("bisect")
    culprit = {**given["culprit"], "function": function}
    edges = [{**given["edges"][0], "function": function}]
    page = page_of("bisect", culprit=culprit, edges=edges)
    assert page.headline == f"{culprit['pass']} on {shown} turns the result wrong: confirmed"
    assert len(shown) <= MOST_NAME
    if function:
        assert html.escape(function, quote=False).split()[0] in render_html(page)


def test_an_older_result_without_the_limits_that_were_asked() -> None:
    given = document("bisect")
    del given["tested"]
    page = bisect_page(given)
    assert not page.figures() and "Where the verdict changes" in [section.title for section in page.sections]


def test_a_diff_among_the_notes_is_set_as_one() -> None:
    """What a note ends in is indented below it, line by line; on a page these lines are no sentences."""
    changed = ["changed by this execution:", "  - %a = icmp eq i32 %b, 0", "  + br i1 false", "the check is fast"]
    notes = next(section for section in page_of("bisect", notes=changed).sections if section.key == "notes")
    assert notes.blocks == (
        Notes(("changed by this execution:",)),
        Code("changed by this execution", "- %a = icmp eq i32 %b, 0\n+ br i1 false", diff=True),
        Notes(("the check is fast",)),
    )


def test_a_stopped_run_says_so_first() -> None:
    page = page_of("why", stopped="the screen found a race in the program", bisect=None, culprit=None)
    assert page.headline == "Stopped: the screen found a race in the program"


def test_a_refused_bench_has_no_figure() -> None:
    page = page_of("bench", measurement=None, refused="gemm: the gate did not pass")
    assert page.headline == "Not timed: gemm: the gate did not pass" and not page.figures()


@pytest.mark.parametrize(
    ("shown", "words"), [("faster", "is faster than"), ("slower", "is slower than"), ("not shown", "No difference")]
)
def test_a_bench_claims_what_its_interval_shows(shown: str, words: str) -> None:
    given = document("bench-program")
    given["measurement"]["ratio"]["shown"] = shown
    assert words in bench_page(given).headline


def test_what_only_compiled_is_no_winner() -> None:
    given = document("flags-search")
    mark = "gfx908 stand-in, not MP22"
    given |= {"status": "compiled-only", "lowest": given["winner"], "winner": None, "heading": mark}
    page = search_page(given)
    assert "no winner" in page.headline and page.mark == mark


def _with_everywhere(value: Any, text: str) -> Any:
    """Every free text of a document replaced."""
    if isinstance(value, dict):
        return {key: item if key in _WORDS else _with_everywhere(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_everywhere(item, text) for item in value]
    return text if isinstance(value, str) else value


_WORDS = frozenset({"status", "verdict", "verdicts", "from", "to", "outcome", "state", "shown", "confirmed"})


@pytest.mark.parametrize("name", NAMES)
def test_no_text_becomes_markup(name: str) -> None:
    given = copy.deepcopy(document(name))
    page = MAKERS[kind_of(name)](_with_everywhere(given, HOSTILE))
    text = render_html(page)
    found = Elements(text)
    assert text.count("<script>") == 1 and text.count("</style>") == 1
    assert not [tag for tag, _ in found.elements if tag == "img"]
    assert "\x1b" not in text and "\x00" not in text and "\udc9f" not in text
    assert "\\x1b[2J\\x00\\x9f$x$" in found.text
    text.encode("utf-8")
