"""What pages rest on: colours, the columns of a long profile, where files may go, runs that ended."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import json
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccprobe.base.errors import BadReport, PackagesMissing, PageNotWritten
from mccprobe.base.extras import install_command
from mccprobe.objects.isa.disassemble import Disassemblers
from mccprobe.oracle.verdict import Outcome, Verdict
from mccprobe.report.pages import theme
from mccprobe.report.pages.bisect_page import bisect_page
from mccprobe.report.pages.blocks import Figure, Size
from mccprobe.report.pages.canvas import file_bytes, page_svg
from mccprobe.report.pages.finished import finished_page, finished_result
from mccprobe.report.pages.profile_figure import COLUMNS, _columns
from mccprobe.report.pages.render_html import render_html
from mccprobe.report.pages.write import Places
from mccprobe.search.spans import verdict_spans
from mccprobe.search.trial import Purpose, Trial

DATA = Path(__file__).parent / "data"
LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3, level AA, text of any size
MOST_BYTES = 2 << 20


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


PAIRS = [
    *((text, ground) for text in ("ink", "soft") for ground in ("page", "panel")),
    *((name, f"{name}-soft") for name in ("good", "bad", "unresolved", "sim")),
    *((name, "page") for name in ("accent", "good", "bad", "unresolved", "other", "sim")),
    ("accent", "panel"), ("ink", "sim-soft"), ("ink", "added"), ("ink", "removed"),
    *(("ink", f"pipe{at}") for at in range(len(theme.PIPES))),
]  # fmt: skip


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_can_be_read_on_its_ground(text: str, ground: str, dark: bool) -> None:
    colours = theme.LIGHT_AND_DARK
    assert contrast(colours[text][dark], colours[ground][dark]) >= LEAST_CONTRAST


def test_a_colour_of_a_figure_has_one_meaning() -> None:
    assert len(set(theme.LIGHT.values())) == len(theme.LIGHT)


# --- the profile --------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from(list(Verdict)))))
def test_spans_hold_every_limit_that_was_asked(asked: list[tuple[int, Verdict]]) -> None:
    log = [Trial(at, Purpose.SEARCH, limit, "o", Outcome(said, ""), True) for at, (limit, said) in enumerate(asked)]
    spans = verdict_spans(log)
    found = {limit: span.verdict for span in spans for limit in range(span.first, span.last + 1)}
    said = {limit: {verdict for one, verdict in asked if one == limit} for limit, _ in asked}
    order = (Verdict.BAD, Verdict.GOOD, Verdict.UNRESOLVED)  # a good object never fails
    assert found == {limit: next(one for one in order if one in verdicts) for limit, verdicts in said.items()}
    for before, after in pairwise(spans):
        assert before.last < after.first
        assert before.last + 1 < after.first or before.verdict is not after.verdict


@given(st.sets(st.integers(0, 5000), min_size=1), st.floats(1.0, 200.0))
def test_a_column_covers_every_limit_in_it(limits: set[int], width: float) -> None:
    drawn = list(_columns([(limit, limit) for limit in sorted(limits)], width))
    assert all(any(start <= limit <= end for start, end in drawn) for limit in limits)
    assert all(any(start - width <= limit <= end for limit in limits) for start, end in drawn)
    assert all(before[1] < after[0] for before, after in pairwise(drawn))


def test_a_long_profile_is_a_small_page() -> None:
    """112,724 executions in 5,000 islands, every edge named."""
    total, islands = 112_724, 5_000
    width = total // islands
    result: dict[str, Any] = json.loads((DATA / "bisect-profile.json").read_text("utf-8"))
    words = ("GOOD", "BAD")
    tested = [{"first": at * width, "last": at * width + width - 1, "verdict": words[at % 2]} for at in range(islands)]
    edges = [
        {
            "execution": at * width,
            "from": words[(at + 1) % 2],
            "to": words[at % 2],
            "pass": f"pass {at}",
            "function": "f(int)",
            "unresolved": [],
        }
        for at in range(1, islands)
    ]
    culprit = {**result["culprit"], "execution": width, "total": total}
    changes = {"total": total, "tested": tested, "edges": edges, "monotone": False, "culprit": culprit}
    text = render_html(bisect_page({**result, **changes}))
    assert len(text.encode()) < MOST_BYTES
    assert f"a column is {total / COLUMNS:,.0f} limits" in text
    assert "more edges are in result.json" in text and "4995 more edges" in text


# --- drawing ------------------------------------------------------------------------------------


def _figure(text: str) -> Figure:
    def paint(canvas: Any, narrow: bool) -> None:
        axes = canvas.subplots()
        axes.plot([0, 1], [0, 1], color=theme.LIGHT["good"])
        axes.set_title(text)

    return Figure("one", "caption", "alt", Size((300, 200), (150, 100)), paint)


def test_text_in_a_figure_is_no_formula() -> None:
    assert r"$\frac{1}{2}$ &lt;b&gt;" in page_svg(_figure(r"$\frac{1}{2}$ <b>"), narrow=False, prefix="f-")


def test_a_figure_takes_the_colours_of_the_page() -> None:
    svg = page_svg(_figure("x"), narrow=False, prefix="f-")
    assert "var(--good)" in svg and theme.LIGHT["good"] not in svg
    assert set(re.findall(r'id="(..)', svg)) <= {"f-"} and "<metadata" not in svg


def test_a_file_is_for_itself_and_the_same_each_time() -> None:
    svg, png = (file_bytes(_figure("x"), suffix) for suffix in ("svg", "png"))
    assert b"var(" not in svg and theme.LIGHT["good"].encode() in svg and png.startswith(b"\x89PNG")
    assert b"a stand-in: caption" in file_bytes(_figure("x"), "svg", mark="a stand-in")
    assert (svg, png) == tuple(file_bytes(_figure("x"), suffix) for suffix in ("svg", "png"))


def test_settings_of_the_user_do_not_reach_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    before = page_svg(_figure("x"), narrow=False, prefix="f-")
    monkeypatch.setitem(matplotlib.rcParams, "axes.grid", True)
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30)
    assert page_svg(_figure("x"), narrow=False, prefix="f-") == before


# --- files --------------------------------------------------------------------------------------


def _page() -> Any:
    return bisect_page(json.loads((DATA / "bisect.json").read_text("utf-8")))


def test_a_page_is_written_again_and_nothing_else_is_replaced(tmp_path: Path) -> None:
    places = Places(tmp_path / "p.html", tmp_path / "figures")
    for _ in range(2):
        places.check()
        written = places.write(_page())
    assert sorted(path.name for path in written) == ["p.html", "profile.png", "profile.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures", "p.html"]
    source = tmp_path / "gemm.mu"
    source.write_text("// a kernel, see mccprobe\n")
    with pytest.raises(PageNotWritten, match="did not make it"):
        Places(source).check()
    with pytest.raises(PageNotWritten, match="did not make it"):  # it came while the work was done
        Places(source).write(_page())
    assert source.read_text() == "// a kernel, see mccprobe\n"


def test_a_page_goes_through_a_pipe(tmp_path: Path) -> None:
    """Which nobody reads before it is written: `--html >(...)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    Places(pipe).check()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        page = pool.submit(pipe.read_bytes)
        Places(pipe).write(_page())
        assert page.result().lower().startswith(b"<!doctype html>")


def test_a_place_that_cannot_be_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for places in (
        Places(tmp_path),
        Places(tmp_path / "no" / "p.html"),
        Places(None, tmp_path / "file"),
        Places(None, tmp_path / "no" / "figures"),
    ):
        with pytest.raises(PageNotWritten):
            places.check()


def test_packages_that_are_missing_are_told_before_the_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "jinja2" else real(name, *a))
    with pytest.raises(PackagesMissing, match="--html needs the package jinja2") as caught:
        Places(tmp_path / "p.html").check()
    assert caught.value.hint == install_command("pages")
    Places(None, tmp_path / "figures").check()


# --- runs that ended ----------------------------------------------------------------------------


def test_a_run_that_a_budget_ended_is_not_finished(tmp_path: Path) -> None:
    assert finished_result(tmp_path) is None
    for result, finished in (({"exit_code": 6}, False), ({"status": "budget"}, False), ({"status": "found"}, True)):
        (tmp_path / "result.json").write_text(json.dumps(result))
        assert (finished_result(tmp_path) is not None) is finished


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '"x"'])
def test_a_damaged_result_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(BadReport):
        finished_result(tmp_path)


@given(st.data())
def test_a_result_of_another_shape_is_told(data: st.DataObject) -> None:
    """Any value of a result replaced: a page or a clear error."""
    result = json.loads((DATA / "bisect.json").read_text("utf-8"))
    key = data.draw(st.sampled_from(sorted(result)))
    result[key] = data.draw(st.sampled_from([None, 1, "x", [], {}, [1], ["x"], {"a": 1}, [{}], -5, 1e308, True]))
    try:
        assert finished_page(Path("run"), result, bisect_page).headline
    except BadReport as error:
        assert "run/result.json" in error.message


def test_no_disassembler_is_asked_for_without_a_page() -> None:
    from mccprobe.inspection.resources import ReportRequest

    assert ReportRequest([]).functions == 0 and Disassemblers().vendor == ""
