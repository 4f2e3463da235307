"""A main loop of more instructions than have room for their names: told by pattern and legend, not by colour alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mccprobe.inspection.resources import ReportRequest, report_on
from mccprobe.report.pages import theme
from mccprobe.report.pages.render_html import MOST_PRINTED_ROWS, render_html
from mccprobe.report.pages.report_page import report_page
from mccprobe.report.pages.resource_figures import NAMED_TILES

MOST_BYTES = 200_000
SHORT_LOOP = Path(__file__).resolve().parents[1] / "isa" / "data" / "gemm-loop-mp22.s"
_BODY = ("INT.ADD R1, R1, R2", "FOP.MUL R1, R1, R2", "LDMA.RD.B32.BST1 R1, R2, _, 0", "BIT.LSL.OR R2, R2, C45, R1")
PIPES = ["BIT", "CTRL", "FOP", "INT", "LDMA.RD"]


def _page(folder: Path, instructions: int) -> str:
    """A kernel with one loop, in the shape of mcc's assembly: no bytes, so no words are known."""
    name = "_Z4gemmPKtS0_Pf"
    text = SHORT_LOOP.read_text("utf-8")
    body = [f"\t\t[N-sD---]\t\t{_BODY[at % len(_BODY)]}" for at in range(instructions - 1)]
    code = ["BB0_1:", *body, "\t\t[Nw-D---]\t\tCTRL.BR.ALLP0T BB0_1", "\t\t[N-wD---]\t\tCTRL.END"]
    head, tail = text.index(f"{name}:\n") + len(name) + 2, text.index(".Lfunc_end0:")
    path = folder / "loop.s"
    path.write_text(text[:head] + "\n".join(code) + "\n" + text[tail:], "utf-8")
    return render_html(report_page(report_on(ReportRequest([path], functions=1)), "0"))


def _loop(text: str) -> list[str]:
    """Its drawings, for a desk and for a phone."""
    figure = next(one for one in re.findall(r"<figure>.*?</figure>", text, re.DOTALL) if "Main loop" in one)
    return re.findall(r"<svg.*?</svg>", figure, re.DOTALL)


def test_every_pipe_has_a_pattern_of_its_own() -> None:
    assert len(theme.HATCHES) == len(set(theme.HATCHES)) == len(theme.PIPES)


def test_small_tiles_have_patterns_and_a_legend(tmp_path: Path) -> None:
    text = _page(tmp_path, NAMED_TILES + 50)
    drawings = _loop(text)
    assert len(drawings) == 2
    for svg in drawings:
        patterns = {re.sub(r'id="[^"]*"', "", one) for one in re.findall(r"<pattern.*?</pattern>", svg, re.DOTALL)}
        assert len(patterns) == len(PIPES) - 1, "the most frequent is plain"
        names = re.findall(r">([^<>]+)</text>", svg)
        assert sorted(names) == PIPES
        assert not re.findall(r"#[0-9a-f]{6}", svg), "colours are the page's, in patterns too"
    assert len(text) < MOST_BYTES


def test_tiles_with_room_carry_names(tmp_path: Path) -> None:
    for svg in _loop(_page(tmp_path, 41)):
        assert "<pattern" not in svg
        assert len(re.findall(r">INT</text>", svg)) == 10


@pytest.mark.parametrize("instructions", [MOST_PRINTED_ROWS - 10, MOST_PRINTED_ROWS + 10])
def test_a_long_table_of_a_figure_is_told_apart(tmp_path: Path, instructions: int) -> None:
    folded = re.findall(r'<details class="long">', _page(tmp_path, instructions))
    assert len(folded) == (1 if instructions > MOST_PRINTED_ROWS else 0)
