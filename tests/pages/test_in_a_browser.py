"""Pages in Debian's chromium: nothing is asked of the network, nothing is complained about, everything is reached.

The browser is driven by playwright, which downloads none here; contrast and names are judged by axe-core.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mccprobe.inspection.resources import ReportRequest, report_on
from mccprobe.report.pages.bench_page import bench_page
from mccprobe.report.pages.bisect_page import bisect_page
from mccprobe.report.pages.render_html import render_html
from mccprobe.report.pages.report_page import report_page
from mccprobe.report.pages.search_page import search_page
from mccprobe.report.pages.why_page import why_page

DATA = Path(__file__).parent / "data"
LISTING = Path(__file__).resolve().parents[1] / "isa" / "data" / "objdump-mtgpu-invented.txt"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
CONTENT = {
    "bisect": ("Machine Instruction Scheduler on gemm_wmma_256 turns the result wrong: confirmed", "Flag by pass"),
    "bisect-profile": ("every limit was asked",),
    "why": ("First bad instruction", "Ways around", "VFMADD213PSYm", "Is the program to blame?"),
    "report": ("Instructions by pipe", "Main loop at 0xc", "Occupancy by each model"),
    "flags-search": ("-mavx2", "What each flag is worth", "Wrong candidates", "-ffast-math"),
    "bench": ("emulation time", "Against each other", "Best, quarter, median"),
}


def _page(name: str) -> Any:
    if name == "report":
        return report_page(report_on(ReportRequest([LISTING], functions=1)), "0")
    document = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    makers = {
        "bisect": bisect_page,
        "bisect-profile": bisect_page,
        "why": why_page,
        "flags-search": search_page,
        "bench": bench_page,
    }
    return makers[name](document)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, or a skip that tells what was tried. Of this module: its processes come and go."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        try:
            found = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        except sync_api.Error as error:
            pytest.skip(f"chromium does not start here: {str(error)[:300]}")
        yield found
        found.close()


class Seen:
    """An opened page, with what it asked for and what was complained of."""

    def __init__(self, browser: Any, path: Path, **settings: Any) -> None:
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self) -> Seen:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@pytest.mark.toolchain
@pytest.mark.parametrize("name", sorted(CONTENT))
def test_a_page_in_a_browser(browser: Any, tmp_path: Path, name: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    path = tmp_path / "page.html"
    path.write_text(render_html(_page(name)), "utf-8")
    for scheme in ("light", "dark"):
        with Seen(browser, path, viewport=DESK, color_scheme=scheme) as seen:
            shown = seen.page.inner_text("body")
            for words in CONTENT[name]:
                assert words in shown
            found = axe.Axe().run(seen.page).response
            assert "color-contrast" in {one["id"] for one in found["passes"]}
            assert not [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found["violations"]]
            ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(21, 23, 26)") is (scheme == "dark")
            other = "light" if scheme == "dark" else "dark"
            seen.page.check(f"#scheme-{other}", force=True)
            assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") != ground
            if scheme == "light":
                _everything_is_reached_by_key(seen.page)
                _paper_has_everything(seen.page)
            assert not seen.complaints and set(seen.requests) == {path.as_uri()}
    with Seen(browser, path, viewport=PHONE) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert not seen.complaints


def _everything_is_reached_by_key(page: Any) -> None:
    """Tab goes through every link, button, choice, summary and what scrolls, in the order of the page."""
    page.reload()
    wanted = page.evaluate(
        "[...document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]')]"
        ".filter(e => e.checkVisibility()).map((e, i) => { e.dataset.at = i; return e.tagName })"
    )
    assert wanted[0] == "A"  # the skip link
    reached = []
    for _ in range(len(wanted) + 3):
        page.keyboard.press("Tab")
        at = page.evaluate("document.activeElement.dataset.at ?? null")
        if at is not None:
            reached.append(int(at))
            visible = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert visible != "none"
    assert list(dict.fromkeys(reached)) == list(range(len(wanted)))


def _paper_has_everything(page: Any) -> None:
    """On paper what is folded is open, nothing scrolls, and the ground is light."""
    titles = page.eval_on_selector_all("h2", "all => all.map(e => e.textContent.trim())")
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    printed = page.inner_text("main")
    assert titles and all(title.split("\n")[0] in printed for title in titles)
    assert page.eval_on_selector_all("details:not(.long)", "all => all.every(e => e.open)")
    _long_tables_stay_folded(page)
    _nothing_is_cut_off(page)
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    assert page.pdf(format="A4").startswith(b"%PDF-")
    page.emulate_media(media="screen")


def _long_tables_stay_folded(page: Any) -> None:
    """A figure's table of many sheets is printed only where the reader unfolded it, and its line says so."""
    said = page.eval_on_selector_all(
        "details.long", "all => all.map(e => [e.open, getComputedStyle(e.firstElementChild, '::after').content])"
    )
    assert all(not opened and "unfold" in content for opened, content in said)


def _nothing_is_cut_off(page: Any) -> None:
    """On a sheet of A4 less its margins no table, code or figure is wider than the text, and none scrolls."""
    width = round((210 - 2 * 16) / 25.4 * 96)  # CSS pixels; 16 mm as in page.css
    page.set_viewport_size({"width": width, "height": 1000})
    wide = page.eval_on_selector_all(
        "main *",
        "(all, width) => all.filter(e => e.checkVisibility() && !e.closest('svg') && "
        "e.getBoundingClientRect().right > width + 1).map(e => e.outerHTML.slice(0, 120))",
        width,
    )
    assert not wide
    page.set_viewport_size(DESK)


@pytest.mark.toolchain
def test_commands_are_copied_as_they_are(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(render_html(_page("bisect")), "utf-8")
    with Seen(browser, path, viewport=DESK) as seen:
        seen.context.grant_permissions(["clipboard-read", "clipboard-write"])
        seen.page.click("button >> nth=0")
        seen.page.wait_for_selector("text=Copied")
        copied = seen.page.evaluate("navigator.clipboard.readText()")
    commands = json.loads((DATA / "bisect.json").read_text("utf-8"))["reproduce"]["good"]
    assert copied == "\n".join(["# SIMULATED: sim, not mcc", *(shlex.join(argv) for argv in commands), ""])


@pytest.mark.toolchain
def test_what_slips_in_does_not_run(browser: Any, tmp_path: Path) -> None:
    """Were a text ever markup, the policy would still let nothing load and nothing run."""
    path = tmp_path / "page.html"
    bad = "<script>window.hit=1</script><img src='https://mccprobe.invalid/x' onerror='window.hit=1'><h1>"
    path.write_text(render_html(_page("bisect")).replace("<h1 ", f"{bad}</h1><h1 ", 1), "utf-8")
    with Seen(browser, path, viewport=DESK) as seen:
        assert seen.page.evaluate("window.hit") is None
        assert any("Content Security Policy" in text for text in seen.complaints)
